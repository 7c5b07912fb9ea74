from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.faults.sdp import candidates, rewritten

OFFER = (
    "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n"
    "m=audio 40000 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 192.0.2.1\r\na=mid:0\r\na=rtcp:9 IN IP4 0.0.0.0\r\n"
    "a=candidate:1 1 udp 100 192.0.2.1 40000 typ host generation 0\r\n"
    "a=candidate:2 1 UDP 200 2001:db8::1 40001 typ host\r\n"
    "a=candidate:3 1 udp 50 198.51.100.7 40002 typ srflx raddr 192.0.2.1 rport 40000 generation 0\r\n"
    "a=candidate:4 1 tcp 300 192.0.2.1 9 typ host tcptype active\r\n"
    "a=candidate:5 1 udp 300 d1b0.local 40003 typ host\r\n"
    "a=candidate:6 2 udp 300 192.0.2.1 40004 typ host\r\n"
    "a=end-of-candidates\r\na=ice-ufrag:abcd\r\na=rtpmap:96 opus/48000/2\r\n"
    "m=application 0 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\na=mid:1\r\n"
)
PLACES = {
    ("192.0.2.1", 40000): ("127.0.0.1", 1001),
    ("2001:db8::1", 40001): ("127.0.0.1", 1002),
    ("198.51.100.7", 40002): ("127.0.0.1", 1003),
}


def test_candidates_are_those_udp_reaches_best_first() -> None:
    assert candidates(OFFER) == [("2001:db8::1", 40001), ("192.0.2.1", 40000), ("198.51.100.7", 40002)]


def test_every_address_of_the_peer_is_replaced() -> None:
    sdp = rewritten(OFFER, PLACES)
    assert candidates(sdp) == [("127.0.0.1", 1002), ("127.0.0.1", 1001), ("127.0.0.1", 1003)]
    for trace in ("192.0.2.1", "2001:db8", "198.51.100.7", ".local", "raddr", "srflx", " tcp "):
        assert trace not in sdp
    assert "m=audio 1001 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 127.0.0.1\r\n" in sdp
    assert "a=candidate:1 1 udp 100 127.0.0.1 1001 typ host generation 0\r\n" in sdp


def test_all_else_stays_as_it_was() -> None:
    changed = ("a=candidate", "c=", "m=audio", "a=end-of")
    kept = [line for line in OFFER.splitlines() if not line.startswith(changed)]
    assert [line for line in rewritten(OFFER, PLACES).splitlines() if not line.startswith(changed)] == kept
    assert "m=application 0 UDP/DTLS/SCTP webrtc-datachannel" in kept  # a refused medium stays refused


def test_the_end_of_candidates_is_said_only_when_none_was_left_out() -> None:
    whole = "m=audio 9 X 0\r\na=candidate:1 1 udp 100 192.0.2.1 40000 typ host\r\na=end-of-candidates\r\n"
    assert "end-of-candidates" in rewritten(whole, PLACES)
    assert "end-of-candidates" not in rewritten(whole, {})
    assert "end-of-candidates" not in rewritten(OFFER, PLACES)


def test_without_a_place_nothing_is_told() -> None:
    sdp = rewritten(OFFER, {})
    assert candidates(sdp) == []
    assert "m=audio 9 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\n" in sdp


@pytest.mark.parametrize("line", ["m=", "m=audio", "c=", "a=candidate:", "a=candidate:1 1 udp x y z typ", "a=rtcp:"])
def test_a_broken_line_breaks_nothing(line: str) -> None:
    assert candidates(f"{line}\r\n{OFFER}") == candidates(OFFER)
    rewritten(f"m=audio 9 X 0\r\n{line}\r\n", PLACES)


@given(st.text(alphabet=st.sampled_from("m=ca:ndite \r\n109.udp\u2028"), max_size=80))
def test_no_text_is_too_strange(text: str) -> None:
    rewritten(text, dict.fromkeys(candidates(text), ("127.0.0.1", 1)))
