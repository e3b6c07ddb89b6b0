"""Give each machine its part of a graph, the scripts and the list of machines.

    gnnlab copy_files --part_config data/mygraph.json --ip_config ip_config.txt \\
        --workspace workspace --rel_data_path data --script_folder code

Machine i gets ``mygraph.json`` and the folder of part i in ``workspace/data``, the scripts in
``workspace/code``, and ``workspace/ip_config.txt``. Files that the machine has already are not sent
again, and an interrupted copy resumes where it stopped.

An incomplete copy is never mistaken for a complete one. Files arrive in a staging folder, where
the machine compares their checksums with those in the JSON file. If all match, it removes the old
JSON file, moves the files to their places, and the new JSON file last: no part opens without it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from gnnlab.errors import GNNLabError, InvalidInput, PartitionError, no_such_file
from gnnlab.launch import probe
from gnnlab.launch.backends.ssh import Login, LoginError
from gnnlab.launch.ip_config import IP_CONFIG_HELP, names_of, read_ip_config
from gnnlab.partition.files import PartConfig, check_inside, read_config
from gnnlab.system.command import add_ssh_options, command, command_parser

# The machine needs a POSIX shell and sha256sum (or shasum). Each script runs in the workspace;
# $1 is the staging folder. Files are listed as lines `checksum size path`, the JSON file last.
_BEGIN = """
command -v sha256sum >/dev/null || sha256sum() { shasum -a 256; }
is_whole() {
    [ -f "$3" ] && [ $(wc -c <"$3") -eq "$2" ] &&
    [ "$(sha256sum <"$3" | cut -c1-64)" = "$1" ]
}
"""
_SURVEY = """
rsync --version 2>/dev/null | head -n 1
echo disk $(df -Pk . | tail -n 1)
missing=
while read -r sum size path; do
    if is_whole $sum $size "$path"; then echo whole; continue; fi
    missing=1
    if [ -f "$1/$path" ]; then echo $(wc -c <"$1/$path"); else echo 0; fi
done
[ "$missing" ] || rm -rf "$1"
"""
_VERIFY = """
while read -r sum size path; do
    is_whole $sum $size "$1/$path" || { echo "$path"; rm -f "$1/$path"; }
done
"""
_COMMIT = """
set -e
read -r json
[ -z "$json" ] || rm -f "./$json"
while read -r sum size path; do
    mkdir -p "$(dirname "./$path")"
    mv -f "$1/$path" "./$path"
