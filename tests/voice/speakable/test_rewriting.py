from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from voice.speakable.rewriting import Piece, Rewriting

PATTERNS = [re.compile(pattern) for pattern in ("a+", "b(?=c)", "[cd]{2}", r"\s", "x.y", "A", ".$")]


def test_pieces_say_what_became_of_each_part():
    rewriting = Rewriting("It is **$3**, ok.")
    rewriting.sub(re.compile(r"\*+"), "")
    rewriting.sub(re.compile(r"\$3"), "three dollars")

    assert rewriting.text == "It is three dollars, ok."
    assert rewriting.pieces() == (
        Piece("It is ", "It is "),
        Piece("**", ""),
        Piece("$3", "three dollars"),
        Piece("**", ""),
        Piece(", ok.", ", ok."),
    )


def test_what_is_rewritten_twice_is_one_piece():
    rewriting = Rewriting("a &lt; b")
    rewriting.sub(re.compile("&lt;"), "<")
    rewriting.sub(re.compile("< b"), "is less than b")

    assert rewriting.pieces() == (Piece("a ", "a "), Piece("&lt; b", "is less than b"))


def test_what_is_kept_of_a_construct_stays_character_by_character():
    rewriting = Rewriting("see [our site](x)now")
    rewriting.unwrap(re.compile(r"\[(?P<kept>[^]]*)\]\([^)]*\)"), parted=True)

    assert rewriting.text == "see our site now"
    assert [piece.written for piece in rewriting.pieces()] == ["see ", "[", "our site", "](x)", "now"]


@given(
    st.text("abcdxyA \n", max_size=30),
    st.lists(st.tuples(st.sampled_from(PATTERNS), st.sampled_from(["", "a", "AA", "x y", "é"])), max_size=6),
)
def test_pieces_joined_are_the_original_and_the_result(text: str, steps: list[tuple[re.Pattern[str], str]]):
    rewriting = Rewriting(text)
    for pattern, new in steps:
        rewriting.sub(pattern, new)

    pieces = rewriting.pieces()
    assert "".join(piece.written for piece in pieces) == text
    assert "".join(piece.spoken for piece in pieces) == rewriting.text
    assert all(piece.written or piece.spoken for piece in pieces)
