from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voice.media.jitter import (
    CONCEAL_S,
    MAX_BURST_S,
    MAX_FILL_S,
    MAX_SPEED,
    NUM_REFUSED,
    PIECE_S,
    QUIET_S,
    Decode,
    JitterBuffer,
    MakeUp,
    Packet,
    Recover,
    Restart,
    Step,
)
from voice.media.lateness import MAX_TARGET_S, MIN_TARGET_S, STALE_S

HZ = 48000
SIZE = 960  # samples of 20 ms


def packet(number: int, *, first: int = 0, ssrc: int = 1, since: int = 0) -> Packet:
    """The payload tells its number; a payload that ends in `+` holds a copy of the one before."""
    sequence, timestamp = (first + number) % (1 << 16), (since + number * SIZE) % (1 << 32)
    return Packet(sequence, timestamp, ssrc, b"%d" % number, SIZE)


class Line:
    """Packets arriving at a buffer on a clock of its own; what was played, and when."""

    def __init__(self, *, fec: bool = False) -> None:
        self.buffer = JitterBuffer(HZ, lambda payload: fec)
        self.played: list[tuple[float, Step]] = []
        self.now = 100.0

    def until(self, now: float) -> None:
        """Let time pass, looking after the buffer whenever it wants to be."""
        while (wake_s := self.buffer.wake_s()) is not None and wake_s <= now:
            self.now = max(self.now, wake_s)
            self._take()
        self.now = now

    def arrive(self, item: Packet, now: float) -> None:
        self.until(now)
        self.buffer.insert(item, now)
        self._take()

    def _take(self) -> None:
        self.played += [(self.now, step) for step in self.buffer.take(self.now)]

    @property
    def steps(self) -> list[Step]:
        return [step for _, step in self.played]

    @property
    def numbers(self) -> list[int]:
        return [int(step.payload) for step in self.steps if isinstance(step, Decode)]

    @property
    def num_samples(self) -> int:
        return sum(SIZE if isinstance(step, Decode) else step.num_samples for step in self.steps if step != Restart())


def stream(line: Line, arrivals: list[tuple[float, int]], **more: int) -> None:
    for at_s, number in sorted(arrivals):
        line.arrive(packet(number, **more), 100.0 + at_s)


def test_a_clean_link_is_not_delayed_at_all() -> None:
    line = Line()
    stream(line, [(0.02 * n, n) for n in range(100)])
    assert line.numbers == list(range(100))
    assert [at_s for at_s, _ in line.played] == pytest.approx([100 + 0.02 * n for n in range(100)])
    assert line.buffer.counts.bridged == 0


def test_a_lost_packet_costs_one_packet_s_time_and_nothing_for_good() -> None:
    line = Line()
    stream(line, [(0.02 * n, n) for n in range(100) if n != 50])
    assert line.numbers == [n for n in range(100) if n != 50]
    decoded = [(at_s, int(step.payload)) for at_s, step in line.played if isinstance(step, Decode)]
    assert max(at_s - (100 + 0.02 * number) for at_s, number in decoded) < 0.011
    assert [step for step in line.steps if isinstance(step, MakeUp)] == [MakeUp("conceal", SIZE)]
    assert line.num_samples == 100 * SIZE


def test_a_lost_packet_comes_back_from_the_copy_in_the_next() -> None:
    line = Line(fec=True)
    stream(line, [(0.02 * n, n) for n in range(10) if n not in (4, 7, 8)])
    line.until(line.now + 0.05)
    assert line.steps[4:6] == [Recover(b"5", SIZE), Decode(b"5")]
    assert line.steps[7:10] == [MakeUp("conceal", SIZE), Recover(b"9", SIZE), Decode(b"9")]
    assert (line.buffer.counts.lost, line.buffer.counts.recovered) == (3, 2)
    assert line.num_samples == 10 * SIZE


