"""Voice activity: Silero as ONNX, one session shared by all calls, one state per call.

The network takes 512 samples at 16 kHz plus the last 64 of the window before; without that context its answers are
meaningless. One window costs about 65 us, so it runs on the event loop; most of a call is silence, which costs nothing:
after `REST_WINDOWS` of it the network rests, and goes on with the first sound as it was. Begun afresh it would find
soft speech up to a quarter of a second later.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from voice.media.onnx import open_session
from wire.pcm import Pcm16, to_float

WINDOW_SAMPLES = 512
CONTEXT_SAMPLES = 64
SILENT = 30  # peak, -61 dBFS
REST_WINDOWS = 16  # half a second
_SAMPLE_RATE = np.array(16000)


def is_silent(pcm: Pcm16) -> bool:
    return not pcm.size or bool(pcm.min() > -SILENT and pcm.max() < SILENT)


class Silero:
    def __init__(self, folder: Path) -> None:
        self._session: onnxruntime.InferenceSession = open_session(folder / "model.onnx")

    def start(self) -> VadStream:
        return VadStream(self._session)


class VadStream:
    def __init__(self, session: onnxruntime.InferenceSession) -> None:
        self._session = session
        self._num_silent = 0
        self._state: NDArray[np.float32] = np.zeros((2, 1, 128), np.float32)
        self._context: Pcm16 = np.zeros(CONTEXT_SAMPLES, np.int16)

    @property
    def is_resting(self) -> bool:
        return self._num_silent >= REST_WINDOWS

    def rest(self, window: Pcm16) -> None:
        """Instead of `probability`, for a silent window while it rests."""
        self._context = window[-CONTEXT_SAMPLES:]

    def probability(self, window: Pcm16) -> float:
        """P(speech) of 512 samples, 16 kHz."""
        assert window.shape == (WINDOW_SAMPLES,)
        self._num_silent = self._num_silent + 1 if is_silent(window) else 0
        context, self._context = self._context, window[-CONTEXT_SAMPLES:]
        if self.is_resting:
            return 0.0
        audio = to_float(np.concatenate([context, window]))[np.newaxis]
        p, self._state = self._session.run(None, {"input": audio, "state": self._state, "sr": _SAMPLE_RATE})
        return float(p[0, 0])
