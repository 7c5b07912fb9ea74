from __future__ import annotations

from pathlib import Path

import pytest

from wire.errors import Unavailable
from wire.weights import COMPLETE_MARK, cache_dir, model_dir


def test_the_cache_is_ours_else_the_users_else_the_homes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OFFHOOK_CACHE", "~/a")
    monkeypatch.setenv("XDG_CACHE_HOME", "/b")
    monkeypatch.setenv("HOME", "/home/c")
    assert cache_dir() == Path("/home/c/a")

    monkeypatch.setenv("OFFHOOK_CACHE", "")
    assert cache_dir() == Path("/b/offhook")

    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_dir() == Path("/home/c/.cache/offhook")


def test_a_model_that_is_missing_or_half_fetched_says_how_to_fetch_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OFFHOOK_CACHE", str(tmp_path))
    folder = tmp_path / "models/m"
    for make in (lambda: None, lambda: folder.mkdir(parents=True)):
        make()
        with pytest.raises(Unavailable, match="offhook models pull m"):
            model_dir("m")

    (folder / COMPLETE_MARK).touch()
    assert model_dir("m") == folder
