from pathlib import Path

import numpy as np
import pytest

from tests.speech import clip, silence
from voice.media.turn_model import SmartTurn
from wire.errors import Unavailable
from wire.weights import model_dir


@pytest.fixture(scope="module")
def smart_turn() -> SmartTurn:
    return SmartTurn(model_dir("smart-turn-v3.2"))


@pytest.mark.slow
def test_a_finished_sentence_is_complete(smart_turn: SmartTurn):
    pcm, _ = clip("quick_brown_fox")

    assert smart_turn.probability(np.concatenate([pcm, silence(0.1)])) > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("num_samples", [0, 1, 16000, 8 * 16000, 20 * 16000])
def test_any_length_of_audio_gives_a_probability(smart_turn: SmartTurn, num_samples: int):
    assert 0 <= smart_turn.probability(np.zeros(num_samples, np.int16)) <= 1


@pytest.mark.slow
async def test_asking_from_the_loop_answers_the_same(smart_turn: SmartTurn):
    pcm, _ = clip("hello_world")

    assert await smart_turn.ask(pcm) == smart_turn.probability(pcm)


def test_a_file_that_is_no_model_is_one_clear_error(tmp_path: Path):
    (tmp_path / "model.onnx").write_bytes(b"not a model")

    with pytest.raises(Unavailable, match=r"model\.onnx: cannot load"):
        SmartTurn(tmp_path)