def test_an_overtaken_packet_is_waited_for() -> None:
    line = Line()
    stream(line, [(0.0, 0), (0.02, 1), (0.061, 3), (0.068, 2), (0.08, 4)])
    assert line.numbers == [0, 1, 2, 3, 4]
    assert line.buffer.counts.lost == 0


def test_the_wait_grows_at_once_and_shrinks_within_seconds() -> None:
    line = Line()
    stream(line, [(0.02 * n, n) for n in range(50)])
    assert line.buffer.target_s == MIN_TARGET_S
    stream(line, [(0.02 * 51, 51), (0.02 * 52, 52), (0.02 * 53, 53), (0.02 * 50 + 0.075, 50)])
    assert line.buffer.counts.late == 1
    assert line.buffer.target_s == pytest.approx(0.075, abs=0.001)
    stream(line, [(0.02 * n, n) for n in range(54, 54 + 200)])
    assert line.buffer.target_s <= MIN_TARGET_S + 0.001


def test_the_wait_never_exceeds_its_bound() -> None:
    line = Line()
    rng = random.Random(4)
    stream(line, [(0.02 * n + rng.expovariate(1 / 0.2), n) for n in range(300)])
    assert line.buffer.target_s <= MAX_TARGET_S


@pytest.mark.parametrize("ppm", [-200, 200])
def test_drift_adds_no_delay(ppm: int) -> None:
    line = Line()
    stream(line, [(0.02 * n * (1 + ppm / 1e6), n) for n in range(30_000)])  # ten minutes
    assert line.numbers == list(range(30_000))
    assert line.buffer.counts.bridged == 0
    assert line.buffer.target_s == MIN_TARGET_S


def test_silence_on_the_line_goes_on_in_real_time() -> None:
    line = Line()
    stream(line, [(0.02 * n, n) for n in range(10)])
    line.until(100 + 0.2 + 3.0)
    made = [step for step in line.steps if isinstance(step, MakeUp)]
    assert sum(step.num_samples for step in made) / HZ == pytest.approx(3.0, abs=PIECE_S)
    assert sum(step.num_samples for step in made if step.how == "conceal") == round(CONCEAL_S * HZ)
    begun_s = next(at_s for at_s, step in line.played if isinstance(step, MakeUp))
    assert begun_s == pytest.approx(100 + 0.2 + MIN_TARGET_S + QUIET_S, abs=0.001)


def test_a_sender_that_rests_is_silent_and_goes_on_where_it_was() -> None:
    """Discontinuous transmission: numbers go on, timestamps jump by the silence."""
    line = Line()
    stream(line, [(0.02 * n, n) for n in range(10)])
    at_s = 0.2
    for number in range(10, 15):  # one packet each 400 ms
        at_s += 0.4
        line.arrive(Packet(number, round(at_s * HZ), 1, b"%d" % number, SIZE), 100 + at_s)
    assert line.numbers == list(range(15))
    assert line.num_samples / HZ == pytest.approx(at_s + 0.02, abs=0.001)
    assert line.buffer.counts.lost == 0


def test_a_stall_without_loss_loses_no_word() -> None:
    line = Line()
    stream(line, [(0.02 * n if n < 50 or n > 70 else 0.02 * 70, n) for n in range(100)])
    assert line.numbers == list(range(100))
    last_s = line.played[-1][0]
    assert last_s == pytest.approx(100 + 0.02 * 99)  # nothing of the stall is left


def test_what_is_too_old_to_answer_is_left_out() -> None:
    line = Line()
    stream(line, [(0.02 * n if n < 50 else max(0.02 * n, 4.0), n) for n in range(300)])
    assert line.numbers == [*range(50), *range(150, 300)]
    assert line.buffer.counts.stale == 100


def test_a_way_that_is_longer_for_good_is_followed() -> None:
    line = Line()
    stream(line, [(0.02 * n + (1.5 if n >= 100 else 0.0), n) for n in range(400)])
    assert line.numbers[-200:] == list(range(200, 400))


