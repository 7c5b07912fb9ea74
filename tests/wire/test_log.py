from __future__ import annotations

import logging

import pytest

from wire.log import about


def test_every_line_begins_with_whom_it_is_about_whatever_the_name_holds(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    about(logging.getLogger("test"), "call 50%s").info("heard %d words", 3)

    assert caplog.messages == ["call 50%s heard 3 words"]
