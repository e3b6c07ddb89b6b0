"""What a figure depends on: the machine, the versions, the day."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

_LIBRARIES = ("dgl", "torch-geometric", "torch", "numba", "numpy")
_VERSIONS = f"""
import importlib.metadata as m, platform
for name in {_LIBRARIES!r}:
    try: print(name, m.version(name))
    except m.PackageNotFoundError: pass
print("python", platform.python_version())
"""


def describe() -> dict[str, str]:
    """Return machine, system, versions and date, each as a short text."""
    import gnnlab

    versions = {"gnnlab": gnnlab.__version__}
    for name in _LIBRARIES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "machine": f"{_processor()}, {os.cpu_count()} cores, {_memory()}",
        "system": f"{platform.system()} {platform.release()}",
        "versions": ", ".join(
            [f"{k} {v}" for k, v in versions.items()] + [f"python {platform.python_version()}"]
        ),
        "date": datetime.date.today().isoformat(),
    }


def versions_of(python: Path) -> str:
    """Return the versions that another interpreter would use."""
    run = subprocess.run(
        [str(python), "-c", _VERSIONS], capture_output=True, text=True, timeout=60, check=False
    )
    return ", ".join(run.stdout.split("\n")).strip(", ") or "unknown"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> str:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return "unknown memory"
    return f"{total / 2**30:.0f} GB"
