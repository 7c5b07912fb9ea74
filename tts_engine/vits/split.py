"""Cuts a VITS graph, exported as one ONNX file, into four that can be run and streamed by themselves.

    text     (ids, lengths, scales, duration noise)   -> (durations, carried ...)
    prior    (durations, carried ..., prior noise)    -> (z_p, masks ...)
    flow     (z_p, masks ...)                         -> (z,)
    decoder  (z,)                                     -> (audio,)

The first cut is at the frames per phoneme, `w_ceil = ceil(exp(logw) * mask * length_scale)` (VITS, arXiv:2106.06103,
2.2.2; `SynthesizerTrn.infer` of the reference code): whoever runs the graph then knows when each phoneme sounds, and
how much prior noise the rest needs. Noise comes in from outside, where the exported graph draws its own without a
seed, so audio can be had again. The others are around the flow: it and the HiFi-GAN decoder behind it are
convolutional, so both can be run in chunks, and the first audio does not wait for the last word.

Tensors are found by their place in the graph, never by name. What the phonemes mean is not known here.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx.utils import Extractor

from wire.errors import Unavailable

LAYOUT = 2  # raised when the parts below change, so that older derived files are not taken for them
_KEY_DIGITS = 16  # hexadecimal digits of the source's SHA-256 that name the folder


@dataclass(frozen=True)
class Parts:
    text: Path
    prior: Path
    flow: Path
    decoder: Path


def split(model: Path, derived: Path) -> Parts:
    """The graphs of `model`, made in `derived` unless they are there. Raises: Unavailable."""
    try:
        blob = model.read_bytes()
    except OSError as error:
        raise Unavailable(f"{model}: cannot read: {error.strerror}") from None
    folder = derived / f"vits-{LAYOUT}-{hashlib.sha256(blob).hexdigest()[:_KEY_DIGITS]}"
    if not folder.is_dir():
        _write(folder, _cut(model, blob))
    return Parts(*(folder / f"{name}.onnx" for name in ("text", "prior", "flow", "decoder")))


def _write(folder: Path, models: dict[str, onnx.ModelProto]) -> None:
    """All or nothing: written beside `folder`, then renamed."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise Unavailable(f"{folder}: cannot write: {error.strerror}") from None
    try:
        for name, part in models.items():
            (partial / f"{name}.onnx").write_bytes(part.SerializeToString())
        os.rename(partial, folder)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        if not folder.is_dir():  # else another process was faster
            raise Unavailable(f"{folder}: cannot write: {error.strerror}") from None


def _cut(path: Path, blob: bytes) -> dict[str, onnx.ModelProto]:
    try:
        model = onnx.shape_inference.infer_shapes(onnx.load_from_string(blob))
    except (DecodeError, onnx.shape_inference.InferenceError, ValueError) as error:
        raise Unavailable(f"{path}: not an ONNX model: {str(error).splitlines()[0]}") from None
    graph = _Graph(path, model)
    z = graph.decoder_input()
    durations = graph.only("Ceil", graph.above([z]), "the frames per phoneme")
    duration_noise = graph.only("RandomNormalLike", graph.above([durations]), "the noise of the durations")
    prior_noise = graph.only("RandomNormalLike", graph.above([z]) - graph.above([durations]), "the noise of the prior")
    z_p = graph.sum_with(prior_noise)
    carried = graph.crossing(durations, z_p, besides=prior_noise)
    masks = graph.crossing(z_p, z)
    ids = [i.name for i in model.graph.input]
    extractor = Extractor(model)
    return {
        "text": extractor.extract_model([*ids, duration_noise], [durations, *carried]),
        "prior": extractor.extract_model([durations, *carried, prior_noise], [z_p, *masks]),
        "flow": extractor.extract_model([z_p, *masks], [z]),
        "decoder": extractor.extract_model([z], [model.graph.output[0].name]),
    }


class _Graph:
    """Who makes which tensor. Tensors that do not depend on the inputs, such as weights, are constants."""

    def __init__(self, path: Path, model: onnx.ModelProto) -> None:
        self.path = path
        self.nodes = list(model.graph.node)  # in an order in which they can run: ONNX demands it
        if len(model.graph.input) != 3 or len(model.graph.output) != 1:
            takes = ", ".join(i.name for i in model.graph.input) or "nothing"
            raise self._unsuitable(f"it takes {takes}; a voice of one speaker takes ids, lengths and scales")
        self.output = model.graph.output[0].name
        self.maker = {output: node for node in self.nodes for output in node.output}
        self._dynamic = {i.name for i in model.graph.input}
        for node in self.nodes:
            if node.op_type == "RandomNormalLike" or any(i in self._dynamic for i in node.input):
                self._dynamic.update(node.output)

    def above(self, tensors: Iterable[str]) -> set[str]:
        """All tensors that `tensors` are made of, and they themselves."""
        found: set[str] = set()
        waiting = list(tensors)
        while waiting:
            tensor = waiting.pop()
            if tensor not in found:
                found.add(tensor)
                waiting += self.maker[tensor].input if tensor in self.maker else ()
        return found

    def below(self, tensor: str) -> set[str]:
        """All tensors that `tensor` takes part in, and it itself."""
        found = {tensor}
        for node in self.nodes:
            if not found.isdisjoint(node.input):
                found.update(node.output)
        return found

    def only(self, op_type: str, among: set[str], what: str) -> str:
        """The output of the only node of this type."""
        made = [str(n.output[0]) for n in self.nodes if n.op_type == op_type and n.output[0] in among]
        if len(made) != 1:
            raise self._unsuitable(f"{len(made)} {op_type} nodes where {what} should be")
        return made[0]

    def decoder_input(self) -> str:
        """z: what the convolution before the first transposed one takes."""
        upsampling = [
            n for n in self.nodes if n.op_type == "ConvTranspose" and n.output[0] in self.above([self.output])
        ]
        if not upsampling:
            raise self._unsuitable("no upsampling decoder")
        node = upsampling[0]
        while node.op_type != "Conv":
            if node.input[0] not in self.maker:
                raise self._unsuitable("no convolution before the upsampling")
            node = self.maker[node.input[0]]
        z = str(node.input[0])
        if leaks := self._edges_into(self.below(z), self.above([self.output])):
            raise self._unsuitable(f"the decoder also takes {', '.join(sorted(leaks))}")
        return z

    def sum_with(self, noise: str) -> str:
        """z_p, the sum of mean and scaled noise: where the noise, after its factors, is added."""
        tensor = noise
        while True:
            takers = [n for n in self.nodes if tensor in n.input]
            if len(takers) != 1 or takers[0].op_type not in ("Mul", "Add"):
                raise self._unsuitable("the noise of the prior is not scaled and added")
            tensor = str(takers[0].output[0])
            if takers[0].op_type == "Add":
                return tensor

    def crossing(self, cut: str, wanted: str, besides: str = "") -> list[str]:
        """What the making of `wanted` takes from before `cut`, besides `cut` itself."""
        leaks = self._edges_into(self.below(cut), self.above([wanted]))
        return sorted(leaks - {besides})

    def _edges_into(self, part: set[str], wanted: set[str]) -> set[str]:
        """Dynamic tensors outside `part` that its nodes take, as far as `wanted` needs those nodes."""
        inner = [n for n in self.nodes if not part.isdisjoint(n.input) and not wanted.isdisjoint(n.output)]
        return {i for n in inner for i in n.input if i in self._dynamic and i not in part}

    def _unsuitable(self, why: str) -> Unavailable:
        return Unavailable(f"{self.path}: no VITS voice that can be split: {why}")
