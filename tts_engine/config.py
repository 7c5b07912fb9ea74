"""Section `tts_engine` of the profile. Times are seconds; docs/profile.md is the reference."""

from __future__ import annotations

from dataclasses import dataclass

from wire.config import EdgeConfig


@dataclass(frozen=True)
class VoiceConfig:
    """`id` is what clients ask for, `model` the catalogue's id of its weights."""

    id: str
    model: str
    language: str = "en"

    def __post_init__(self) -> None:
        if not self.id or not self.id.isprintable() or len(self.id) > 64:
            raise ValueError("id must be 1 to 64 printable characters")
        if self.language != "en":
            raise ValueError(f"no text rules for language '{self.language}'; known: en")


@dataclass(frozen=True)
class TtsConfig:
    edge: EdgeConfig
    voices: tuple[VoiceConfig, ...]  # the first is the default
    lexicon: str = "lexicon-en-us"
    max_waiting: int = 12  # utterances without audio yet; at about 40 ms each the last waits half a second
    max_connections: int = 64
    http_first_audio_s: float = 30.0  # for a request without x-offhook-deadline-ms

    def __post_init__(self) -> None:
        if not self.voices:
            raise ValueError("voices must name at least one voice")
        if len({voice.id for voice in self.voices}) < len(self.voices):
            raise ValueError("voices: an id is given twice")
        if not 1 <= self.max_waiting <= 1000:
            raise ValueError("max_waiting must be 1 to 1000")
        if not 1 <= self.max_connections <= 10_000:
            raise ValueError("max_connections must be 1 to 10000")
        if not 0 < self.http_first_audio_s <= 600:
            raise ValueError("http_first_audio_s must be above 0 and at most 600")
