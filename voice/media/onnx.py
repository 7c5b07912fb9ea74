"""How this process opens ONNX models: one thread each, no spinning.

Two threads win little on small models and wait for a core that another process has taken (measured up to 80 times
slower); a spinning pool takes that core from everybody else.
"""

from __future__ import annotations

from pathlib import Path

import onnxruntime
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


def open_session(path: Path) -> onnxruntime.InferenceSession:
    """Raises: Unavailable when the file is no model."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except _LOAD_ERRORS as error:
        raise Unavailable(f"{path}: cannot load: {str(error).splitlines()[0]}") from None
