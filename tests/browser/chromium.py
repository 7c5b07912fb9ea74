"""A headless Chromium with a recording for a microphone, driven over the DevTools protocol.

The protocol runs over a pair of pipes (--remote-debugging-pipe), which reach into the network namespace where the
browser lives; messages end with a zero byte. Reference: https://chromedevtools.github.io/devtools-protocol/
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.browser.loopback import Loopback

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",  # root in a container has no other way
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--mute-audio",
    "--autoplay-policy=no-user-gesture-required",
    "--allow-loopback-in-peer-connection",
    "--remote-debugging-pipe",
)
MAX_MESSAGE_BYTES = 64 << 20  # a screenshot
ANSWER_TIMEOUT_S = 30.0
POLL_MS = 20
# The pipes must be 3 and 4 in the browser, and may be anything here.
LAUNCH = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3]]
for fd, pipe in enumerate(pipes, 3):
    os.dup2(pipe, fd)
    os.close(pipe)
os.execvp(sys.argv[3], sys.argv[3:])
"""
# getStats of every connection the page opens, and when the page said what.
INSTRUMENTS = """
globalThis.peers = [];
globalThis.RTCPeerConnection = class extends RTCPeerConnection {
  constructor(...args) { super(...args); globalThis.peers.push(this); }
};
"""


class PageFailed(Exception):
    """The page threw, or what was waited for did not come."""


def find_chromium() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def microphone(wav: Path) -> tuple[str, ...]:
    """Flags: `wav` (16 or 48 kHz, mono, PCM16) is heard once, then silence; whoever asks gets it."""
    return (
        "--use-fake-ui-for-media-stream",
        "--use-fake-device-for-media-stream",
        f"--use-file-for-fake-audio-capture={wav}%noloop",
    )


class Browser:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.WriteTransport) -> None:
        self._reader, self._writer = reader, writer
        self._ids = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._pages: dict[str, Page] = {}

    async def send(self, method: str, params: dict[str, Any] | None = None, session: str | None = None) -> Any:
        """The result. Raises: PageFailed for an error, TimeoutError."""
        number = next(self._ids)
        message = {"id": number, "method": method, "params": params or {}}
        if session is not None:
            message["sessionId"] = session
        future = self._answers[number] = asyncio.get_running_loop().create_future()
        self._writer.write(json.dumps(message).encode() + b"\0")
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                answer = await future
        finally:
            del self._answers[number]
        if "error" in answer:
            raise PageFailed(f"{method}: {answer['error']}")
        return answer["result"]

    async def open(self, url: str, *, width: int = 1280, height: int = 800, scheme: str = "dark") -> Page:
        target = await self.send("Target.createTarget", {"url": "about:blank"})
        attached = await self.send("Target.attachToTarget", {"targetId": target["targetId"], "flatten": True})
        page = self._pages[attached["sessionId"]] = Page(self, attached["sessionId"])
        for domain in ("Page", "Runtime", "Network", "Log"):
            await page.send(f"{domain}.enable")
        await page.send("Page.addScriptToEvaluateOnNewDocument", source=INSTRUMENTS)
        is_phone = width < 600
        metrics = {"width": width, "height": height, "deviceScaleFactor": 2 if is_phone else 1, "mobile": is_phone}
        await page.send("Emulation.setDeviceMetricsOverride", **metrics)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        await page.send("Emulation.setEmulatedMedia", features=[feature])
        await page.send("Page.navigate", url=url)
        await page.until("document.readyState === 'complete'")
        return page

    async def listen(self) -> None:
        """Until the browser closes its pipe."""
        while True:
            try:
                message = json.loads((await self._reader.readuntil(b"\0"))[:-1])
            except asyncio.IncompleteReadError:
                return
            if "id" in message:
                if (answer := self._answers.get(message["id"])) is not None and not answer.done():
                    answer.set_result(message)
            elif (page := self._pages.get(message.get("sessionId", ""))) is not None:
                page.on_event(message["method"], message["params"])


