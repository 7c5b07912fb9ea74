from __future__ import annotations

import time

import pytest

from voice.answer import Answering
from voice.budget import Waterfall
from voice.clients.llm import LlmClient
from voice.clients.stt import SttClient
from voice.clients.tts import TtsClient
from voice.history import History
from voice.mouth import Mouth
from voice.playout import Playout
from voice.said import Said
from wire.errors import DeadlineExceeded
from wire.request import RequestContext

NOBODY = "http://127.0.0.1:1"  # tcpmux: nothing listens there, and nothing is sent here


async def ignore(_: object) -> None:
    pass


def attempt(deadline_s: float) -> Answering:
    tts = TtsClient(NOBODY, key=None, call="c", voice=None, on_event=ignore, on_lost=lambda: None)
    mouth = Mouth(
        tts,
        Playout(24000, 0.16),
        post=lambda *_: None,
        on_audio=lambda _: None,
        on_audible=lambda *_: None,
        on_said=lambda *_: None,
    )
    stt = SttClient(NOBODY, key=None, call="c", language="en", on_partial=lambda *_: None)
    return Answering(
        said=Said(stt, lambda _: pytest.fail("nothing is to be transcribed")),
        llm=LlmClient(NOBODY, "m", key=None, temperature=0.0, max_tokens=8, prefill_tokens=0, repetition_penalty=1.0),
        mouth=mouth,
        history=History("", 1),
        waterfall=Waterfall(deadline_s),
        context=RequestContext("c", 1, 1, deadline_s),
        speculation=None,
    )


async def test_an_answer_that_comes_after_its_deadline_does_not_begin_and_leaves_the_mouth_free() -> None:
    """What has begun without a word is ended by nobody: the call would wait for it for good."""
    late = attempt(time.monotonic() - 1)
    with pytest.raises(DeadlineExceeded):
        await late._say(1, "Hello.")
    assert late.utterance is None
    assert late.mouth.is_free
