from __future__ import annotations

from pathlib import Path

import pytest

from tts_engine.config import TtsConfig
from wire.config import read
from wire.strict import Invalid, parse

GOOD: dict[str, object] = {"edge": {"port": 0}, "voices": [{"id": "joe", "model": "m"}]}


def test_the_cpu_profile_names_a_voice():
    config = read(Path(__file__).parents[2] / "deploy/profiles/cpu.yaml").parse(TtsConfig, "tts_engine")

    assert config.voices[0].id == "joe"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"voices": []}, "at least one voice"),
        ({"voices": [{"id": "a", "model": "m"}, {"id": "a", "model": "n"}]}, "given twice"),
        ({"voices": [{"id": "a", "model": "m", "language": "ko"}]}, "no text rules for language 'ko'"),
        ({"voices": [{"id": "", "model": "m"}]}, "printable"),
        ({"max_waiting": 0}, "max_waiting"),
        ({"max_connections": 0}, "max_connections"),
        ({"http_first_audio_s": 0}, "http_first_audio_s"),
    ],
)
def test_what_cannot_be_is_refused(change: dict[str, object], problem: str):
    with pytest.raises(Invalid, match=problem):
        parse(TtsConfig, {**GOOD, **change})
