import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.errors import PeerError
from wire.sse import MAX_EVENT_BYTES, Decoder, encode

lines = st.text(alphabet=st.characters(blacklist_characters="\r\n", blacklist_categories=["Cs"]), max_size=20)
events = st.lists(st.lists(lines, min_size=1, max_size=3).map("\n".join), max_size=8)


@given(events, st.integers(1, 7), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_events_survive_any_cut_and_line_end(sent: list[str], step: int, line_end: bytes):
    stream = b"".join(map(encode, sent)).replace(b"\n", line_end) + b":end\n"
    decoder = Decoder()

    got = [event for i in range(0, len(stream), step) for event in decoder.feed(stream[i : i + step])]

    assert got == sent


def test_comments_and_other_fields_are_ignored():
    assert Decoder().feed(b": ping\nevent: x\nid: 1\ndata: a\n\n\n") == ["a"]


@pytest.mark.parametrize("chunk", [b"data: " + b"x" * MAX_EVENT_BYTES, b"data: \xff\n"])
def test_an_endless_or_undecodable_event_is_the_peers_fault(chunk: bytes):
    with pytest.raises(PeerError):
        Decoder().feed(chunk)
