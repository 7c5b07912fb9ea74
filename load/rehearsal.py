"""What a scenario's callers will say, made before the run: the steps in order, and the audio of each. Pure.

Making speech takes tens of milliseconds of the very process that must keep time, so none is made while it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from load.caller import Speech
from load.scenario import Scenario
from load.speech.cast import Cast
from load.speech.corpus import Corpus
from load.speech.delivery import Delivery
from load.speech.dtmf import tones
from load.speech.sound import Sound
from load.steps import Backchannel, BargeIn, Converse, Dtmf, Noise, Repeat, Say, Step
from wire.pcm import AUDIO_FRAME_S, Pcm16, to_int16

NUM_TAKES = 8  # what is drawn of a delivery differs between so many calls, then it comes again


@dataclass(frozen=True)
class PlacedStep:
    """A step with its place: `where` for people, `number` for what is drawn."""

    where: str
    number: int
    step: Step


def in_order(steps: Sequence[Step]) -> list[PlacedStep]:
    """Steps as they are played, repetitions as often as they are."""
    found = list(_in_order(steps, "steps", ""))
    return [replace(placed, number=number) for number, placed in enumerate(found)]


def _in_order(steps: Sequence[Step], where: str, time: str) -> Iterator[PlacedStep]:
    for i, step in enumerate(steps):
        if isinstance(step, Repeat):
            for n in range(step.times):
                yield from _in_order(step.steps, f"{where}[{i}].repeat.steps", f"{time}, time {n + 1}")
        else:
            yield PlacedStep(f"{where}[{i}].{step.NAME}{time}", 0, step)


@dataclass(frozen=True)
class Part:
    """What one caller says: audio by the step's number, a dialogue's turns in order. Shared by calls, never changed."""

    speeches: Mapping[int, Sequence[Speech]]
    sounds: Mapping[int, Pcm16]


def rehearse(scenario: Scenario, corpus: Corpus, cast: Cast, take: int) -> Part:
    """All audio of one take. Pure, and slow."""
    speeches: dict[int, Sequence[Speech]] = {}
    sounds: dict[int, Pcm16] = {}

    def say(name: str, delivery: Delivery | None, place: tuple[int, ...], cut_ms: float | None = None) -> Speech:
        sound = cast.say(name, delivery or scenario.caller, (scenario.seed, take, *place))
        return _speech(name, corpus.utterance(name).text, sound, cut_ms)

    for placed in in_order(scenario.steps):
        number = placed.number
        match placed.step:
            case Say() as step:
                speeches[number] = [say(step.utterance, step.delivery, (number,), step.cut_ms)]
            case BargeIn() | Backchannel() as step:
                speeches[number] = [_at_once(say(step.utterance, step.delivery, (number,)), cast.rate_hz)]
            case Converse() as step:
                turns = corpus.dialogue(step.dialogue).turns
                speeches[number] = [say(turn.name, step.delivery, (number, i)) for i, turn in enumerate(turns)]
            case Noise() as step:
                place = (scenario.seed, take, number)
                sounds[number] = cast.noise(step.kind, step.for_ms, step.level_dbfs, place)
            case Dtmf() as step:
                sounds[number] = to_int16(tones(step.keys, cast.rate_hz, step.tone_ms / 1000, step.gap_ms / 1000))
    return Part(speeches, sounds)


def _speech(name: str, text: str, sound: Sound, cut_ms: float | None) -> Speech:
    if cut_ms is None:
        return Speech(name, text, sound.pcm, sound.start, sound.end)
    end = min(sound.end, sound.start + max(1, round(cut_ms / 1000 * sound.rate_hz)))
    return Speech(name, text, sound.pcm[:end], sound.start, end)


def _at_once(speech: Speech, rate_hz: int) -> Speech:
    """Without the silence before it, in which the agent might pause."""
    skipped = max(0, speech.start - round(AUDIO_FRAME_S * rate_hz))
    return replace(speech, pcm=speech.pcm[skipped:], start=speech.start - skipped, end=speech.end - skipped)


def is_drawn(scenario: Scenario) -> bool:
    """Whether one take differs from another."""
    steps = list(scenario.flat)
    spoken = [step.delivery for step in steps if isinstance(step, Say | BargeIn | Backchannel | Converse)]
    deliveries = [scenario.caller, *(delivery for delivery in spoken if delivery is not None)]
    return any(isinstance(step, Noise) for step in steps) or any(map(_has_draws, deliveries))


def _has_draws(delivery: Delivery) -> bool:
    return bool(delivery.num_pauses or delivery.num_fillers or delivery.background is not None)
