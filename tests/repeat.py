"""Run tests many times beside busy processes, and say which of them fail now and then.

    python -m tests.repeat --times 30 --load 6 tests/parallel tests/launch tests/distributed

Each run draws its examples from another seed; one that failed is repeated by the command in the
first line of its log. Further words go to pytest, such as ``-k server`` or ``-n 2``.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

# Computes without end, until the process that started it has ended.
BUSY = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): sum(range(10**6))"
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*| \(\w+\))?$", re.MULTILINE)


def run(words: Sequence[str], seed: int, folder: Path) -> list[str]:
    """Run the tests once; return those that failed."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rfE", *words]
    command.append(f"--hypothesis-seed={seed}")
    with open(folder / f"{seed}.log", "w+") as log:
        print(shlex.join(command), file=log, flush=True)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.seek(0)
        failed = [*dict.fromkeys(FAILED.findall(log.read()))]
    return failed or ["pytest itself"] * bool(done.returncode)


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
    command = [sys.executable, "-c", BUSY, str(os.getpid())]
    busy = [subprocess.Popen(command) for _ in range(given.load)]
    failures: defaultdict[str, list[int]] = defaultdict(list)
    for seed in range(given.seed, given.seed + given.times):
        failed = run(words, seed, folder)
        print(f"seed {seed}: {len(failed)} failed", *failed, sep="\n    ", flush=True)
        for name in failed:
            failures[name].append(seed)
    for process in busy:
        process.kill()
        process.wait()
    for name, seeds in sorted(failures.items(), key=lambda item: -len(item[1])):
        print(f"{len(seeds)} of {given.times}: {name} (seeds {', '.join(map(str, seeds))})")
    print(f"{len(failures)} tests failed in {given.times} runs beside {given.load} busy processes")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
