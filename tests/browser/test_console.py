"""The console page in a real browser, before a real call server on scripted services."""

from __future__ import annotations

import signal

import pytest

from tests.browser.chromium import Page
from tests.browser.conftest import BEFORE_S, Phone, stage_server
from tests.browser.loopback import Loopback

pytestmark = [pytest.mark.slow, pytest.mark.timeout(90)]

IDLE = "document.getElementById('call').textContent === 'Call'"
ENGAGED = "document.getElementById('call').textContent === 'Hang up'"
LISTENING = "document.body.dataset.state === 'listening'"
SPEAKING = "document.body.dataset.state === 'speaking'"
# What the page shows in the moment in which a call comes about; later it may have a greeting.
AS_IT_BEGINS = """new Promise((resolve) => {
  new MutationObserver(() => document.body.dataset.state === 'live' && resolve(%s))
    .observe(document.body, { attributes: true, attributeFilter: ['data-state'] });
})"""
QUIET = ("", 1.0)  # a microphone that hears nothing
# A call without a server: `draw(turns)` shows so many more turns in one task, and counts the record's changes.
DRAWING = """(async () => {
  const { Transcript } = await import('/console/transcript.js');
  const { CallRecord } = await import('/console/record.js');
  const list = document.getElementById('record');
  const transcript = new Transcript(list, document.getElementById('spoken'), document.getElementById('empty'));
  const record = new CallRecord();
  const observer = new MutationObserver(() => {});
  observer.observe(list, { subtree: true, childList: true, characterData: true, attributes: true });
  let turn = 0;
  globalThis.draw = (turns) => {
    for (const last = turn + turns; turn < last; ) {
      turn += 1;
      const said = 'Some words of an answer that takes more than a line to be written.';
      const words = said.split(' ').map((text, i) => ({ text, start_sample: 100 * i, end_sample: 100 * i + 100 }));
      const show = (message) => transcript.show(record.apply({ turn, ...message }));
      for (const text of ['What', 'What is', 'What is it?']) show({ type: 'partial', text });
      show({ type: 'final', text: 'What is it?' });
      show({ type: 'reply', delta: said });
      show({ type: 'words', words });
      for (const { end_sample } of words) transcript.show(record.heard(end_sample));
      show({ type: 'turn', outcome: 'answered', text: 'What is it?', heard: said, latency_ms: 5 });
      show({ type: 'state', state: 'listening' });
    }
    return observer.takeRecords().length;
  };
})()"""
DISTANCE = "(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight)"
FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"
LONG = " ".join(["This is a long answer, and it goes on."] * 4)


def state_is(words: str) -> str:
    return f"document.getElementById('state').textContent === {words!r}"


def notice_has(words: str) -> str:
    return f"document.getElementById('notice').textContent.includes({words!r})"


async def enter(page: Page, element: str) -> None:
    """Reach `element` with the keyboard alone and press Enter."""
    for _ in range(20):
        if await page.evaluate(f"document.activeElement.id === {element!r}"):
            break
        await page.press("Tab")
    assert await page.evaluate("document.activeElement.matches(':focus-visible')")
    assert await page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    await page.press("Enter")


async def test_a_call_needs_the_keyboard_alone(inside: Loopback, phone: Phone):
    async with stage_server(inside) as server, phone.at(server.url, QUIET) as page:
        await enter(page, "call")
        await page.until(LISTENING)
        assert await page.text("#call") == "Hang up"
        await page.press("Enter")
        await page.until(IDLE)
        assert await page.text("#notice") == "The call has ended."
        await page.until("document.querySelector('#processes').textContent.includes('0 of 2 lines taken')")


async def test_the_greeting_is_written_and_marked_as_it_is_heard(inside: Loopback, phone: Phone):
    greeting = "Hello, you are through to the agent."
    async with stage_server(inside, greeting=greeting) as server, phone.at(server.url, QUIET, query="") as page:
        await page.click("#call")
        half = await page.until(
            """(() => {
              const parts = ['heard', 'unheard'].map((part) => document.querySelector(`.agent .${part}`)?.textContent);
              return parts.every(Boolean) && parts;
            })()"""
        )
        assert "".join(half) in greeting
        await page.until(LISTENING)
        assert await page.text(".agent .heard") == greeting
        assert await page.text(".agent .unheard") == ""