@pytest.mark.parametrize("first", [0, 65_530, 65_535])
@pytest.mark.parametrize("since", [0, (1 << 32) - 3 * SIZE])
def test_counters_wrap(first: int, since: int) -> None:
    line = Line()
    stream(line, [(0.02 * n, n) for n in range(20) if n != 8], first=first, since=since)
    assert line.numbers == [n for n in range(20) if n != 8]
    assert line.num_samples == 20 * SIZE


def test_another_sender_starts_anew() -> None:
    line = Line()
    stream(line, [(0.02 * n, n) for n in range(10)])
    for n in range(5):
        line.arrive(packet(n, first=777, ssrc=2, since=123_456), 100 + 0.2 + 0.02 * n)
    assert line.steps[10] == Restart()
    assert line.numbers == [*range(10), *range(5)]


def test_the_same_sender_may_start_anew() -> None:
    line = Line()
    stream(line, [(0.02 * n, n) for n in range(10)])
    for n in range(5):
        line.arrive(packet(n, first=30_000, since=99_999_999), 100 + 0.2 + 0.02 * n)
    assert line.numbers == [*range(10), *range(1, 5)]  # the first alone might be noise


def test_packets_without_audio_are_no_holes() -> None:
    line = Line()
    for n in range(10):
        size = 0 if n == 5 else SIZE
        number = n if n < 5 else n - 1
        line.arrive(Packet(n, number * SIZE, 1, b"" if n == 5 else b"%d" % n, size), 100 + 0.02 * number)
    assert line.numbers == [n for n in range(10) if n != 5]
    assert line.buffer.counts.lost == 0


def test_padding_says_nothing_of_time() -> None:
    """RFC 6263 keep-alives: no audio, the last timestamp again."""
    line = Line()
    sequence = 0
    for n in range(20):
        line.arrive(Packet(sequence, n * SIZE, 1, b"%d" % n, SIZE), 100 + 0.02 * n)
        line.arrive(Packet(sequence + 1, n * SIZE, 1, b"", 0), 100 + 0.02 * n)
        sequence += 2
    assert line.steps == [Decode(b"%d" % n) for n in range(20)]


def no_audio(sequence: int, *, ssrc: int = 1, timestamp: int = 0) -> Packet:
    return Packet(sequence, timestamp, ssrc, b"", 0)


@pytest.mark.parametrize("replaces", [True, False], ids=["instead of audio", "beside it"])
def test_events_among_the_audio_are_no_holes_and_shift_nothing(*, replaces: bool) -> None:
    """RFC 4733, 2.1: they share source and sequence, and all packets of one event have the time at which it began."""
    line, sequence = Line(fec=True), 0
    for n in range(30):
        is_event = 10 <= n < 20
        if is_event:
            line.arrive(no_audio(sequence, timestamp=10 * SIZE), 100 + 0.02 * n)
            sequence += 1
        if not (is_event and replaces):
            line.arrive(Packet(sequence, n * SIZE, 1, b"%d" % n, SIZE), 100 + 0.02 * n)
            sequence += 1
    assert line.numbers == [n for n in range(30) if not (replaces and 10 <= n < 20)]
    assert (line.buffer.counts.lost, line.buffer.counts.recovered, line.buffer.counts.late) == (0, 0, 0)
    assert line.num_samples == 30 * SIZE
    assert line.buffer.target_s == MIN_TARGET_S


def test_a_lost_event_is_no_lost_audio() -> None:
    line, sequence = Line(fec=True), 0
    for n in range(30):
        if n in (12, 15, 16):
            sequence += 1  # an event that does not come
        line.arrive(Packet(sequence, n * SIZE, 1, b"%d" % n, SIZE), 100 + 0.02 * n)
        sequence += 1
    assert line.numbers == list(range(30))
    assert line.num_samples == 30 * SIZE


