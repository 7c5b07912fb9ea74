from __future__ import annotations

from pathlib import Path

import pytest

from stt.config import ModelConfig, SttConfig
from wire.config import EdgeConfig, read

EDGE = EdgeConfig(port=0)
PROFILE = Path(__file__).parents[2] / "deploy/profiles/cpu.yaml"


def test_the_cpu_profile_names_a_model_for_english_and_one_for_every_other_language() -> None:
    config = read(PROFILE).parse(SttConfig, "stt")
    assert [model.languages for model in config.models] == [("en",), ("*",)]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"models": ()}, "at least one"),
        ({"models": (ModelConfig("a", ("en",)), ModelConfig("a", ("de",)))}, "twice"),
        ({"models": (ModelConfig("a", ("en",)), ModelConfig("b", ("en", "de")))}, "claim language en"),
        ({"max_streams": 0}, "max_streams"),
        ({"max_queued": 0}, "max_queued"),
        ({"partial_interval_s": 0.0}, "partial_interval_s"),
        ({"deadline_s": 0.0}, "deadline_s"),
    ],
)
def test_impossible_settings_are_refused_by_name(settings: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        SttConfig(**{"edge": EDGE, "models": (ModelConfig("a", ("en",)),), **settings})  # type: ignore[arg-type]


@pytest.mark.parametrize(("languages", "num_instances"), [((), 1), (("en",), 0)])
def test_a_model_has_languages_and_instances(languages: tuple[str, ...], num_instances: int) -> None:
    with pytest.raises(ValueError, match="a: "):
        ModelConfig("a", languages, num_instances)
