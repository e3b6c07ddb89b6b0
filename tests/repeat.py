"""Run tests many times beside busy processes, and say which of them fail now and then.

    python -m tests.repeat --times 30 --load 6 tests/parallel tests/launch tests/distributed

Each run draws its examples from another seed; one that failed is repeated by the command in the
first line of its log. Further words go to pytest, such as ``-k server`` or ``-n 2``.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

BUSY = """
import os, sys
while os.getppid() == int(sys.argv[1]):
    for _ in range(10**6):
        pass
"""


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Processes that compute without end; they end with this one."""
    command = [sys.executable, "-c", BUSY, str(os.getpid())]
    processes = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def run(words: Sequence[str], seed: int, folder: Path) -> tuple[list[str], str]:
    """Run the tests once; return those that failed, and a line on the run."""
    report = folder / f"{seed}.xml"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]
    command += [f"--hypothesis-seed={seed}", f"--junitxml={report}", "-o", "junit_family=xunit1"]
    start = time.monotonic()
    with open(folder / f"{seed}.log", "w") as log:
        print(shlex.join(command), file=log, flush=True)
        status = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        ).returncode
    seconds = time.monotonic() - start
    if not report.exists():
        return ["pytest itself"], f"seed {seed}: pytest ended with status {status}"
    cases = list(ElementTree.parse(report).iter("testcase"))
    failed = [
        f"{case.get('file')}::{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    if status and not failed:
        failed = ["pytest itself"]
    return failed, f"seed {seed}: {len(failed)} of {len(cases)} failed in {seconds:.0f} s"


def main(argv: Sequence[str] | None = None) -> int:
    """Return 1 where any test failed in any run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--times", type=int, default=30, help="runs (30)")
    parser.add_argument("--load", type=int, default=6, help="busy processes beside them (6)")
    parser.add_argument("--seed", type=int, default=1, help="of the first run (1)")
    given, words = parser.parse_known_args(argv)
    # A shell ignores Ctrl-C for what it starts in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="repeat-"))
    print(f"logs: {folder}")
    failures: defaultdict[str, list[int]] = defaultdict(list)
    with busy(given.load):
        for seed in range(given.seed, given.seed + given.times):
            failed, said = run(words, seed, folder)
            print(said, *failed, sep="\n    ", flush=True)
            for name in failed:
                failures[name].append(seed)
    for name, seeds in sorted(failures.items(), key=lambda item: -len(item[1])):
        print(f"{len(seeds)} of {given.times}: {name} (seeds {', '.join(map(str, seeds))})")
    print(f"{len(failures)} tests failed in {given.times} runs beside {given.load} busy processes")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
