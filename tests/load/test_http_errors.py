from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.http_errors import MAX_REASON, retry_after_s, stated_reason


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ('{"error": {"message": "all 2 lines are busy", "code": "overloaded"}}', "all 2 lines are busy"),
        ('{"detail": "no room"}', "no room"),
        ('{"error": {"message": 3}}', None),
        ('{"error": "no room"}', None),
        ('{"detail": [{"loc": "body"}]}', None),
        ('{"error": {"message": ""}}', None),
        ("[]", None),
        ("<html>", None),
        ("", None),
        ('{"detail": "\\ud800"}', None),
        ("[" * 100_000, None),
    ],
)
def test_the_reason_is_what_the_servers_json_says(body: str, reason: str | None) -> None:
    assert stated_reason(body) == reason


@given(st.text(min_size=1))
def test_a_reason_is_cut_and_otherwise_as_it_was(text: str) -> None:
    assert stated_reason(json.dumps({"error": {"message": text}})) == text[:MAX_REASON]


@given(st.floats(0, 1e5))
def test_retry_after_is_read_in_seconds(seconds: float) -> None:
    assert retry_after_s(str(seconds)) == seconds


@pytest.mark.parametrize("header", [None, "", "soon", "-1", "nan", "inf", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_another_retry_after_is_none(header: str | None) -> None:
    assert retry_after_s(header) is None
