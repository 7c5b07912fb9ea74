from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts/install_torch.py"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["torch", "filelock", "nvidia-cublas-cu13"], True),
        (["torch", "cuda-bindings"], True),
        (["torch", "triton"], True),
        (["torch", "filelock", "sympy", "networkx"], False),
    ],
)
def test_cuda_build_is_told_by_its_dependencies(names: list[str], *, expected: bool) -> None:
    spec = importlib.util.spec_from_file_location("install_torch", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.brings_cuda(names) is expected
