"""Semantic end of turn: smart-turn v3.2, from audio alone, P(the speaker has finished).

Its input is the last 8 s of the turn, zero-padded in front, normalised to zero mean and unit variance as a whole, as
Whisper's log-mel. About 26 ms on one core, so one thread of its own runs it for all calls; a question that waits
longer than `ANSWER_WITHIN_S` is moot and answered with None.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from faster_whisper.feature_extractor import FeatureExtractor

from voice.media.onnx import open_session
from wire.pcm import Pcm16, to_float

SAMPLE_RATE_HZ = 16000
WINDOW_SAMPLES = 8 * SAMPLE_RATE_HZ
ANSWER_WITHIN_S = 0.25  # most turns are over by then without it
_VARIANCE_FLOOR = 1e-7  # as in the feature extractor the model was trained with


class SmartTurn:
    def __init__(self, folder: Path) -> None:
        self._session = open_session(folder / "model.onnx")
        self._mel = FeatureExtractor(chunk_length=8)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="smart-turn")
        self.probability(np.zeros(SAMPLE_RATE_HZ, np.int16))  # the first run allocates

    def probability(self, pcm: Pcm16) -> float:
        """P(complete) of a turn so far, its pause included: int16, 16 kHz, any length."""
        window = np.zeros(WINDOW_SAMPLES, np.float32)
        tail = to_float(pcm[-WINDOW_SAMPLES:])
        window[WINDOW_SAMPLES - tail.size :] = tail
        window = (window - window.mean()) / np.sqrt(window.var() + np.float32(_VARIANCE_FLOOR))
        mel = self._mel(window, padding=0).astype(np.float32)  # [80, 800]
        return float(self._session.run(None, {"input_features": mel[np.newaxis]})[0].reshape(-1)[0])

    async def ask(self, pcm: Pcm16) -> float | None:
        """Like `probability`, on the model's thread. None when the answer would come too late to matter."""
        asked_s = time.monotonic()

        def answer() -> float | None:
            return self.probability(pcm) if time.monotonic() - asked_s < ANSWER_WITHIN_S else None

        return await asyncio.get_running_loop().run_in_executor(self._thread, answer)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
