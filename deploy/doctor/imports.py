"""Import native packages in processes of their own: a broken wheel can crash or hang the one that imports it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from importlib import metadata

from deploy.doctor.packages import Import, Torch

NATIVE_MODULES = ("av", "ctranslate2", "onnxruntime", "soundfile", "tokenizers", "aiortc")
TIMEOUT_S = 60.0  # torch takes some seconds, on a cold disk many
MAX_DETAIL = 160  # characters of an error

_TORCH = """
import json, torch
usable = torch.cuda.is_available()
device = torch.cuda.get_device_name() if usable else None
print(json.dumps([torch.__version__, torch.version.cuda, device]))
"""


def read_versions(names: Sequence[str]) -> dict[str, str]:
    """Versions of those of the distributions that are installed."""
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


async def try_imports(modules: Sequence[str]) -> list[Import]:
    return await asyncio.gather(*(_import(module) for module in modules))


async def _import(module: str) -> Import:
    result, _ = await run(module, f"import {module}", TIMEOUT_S)
    return result


async def try_torch() -> tuple[Import, Torch | None]:
    result, out = await run("torch", _TORCH, TIMEOUT_S)
    if result.outcome != "loads":
        return result, None
    version, cuda, device = json.loads(out.splitlines()[-1])
    return result, Torch(version, cuda, device)


async def run(module: str, code: str, timeout_s: float) -> tuple[Import, str]:
    """Run `code` in a fresh interpreter, without the working folder in its path; also what it wrote to stdout."""
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-c",
            code,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )
    except OSError as error:
        return Import(module, "fails", f"no process for it: {error}"), ""
    try:
        async with asyncio.timeout(timeout_s):
            out, err = await process.communicate()
    except TimeoutError:
        return Import(module, "hangs", f"no end after {timeout_s:.0f} s"), ""
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    code_of_end = process.returncode
    assert code_of_end is not None
    if code_of_end < 0:
        return Import(module, "crashes", signal.strsignal(-code_of_end) or f"signal {-code_of_end}"), ""
    if code_of_end > 0:
        last = (err.decode(errors="replace").strip().splitlines() or [""])[-1]
        return Import(module, "fails", last[:MAX_DETAIL]), ""
    return Import(module, "loads"), out.decode(errors="replace")
