import math

import pytest

from wire.errors import PeerError
from wire.request import CALL_HEADER, DEADLINE_HEADER, RequestContext, from_headers


def test_a_context_travels():
    sent = RequestContext("c1", 3, 2, deadline_s=10.5)

    received = from_headers(sent.headers(now=10.0), now=100.0)

    assert (received.call, received.turn, received.revision) == ("c1", 3, 2)
    assert received.left_s(100.0) == pytest.approx(0.5)


def test_no_deadline_never_ends_and_a_past_one_travels_as_zero():
    assert from_headers({}, 0.0).left_s(1e9) == math.inf
    assert RequestContext(deadline_s=1.0).headers(now=2.0) == {DEADLINE_HEADER: "0"}


@pytest.mark.parametrize("value", ["", "-1", "1.5", "x", "1" * 10, "١"])
def test_a_deadline_that_is_no_number_is_refused(value: str):
    with pytest.raises(PeerError, match=DEADLINE_HEADER):
        from_headers({DEADLINE_HEADER: value}, 0.0)


@pytest.mark.parametrize("value", ["x" * 65, "a\nb", "전화"])
def test_a_call_id_that_could_break_a_log_is_refused(value: str):
    with pytest.raises(PeerError, match=CALL_HEADER):
        from_headers({CALL_HEADER: value}, 0.0)