async def test_hanging_up_during_an_answer_leaves_its_figures_and_what_was_heard(inside: Loopback, phone: Phone):
    async with stage_server(inside, replies=[LONG]) as server, phone.at(server.url, ("hello_world", BEFORE_S)) as page:
        await page.click("#call")
        await page.until("document.querySelector('.agent .heard')?.textContent.length > 10", 40)
        await page.click("#call")
        await page.until(IDLE)
        assert await page.text("#notice") == "The call has ended."
        assert await page.text(".agent .mark.interrupted") == "interrupted"
        assert (await page.text(".agent .mark:not(.interrupted)")).endswith(" ms")
        assert 0 < len(await page.text(".agent .heard")) < len(LONG)
        assert (await page.text("#summary")).startswith("Turn 1: ")
        await page.until("document.querySelector('#processes').textContent.includes('0 of 2 lines taken')")


async def test_a_call_that_does_not_come_about_leaves_the_last_one_as_it_was(inside: Loopback, phone: Phone):
    shown = "[document.getElementById('record').textContent, document.getElementById('clock').textContent]"
    async with (
        stage_server(inside, max_calls=1, greeting="Hello, you are through.") as server,
        phone.at(server.url, QUIET, query="") as page,
        phone.at(server.url, QUIET) as other,
    ):
        await page.click("#call")
        await page.until("document.getElementById('clock').textContent >= '0:02'")
        await page.click("#call")
        await page.until(IDLE)
        before = await page.evaluate(shown)
        assert "Hello, you are through." in before[0]
        await other.click("#call")
        await other.until(LISTENING)
        await page.click("#call")
        await page.until(notice_has("All lines are busy"))
        assert await page.evaluate(shown) == before
        await other.click("#call")
        await other.until(IDLE)
        await page.until("document.querySelector('#processes').textContent.includes('0 of 1 lines taken')")
        await page.evaluate(f"globalThis.asItBegins = {AS_IT_BEGINS % shown}; 0")
        await page.click("#call")
        assert await page.evaluate("globalThis.asItBegins") == ["", "0:00"]


async def test_busy_says_when_to_come_back(inside: Loopback, phone: Phone):
    async with stage_server(inside, max_calls=1) as server, phone.at(server.url, QUIET) as first:
        await first.click("#call")
        await first.until(LISTENING)
        async with phone.at(server.url, QUIET) as second:
            await second.click("#call")
            await second.until(IDLE + " && !document.getElementById('notice').hidden")
            assert await second.text("#notice") == "All lines are busy. Try again in about 60 seconds."
        await first.click("#call")
        await first.until(IDLE)
        async with phone.at(server.url, QUIET) as third:
            await third.click("#call")
            await third.until(LISTENING)


async def test_no_microphone_is_said(inside: Loopback, phone: Phone):
    flags = ("--use-fake-ui-for-media-stream",)
    async with stage_server(inside) as server, phone.at(server.url, flags=flags) as page:
        await page.click("#call")
        await page.until(notice_has("No microphone was found"))
        assert await page.evaluate(IDLE)


async def test_a_denied_microphone_is_said(inside: Loopback, phone: Phone):
    flags = ("--use-fake-device-for-media-stream", "--deny-permission-prompts")
    async with stage_server(inside) as server, phone.at(server.url, flags=flags) as page:
        await page.click("#call")
        await page.until(notice_has("The microphone is blocked"))
        assert await page.evaluate(IDLE)


