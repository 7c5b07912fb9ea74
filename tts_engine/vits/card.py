"""What stands beside a Piper voice's graph: its sample rate, its alphabet, how lively it speaks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wire.errors import Unavailable
from wire.strict import Invalid, parse

PAD, BEGIN, END = "_", "^", "$"  # of Piper's alphabets: between any two symbols, first, last


@dataclass(frozen=True)
class VoiceCard:
    """`noise_scale` and `duration_noise_scale` widen the draw of sound and of timing; `length_scale` slows down."""

    sample_rate_hz: int
    noise_scale: float
    duration_noise_scale: float
    length_scale: float
    symbol_ids: Mapping[str, int]

    def __post_init__(self) -> None:
        if not 8000 <= self.sample_rate_hz <= 48000:
            raise ValueError(f"sample rate {self.sample_rate_hz} Hz is none of a voice")
        if not self.length_scale > 0:
            raise ValueError("length_scale must be above 0")
        if missing := {PAD, BEGIN, END, " "} - set(self.symbol_ids):
            raise ValueError(f"the alphabet lacks {' '.join(map(repr, sorted(missing)))}")


def read_card(path: Path) -> VoiceCard:
    """Raises: Unavailable."""
    try:
        value = json.loads(path.read_text())
        card = {
            "sample_rate_hz": value["audio"]["sample_rate"],
            "noise_scale": value["inference"]["noise_scale"],
            "duration_noise_scale": value["inference"]["noise_w"],
            "length_scale": value["inference"]["length_scale"],
            "symbol_ids": {symbol: ids[0] for symbol, ids in value["phoneme_id_map"].items()},
        }
        return parse(VoiceCard, card)
    except OSError as error:
        raise Unavailable(f"{path}: cannot read: {error.strerror}") from None
    except KeyError as error:
        raise Unavailable(f"{path}: no {error}") from None
    except (ValueError, TypeError, IndexError, AttributeError, Invalid) as error:
        raise Unavailable(f"{path}: not the card of a Piper voice: {error}") from None
