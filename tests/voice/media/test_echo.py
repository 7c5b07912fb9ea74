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


def flagged(
    agent: Pcm16, microphone: np.ndarray, stall_s: float = 0.0, rewinds_s: tuple[float, ...] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """For each window of the microphone: whether it was taken for an echo, and its RMS.

    A window is whole with the message that brings its last sample, and messages come up to 15 ms late. Every two
    seconds none comes for `stall_s`, then all of them. At `rewinds_s` the agent's lead is taken back and leaves again.
    """
    guard, late = EchoGuard(HZ, HZ, 0.0), np.random.default_rng(5)
    sent, found, levels = 0, [], []
    heard = np.clip(microphone, -32768, 32767).astype(np.int16)
    for begin in range(0, heard.size - WINDOW + 1, WINDOW):
        now = -(-(begin + WINDOW) // MESSAGE) * MESSAGE / HZ + late.uniform(0, 0.015)
        if now % 2.0 < stall_s:
            now += stall_s - now % 2.0
        if rewinds_s and now >= rewinds_s[0]:
            rewinds_s = rewinds_s[1:]
            guard.take_back(round(LEAD_S * HZ))
            sent -= round(LEAD_S * HZ)
        while sent < agent.size and sent / HZ <= now + LEAD_S:
            guard.said(agent[sent : sent + MESSAGE], max(0.0, sent / HZ - LEAD_S))
            sent += MESSAGE
        window = heard[begin : begin + WINDOW]
        found.append(guard.hears(window, now) and guard.is_echo())
        levels.append(float(np.sqrt((window.astype(float) ** 2).mean())))
    return np.array(found), np.array(levels)


def longest_s(is_so: np.ndarray) -> float:
    return max(len(run) for run in "".join("01"[int(each)] for each in is_so).split("0")) * WINDOW / HZ


@pytest.mark.parametrize(
    ("db", "delay_s", "room_s"),
    [
        (-20, 0.06, 0.0),
        (-30, 0.15, 0.0),
        (-6, 0.02, 0.0),
        (-10, 0.9, 0.0),
        (-15, 1.3, 0.0),
        (-20, 0.06, 0.2),
        (-20, 0.2, 0.4),
        (-6, 0.6, 0.4),
    ],
)
def test_the_agent_s_own_voice_is_an_echo(db: float, delay_s: float, room_s: float) -> None:
    agent, _ = voices()
    is_echo, levels = flagged(agent, echo(agent, db, delay_s, room_s))
    speaks = levels > LOUD * 10 ** ((db + 20) / 20)
    assert is_echo[speaks].mean() > 0.9
    assert longest_s(~is_echo[speaks]) < 0.2  # shorter than what takes the turn


def test_an_echo_that_becomes_louder_is_still_one() -> None:
    agent, _ = voices()
    microphone = echo(agent, -25, 0.1, room_s=0.2)
    microphone[agent.size // 2 :] *= 10 ** (10 / 20)
    is_echo, levels = flagged(agent, microphone)
    assert longest_s(~is_echo[levels > LOUD]) < 0.1


def test_an_echo_that_becomes_later_is_soon_one_again() -> None:
    agent, _ = voices()
    microphone = echo(agent, -15, 0.1)
    microphone[agent.size // 2 :] = echo(agent, -15, 0.16)[agent.size // 2 :]
    is_echo, levels = flagged(agent, microphone)
    assert longest_s(~is_echo[levels > LOUD]) < 0.2


@pytest.mark.parametrize("stall_s", [0.15, 1.0])
def test_messages_that_come_late_and_all_at_once_are_placed_where_they_were(stall_s: float) -> None:
    agent, _ = voices()
    is_echo, levels = flagged(agent, echo(agent, -15, 0.12), stall_s)
    assert is_echo[levels > LOUD].mean() > 0.97


def test_a_caller_whose_audio_was_lost_for_a_while_is_soon_compared_at_the_right_time() -> None:
    agent, _ = voices()
    microphone = echo(agent, -15, 0.12)
    guard, found = EchoGuard(HZ, HZ, 0.0), []
    for begin in range(0, agent.size - WINDOW + 1, WINDOW):
        guard.said(agent[begin : begin + WINDOW], begin / HZ)
        if not 2.0 < begin / HZ < 2.7:
            now = (begin + WINDOW) / HZ
            found.append(guard.hears(microphone[begin : begin + WINDOW].astype(np.int16), now) and guard.is_echo())
    after = np.array(found)[round(2.0 * HZ / WINDOW) + 1 :]
    assert after[15:].mean() > 0.9


def test_a_caller_is_no_echo_while_the_agent_speaks() -> None:
    agent, caller = voices()
    is_echo, levels = flagged(agent, caller.astype(float))
    assert is_echo[levels > LOUD].mean() < 0.03


def test_a_caller_who_speaks_over_the_echo_is_heard() -> None:
    agent, caller = voices()
    is_echo, levels = flagged(agent, echo(agent, -20, 0.06) + caller)
    assert is_echo[levels > 4 * LOUD].mean() < 0.2


def test_a_caller_softer_than_a_loud_echo_is_noticed() -> None:
    agent, caller = voices()
    begin = 2 * HZ
    back = echo(agent, -6, 0.1)
    over = np.concatenate([np.zeros(begin), caller[:-begin]]) * 10 ** (-12 / 20)
    is_echo, _ = flagged(agent, back + over)
    _, levels = flagged(agent, over)
    assert is_echo[levels > LOUD].mean() < 0.45
    alone, _ = flagged(agent, back)
    assert alone[levels > LOUD].mean() > 0.97


def test_an_agent_that_has_been_silent_for_long_has_no_echo() -> None:
    agent, caller = voices()
    guard = EchoGuard(HZ, HZ, 0.0)
    guard.said(agent[:MESSAGE], 0.0)
    assert guard.hears(caller[:WINDOW], 0.1)
    assert not guard.hears(caller[:WINDOW], 5.0)
    guard.said(agent[:MESSAGE], 6.0)
    assert guard.hears(caller[:WINDOW], 6.1)


def test_what_leaves_again_is_no_other_delay():
    agent, _ = voices()
    found, levels = flagged(agent, echo(agent, -20, 0.06), rewinds_s=(2.0, 3.0, 4.0))
    missed = ~found & (levels > LOUD)
    assert longest_s(missed[round(1.0 * HZ / WINDOW) :]) < 0.1