done
rm -rf "$1"
"""
_MARK = "gnnlab copy_files"  # output before it is a login shell's greeting
_ROUNDS = 2  # files that arrive damaged are sent once more


@dataclass(frozen=True)
class _File:
    source: Path
    path: str  # relative to the workspace
    size: int
    sha256: str
    is_script: bool

    @property
    def line(self) -> str:
        return f"{self.sha256} {self.size} {self.path}\n"


@dataclass(frozen=True)
class _Target:
    """A machine and the destination of its files."""

    login: Login
    workspace: str
    part: int
    name: str

    @property
    def staging(self) -> str:
        return f".gnnlab-incoming-part{self.part}"  # machines may share the workspace

    def run(self, script: str, text: str) -> list[str]:
        """Run a script in the workspace and return the lines that it printed."""
        place = shlex.quote(self.workspace)
        begin = f"set -- {self.staging}; mkdir -p {place}/$1 && cd {place} || exit 1{_BEGIN}"
        said = self.login.run(f"echo {_MARK}; {begin}{script}", text)
        return said.partition(f"{_MARK}\n")[2].splitlines()


def copy_files(
    part_config: str | os.PathLike[str],
    ip_config: str | os.PathLike[str],
    workspace: str,
    rel_data_path: str,
    script_folder: str | os.PathLike[str] | None = None,
    ssh_port: int | None = None,
    ssh_username: str | None = None,
) -> None:
    """Copy part i of a graph, the scripts and the list of machines to machine i.

    ``ip_config`` lists the machines, and is copied to them. ``workspace`` is a folder there,
    relative to the login folder, made if missing; ``rel_data_path`` is the graph's folder in it.
    The files of a local ``script_folder`` go into the workspace. ``ssh_port`` and ``ssh_username``
    are by default those of the user's ssh configuration. Raise GNNLabError if a machine did not
    receive its files; the message says which and why.
    """
    config = read_config(part_config)
    hosts = read_ip_config(ip_config, config.num_parts)
    data = _inside_workspace(rel_data_path)
    listed = _hashed(Path(ip_config), PurePosixPath(os.path.basename(ip_config)), True)
    others = [*_script_files(Path(script_folder))] if script_folder else []
    first = {file.path.split("/")[0] for file in (*others, *_part_files(config, 0, data))}
    if listed.path in first:
        raise InvalidInput(
            f"{ip_config} would be {listed.path} in the workspace, a name that the scripts or the "
            "graph have there; rename it"
        )
    scripts = [listed, *others]
    jobs = []
    for part, (host, name) in enumerate(zip(hosts, names_of(hosts), strict=True)):
        place = re.sub(r"^~(/|$)", "./", workspace)  # the login folder
        place = place if place.startswith("/") else f"./{place}"
        target = _Target(Login(host.address, ssh_port, ssh_username), place, part, name)
        jobs.append((target, [*scripts, *_part_files(config, part, data)]))
    failures = _copy_all(jobs)
    if failures:
        raise GNNLabError("\n".join(failures) + "\nRun the same command again: it goes on there.")


def _copy_all(jobs: list[tuple[_Target, list[_File]]]) -> list[str]:
    """Copy to all machines concurrently; return one line for each failure."""
    from tqdm.auto import tqdm

    failures = []
    pool = ThreadPoolExecutor(min(len(jobs), 8))
    with (
        tqdm(total=0, unit="B", unit_scale=True, disable=None, desc="copy") as bar,
        tempfile.TemporaryDirectory(prefix="gnnlab-copy-", ignore_cleanup_errors=True) as folder,
    ):
        transfer = _Transfer(bar, folder)
        waiting = [pool.submit(_copy, target, files, transfer) for target, files in jobs]
        try:
            for (target, files), result in zip(jobs, waiting, strict=True):
                address = target.name
                try:
                    sent = result.result()
                    tqdm.write(f"{address}: {len(files)} files are whole there, {sent} sent now")
                except LoginError as error:
                    hint = "`gnnlab doctor --ip_config FILE` says what to do"
                    failures.append(f"{address} is not complete: {error}; {hint}")
                except (GNNLabError, OSError) as error:
                    failures.append(f"{address} is not complete: {error}")
        finally:
            transfer.stop()
            pool.shutdown(wait=False, cancel_futures=True)
    return failures


# -------------------------------------------------------------------------------- files to send
def _part_files(config: PartConfig, part: int, data: PurePosixPath) -> Iterator[_File]:
    """Yield the arrays of one part, then the JSON file."""
    for array in config.arrays[part].values():
        check_inside(config, array.file)
        size = array.file.stat().st_size if array.file.is_file() else -1
        if size != array.bytes:
            found = "is missing" if size < 0 else f"has {size} bytes, not {array.bytes}"
            raise PartitionError(f"{array.file} {found}; partition the graph again")
        path = _plain(data / array.file.relative_to(config.path.parent).as_posix())
        yield _File(array.file, path, size, array.sha256, False)
    yield _hashed(config.path, data / config.path.name, False)


def _script_files(folder: Path) -> Iterator[_File]:
    if not folder.is_dir():
        what = f"{folder} is a file" if folder.exists() else no_such_file(folder)
        raise InvalidInput(f"{what}. --script_folder names a folder of this machine")
    name = folder.resolve().name
    for path in sorted(folder.rglob("*")):
        place = path.relative_to(folder)
        if path.is_file() and not {"__pycache__", ".git"} & set(place.parts):
            yield _hashed(path, PurePosixPath(name, place.as_posix()), True)


def _hashed(source: Path, path: PurePosixPath, is_script: bool) -> _File:
    with open(source, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return _File(source, _plain(path), source.stat().st_size, digest, is_script)


def _plain(path: PurePosixPath) -> str:
    if re.search(r"[\n\r\\]|^\s|\s$", str(path)):
        raise InvalidInput(f"{str(path)!r}: rename the file; its name cannot be sent safely")
    return str(path)


def _inside_workspace(rel_data_path: str) -> PurePosixPath:
    path = PurePosixPath(rel_data_path)
    if path.is_absolute() or ".." in path.parts:
        raise InvalidInput(
            f"--rel_data_path {rel_data_path!r}: give a folder inside the workspace, such as data"
        )
    return path


# -------------------------------------------------------------------- transfer to one machine
class _Transfer:
    """The running transfer programs, and the bytes sent to all machines together."""

    def __init__(self, bar: Any, folder: str) -> None:
        self.folder = folder  # for temporary files of transfers
        self._bar = bar
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._is_stopped = False

    def send(
        self, command: list[str], text: str, files: list[_File], gone: Callable[[str, int], int]
    ) -> None:
        """Run a transfer program.

        ``gone`` maps a line that the program prints, and the bytes sent before, to the bytes sent.
        """
        total, before = sum(file.size for file in files), 0
        self._count(0, total)
        # A file, not a pipe: a program that writes while it reads would fill a pipe and block.
        with (
            tempfile.TemporaryFile("w+", encoding="utf8", errors="replace") as orders,
            tempfile.TemporaryFile("w+", encoding="utf8", errors="replace") as complaint,
        ):
            orders.write(text)
            orders.seek(0)
            process = self._start(command, orders, complaint)
            assert process.stdout is not None
            with process.stdout as lines:
                for line in lines:
                    now = min(gone(line, before), total)
                    self._count(now - before)
                    before = now
            with self._lock:
                self._running.discard(process)
            if process.wait():
                complaint.seek(0)
                raise GNNLabError(complaint.read().strip() or f"{command[0]} was interrupted")
        self._count(total - before)

    def _start(self, command: list[str], orders: Any, complaint: Any) -> subprocess.Popen[str]:
        with self._lock:
            if self._is_stopped:
                raise GNNLabError("the copy was interrupted")
            text: Any = {"encoding": "utf8", "errors": "replace"}
            process = subprocess.Popen(
                command, stdin=orders, stdout=subprocess.PIPE, stderr=complaint, **text
            )
            self._running.add(process)
            return process

    def _count(self, done: int, expected: int = 0) -> None:
        with self._lock:
            self._bar.total += expected
            self._bar.update(done)

    def stop(self) -> None:
        """End all programs and start no more."""
        with self._lock:
            self._is_stopped = True
            for process in self._running:
                process.kill()


def _copy(target: _Target, files: list[_File], transfer: _Transfer) -> int:
    """Send one machine the files that it lacks; return how many were sent."""
    answers = target.run(_SURVEY, _lines(files))
    version = "" if answers[0].startswith("disk") else answers.pop(0)
    has_rsync = probe.USABLE_RSYNC.match(version) and probe.rsync()
    free = int(answers.pop(0).split()[4]) * 1024
    there = {f.path: int(a) for f, a in zip(files, answers, strict=True) if a != "whole"}
    json = files[-1].path if any(f.path in there and not f.is_script for f in files) else ""
    todo = [file for file in files if file.path in there or file.path == json]
    needed = sum(file.size - there.get(file.path, 0) for file in todo)
    if needed > free:
        raise GNNLabError(
            f"{needed / 1e9:.2f} GB are to come and {free / 1e9:.2f} GB are free in the workspace; "
            "free some space there, or choose another workspace"
        )
    damaged = todo
    for _ in range(_ROUNDS if todo else 0):
        if has_rsync:
            _send_by_rsync(target, damaged, transfer)
        else:
            _send_by_sftp(target, damaged, there, transfer)
        faulty = set(target.run(_VERIFY, _lines(damaged)))
        damaged, there = [file for file in damaged if file.path in faulty], {}
        if not damaged:
            target.run(_COMMIT, f"{json}\n{_lines(todo)}")
            return len(todo)
    for file in damaged:
        if _hashed(file.source, PurePosixPath(file.path), False).sha256 != file.sha256:
            raise GNNLabError(
                f"{file.source} on this machine has changed since it was made (its checksum "
                "differs); partition the graph again"
            )
        raise GNNLabError(f"{file.path} arrived damaged {_ROUNDS} times; check the disk over there")
    return 0


def _lines(files: Sequence[_File]) -> str:
    return "".join(file.line for file in files)


def _send_by_rsync(target: _Target, files: list[_File], transfer: _Transfer) -> None:
    def gone(line: str, before: int) -> int:
        match = re.match(r"\s*([\d,.]+)\s+\d+%", line)
        return int(re.sub(r"\D", "", match[1])) if match else before

    links = tempfile.mkdtemp(dir=transfer.folder)
    for file in files:  # under their remote names
        link = Path(links, file.path)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(file.source.absolute())
    # --inplace: received data is kept when the connection breaks; the next run sends the rest.
    command = ["rsync", "-Lpts", "--inplace", "--files-from=-", "--info=progress2"]
    command += ["-e", shlex.join(target.login.program("ssh", "-p")), "--", f"{links}/"]
    command += [target.login.place(f"{target.workspace}/{target.staging}/")]
    transfer.send(command, "".join(f"./{file.path}\n" for file in files), files, gone)


def _quote(path: object) -> str:
    """Quote an argument of sftp; within quotes, sftp expands no wildcards."""
    return '"' + str(path).replace('"', '\\"') + '"'


def _send_by_sftp(
    target: _Target, files: list[_File], there: dict[str, int], transfer: _Transfer
) -> None:
    sizes = iter([0, *(file.size for file in files)])

    def gone(line: str, before: int) -> int:
        return before + next(sizes, 0) if re.match(r"sftp> (re)?put ", line) else before

    base = f"{target.workspace}/{target.staging}"
    folders = {parent for file in files for parent in PurePosixPath(file.path).parents}
    batch = [f"-mkdir {_quote(f'{base}/{folder}')}" for folder in sorted(folders)]
    for file in files:
        begun = there.get(file.path, 0)
        if begun != file.size or begun == 0:  # else all bytes are there, unverified
            verb = "reput" if 0 < begun < file.size else "put"
            batch.append(
                f"{verb} -p {_quote(file.source.absolute())} {_quote(f'{base}/{file.path}')}"
            )
    command = [*target.login.program("sftp", "-P"), "-b", "-", "--", target.login.place("")[:-1]]
    transfer.send(command, "\n".join(batch) + "\n", files, gone)


# ------------------------------------------------------------------------------ command line
@command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = command_parser("copy_files", __doc__)
    required = partial(parser.add_argument, required=True)
    required("--part_config", help="JSON file of the partitioned graph, on this machine")
    required("--ip_config", help=IP_CONFIG_HELP)
    required("--workspace", help="folder on the machines; a relative one starts at the login's")
    required("--rel_data_path", help="folder in the workspace for the graph")
    parser.add_argument("--script_folder", help="folder that is copied into the workspace (none)")
    add_ssh_options(parser)
    arguments = parser.parse_args(argv)
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        copy_files(**vars(arguments))
    except KeyboardInterrupt:
        print("gnnlab copy_files: interrupted; run it again and it goes on there", file=sys.stderr)
        sys.stderr.flush()
        os._exit(130)  # without waiting for checksums on the machines
    return 0


if __name__ == "__main__":
    sys.exit(main())