def test_audio_lost_before_an_event_is_made_up_for() -> None:
    line = Line()
    for n in range(20):
        if n == 10:
            line.arrive(no_audio(11, timestamp=11 * SIZE), 100 + 0.02 * 11)  # 10 is lost
        elif n != 11:
            line.arrive(packet(n), 100 + 0.02 * n)
    assert line.numbers == [n for n in range(20) if n not in (10, 11)]
    assert line.num_samples == 20 * SIZE


def test_what_is_no_audio_of_this_source_begins_nothing_and_ends_nothing() -> None:
    line = Line()
    line.arrive(no_audio(500), 99.9)
    stream(line, [(0.02 * n, n) for n in range(5)])
    line.arrive(no_audio(3, ssrc=2), 100.1)
    line.arrive(no_audio(40_000), 100.1)
    line.arrive(no_audio(40_001), 100.1)
    stream(line, [(0.02 * n, n) for n in range(5, 10)])
    assert line.steps == [Decode(b"%d" % n) for n in range(10)]


def test_every_packet_is_counted_once_also_those_that_begin_anew() -> None:
    line = Line()
    stream(line, [(0.02 * n, n) for n in range(100)])
    for n in range(NUM_REFUSED + 10):  # the same sender, from the beginning
        line.arrive(packet(n), 102 + 0.02 * n)
    assert line.buffer.counts.received == 100 + NUM_REFUSED + 10
    assert line.buffer.counts.repeated == NUM_REFUSED - 1
    assert line.numbers[100:] == list(range(NUM_REFUSED - 1, NUM_REFUSED + 10))


def test_what_is_held_when_the_codec_changes_is_played() -> None:
    line = Line()
    stream(line, [(0.02 * n, n) for n in range(5)])
    for n in (6, 8):
        line.buffer.insert(packet(n), 100.1)
    drained = line.buffer.drain()
    assert [step for step in drained if isinstance(step, Decode)] == [Decode(b"6"), Decode(b"8")]
    line.buffer.use(8000, lambda _: False)
    line.buffer.insert(Packet(9, 77, 1, b"9", 160), 100.18)
    assert line.buffer.take(100.18) == [Decode(b"9")]
    assert (line.buffer.counts.received, line.buffer.counts.lost) == (8, 2)


hostile = st.lists(
    st.tuples(
        st.floats(0, 0.01),  # until the next packet
        st.sampled_from([1, 1, 1, 2, 3, 999, 40_000]),  # on in sequence
        st.sampled_from([0, 120, 960, 5760, 9600, 9601, 480_000, (1 << 32) - 960]),  # on in time
        st.sampled_from([0, 120, 5760]),  # of audio
        st.integers(1, 2),  # the source
        st.booleans(),  # another codec
    ),
    min_size=100,
    max_size=400,
)


@settings(deadline=None, max_examples=50)
@given(hostile, st.booleans())
def test_whatever_its_clock_says_a_sender_is_heard_in_real_time(
    sent: list[tuple[float, int, int, int, int, bool]], fec: bool
) -> None:
    line, sequence, timestamp, now, began_s = Line(fec=fec), 0, 0, 100.0, 100.0
    for wait_s, on, later, size, ssrc, changes in sent:
        now, sequence, timestamp = now + wait_s, (sequence + on) % (1 << 16), (timestamp + later) % (1 << 32)
        if changes:
            line.played += [(now, step) for step in line.buffer.drain()]
            line.buffer.use(HZ, lambda _: fec)
        line.arrive(Packet(sequence, timestamp, ssrc, b"%d" % size, size), now)
    num_samples = sum(
        int(step.payload) if isinstance(step, Decode) else step.num_samples for step in line.steps if step != Restart()
    )
    longest_s = MAX_FILL_S + 0.12  # what the last credit may pay for
    elapsed_s = now - began_s
    assert num_samples / HZ <= MAX_BURST_S + MAX_SPEED * elapsed_s + elapsed_s + longest_s


