"""The real file: what is derived from it is what is in it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from llm.blocks import num_blocks_for
from llm.checkpoint import GgufFile
from llm.loading import Loaded, load
from llm.model import KvCache, Span
from tests.llm.conftest import MODEL
from wire.errors import Unavailable
from wire.weights import model_dir

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def file() -> GgufFile:
    return GgufFile(model_dir(MODEL) / "model.gguf")


def log_probabilities(loaded: Loaded, tokens: list[int]) -> torch.Tensor:
    """Of each token but the first, given those before it."""
    blocks = num_blocks_for(len(tokens))
    span = Span(0, len(tokens), len(tokens), torch.arange(blocks), 0, is_run=True)
    with torch.inference_mode():
        logits = loaded.model.forward(
            KvCache(loaded.model.shape, blocks),
            torch.tensor(tokens),
            torch.arange(len(tokens)),
            [span],
            torch.arange(len(tokens)),
        )
    return logits[:-1].log_softmax(-1).gather(1, torch.tensor(tokens[1:])[:, None])[:, 0]


def test_nibbles_and_bytes_are_the_files_own(file: GgufFile):
    name = "blk.3.attn_k.weight"
    torch.testing.assert_close(file.groups(name).dequantized(), file.tensor(name), atol=1e-6, rtol=1e-6)

    values, scales = file.bytes_of("token_embd.weight")
    rows = (values[:99].view(99, -1, 32) * scales[:99, :, None].float()).flatten(1)
    torch.testing.assert_close(rows, file.tensor("token_embd.weight")[:99], atol=0, rtol=0)


def test_a_tensor_of_another_type_or_none_is_refused(file: GgufFile):
    with pytest.raises(Unavailable, match="Q4_1"):
        file.groups("token_embd.weight")
    for read in (file.tensor, file.groups, file.bytes_of):
        with pytest.raises(Unavailable, match=r"no tensor 'blk\.99\.attn_q\.weight'"):
            read("blk.99.attn_q.weight")


def test_a_sentence_is_likelier_than_its_words_shuffled(real: Loaded):
    sentence = real.tokenizer.encode("The sun rises in the east and sets in the west.")
    shuffled = [sentence[i] for i in torch.randperm(len(sentence), generator=torch.Generator().manual_seed(0))]

    assert log_probabilities(real, sentence).mean() > -3
    assert log_probabilities(real, shuffled).mean() < -6


def test_four_bits_answer_as_float32_does(real: Loaded):
    tokens = real.tokenizer.encode("The capital of France is Paris, and the capital of Italy is Rome.")
    exact = log_probabilities(load(MODEL, "float32"), tokens)

    # Measured 0.02; a wrong scale, nibble order or merge is off by whole units.
    assert (log_probabilities(real, tokens) - exact).abs().mean() < 0.1


def test_derived_files_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    models = tmp_path / "models"
    models.mkdir()
    (models / MODEL).symlink_to(model_dir(MODEL))
    monkeypatch.setenv("OFFHOOK_CACHE", str(tmp_path))
    caplog.set_level("INFO", "llm")
    first = load(MODEL, "int8")
    prepared = len(caplog.records)
    again = load(MODEL, "int8")

    assert prepared == len(caplog.records) == 1
    assert sorted(path.name for path in (tmp_path / "derived/llm").glob("*/*")) == ["int8.pt", "model.json"]
    tokens = again.tokenizer.encode("One, two, three, four")
    assert torch.equal(log_probabilities(first, tokens), log_probabilities(again, tokens))
    assert log_probabilities(again, tokens).mean() > -4
    shutil.rmtree(tmp_path / "derived")


def test_a_cache_that_cannot_be_written_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    models = tmp_path / "models"
    models.mkdir()
    (models / MODEL).symlink_to(model_dir(MODEL))
    (tmp_path / "derived").write_text("a file where a folder should be")
    monkeypatch.setenv("OFFHOOK_CACHE", str(tmp_path))
    with pytest.raises(Unavailable, match="cannot write"):
        load(MODEL, "int4")


def test_a_file_that_is_no_gguf_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "models" / "broken"
    folder.mkdir(parents=True)
    (folder / ".complete").touch()
    monkeypatch.setenv("OFFHOOK_CACHE", str(tmp_path))
    with pytest.raises(Unavailable, match=r"model\.gguf"):
        load("broken", "int4")
    (folder / "model.gguf").write_bytes(b"not a model at all, not even close")
    with pytest.raises(Unavailable, match="GGUF"):
        load("broken", "int4")
