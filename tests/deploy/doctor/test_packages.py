from __future__ import annotations

import signal
import sys

import pytest

from deploy.distribution import PYPROJECT, Distribution, read_distribution
from deploy.doctor.imports import read_versions, run, try_torch
from deploy.doctor.packages import (
    Import,
    Torch,
    check_distribution,
    check_imports,
    check_torch,
    check_versions,
    name_of,
)

REQUIREMENTS = (
    "numpy>=2.0",
    "av>=15,<19",
    "uvloop>=0.21; sys_platform != 'win32'",
    "colorama; sys_platform == 'win32'",
)


def test_versions_that_fit_are_one_line() -> None:
    (finding,) = check_versions(REQUIREMENTS, {"numpy": "2.4.6", "av": "18.1.0", "uvloop": "0.23.0"})
    assert (finding.level, finding.found) == ("ok", "3 packages are installed in versions that fit")


def test_missing_and_unfit_packages_name_the_command() -> None:
    absent, unfit, _ = check_versions(REQUIREMENTS, {"numpy": "2.4.6", "uvloop": "0.20.0"})
    assert (absent.name, absent.level, absent.found) == ("av", "problem", "not installed")
    assert absent.mend == f"{sys.executable} -m pip install 'av<19,>=15'"
    assert (unfit.name, unfit.level, unfit.found) == ("uvloop", "problem", "0.20.0, but >=0.21 is needed")


def test_torch_comes_from_where_its_cpu_build_is() -> None:
    finding, _ = check_versions(["torch==2.13.0"], {"torch": "2.12.0+cpu"})
    assert finding.mend.endswith("pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu")
    (good,) = check_versions(["torch==2.13.0"], {"torch": "2.13.0+cpu"})
    assert good.level == "ok"


def test_modules_that_load_are_one_line_and_others_one_each() -> None:
    imports = [
        Import("av", "loads"),
        Import("torch", "crashes", "SIGILL"),
        Import("onnxruntime", "fails", "ImportError: libstdc++.so.6"),
        Import("aiortc", "hangs", "no end after 60 s"),
        Import("soundfile", "loads"),
    ]
    torch, onnx, aiortc, good = check_imports(imports, ["torch==2.13.0", "onnxruntime>=1.22"])
    assert (torch.level, torch.found) == ("problem", "its import crashes: SIGILL")
    assert "--force-reinstall --no-deps torch==2.13.0 --index-url" in torch.mend
    assert onnx.mend.endswith("--force-reinstall --no-deps 'onnxruntime>=1.22'")
    assert aiortc.found == "its import hangs: no end after 60 s"
    assert (good.level, good.found) == ("ok", "av, soundfile load")


@pytest.mark.parametrize(
    ("torch", "words"),
    [
        (Torch("2.13.0+cpu", None, None), "a CPU build"),
        (Torch("2.13.0", "13.0", "H200"), "CUDA 13.0, H200"),
        (Torch("2.13.0", "13.0", None), "no GPU is usable"),
    ],
)
def test_build_of_torch_is_told(torch: Torch, words: str) -> None:
    (finding,) = check_torch(torch)
    assert finding.level == "ok"
    assert words in finding.found
    assert list(check_torch(None)) == []


def test_distribution_is_told() -> None:
    assert check_distribution(Distribution("1.2", (), is_installed=True)).found == "1.2"
    assert "without being installed" in check_distribution(Distribution("1.2", (), is_installed=False)).found
    assert check_distribution(None).level == "problem"


def test_this_distribution_has_a_version_and_requirements() -> None:
    distribution = read_distribution()
    assert distribution is not None
    assert f'version = "{distribution.version}"' in PYPROJECT.read_text()
    names = [name_of(text) for text in distribution.requirements]
    assert {"numpy", "torch", "python-multipart"} <= set(names)
    assert not {"pytest", "vllm"} & set(names)
    versions = read_versions([*names, "no-such-distribution"])
    assert "numpy" in versions
    assert "no-such-distribution" not in versions


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("pass", Import("it", "loads")),
        ("import no_such_module", Import("it", "fails", "ModuleNotFoundError: No module named 'no_such_module'")),
        ("raise SystemExit(3)", Import("it", "fails", "")),
        ("import os; os.kill(os.getpid(), 11)", Import("it", "crashes", signal.strsignal(11) or "")),
    ],
)
async def test_import_cannot_harm_the_doctor(code: str, expected: Import) -> None:
    result, _ = await run("it", code, timeout_s=60.0)
    assert result == expected


@pytest.mark.slow
async def test_import_that_never_ends_is_ended() -> None:
    result, _ = await run("it", "import time; time.sleep(600)", timeout_s=0.3)
    assert result.outcome == "hangs"


@pytest.mark.slow
async def test_torch_tells_its_build() -> None:
    result, torch = await try_torch()
    assert result == Import("torch", "loads")
    assert torch is not None
    assert torch.version.startswith("2.")