def test_a_few_bytes_cannot_ask_for_minutes_of_audio() -> None:
    line = Line()
    stream(line, [(0.02 * n, n) for n in range(5)])
    for jump in range(1, 20):
        line.arrive(Packet(4 + 999 * jump, (4 + 999 * jump) * 5760, 1, b"9", 5760), 100.1 + 0.02 * jump)
    made_up = sum(step.num_samples for step in line.steps if isinstance(step, MakeUp | Recover))
    assert made_up / HZ < 19 * 0.3


def test_a_sender_whose_clock_rested_is_heard_at_once() -> None:
    """Held or suspended: numbers and timestamps go on where they were, wall time did not wait."""
    line = Line()
    stream(line, [(0.02 * n + (1.5 if n >= 50 else 0.0), n) for n in range(150)])
    assert line.numbers == [n for n in range(150) if n != 50]


arrivals = st.lists(
    st.tuples(
        st.floats(0, 0.3),  # how late
        st.booleans(),  # lost, if the next is True as well
        st.booleans(),
        st.integers(0, 2),  # copies
    ),
    min_size=1,
    max_size=80,
)


@settings(deadline=None)
@given(arrivals, st.booleans(), st.integers(0, 65_535), st.integers(0, (1 << 32) - 1))
def test_whatever_the_network_does(
    fates: list[tuple[float, bool, bool, int]], fec: bool, first: int, since: int
) -> None:
    line = Line(fec=fec)
    sent = []
    for number, (late_s, lost, really, copies) in enumerate(fates):
        if not (lost and really) or number == 0:
            sent += [(0.02 * number + late_s * (copy + 1), number) for copy in range(copies + 1)]
    stream(line, sent, first=first, since=since)
    line.until(line.now + 1.0)

    came = {number for _, number in sent}
    at_s: dict[int, float] = {}
    for at, number in sorted(sent):
        at_s.setdefault(number, 100 + at)
    begun = min(at_s, key=lambda number: (at_s[number], number))
    assert line.numbers == sorted(line.numbers)  # in order
    assert max(Counter(line.numbers).values()) == 1  # and once
    assert set(line.numbers) <= came
    missing = {number for number in came if number >= begun} - set(line.numbers)
    assert line.buffer.counts.late <= len(missing) or not missing
    for played_s, step in line.played:
        if isinstance(step, Decode):
            assert played_s - at_s[int(step.payload)] <= MAX_TARGET_S + STALE_S * 0.3 + 0.001
    assert not line.buffer._held
    recovered = [step for step in line.steps if isinstance(step, Recover)]
    assert all(int(step.following) - 1 not in line.numbers for step in recovered)


def test_a_hole_is_not_waited_for_longer_because_the_clock_jumps_back() -> None:
    line = Line()
    since = 50_000_000
    stream(line, [(0.02 * n + (0.1 if n % 3 == 0 else 0), n) for n in range(99)], since=since)
    assert line.buffer.target_s > 0.1
    line.arrive(packet(100, since=since), 102.0)  # 99 is lost
    for number in range(101, 110):  # and the clock begins anew
        line.arrive(packet(number, since=-101 * SIZE), 100 + 0.02 * number)
    line.until(102.3)

    assert line.numbers[-9:] == [100, *range(102, 110)]  # the first of the new clock is taken for one of long ago
    assert line.buffer.wake_s() < 102.4


@pytest.mark.parametrize("size_s", [0.005, 0.01, 0.02, 0.06])
def test_a_clock_that_stood_still_in_a_pause_costs_a_packet_or_two_of_any_size(size_s: float) -> None:
    line, size = Line(), round(size_s * HZ)
    for number in range(100):
        now = 100 + 0.999 * size_s * number + (3 if number >= 50 else 0)
        line.arrive(Packet(number, number * size, 1, b"%d" % number, size), now)

    assert line.numbers[-49:] == list(range(51, 100))
