import itertools

from hypothesis import given
from hypothesis import strategies as st

from llm.stops import TextStream

letters = st.text("abé€😀", max_size=12)
stop_strings = st.lists(st.text("abé€", min_size=1, max_size=4), max_size=3)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in itertools.pairwise(places)]


def expected(text: str, stops: list[str]) -> tuple[str, bool]:
    """Up to the stop string that is complete first, of several the longest."""
    for end in range(1, len(text) + 1):
        matching = [stop for stop in stops if text[:end].endswith(stop)]
        if matching:
            return text[: end - max(map(len, matching))], True
    return text, False


def run(parts: list[bytes], stops: list[str]) -> tuple[list[str], bool]:
    stream, texts = TextStream(stops), []
    for part in parts:
        texts.append(stream.push(part))
        if stream.stopped:
            return texts, True
    return [*texts, stream.finish()], stream.stopped


@given(letters, stop_strings, st.lists(st.integers(0, 60), max_size=20))
def test_any_split_gives_the_text_before_the_first_stop(text: str, stops: list[str], cuts: list[int]):
    texts, stopped = run(pieces(text.encode(), cuts), stops)

    assert ("".join(texts), stopped) == expected(text, stops)


@given(letters, stop_strings, st.lists(st.integers(0, 60), max_size=20))
def test_nothing_is_sent_that_a_stop_string_would_take_back(text: str, stops: list[str], cuts: list[int]):
    whole, _ = expected(text, stops)
    sent = ""
    for part in run(pieces(text.encode(), cuts), stops)[0]:
        sent += part
        assert whole.startswith(sent)


@given(st.binary(max_size=12), st.lists(st.integers(0, 60), max_size=12))
def test_bytes_that_are_no_text_become_replacement_characters(data: bytes, cuts: list[int]):
    texts, _ = run(pieces(data, cuts), [])

    assert "".join(texts) == data.decode(errors="replace")


def test_half_a_character_is_held_back():
    stream = TextStream()

    assert [stream.push(b"\xe2"), stream.push(b"\x82"), stream.push(b"\xac")] == ["", "", "€"]


def test_text_that_may_become_a_stop_is_held_until_it_cannot():
    stream = TextStream(["User:"])

    assert [stream.push(b"Yes. Use"), stream.push(b" it"), stream.push(b" User")] == ["Yes. ", "Use it", " "]
    assert stream.finish() == "User"
