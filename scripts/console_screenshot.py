"""A picture of the console page during a real call: `python -m scripts.console_screenshot docs/console.png`.

Starts the whole stack with its real models and a headless Chromium, both inside a network namespace with nothing but
loopback. The caller's questions are spoken by the stack's own voice. The picture is taken while the last answer is
being heard. Needs what tests/browser needs.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import soundfile

from tests.browser.chromium import Browser, Page, chromium, microphone
from tests.browser.loopback import Loopback, loopback
from tests.speech import read, silence

CONSOLE = "http://127.0.0.1:8080/"
VOICE = "http://127.0.0.1:8102/"
RATE_HZ = 48000
QUESTIONS = ("What time do you open tomorrow?", "How do I reset my password?", "Can you tell me more about that?")
GREETING_S = 6.0  # the first question comes after it
ANSWER_S = 9.0
PART_HEARD = """(() => {
  const last = [...document.querySelectorAll('.entry.agent')].at(-1);
  const said = (part) => last?.querySelector(part)?.textContent.length ?? 0;
  const isLast = document.querySelectorAll('.entry.caller').length === NUMBER;
  return isLast && document.body.dataset.state === 'speaking' && said('.heard') > 20 && said('.unheard') > 5;
})()""".replace("NUMBER", str(len(QUESTIONS)))


async def speak(browser: Browser, text: str, path: Path) -> np.ndarray:
    """By the running voice: a page of its own origin may ask it."""
    page = await browser.open(f"{VOICE}health")
    body = json.dumps({"model": "piper-en-us-joe-medium", "voice": "joe", "input": text})
    spoken = await page.evaluate(
        f"""(async () => {{
          const headers = {{ "content-type": "application/json" }};
          const options = {{ method: "POST", headers, body: {json.dumps(body)} }};
          const bytes = await (await fetch("/v1/audio/speech", options)).bytes();
          return bytes.toBase64();
        }})()"""
    )
    write(path, spoken)
    return read(path, RATE_HZ)


async def record(inside: Loopback, folder: Path) -> Path:
    parts = []
    async with chromium(inside) as browser:
        for i, question in enumerate(QUESTIONS):
            parts += [silence(GREETING_S if i == 0 else ANSWER_S, RATE_HZ)]
            parts += [await speak(browser, question, folder / f"{i}.wav")]
    path = folder / "microphone.wav"
    soundfile.write(path, np.concatenate(parts), RATE_HZ, subtype="PCM_16")
    return path


async def photograph(page: Page, path: Path) -> None:
    write(path, (await page.send("Page.captureScreenshot", format="png"))["data"])


def write(path: Path, base64_text: str) -> None:
    path.write_bytes(base64.b64decode(base64_text))


async def main(arguments: argparse.Namespace, inside: Loopback) -> None:
    with tempfile.TemporaryDirectory() as folder:
        wav = await record(inside, Path(folder))
        async with chromium(inside, microphone(wav)) as browser:
            size = {"width": arguments.width, "height": arguments.height}
            page = await browser.open(CONSOLE, scheme=arguments.scheme, **size)
            await page.evaluate("document.getElementById('headset').checked = true")
            await page.click("#call")
            try:
                await page.until(PART_HEARD, 120)
            finally:
                await photograph(page, arguments.out)
            await page.click("#call")


def flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="PNG file to write")
    parser.add_argument("--scheme", choices=("dark", "light"), default="dark", help="(default: %(default)s)")
    parser.add_argument("--width", type=int, default=1280, help="CSS pixels (default: %(default)s)")
    parser.add_argument("--height", type=int, default=800, help="CSS pixels (default: %(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    with loopback() as namespace:
        command = namespace.inside(sys.executable, "-m", "deploy", "up", "--profile", "deploy/profiles/cpu.yaml")
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as stack:
            assert stack.stdout is not None
            try:
                if not stack.stdout.readline():
                    sys.exit("the stack did not come up")
                asyncio.run(main(flags(), namespace))
            finally:
                stack.terminate()
