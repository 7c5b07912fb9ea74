from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.harmless import harmless
from wire.strict import is_clean


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, 한국어, [bold]", "plain, 한국어, [bold]"),
        ("\x1b[2Jgone\x07", "\\x1b[2Jgone\\x07"),
        ("one\ntwo\r", "one\ntwo\\r"),
        ("\x9b31m", "\\x9b31m"),
    ],
)
def test_what_steers_a_terminal_is_shown_and_not_done(text: str, shown: str) -> None:
    assert harmless(text) == shown


@given(st.text())
def test_no_control_character_but_line_ends_is_left(text: str) -> None:
    assert is_clean(harmless(text).replace("\n", ""))
