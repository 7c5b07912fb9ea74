"""How this process opens ONNX models: one thread each, no spinning.

A second thread waits for a core whenever another process has it, and the engine's steps are short enough for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnxruntime
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as ort_errors

from wire.errors import Unavailable

_LOAD_ERRORS = (
    ort_errors.Fail,
    ort_errors.InvalidArgument,
    ort_errors.InvalidGraph,
    ort_errors.InvalidProtobuf,
    ort_errors.NoSuchFile,
    ort_errors.RuntimeException,
)


class Session:
    """A graph called with its inputs in order; answers with its outputs in order."""

    def __init__(self, path: Path) -> None:
        """Raises: Unavailable when the file is no model."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except _LOAD_ERRORS as error:
            raise Unavailable(f"{path}: cannot load: {str(error).splitlines()[0]}") from None
        self.input_shapes: list[list[int | str]] = [i.shape for i in self._session.get_inputs()]
        self._names = [i.name for i in self._session.get_inputs()]

    def __call__(self, *inputs: NDArray[Any]) -> Sequence[NDArray[Any]]:
        outputs: Sequence[NDArray[Any]] = self._session.run(None, dict(zip(self._names, inputs, strict=True)))
        return outputs
