"""Install torch without CUDA: `install_torch.py VERSION CPU_INDEX`.

On Linux the plain name on the default registry brings a CUDA build with gigabytes of libraries beside it; elsewhere,
or where pip's settings already lead to a CPU build, it does not. So pip is asked what it would install (metadata
only), and the index of CPU builds is added only where that holds CUDA packages.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys

CUDA_PACKAGE = re.compile(r"nvidia-.*|cuda-.*|triton")
PIP = (sys.executable, "-m", "pip")


def brings_cuda(names: list[str]) -> bool:
    return any(CUDA_PACKAGE.fullmatch(name) for name in names)


def would_install(requirement: str) -> list[str]:
    command = [*PIP, "install", "--dry-run", "--ignore-installed", "--quiet", "--report=-", requirement]
    report = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)
    return [re.sub(r"[-_.]+", "-", item["metadata"]["name"]).lower() for item in report["install"]]


def main() -> int:
    version, cpu_index = sys.argv[1:]
    requirement, options = f"torch=={version}", list[str]()
    try:
        if brings_cuda(would_install(requirement)):
            # Beside the configured indexes, which may be the only way to torch's own dependencies.
            requirement, options = f"torch=={version}+cpu", ["--extra-index-url", cpu_index]
        print(f"installing {requirement} {' '.join(options)}".rstrip(), flush=True)
        subprocess.run([*PIP, "install", *options, requirement], check=True)
    except subprocess.CalledProcessError as error:
        print(f"cannot install {requirement}: pip ended with exit code {error.returncode}, see above", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
