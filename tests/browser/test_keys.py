"""Keys pressed in a real browser's call, as its own RTCDTMFSender tells of them."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Phone, stage_server
from tests.browser.loopback import Loopback

pytestmark = [pytest.mark.slow, pytest.mark.timeout(90)]

LISTENING = "document.body.dataset.state === 'listening'"
QUIET = ("", 1.0)  # a microphone that hears nothing


@pytest.mark.parametrize(
    ("keys", "held_ms", "said"),
    [("47*#", 100, "[The caller keyed in: 4 7 *]"), ("99#", 1700, "[The caller keyed in: 9 9]")],
    ids=["pressed", "held for longer than one event can last"],
)
async def test_keys_of_a_browser_are_answered(inside: Loopback, phone: Phone, keys: str, held_ms: int, said: str):
    async with stage_server(inside, replies=["Done."]) as server, phone.at(server.url, QUIET) as page:
        await page.click("#call")
        await page.until(LISTENING)
        await page.evaluate("globalThis.keys = peers[0].getSenders().find((sender) => sender.dtmf).dtmf")
        assert await page.evaluate("keys.canInsertDTMF")
        await page.evaluate(f"keys.insertDTMF('{keys}', {held_ms}, 70)")
        await page.until("document.querySelector('.agent[data-outcome=\"answered\"]')", 30)
        assert await page.texts(".caller .said") == [said]
