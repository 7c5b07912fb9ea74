"""`python -m tests.browser.stage_server JSON`: a call server on scripted services, until standard input ends.

JSON: `max_calls`, `greeting`, `texts` the caller is taken to say, `replies` of the agent, the `missing` service, `key`.
Prints the address.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path

from tests.fakes import FakeLlm, FakeStt
from tests.voice.conftest import Stage
from wire.config import EdgeConfig


async def main(settings: dict[str, object]) -> None:
    stage = Stage(
        stt=FakeStt(**_only(settings, "texts")),
        llm=FakeLlm(**_only(settings, "replies")),
        greeting=str(settings.get("greeting", "")),
        missing=str(settings.get("missing", "")),
        settings=_only(settings, "max_calls"),
    )
    with tempfile.TemporaryDirectory() as folder:
        if "key" in settings:
            stage.edge = EdgeConfig(port=0, api_key_file=_key_file(Path(folder), str(settings["key"])))
        async with stage.up() as base:
            sys.stdout.write(base + "\n")
            sys.stdout.flush()
            await asyncio.to_thread(sys.stdin.read)


def _key_file(folder: Path, key: str) -> Path:
    path = folder / "key"
    path.touch(0o600)
    path.write_text(key)
    return path


def _only(settings: dict[str, object], *names: str) -> dict[str, object]:
    return {name: settings[name] for name in names if name in settings}


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
