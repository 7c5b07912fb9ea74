"""Calls from the console page with recorded speech, through everything `offhook up` starts, over the real models."""

from __future__ import annotations

import asyncio

import pytest

from load.alignment import word_error_rate
from tests.browser.chromium import Page
from tests.browser.conftest import BEFORE_S, Phone
from tests.speech import clip
from voice.budget import STAGES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ANSWERED = "document.querySelector('.agent[data-outcome=\"answered\"]')"
ENERGY = """(async () => {
  const report = await peers[0].getReceivers()[0].getStats();
  return [...report.values()].find(({ type }) => type === "inbound-rtp").totalAudioEnergy;
})()"""


async def test_a_whole_call_is_heard_written_and_measured(stack: str, phone: Phone):
    _, text = clip("quick_brown_fox")
    async with phone.at(stack, ("quick_brown_fox", BEFORE_S)) as page:
        await page.until("document.querySelectorAll('#processes .process.ready').length === 5")
        await page.evaluate("document.getElementById('headset').checked = true")
        await page.click("#call")
        await page.until("Number(document.getElementById('caller-level').ariaValueNow) > -40", 30)
        await page.until("document.querySelector('.caller:not([data-settled]) .said')", 30)
        await page.until("Number(document.getElementById('agent-level').ariaValueNow) > -40", 30)
        await page.until("document.querySelector('.agent .heard') && document.querySelector('.agent .unheard')", 30)
        await page.until(ANSWERED, 60)

        assert word_error_rate(text, await page.text(".caller .said")) <= 0.12
        assert len(await page.text(".agent .heard")) > 3
        assert await page.text(".agent .unheard") == ""
        assert await page.evaluate(ENERGY) > 1e-4
        stages = await page.texts("#stages tr")
        assert len(stages) == len(STAGES) + 1
        total_ms = float((await page.texts("#stages .total td"))[0])
        parts_ms = [float(ms) for ms in await page.texts("#stages tr:not(.total) td:nth-child(2)")]
        assert sum(parts_ms) == pytest.approx(total_ms, abs=len(STAGES))
        assert f"{total_ms:.0f} ms" in await page.text("#summary")
        await page.click("#call")
        await page.until("document.querySelector('#processes').textContent.includes('0 of 2 lines taken')")


async def test_two_browsers_at_once_see_their_own_words(stack: str, phone: Phone):
    async def one(name: str) -> str:
        async with phone.at(stack, (name, BEFORE_S)) as page:
            await page.click("#call")
            await page.until(ANSWERED, 90)
            return await said(page)

    fox, counting = await asyncio.gather(one("quick_brown_fox"), one("counting"))

    assert word_error_rate(clip("quick_brown_fox")[1], fox) <= 0.12
    assert word_error_rate(clip("quick_brown_fox")[1], counting) > 0.9
    assert word_error_rate(clip("counting")[1], fox) > 0.9


async def said(page: Page) -> str:
    return " ".join(await page.texts(".caller .said"))
