"""The pins can be installed on each system and Python that the project names, from wheels alone."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.helpers import NO_INDEX, ROOT

pytestmark = pytest.mark.thorough("make test has installed the pins of this system")
# The first release of each: a package that wants a later one would not install there.
PYTHONS = ("3.11.0", "3.12.0", "3.13.0", "3.14.0")
SYSTEMS = {
    "Linux on x86-64": "x86_64-manylinux_2_28",
    "Linux on ARM": "aarch64-manylinux_2_28",
    "macOS on Apple silicon": "aarch64-apple-darwin",
    "Windows on x86-64": "x86_64-pc-windows-msvc",
}
UNREACHABLE = re.compile(
    r"failed to fetch|error sending request|client error|dns error|timed out|offline", re.IGNORECASE
)
CUDA = ("nvidia-", "cuda-", "triton")  # pinned by torch itself


def resolve(
    system: str, python: str, source: Path = ROOT / "pyproject.toml"
) -> subprocess.CompletedProcess[str]:
    """Have uv choose the packages of all extras, as pip would there, without installing any."""
    words = [sys.executable, "-m", "uv", "pip", "compile", str(source)]
    words += ["--all-extras"] if source.suffix == ".toml" else []
    words += ["--constraints", str(ROOT / "constraints.txt"), "--only-binary", ":all:"]
    words += ["--python-platform", SYSTEMS[system], "--python-version", python]
    # Otherwise uv looks on this computer for an interpreter of that version, for seconds.
    words += ["--python", sys.executable, "--no-python-downloads"]
    words += ["--no-header", "--no-annotate", "--quiet"]
    env = {"MACOSX_DEPLOYMENT_TARGET": "14.0", "UV_HTTP_TIMEOUT": "60", **os.environ}
    if "PIP_INDEX_URL" in env:
        env.setdefault("UV_DEFAULT_INDEX", env["PIP_INDEX_URL"])
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=240)


def check(run: subprocess.CompletedProcess[str]) -> set[Requirement]:
    """Return what was chosen; fail with uv's reason, or skip where no index answered."""
    if run.returncode and UNREACHABLE.search(run.stderr):
        pytest.skip(f"{NO_INDEX}: {run.stderr.strip().splitlines()[-1]}")
    assert run.returncode == 0, run.stderr
    return {Requirement(line) for line in run.stdout.splitlines() if line}


@pytest.fixture(scope="module")
def resolved() -> dict[tuple[str, str], subprocess.CompletedProcess[str]]:
    """All of them at once: each mostly waits for the index."""
    if importlib.util.find_spec("uv") is None:
        pytest.skip("uv is not installed; make test installs it")
    pairs = [(system, python) for system in SYSTEMS for python in PYTHONS]
    with ThreadPoolExecutor(8) as pool:
        return dict(zip(pairs, pool.map(lambda pair: resolve(*pair), pairs), strict=True))


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("system", SYSTEMS)
def test_pins_have_wheels(system: str, python: str, resolved: dict) -> None:
    pinned = {
        (pin.name, str(pin.specifier))
        for line in (ROOT / "constraints.txt").read_text("utf8").splitlines()
        if line and not line.startswith("#")
        for pin in [Requirement(line)]
    }
    chosen = check(resolved[system, python])
    assert {"torch", "jupyterlab", "pytest", "ruff"} <= {each.name for each in chosen}
    loose = {(c.name, str(c.specifier)) for c in chosen if not c.name.startswith(CUDA)} - pinned
    assert not loose, "not pinned, though it is installed there"
