from __future__ import annotations

from pathlib import Path

import pytest

from deploy.catalogue import File, HubFile, Model
from deploy.doctor.findings import Finding
from deploy.doctor.weights import check_weights, read_weights
from deploy.store import Store
from wire.weights import COMPLETE_MARK

MODEL = Model(
    "tiny", "llm", ("en",), "MIT", (File("model.bin", 7, "0" * 64, hub=HubFile("a/b", "0" * 40, "model.bin")),)
)


def checked(cache: Path) -> Finding:
    (finding,) = check_weights(read_weights(Store(cache), [(MODEL, "llm.workers[0].weights")]), "bin/offhook")
    return finding


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "models" / "tiny"
    path.mkdir(parents=True)
    (path / "model.bin").write_bytes(b"weights")
    (path / COMPLETE_MARK).touch()
    return path


def test_whole_model_is_ok(tmp_path: Path, folder: Path) -> None:
    assert checked(tmp_path).level == "ok"


def test_missing_model_names_who_wants_it_and_the_command(tmp_path: Path) -> None:
    finding = checked(tmp_path)
    assert (finding.level, finding.mend) == ("problem", "bin/offhook models pull tiny")
    assert finding.found == "missing (0.0 MB); llm.workers[0].weights names it"


def test_model_fetched_in_part_is_told(tmp_path: Path, folder: Path) -> None:
    (folder / COMPLETE_MARK).unlink()
    assert "only in part" in checked(tmp_path).found


def test_file_of_wrong_size_or_absent_is_to_be_verified(tmp_path: Path, folder: Path) -> None:
    (folder / "model.bin").write_bytes(b"weight")
    finding = checked(tmp_path)
    assert (finding.level, finding.mend) == ("problem", "bin/offhook models verify tiny")
    assert finding.found == "model.bin has 6 bytes instead of 7"
    (folder / "model.bin").unlink()
    assert checked(tmp_path).found == "model.bin is missing"


def test_cache_that_cannot_be_looked_into_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "models").symlink_to(tmp_path / "models")
    finding = checked(tmp_path)
    assert finding.level == "problem"
    assert "symbolic links" in finding.found
    assert "OFFHOOK_CACHE" in finding.mend