async def test_a_killed_call_server_is_noticed_within_a_second_and_a_half(inside: Loopback, phone: Phone):
    """By the page's own clock; a second more for a busy machine."""
    async with stage_server(inside) as server, phone.at(server.url, QUIET) as page:
        await page.click("#call")
        await page.until(LISTENING)
        await page.evaluate(
            """void new MutationObserver(() => {
              const said = document.getElementById('notice').textContent;
              if (said.includes('dead')) globalThis.deadAt ??= performance.now();
              if (said.includes('gone')) globalThis.goneAt ??= performance.now();
            }).observe(document.getElementById('notice'), { childList: true })"""
        )
        killed_at = await page.evaluate("performance.now()")
        server.process.send_signal(signal.SIGKILL)
        await page.until(notice_has("The call server is gone"))
        assert await page.evaluate(IDLE)
        assert await page.evaluate("globalThis.deadAt") - killed_at < 2500
        assert await page.evaluate("globalThis.goneAt") - killed_at < 3000
        await page.until("document.querySelector('#processes .condition').textContent === 'down'")


async def test_a_dead_line_to_a_living_server_ends_the_call(inside: Loopback, phone: Phone):
    """HTTP goes on, and the browser counts no packet any more."""
    async with stage_server(inside) as server, phone.at(server.url, QUIET) as page:
        await page.click("#call")
        await page.until(LISTENING)
        await page.evaluate("peers[0].getReceivers()[0].getStats = async () => new Map()")
        await page.until(notice_has("the call server is alive"))
        assert await page.evaluate(ENGAGED)
        await page.until(notice_has("the call was ended"))
        assert await page.evaluate(IDLE)


async def test_an_interrupted_answer_shows_what_was_heard_of_it(inside: Loopback, phone: Phone):
    recording = (("hello_world", BEFORE_S), ("quick_brown_fox", 2.0))
    async with (
        stage_server(inside, texts=["Hello.", "The fox."], replies=[LONG, "Yes."]) as server,
        phone.at(server.url, *recording) as page,
    ):
        await page.click("#call")
        await page.until("document.querySelector('.agent[data-outcome=\"interrupted\"]')", 40)
        heard, unheard = await page.text(".agent .heard"), await page.text(".agent .unheard")
        assert LONG.startswith(heard)
        assert 0 < len(heard) < len(LONG)
        assert len(unheard) > 10
        await page.until("document.querySelector('.agent[data-outcome=\"answered\"]')", 40)
        assert await page.texts(".caller .said") == ["Hello.", "The fox."]


async def test_a_dead_service_is_seen(inside: Loopback, phone: Phone):
    async with stage_server(inside, missing="stt") as server, phone.at(server.url, QUIET) as page:
        await page.until("document.querySelector('[data-name=\"stt\"] .condition')?.textContent === 'down'")
        assert await page.text('[data-name="voice"] .condition') == "ready"


async def test_a_server_with_a_key_lets_the_page_ask_for_it(inside: Loopback, phone: Phone):
    async with stage_server(inside, key="0123456789abcdef") as server, phone.at(server.url, QUIET) as page:
        await page.until("!document.getElementById('key-form').hidden")
        await page.click("#call")
        await page.until(notice_has("wants its API key"))
        await give_key(page, "fedcba9876543210")
        await page.click("#call")
        await page.until(notice_has("That API key is wrong"))
        await give_key(page, "0123456789abcdef")
        await page.until("document.querySelectorAll('#processes tr').length === 4")
        await page.click("#call")
        await page.until(LISTENING)


@pytest.mark.parametrize("wrong", ["0123456789\N{EN DASH}abcdef", "\u043a\u043b\u044e\u0447", "caf\u00e9"])
async def test_what_no_key_can_be_is_a_wrong_key_and_is_not_kept(inside: Loopback, phone: Phone, wrong: str):
    async with stage_server(inside, key="0123456789abcdef") as server, phone.at(server.url, QUIET) as page:
        await page.until("!document.getElementById('key-form').hidden")
        await give_key(page, wrong)
        await page.until(notice_has("That API key is wrong"))
        assert await page.evaluate("sessionStorage.length") == 0
        await page.evaluate(f"sessionStorage.setItem('offhook-api-key', {wrong!r})")
        await page.send("Page.reload")
        await page.until("document.readyState === 'complete' && !document.getElementById('key-form').hidden")
        await page.click("#call")
        await page.until(notice_has("wants its API key"))
        await give_key(page, "0123456789abcdef")
        await page.until("document.querySelectorAll('#processes tr').length === 4")


