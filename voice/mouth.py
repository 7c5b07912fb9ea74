"""The agent's side of a call: text out to the voice, audio back, paced to the caller.

One utterance is spoken at a time. Every result carries its number, and what belongs to another than the present one is
late and dropped here, at one place.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from voice.backchannel import asks
from voice.clients.tts import Audio, Lost, SpeechEvent, TtsClient
from voice.media.level import first_audible
from voice.media.resample import Resampler
from voice.outbox import Payload, Written
from voice.playout import Playout, SpokenWord
from voice.script import Script
from wire import calls, speak
from wire.errors import Unavailable
from wire.pcm import Pcm16

logger = logging.getLogger(__name__)

STALL_S = 1.3  # an utterance that has run dry for this long is over: by 1.5 s the caller must know
MARKS = ".,;:!?？！。…\"'”’)]"  # that voices leave out of their words

Kind: TypeAlias = Literal["answer", "prompt", "filler", "apology"]


@dataclass
class Utterance:
    """`base` is the output sample at which it begins, known with its first audio."""

    number: int
    kind: Kind
    turn: int
    resampler: Resampler
    script: Script
    base: int | None = None
    ended: bool = False  # no more text comes
    complete: bool = False  # no more audio comes
    audible: bool = False
    is_handed_over: bool = False  # the voice has text of it
    failure: str | None = None
    num_spoken_chars: int = 0  # of the script's spoken text: those whose audio has come
    num_mapped_chars: int = 0  # of what was written: those that words of the voice stand for
    num_told_chars: int = 0  # and those told as words, with the marks around them
    progress_s: float = field(default_factory=time.monotonic)  # when what it waits for, audio or text, last came
    sounds_until_s: float = 0.0  # when what there is of it will have been heard
    held: list[SpeechEvent] | None = None  # what the voice has made of it, if nobody may know of it yet

    @property
    def text(self) -> str:
        """As it was written."""
        return self.script.written

    @property
    def is_owed(self) -> bool:
        """The voice has words of it whose audio has not come."""
        return any(char.isalnum() for char in self.script.spoken[self.num_spoken_chars :])

    @property
    def has_failed(self) -> bool:
        return self.failure is not None or any(isinstance(event, speak.Error | Lost) for event in self.held or ())

    def expect(self) -> None:
        """More text is on its way; an excuse for silence while the voice owes nothing."""
        if not self.is_owed:
            self.progress_s = time.monotonic()


class Mouth:
    """`post` hands a payload to the transport and, if asked, says when it was written.

    Callbacks: `on_audio` with an utterance's first audio, `on_audible` when its first audible sample was written,
    `on_said`, with the text that was heard, when all of it was, or it failed and nothing of it is left to play.
    """

    def __init__(
        self,
        tts: TtsClient,
        playout: Playout,
        *,
        post: Callable[[Payload, Written | None], None],
        on_audio: Callable[[Utterance], None],
        on_audible: Callable[[Utterance, float], None],
        on_said: Callable[[Utterance, str], None],
        language: str = "en",
    ) -> None:
        self._tts = tts
        self._playout = playout
        self._post = post
        self._on_audio, self._on_audible, self._on_said = on_audio, on_audible, on_said
        self._language = language  # in which numbers and the like are said
        self._num_utterances = 0
        self._current: Utterance | None = None
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._free = asyncio.Event()
        self._free.set()

    @property
    def is_free(self) -> bool:
        return self._current is None

    @property
    def is_audible(self) -> bool:
        """The caller hears something of the present utterance."""
        return self._current is not None and self._current.audible

    async def wait_free(self) -> None:
        """Until nothing is being said; bounded, because an utterance without progress is ended."""
        while self._current is not None:
            await self._free.wait()

    def begin(self, kind: Kind, turn: int, *, is_held: bool = False) -> Utterance:
        """A new utterance; the one before has ended or was stopped. Of one that is held nothing is heard or told until
        `release`.
        """
        assert self._current is None, f"{self._current} is still being spoken"
        self._num_utterances += 1
        resampler = Resampler(self._tts.sample_rate_hz or self._playout.rate_hz, self._playout.rate_hz)
        held: list[SpeechEvent] | None = [] if is_held else None
        script = Script(self._language)
        self._current = Utterance(self._num_utterances, kind, turn, resampler, script, held=held)
        self._free.clear()
        return self._current

    async def say(self, utterance: Utterance, unit: str, deadline_s: float | None = None) -> None:
        """Speak one more unit of text. Raises: Unavailable; also when a part of the utterance was lost before."""
        if utterance.failure is not None:
            raise Unavailable(utterance.failure)
        utterance.expect()
        spoken = utterance.script.add(unit)
        self._wake.set()
        if utterance.kind == "answer" and utterance.held is None:
            self._post(calls.Reply(utterance.turn, unit), None)
        await self._tts.say(utterance.number, spoken, deadline_s)
        utterance.is_handed_over = True

    async def finish(self, utterance: Utterance) -> None:
        """No more text comes. Raises: Unavailable."""
        utterance.ended = True
        await self._tts.end(utterance.number)

    async def release(self, utterance: Utterance) -> None:
        """An utterance that was held is said."""
        if utterance.held is None or utterance is not self._current:
            return
        utterance.expect()
        self._post(calls.Reply(utterance.turn, utterance.text), None)
        while utterance.held:
            await self._take_up(utterance, utterance.held.pop(0))
        utterance.held = None

    def discard(self, utterance: Utterance) -> None:
        """An utterance that was held is not said, ever; the voice is told by `hush`."""
        if utterance is self._current:
            self._release()
            self._wake.set()

    async def cut_short(self, utterance: Utterance, why: str) -> None:
        """No more text comes, and not because it was all: what was handed over is still spoken."""
        utterance.failure = utterance.failure or why
        try:
            await self.finish(utterance)
        except Unavailable as error:
            self.fail(utterance, str(error))

    def fail(self, utterance: Utterance, why: str) -> None:
        """No more audio comes: play what there is, then it is over."""
        if utterance is self._current and not utterance.complete:
            utterance.failure, utterance.complete = utterance.failure or why, True
            self._wake.set()

    def heard(self, now: float) -> str:
        """The part of the present utterance's text that the caller has heard."""
        if self._current is None or self._current.base is None:
            return ""
        return self._current.text[: self._playout.heard_chars(now, self._current.base)]

    def has_asked(self, now: float) -> bool:
        """What the caller has heard of the present utterance ends with a question."""
        heard = self.heard(now)
        if self._current is None or not heard:
            return False
        rest = self._current.text[len(heard) :]
        return asks(heard + rest[: len(rest) - len(rest.lstrip(MARKS))])

    @property
    def is_paused(self) -> bool:
        return self._playout.is_paused

    def pause(self) -> None:
        """Silence in the middle of a word, until `resume`, or `stop`."""
        self._playout.pause()

    def resume(self, now: float) -> None:
        """On with the very next sample. The time until now was nobody's fault."""
        self._playout.resume(now)
        if self._current is not None:
            self._current.progress_s = now
        self._wake.set()

    def stop(self, now: float) -> Utterance | None:
        """Drop what is not heard yet and return the utterance that was being spoken; the voice is told by `hush`."""
        stopped = self._release()
        self._playout.clear(now)
        self._room.set()
        self._wake.set()
        return stopped

    async def hush(self, utterance: Utterance) -> None:
        """Free the voice of an utterance that was stopped."""
        try:
            await self._tts.cancel(utterance.number)
        except Unavailable as error:
            logger.debug("nothing to cancel: %s", error)

    def acknowledge(self, sample: int, now: float) -> bool:
        accepted = self._playout.acknowledge(sample, now)
        self._wake.set()
        return accepted

    async def on_event(self, event: SpeechEvent) -> None:
        """From the voice. Waits while enough audio is queued, which makes the voice wait."""
        current = self._current
        if current is None or current.complete or (not isinstance(event, Lost) and event.utterance != current.number):
            return
        if current.held is not None:
            current.held.append(event)
            return
        await self._take_up(current, event)

    async def _take_up(self, current: Utterance, event: SpeechEvent) -> None:
        match event:
            case Audio():
                await self._on_pcm(current, event.pcm)
            case speak.Words():
                self._on_words(current, event)
            case speak.Done():
                self._playout.push(current.resampler.flush())
                current.complete = True
                self._wake.set()
            case speak.Error():
                self.fail(current, f"{event.code}: {event.message}")
            case Lost():
                if current.is_handed_over:  # else it waits for the voice to be back
                    self.fail(current, "the voice was lost")
            case speak.Cancelled():
                pass

    async def run(self) -> None:
        """Pace audio out until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            now = time.monotonic()
            pcm = self._playout.take(now, more_comes=self._more_comes)
            if pcm is not None:
                self._send(pcm)
                continue
            wait_s = self._settle(now)
            self._wake.clear()
            timer = loop.call_later(wait_s, self._wake.set) if wait_s is not None else None
            await self._wake.wait()
            if timer is not None:
                timer.cancel()

    @property
    def _more_comes(self) -> bool:
        return self._current is not None and not self._current.complete

    async def _on_pcm(self, current: Utterance, pcm: Pcm16) -> None:
        is_first = current.base is None
        current.progress_s = time.monotonic()
        if is_first:
            current.base = self._playout.end
        self._playout.push(current.resampler.push(pcm))
        if is_first:
            self._on_audio(current)
        self._wake.set()
        while self._playout.is_full and current is self._current:
            self._room.clear()
            await self._room.wait()

    def _on_words(self, current: Utterance, event: speak.Words) -> None:
        if current.base is None:
            current.base = self._playout.end
            self._on_audio(current)
        base, ratio = current.base, self._playout.rate_hz / self._tts.sample_rate_hz
        spoken: list[SpokenWord] = []
        for word in event.words:
            start, end = current.script.span(word.start_char, word.end_char)
            first_sample, last_sample = base + round(word.start_sample * ratio), base + round(word.end_sample * ratio)
            if spoken and start < current.num_mapped_chars:  # "three dollars" is one: $3
                spoken[-1] = replace(spoken[-1], end_sample=last_sample, end_char=max(end, spoken[-1].end_char))
            else:
                first_char, last_char = _with_marks(current.text, start, end)
                text = current.text[max(first_char, current.num_told_chars) : last_char]
                spoken.append(SpokenWord(text, first_sample, last_sample, end))
                current.num_told_chars = max(current.num_told_chars, last_char)
            current.num_mapped_chars = max(current.num_mapped_chars, end)
            current.num_spoken_chars = max(current.num_spoken_chars, word.end_char)
        self._playout.add_words(spoken)
        words = tuple(calls.Word(word.text, word.start_sample, word.end_sample) for word in spoken if word.text)
        if words:
            self._post(calls.Words(current.turn, words), None)

    def _send(self, pcm: Pcm16) -> None:
        current = self._current
        if not self._playout.is_full:
            self._room.set()
        if current is None or current.audible or first_audible(pcm) is None:
            self._post(pcm, None)
            return
        current.audible = True
        self._post(pcm, lambda now: self._on_audible(current, now))

    def _settle(self, now: float) -> float | None:
        """Seconds until there is something to do, None when only an event can bring it."""
        if self._playout.is_paused:
            return None
        due_s = self._playout.next_due_s(now, more_comes=self._more_comes)
        current = self._current
        if due_s is not None or current is None or not current.text or current.held is not None:
            return due_s
        if (unheard := self._playout.sent - self._playout.heard(now)) > 0:
            current.sounds_until_s = now + unheard / self._playout.rate_hz
        if not current.complete:
            if (wait_s := max(current.progress_s, current.sounds_until_s) + STALL_S - now) > 0:
                return wait_s
            self._give_up(current)
        if not self._playout.is_over(now):
            return max(0.005, self._playout.left_s(now))
        is_whole = current.failure is None and self._playout.left_s(now) <= 0
        heard = current.text if is_whole else self.heard(now)
        self._release()
        self._playout.end_utterance()
        self._on_said(current, heard)
        return None

    def _give_up(self, current: Utterance) -> None:
        """A voice that owes audio, or the end of an utterance, hangs: a new connection shows when it is back."""
        if current.is_owed or current.ended:
            self._tts.link.drop()
        current.failure, current.complete = current.failure or f"nothing came for {STALL_S} s", True

    def _release(self) -> Utterance | None:
        released, self._current = self._current, None
        self._free.set()
        return released


def _with_marks(text: str, start: int, end: int) -> tuple[int, int]:
    """A word with the punctuation around it, which voices leave out of their words."""
    start, end = min(start, len(text)), min(end, len(text))  # offsets of a voice, which may be wrong
    before = start
    while before and not (text[before - 1].isalnum() or text[before - 1].isspace()):
        before -= 1
    if before and not text[before - 1].isspace():  # the second half of well-known: the hyphen is the first's
        before = start
    while end < len(text) and not (text[end].isalnum() or text[end].isspace()):
        end += 1
    return before, end
