"""What a call hears when silence is passed over is what it hears when every sample is looked at."""

from __future__ import annotations

import numpy as np
import pytest

from tests.speech import clip, silence
from voice.clients.stt import SttClient
from voice.config import EndpointingConfig
from voice.ears import Ears
from voice.endpointing import Decision, SpeechStarted, TurnEnded
from voice.media.echo import EchoGuard
from voice.media.vad import Silero
from wire.pcm import Pcm16
from wire.weights import model_dir

MESSAGE_S = 0.02


def ears(silero: Silero, rate_hz: int) -> Ears:
    nobody = SttClient("http://127.0.0.1:1", key=None, call="c", language="en", on_partial=lambda *_: None)
    echo = EchoGuard(24000, 16000, 0.0)
    return Ears(EndpointingConfig(), "en", silero.start(), nobody, echo, rate_hz)


async def listen(silero: Silero, pcm: Pcm16, rate_hz: int, *, passes_over: bool) -> tuple[list[Decision], Ears, int]:
    """What was decided, by whom, and how many messages were passed over."""
    decisions, listener, num_passed = [], ears(silero, rate_hz), 0
    step = round(MESSAGE_S * rate_hz)
    for i, begin in enumerate(range(0, pcm.size, step)):
        message, now = pcm[begin : begin + step], i * MESSAGE_S
        if passes_over and listener.pass_over(message, now):
            num_passed += 1
        else:
            decisions += [decision async for decision in listener.hear(message, now)]
    return decisions, listener, num_passed


@pytest.mark.slow
@pytest.mark.parametrize("rate_hz", [16000, 8000])
async def test_passing_over_silence_changes_nothing(rate_hz: int) -> None:
    silero = Silero(model_dir("silero-vad"))
    speech = clip("hello_world")[0]
    faint = (silence(1.0) + np.random.default_rng(0).integers(-20, 20, 16000)).astype(np.int16)
    pcm = np.concatenate([silence(1.5), speech, silence(2.0), faint, speech, faint, silence(0.3), speech, silence(2.0)])
    pcm = pcm[:: 16000 // rate_hz]

    all_heard, one, _ = await listen(silero, pcm, rate_hz, passes_over=False)
    most_passed, other, num_passed = await listen(silero, pcm, rate_hz, passes_over=True)

    assert most_passed == all_heard
    assert len([decision for decision in all_heard if isinstance(decision, SpeechStarted)]) >= 3
    assert len([decision for decision in all_heard if isinstance(decision, TurnEnded)]) >= 3
    assert other.speech_end_s == one.speech_end_s
    np.testing.assert_array_equal(other.utterance(), one.utterance())
    assert num_passed > 100


async def test_what_is_loud_is_never_passed_over() -> None:
    listener = ears(Silero(model_dir("silero-vad")), 16000)
    for i in range(60):
        if not listener.pass_over(silence(MESSAGE_S), i * MESSAGE_S):
            assert not [decision async for decision in listener.hear(silence(MESSAGE_S), i * MESSAGE_S)]
    click = silence(MESSAGE_S)
    click[7] = -31
    assert listener.pass_over(silence(MESSAGE_S), 2.0)
    assert not listener.pass_over(click, 2.02)
