from __future__ import annotations

import os
from pathlib import Path

import pytest

from voice.metric_files import PREFIX, metric_files


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def make_old(path: Path) -> None:
    os.utime(path, (1e9, 1e9))


def test_the_folder_is_new_and_gone_afterwards(temporary: Path) -> None:
    with metric_files() as folder:
        (folder / "counter_1.db").touch()
        assert folder.parent == temporary

    assert list(temporary.iterdir()) == []


def test_what_a_killed_front_left_is_removed_and_nothing_else(temporary: Path) -> None:
    left, new, other = temporary / f"{PREFIX}left", temporary / f"{PREFIX}new", temporary / "other"
    for folder in (left, new, other):
        folder.mkdir()
        (folder / "counter_1.db").touch()
    for folder in (left, other):
        make_old(folder)
    link = temporary / f"{PREFIX}link"
    link.symlink_to(other)

    with metric_files() as living:
        make_old(living)
        with metric_files() as second:
            assert {living, second, new, other, link} == set(temporary.iterdir())

    assert (other / "counter_1.db").exists()