class Page:
    """`requests`: every address it asked for. `problems`: what it threw, and what its own policy forbade it."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session
        self.requests: list[str] = []
        self.problems: list[str] = []

    async def send(self, method: str, **params: Any) -> Any:
        return await self._browser.send(method, params, self._session)

    async def evaluate(self, expression: str) -> Any:
        """Its value, awaited where it is a promise. Raises: PageFailed."""
        options = {"awaitPromise": True, "returnByValue": True}
        result = await self.send("Runtime.evaluate", expression=expression, **options)
        if "exceptionDetails" in result:
            raise PageFailed(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    async def until(self, condition: str, timeout_s: float = 20.0) -> Any:
        """The first true value of `condition`, a JavaScript expression. Raises: PageFailed with what the page shows."""
        deadline_s = asyncio.get_running_loop().time() + timeout_s
        while asyncio.get_running_loop().time() < deadline_s:
            found = await self.evaluate(
                f"""new Promise((resolve) => {{
                  let left = {500 // POLL_MS};
                  const look = () => {{
                    const value = {condition};
                    if (value || left-- === 0) resolve(value instanceof Node || value);
                    else setTimeout(look, {POLL_MS});
                  }};
                  look();
                }})"""
            )
            if found:
                return found
        shown = await self.evaluate("document.body?.innerText")
        raise PageFailed(f"not within {timeout_s:.0f} s: {condition}\nthe page shows:\n{shown}\n{self.problems}")

    async def text(self, selector: str) -> str:
        return str(await self.evaluate(f"document.querySelector({json.dumps(selector)})?.textContent ?? ''"))

    async def texts(self, selector: str) -> list[str]:
        found = await self.evaluate(
            f"[...document.querySelectorAll({json.dumps(selector)})].map((found) => found.textContent)"
        )
        return [str(text) for text in found]

    async def click(self, selector: str) -> None:
        box = await self.evaluate(
            f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])"
            f"(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
        )
        for kind in ("mousePressed", "mouseReleased"):
            where = {"x": box[0], "y": box[1], "button": "left", "clickCount": 1}
            await self.send("Input.dispatchMouseEvent", type=kind, **where)

    async def press(self, key: str) -> None:
        codes = {"Tab": 9, "Enter": 13}
        typed = {"text": "\r"} if key == "Enter" else {}
        fields = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
        await self.send("Input.dispatchKeyEvent", type="keyDown", **fields, **typed)
        await self.send("Input.dispatchKeyEvent", type="keyUp", **fields)

    def on_event(self, method: str, params: dict[str, Any]) -> None:
        match method:
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Network.webSocketCreated":
                self.requests.append(params["url"])
            case "Runtime.exceptionThrown":
                self.problems.append(json.dumps(params["exceptionDetails"]))
            case "Log.entryAdded" if params["entry"]["source"] in ("security", "violation", "javascript"):
                self.problems.append(params["entry"]["text"])


@asynccontextmanager
async def chromium(inside: Loopback, flags: Sequence[str] = ()) -> AsyncIterator[Browser]:
    """A browser of its own, with a profile that is gone afterwards."""
    path = find_chromium()
    assert path is not None, "ask find_chromium first"
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        launch = (sys.executable, "-c", LAUNCH, str(theirs_in), str(theirs_out))
        process = await asyncio.create_subprocess_exec(
            *inside.inside(*launch, path, *FLAGS, f"--user-data-dir={profile}", *flags, "about:blank"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            pass_fds=(theirs_in, theirs_out),
        )
        os.close(theirs_in)
        os.close(theirs_out)
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=MAX_MESSAGE_BYTES)
        reading, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(ours_in, "rb")
        )
        writing, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(ours_out, "wb"))
        browser = Browser(reader, writing)
        listening = asyncio.create_task(browser.listen())
        try:
            yield browser
        finally:
            writing.close()  # the browser ends when its pipe does
            reading.close()
            listening.cancel()
            try:
                async with asyncio.timeout(10):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
            await asyncio.wait([listening])
