from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stt.words import Word, group, tighten, times

PIECES = [" And", " so", ",", " Ame", "ric", "ans", "..", " 7", "0", "世", "界", "。"]


def decode(tokens: list[int]) -> str:
    return "".join(PIECES[token] for token in tokens)


def test_tokens_join_to_words_at_spaces_and_punctuation_stays_with_its_word() -> None:
    assert group([0, 2, 1, 3, 4, 5, 6], decode, "en") == [(" And,", 2), (" so", 1), (" Americans..", 4)]


def test_scripts_without_spaces_give_a_word_per_character() -> None:
    assert group([9, 10, 11], decode, "ja") == [("世", 1), ("界。", 2)]


def test_half_characters_wait_for_their_other_half() -> None:
    halves = [b"\xe4\xb8", b"\x96", b"\xe7\x95\x8c"]

    def decode_bytes(tokens: list[int]) -> str:
        return b"".join(halves[token] for token in tokens).decode(errors="replace")

    assert group([0, 1, 2], decode_bytes, "zh") == [("世", 2), ("界", 1)]


def test_times_come_from_where_a_token_is_first_heard() -> None:
    path = [(0, 0), (0, 1), (0, 10), (1, 11), (1, 30), (2, 31), (2, 50), (3, 60)]
    words = times([(" And", 1), (" so", 2)], path, first_sample=1600, end_sample=32000)
    assert words == (Word("And", 1600, 1600 + 11 * 320), Word("so", 1600 + 11 * 320, 1600 + 60 * 320))


def test_an_unreached_end_is_the_end_of_the_audio() -> None:
    assert times([(" And", 1)], [(0, 2)], 0, 5000) == (Word("And", 640, 5000),)


@given(st.lists(st.integers(0, len(PIECES) - 1), max_size=30), st.sampled_from(["en", "ja"]))
def test_no_token_and_no_character_is_lost(tokens: list[int], language: str) -> None:
    words = group(tokens, decode, language)
    assert "".join(text for text, _ in words) == decode(tokens)
    assert sum(num_tokens for _, num_tokens in words) == len(tokens)


@given(
    st.lists(st.integers(1, 3), max_size=8),
    st.lists(st.integers(0, 3000), max_size=30),
    st.integers(0, 1000),
    st.integers(0, 50000),
)
def test_times_are_monotone_and_within_the_audio(sizes: list[int], frames: list[int], first: int, length: int) -> None:
    path = [(index // 2, frame) for index, frame in enumerate(sorted(frames))]
    words = times([(" a", size) for size in sizes], path, first, first + length)
    edges = [edge for word in words for edge in (word.start_sample, word.end_sample)]
    assert edges == sorted(edges)
    assert all(first <= edge <= first + length for edge in edges)
    assert len(words) == len(sizes)


def test_pauses_come_off_at_the_edges_of_a_word_but_not_within() -> None:
    level = np.array([0, 0, 90, 0, 80, 0, 0, 0.0])
    assert tighten([Word("a", 0, 8 * 320)], level) == (Word("a", 2 * 320, 5 * 320),)


def test_a_quiet_word_keeps_its_times() -> None:
    level = np.array([100, 0, 0, 0.0])
    assert tighten([Word("a", 0, 320), Word("b", 320, 1280)], level)[1] == Word("b", 320, 1280)


@given(st.lists(st.integers(0, 20 * 320), max_size=12), st.lists(st.floats(0, 1e4), min_size=20, max_size=20))
def test_tightened_words_lie_within_what_they_were(edges: list[int], level: list[float]) -> None:
    edges.sort()
    words = [Word("a", start, end) for start, end in zip(edges[::2], edges[1::2], strict=False)]
    for before, after in zip(words, tighten(words, np.array(level)), strict=True):
        assert before.start_sample <= after.start_sample <= after.end_sample <= before.end_sample
