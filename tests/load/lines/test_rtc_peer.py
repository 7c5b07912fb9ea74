from __future__ import annotations

from aiortc.rtp import RtpPacket

from load.lines.rtc_peer import Arrivals


def packet(timestamp: int) -> RtpPacket:
    made = RtpPacket(timestamp=timestamp % (1 << 32))
    made._data = str(timestamp).encode()  # type: ignore[attr-defined]
    return made


def handed_on(*timestamps: int) -> list[bytes]:
    arrivals = Arrivals()
    frames = [arrivals.add(packet(timestamp))[1] for timestamp in timestamps]
    return [frame.data for frame in frames if frame is not None]


def test_packets_are_handed_on_as_they_come() -> None:
    assert handed_on(960, 1920, 4800) == [b"960", b"1920", b"4800"]


def test_what_was_overtaken_or_doubled_is_lost() -> None:
    assert handed_on(960, 2880, 1920, 2880, 3840) == [b"960", b"2880", b"3840"]


def test_the_clock_of_rtp_wraps() -> None:
    last = (1 << 32) - 960
    assert handed_on(last, last + 960, last, last + 1920) == [str(n).encode() for n in (last, last + 960, last + 1920)]


def test_each_arrival_can_be_asked_for_by_its_place_behind_the_first() -> None:
    arrivals = Arrivals()
    for timestamp in (5000, 5960, 6920):
        arrivals.add(packet(timestamp))
    times = [arrivals.arrived_s(pts) for pts in (0, 960, 1920)]
    assert times == sorted(times)
