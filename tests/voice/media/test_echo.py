from __future__ import annotations

import numpy as np
import pytest

from tests.speech import clip_paths, read
from voice.media.echo import EchoGuard
from wire.pcm import Pcm16

HZ = 16000
WINDOW, MESSAGE = 512, 320
LOUD = 200.0  # RMS of a window in which somebody is heard: -44 dBFS
LEAD_S = 0.16


def voices() -> tuple[Pcm16, Pcm16]:
    """Two different people, 7 s each."""
    one, other = (np.concatenate([read(path) for path in clip_paths(language)]) for language in ("en", "fr"))
    size = min(one.size, other.size)
    return one[:size], other[:size]


def echo(pcm: Pcm16, db: float, delay_s: float, room_s: float = 0.0) -> np.ndarray:
    """What a loudspeaker gives back to a microphone beside it; `room_s`: how long the room rings, to -60 dB."""
    shift = round(delay_s * HZ)
    wave = pcm.astype(np.float64)
    if room_s:
        t = np.arange(round(room_s * HZ)) / HZ
        ringing = np.random.default_rng(1).standard_normal(t.size) * 10 ** (-3 * t / room_s) * 0.1
        ringing[0] = 1.0
        wave = np.convolve(wave, ringing)[: wave.size]
    return np.concatenate([np.zeros(shift), wave])[: pcm.size] * 10 ** (db / 20)


def flagged(agent: Pcm16, microphone: np.ndarray, lead_s: float = LEAD_S) -> tuple[np.ndarray, np.ndarray]:
    """For each window of the microphone: whether it was taken for an echo, and its RMS.

    A window is whole with the message that brings its last sample, and messages come up to 15 ms late.
    """
    guard, late = EchoGuard(HZ, HZ, 0.0), np.random.default_rng(5)
    sent, found, levels = 0, [], []
    heard = np.clip(microphone, -32768, 32767).astype(np.int16)
    for begin in range(0, heard.size - WINDOW + 1, WINDOW):
        now = -(-(begin + WINDOW) // MESSAGE) * MESSAGE / HZ + late.uniform(0, 0.015)
        while sent < agent.size and sent / HZ <= now + lead_s:
            guard.said(agent[sent : sent + MESSAGE], max(0.0, sent / HZ - lead_s))
            sent += MESSAGE
        window = heard[begin : begin + WINDOW]
        found.append(guard.hears(window, now) and guard.is_echo())
        levels.append(float(np.sqrt((window.astype(float) ** 2).mean())))
    return np.array(found), np.array(levels)


@pytest.mark.parametrize(
    ("db", "delay_s", "room_s"),
    [(-20, 0.06, 0.0), (-30, 0.15, 0.0), (-10, 0.4, 0.0), (-20, 0.06, 0.2), (-20, 0.2, 0.4)],
)
def test_the_agent_s_own_voice_is_an_echo(db: float, delay_s: float, room_s: float) -> None:
    agent, _ = voices()
    is_echo, levels = flagged(agent, echo(agent, db, delay_s, room_s))
    speaks = levels > LOUD * 10 ** ((db + 20) / 20)
    assert is_echo[speaks].mean() > 0.9
    longest = max(len(run) for run in "".join("01"[int(not each)] for each in is_echo[speaks][4:]).split("0"))
    assert longest * WINDOW / HZ < 0.2  # shorter than what takes the turn


def test_a_caller_is_no_echo_while_the_agent_speaks() -> None:
    agent, caller = voices()
    is_echo, levels = flagged(agent, caller.astype(float))
    assert is_echo[levels > LOUD].mean() < 0.03


def test_a_caller_who_speaks_over_the_echo_is_heard() -> None:
    agent, caller = voices()
    is_echo, levels = flagged(agent, echo(agent, -20, 0.06) + caller)
    assert is_echo[levels > 4 * LOUD].mean() < 0.2


def test_an_agent_that_has_been_silent_for_long_has_no_echo() -> None:
    agent, caller = voices()
    guard = EchoGuard(HZ, HZ, 0.0)
    guard.said(agent[:MESSAGE], 0.0)
    assert guard.hears(caller[:WINDOW], 0.1)
    assert not guard.hears(caller[:WINDOW], 5.0)
    guard.said(agent[:MESSAGE], 6.0)
    assert guard.hears(caller[:WINDOW], 6.1)
