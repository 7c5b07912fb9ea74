from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from deploy.catalogue import Catalogue, File, HubFile, Model, Wheel, WheelMember, read_catalogue
from wire.config import ConfigError

SHA = "a" * 64
PART = WheelMember("some-weights==1.0", "some_weights/model.bin")


def test_every_wheel_of_the_shipped_catalogue_is_used_and_larger_than_nothing() -> None:
    catalogue = read_catalogue()
    used = {package for model in catalogue.models for package in model.packages}
    assert used == set(catalogue.wheels)
    assert all(wheel.size_bytes > 0 for wheel in catalogue.wheels.values())


def test_shipped_catalogue_says_that_the_default_voice_is_of_unclear_lineage() -> None:
    assert "lessac" in read_catalogue().model("piper-en-us-joe-medium").note


def test_whisper_base_is_joined_from_two_wheels_in_order() -> None:
    model = next(file for file in read_catalogue().model("whisper-base").files if file.name == "model.bin")
    assert [part.member.rpartition(".")[2] for part in model.wheel] == ["part1", "part2"]


def test_unknown_id_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'whisper-base'"):
        read_catalogue().model("whisper-bse")


@pytest.mark.parametrize(
    "changes",
    [
        {"sha256": SHA.upper()},
        {"sha256": "abc"},
        {"size_bytes": 0},
        {"name": "../model.bin"},
        {"name": ".complete"},
        {"wheel": ()},
    ],
)
def test_file_that_could_not_be_checked_or_would_leave_its_folder_is_refused(changes: dict[str, object]) -> None:
    good = File("model.bin", 3, SHA, (PART,))
    with pytest.raises(ValueError):  # noqa: PT011
        replace(good, **changes)  # type: ignore[arg-type]


def test_hub_revision_must_be_a_commit() -> None:
    with pytest.raises(ValueError, match="commit"):
        HubFile("owner/name", "main", "model.bin")


def test_wheel_must_be_pinned() -> None:
    with pytest.raises(ValueError, match="pinned"):
        WheelMember("some-weights>=1", "model.bin")


def test_model_needs_one_kind_of_source_for_all_its_files() -> None:
    hub = HubFile("owner/name", "0" * 40, "b")
    model = Model("m", "stt", ("en",), "MIT", (File("a", 1, SHA, (PART,)), File("b", 1, SHA, hub=hub)))
    with pytest.raises(ValueError, match="no kind of source"):
        Catalogue((model,), {PART.package: Wheel(1)})


def test_space_for_a_wheel_is_counted_beside_its_files() -> None:
    model = Model("m", "stt", ("en",), "MIT", (File("a", 10, SHA, (PART,)),))
    assert Catalogue((model,), {PART.package: Wheel(7)}).work_bytes(model, "wheel") == 17


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("models = [", "not TOML"),
        ("[[models]]\nid = 'x'\n", "missing"),
        ("a = " + 2000 * "[", "nested too deeply"),
        ("[[modles]]\n", "did you mean 'models'"),
    ],
)
def test_bad_catalogue_is_one_line_with_its_path(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "models.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=problem) as caught:
        read_catalogue(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_catalogue_is_one_line(tmp_path: Path) -> None:
    for path in (tmp_path / "none.toml", Path("/dev/zero")):
        with pytest.raises(ConfigError, match="cannot read"):
            read_catalogue(path)