async def give_key(page: Page, key: str) -> None:
    await page.click("#key")
    await page.send("Input.insertText", text=key)
    await page.press("Enter")
    await page.until("document.getElementById('key').value === ''")


async def test_the_headset_choice_turns_the_cleaning_off_and_is_remembered(inside: Loopback, phone: Phone):
    async with stage_server(inside) as server, phone.at(server.url, QUIET) as page:
        await page.click("#headset")
        await page.send("Page.reload")
        await page.until("document.readyState === 'complete' && document.getElementById('headset').checked")
        await page.click("#call")
        await page.until(LISTENING)
        cleaning = await page.evaluate(
            """(({ echoCancellation, noiseSuppression, autoGainControl }) =>
            [echoCancellation, noiseSuppression, autoGainControl])(peers[0].getSenders()[0].track.getSettings())"""
        )
        assert cleaning == [False, False, False]


async def layouts(page: Page) -> float:
    metrics = (await page.send("Performance.getMetrics"))["metrics"]
    return next(float(metric["value"]) for metric in metrics if metric["name"] == "LayoutCount")


async def test_an_update_of_a_long_transcript_does_no_more_than_one_of_a_short(inside: Loopback, phone: Phone):
    async with stage_server(inside) as server, phone.at(server.url, QUIET) as page:
        await page.send("Performance.enable")
        await page.evaluate(DRAWING)
        await page.evaluate("draw(30)")
        few = await page.evaluate("draw(10)")
        await page.evaluate("draw(500)")
        await page.evaluate(FRAMES)
        before = await layouts(page)
        assert await page.evaluate("draw(10)") == few
        assert await layouts(page) - before < 20  # of more than 200 updates; frames may come in between
        assert await page.evaluate("document.getElementById('record').childElementCount") == 2 * 550
        assert await page.evaluate("document.getElementById('spoken').childElementCount") < 50


async def test_the_end_of_the_transcript_is_followed_unless_the_reader_is_elsewhere(inside: Loopback, phone: Phone):
    scroller = "document.querySelector('.scroll')"
    at_end = f"Math.abs({DISTANCE}({scroller})) < 2"
    async with stage_server(inside) as server, phone.at(server.url, QUIET) as page:
        await page.evaluate(DRAWING)
        for _ in range(5):
            await page.evaluate("draw(8)")
            await page.until(at_end)
        await page.evaluate(f"{scroller}.scrollTop = 40")
        await page.evaluate(FRAMES)
        await page.evaluate("draw(3)")
        await page.evaluate(FRAMES)
        assert await page.evaluate(f"{scroller}.scrollTop") < 100  # what comes into view may turn out taller
        await page.evaluate(f"{scroller}.scrollTop = 1e6")
        await page.evaluate(FRAMES)
        await page.evaluate("draw(3)")
        await page.until(at_end)


async def test_leaving_the_page_frees_the_line(inside: Loopback, phone: Phone):
    async with stage_server(inside, max_calls=1) as server, phone.at(server.url, QUIET) as page:
        await page.click("#call")
        await page.until(LISTENING)
        await page.send("Page.reload")
        await page.until("document.querySelector('#processes')?.textContent.includes('0 of 1 lines taken')")


async def test_nothing_is_cut_off_at_the_side(inside: Loopback, phone: Phone):
    async with stage_server(inside) as server, phone.at(server.url, QUIET) as page:
        await page.until("document.querySelectorAll('#processes tr').length === 4")
        for width in (320, 360, 768, 1280):
            metrics = {"width": width, "height": 720, "deviceScaleFactor": 1, "mobile": width < 600}
            await page.send("Emulation.setDeviceMetricsOverride", **metrics)
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
