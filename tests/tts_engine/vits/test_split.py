"""Splitting the real graph, and refusing what is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from tests.tts_engine.conftest import MODEL
from tts_engine.vits.session import Session
from tts_engine.vits.split import split
from wire.errors import Unavailable
from wire.weights import model_dir


@pytest.mark.slow
def test_the_parts_in_a_row_equal_the_whole_graph_without_noise(tmp_path: Path):
    model = model_dir(MODEL) / "model.onnx"
    parts = split(model, tmp_path)
    ids = np.array([[1, 0, 20, 0, 59, 0, 24, 0, 120, 0, 27, 0, 100, 0, 2]], np.int64)
    lengths, scales = np.array([ids.shape[1]], np.int64), np.array([0, 1, 0], np.float32)

    whole = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    [expected] = whole.run(None, {"input": ids, "input_lengths": lengths, "scales": scales})
    durations, *carried = Session(parts.text)(ids, lengths, scales, np.zeros((1, 2, ids.shape[1]), np.float32))
    frames = int(durations.sum())
    prior = Session(parts.prior)(durations, *carried, np.zeros((1, 192, frames), np.float32))
    [z] = Session(parts.flow)(*prior)
    [audio] = Session(parts.decoder)(z)

    assert z.shape == (1, 192, frames)
    np.testing.assert_allclose(audio, expected, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_parts_are_made_once_and_nothing_else_is_left(tmp_path: Path):
    model = model_dir(MODEL) / "model.onnx"
    made = split(model, tmp_path)
    times = [path.stat().st_mtime_ns for path in vars(made).values()]

    assert split(model, tmp_path) == made
    assert [path.stat().st_mtime_ns for path in vars(made).values()] == times
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x08\x07" * 500])
def test_a_file_that_is_no_graph_is_named(tmp_path: Path, content: bytes):
    path = tmp_path / "model.onnx"
    path.write_bytes(content)

    with pytest.raises(Unavailable, match=r"model\.onnx"):
        split(path, tmp_path / "derived")


@pytest.mark.slow
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path):
    derived = tmp_path / "derived"
    derived.write_text("a file where a folder should be")

    with pytest.raises(Unavailable, match="cannot write"):
        split(model_dir(MODEL) / "model.onnx", derived)


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(Unavailable, match="cannot read"):
        split(tmp_path / "model.onnx", tmp_path)


def test_a_graph_that_is_no_voice_says_what_it_lacks(tmp_path: Path):
    path = tmp_path / "model.onnx"
    for inputs, problem in (("x",), "it takes x;"), (("x", "lengths", "scales"), "no upsampling decoder"):
        given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in inputs]
        made = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])]
        graph = helper.make_graph([helper.make_node("Ceil", ["x"], ["y"])], "ceil", given, made)
        onnx.save(helper.make_model(graph), path)

        with pytest.raises(Unavailable, match=problem):
            split(path, tmp_path)
