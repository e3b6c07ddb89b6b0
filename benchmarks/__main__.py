"""Measure gnnlab, alone or in turn with its peers.

python -m benchmarks run --size S
python -m benchmarks run --size M --tasks sample,epoch --rounds 5 --peer DIR --json out.json
python -m benchmarks distributed --peer DIR --systems dgl
python -m benchmarks faults --jobs 20 --seed 0
python -m benchmarks gpu --size M
python -m benchmarks papers --scale 0.02
python -m benchmarks limits --size S
python -m benchmarks serving --size S
python -m benchmarks predictions --minutes 55
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import traceback
from contextlib import ExitStack
from pathlib import Path

from benchmarks import data, distributed, drive, machine, startup, table, words


def main(arguments: list[str] | None = None) -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="measure and print tables")
    run.add_argument("--size", default="S", help="T, S or M (default S)")
    run.add_argument(
        "--tasks",
        default=",".join(words.NAMES),
        help="of %(default)s; or one task as sample:15,10,5:eids",
    )
    run.add_argument("--threads", type=int, default=1, help="per system (default 1)")
    run.add_argument("--rounds", type=int, default=3, help="times each task is run (default 3)")
    run.add_argument("--peer", type=Path, help="folder with NAME/bin/python and bench_NAME.py")
    run.add_argument("--systems", default="", help="which peers of that folder, e.g. dgl,proto")
    run.add_argument("--json", type=Path, help="write every single result to this file")
    run.set_defaults(command=_run)

    served = commands.add_parser("distributed", help="measure two servers and a trainer")
    served.add_argument("--rounds", type=int, default=3, help="times each task is run (default 3)")
    served.add_argument("--peer", type=Path, help="folder with NAME/bin/python, bench_NAME_dist.py")
    served.add_argument("--systems", default="", help="which peers of that folder, e.g. dgl")
    served.add_argument("--security", choices=("none", "tls"), default="none")
    served.set_defaults(command=_distributed)

    faulty = commands.add_parser("faults", help="break real jobs, and see how soon all is gone")
    faulty.add_argument("--jobs", type=int, default=20, help="number of jobs (default 20)")
    faulty.add_argument("--seed", type=int, default=0, help="of faults and moments (default 0)")
    faulty.add_argument(
        "--deadline", type=float, default=30.0, help="seconds that a job may last longer than a "
        "good one (default 30)",
    )  # fmt: skip
    faulty.add_argument("--only", default="", help='faults of a kind, e.g. "SIGSTOP" or "guard"')
    faulty.set_defaults(command=_faults)

    gpus = commands.add_parser("gpu", help="measure an epoch on a GPU, and compare with the CPU")
    gpus.add_argument("--size", default="M", help="T, S or M (default M: 192 steps)")
    gpus.add_argument("--device", help="cuda, xpu, mps, cpu; by default this machine's GPU")
    gpus.add_argument("--epochs", type=int, default=3, help="the fastest counts (default 3)")
    gpus.add_argument("--json", type=Path, help="write the figures to this file")
    gpus.set_defaults(command=_gpu)

    claims = commands.add_parser("papers", help="replay what papers claim about remote rows")
    claims.add_argument("--scale", type=float, default=1.0, help="of ogbn-products (default 1)")
    claims.add_argument("--parts", type=int, default=4, help="machines (default 4)")
    claims.add_argument("--epochs", type=int, default=2, help="the last counts (default 2)")
    claims.add_argument("--method", default="metis", help="metis, ldg or random (default metis)")
    claims.add_argument(
        "--gathered", type=float, default=0.15, help="share of the nodes at which edges between "
        "parts end in a second graph; 0 for none (default 0.15)",
    )  # fmt: skip
    claims.add_argument("--ogb", type=Path, help="unpacked folder of ogbn-products, to use it")
    claims.add_argument("--json", type=Path, help="write the figures to this file")
    claims.set_defaults(command=_papers)

    best = commands.add_parser("limits", help="compare tasks with what the machine could do")
    best.add_argument("--size", default="S", help="T, S or M (default S)")
    best.add_argument("--rounds", type=int, default=5, help="times each is run (default 5)")
    best.add_argument("--no-remote", action="store_true", help="start no servers")
    best.set_defaults(command=_limits)

    asked = commands.add_parser("serving", help="measure how long a request takes")
    asked.add_argument("--size", default="S", help="T, S or M (default S)")
    asked.add_argument("--requests", type=int, default=1000, help="of each way (default 1000)")
    asked.set_defaults(command=_serving)

    held = commands.add_parser("predictions", help="compare predicted with measured epochs")
    held.add_argument(
        "--rows", type=int, default=36, choices=range(1, 49), metavar="N",
        help="settings to draw, up to 48 (default 36)",
    )  # fmt: skip
    held.add_argument("--seed", type=int, default=0, help="draws the settings (default 0)")
    held.add_argument("--size", choices=("T", "S"), default="S", help="graph (default S)")
    held.add_argument("--minutes", type=float, default=60, help="stop after these (default 60)")
    held.add_argument("--repeat", type=Path, help="file whose settings to measure again")
    held.add_argument("--resume", action="store_true", help="run what --json lacks")
    held.add_argument("--json", type=Path, help="default benchmarks/results/predictions.json, "
                      "with --repeat predictions_repeated.json")  # fmt: skip
    held.set_defaults(command=_predictions)

    serve = commands.add_parser("serve", help="answer tasks from standard input (used by run)")
    serve.add_argument("size")
    serve.add_argument("threads", type=int)
    serve.add_argument("--data", type=Path, required=True, help="folder with the graph's arrays")
    serve.set_defaults(command=_serve)

    options = parser.parse_args(arguments)
    return options.command(options)


def _gpu(options: argparse.Namespace) -> int:
    from benchmarks import gpu
    from gnnlab.system import accelerators

    name = options.device or accelerators.kind()
    if name is None:
        print(
            "benchmarks: torch finds no GPU here; --device cpu runs it all the same",
            file=sys.stderr,
        )
        return 2
    found = gpu.measure(options.size, accelerators.read_device(name), options.epochs)
    if options.json:
        gpu.save(found, options.json)
    print(*gpu.table(found), sep="\n")
    return 0


def _papers(options: argparse.Namespace) -> int:
    from benchmarks import papers

    found = papers.measure(
        options.scale, options.parts, options.epochs, options.method, options.ogb,
        gathered=options.gathered,
    )  # fmt: skip
    if options.json:
        papers.save(found, options.json)
    about = {**machine.describe(), **{k: str(v) for k, v in found["setup"].items()}}
    _print(about, papers.tables(found))
    return 0


def _predictions(options: argparse.Namespace) -> int:
    from benchmarks import predictions

    problem = predictions.can_run()
    if problem:
        print(f"benchmarks: {problem}", file=sys.stderr)
        return 2
    if options.repeat and not options.repeat.is_file():
        print(f"benchmarks: --repeat {options.repeat}: no such file; name the --json of a run",
              file=sys.stderr)  # fmt: skip
        return 2
    name = "predictions_repeated" if options.repeat else "predictions"
    path = options.json or Path(__file__).parent / "results" / f"{name}.json"
    before = json.loads(options.repeat.read_text("utf8")) if options.repeat else {}
    found = predictions.measure(
        path, rows=options.rows, seed=before.get("seed", options.seed),
        size=before.get("size", options.size), minutes=options.minutes,
        settings=before.get("settings"), resume=options.resume,
    )  # fmt: skip
    _print(found["about"], predictions.tables(found["rows"]))
    total = predictions.summary(found["rows"])
    return 0 if total["rows"] == total["bytes equal"] == len(found["settings"]) else 1


def _run(options: argparse.Namespace) -> int:
    peer: Path | None = options.peer.resolve() if options.peer else None
    try:
        tasks, alone = words.chosen(options.tasks)
        small = [task for task in tasks if task in words.GROUPS["small"]]
        tasks = [task for task in tasks if task not in small]
        folder = data.folder_of(options.size, peer) if tasks else Path()
    except ValueError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    about = {**machine.describe(), "size": options.size, "threads": str(options.threads)}
    pythons = {table.OURS: Path(sys.executable)}
    systems = [drive.ourselves(options.size, options.threads, folder)] if tasks else []
    if peer is not None:
        for name in drive.peers_in(peer, list(filter(None, options.systems.split(",")))):
            pythons[name] = peer / name / "bin" / "python"
            about[name] = machine.versions_of(pythons[name])
            if tasks:
                systems.append(drive.peer(name, peer, options.size, options.threads))
    results = _interleave(systems, tasks, options.rounds)
    if small:
        both = [name for name in (table.OURS, "dgl") if name in pythons]
        systems = [drive.of_molecules(name, pythons[name], options.threads) for name in both]
        results += _interleave(systems, small, options.rounds)
    starts = startup.measure(options.rounds) if alone else []
    titles = {task.name: task.title for task in [*tasks, *small]}
    tables = [table.speed_table(results, titles)] if results else []
    tables += [table.memory_table(results)] if tasks else []
    tables += [startup.table(starts)] if starts else []
    _print(about, tables)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps({"about": about, "results": results + starts}, indent=1))
    failures = [r for r in results if "error" in r]
    for result in failures:
        print(f"{result['sys']} failed at {result['task']}: {result['error']}", file=sys.stderr)
    return 1 if failures else 0


def _interleave(systems: list[drive.System], tasks: list[words.Task], rounds: int) -> list[dict]:
    with ExitStack() as stack:
        for system in systems:
            stack.enter_context(system)
        for system in systems:
            system.wait_ready()
        names = [task.name for task in tasks]
        return drive.interleave(systems, names, rounds, words.translate, _progress)


def _distributed(options: argparse.Namespace) -> int:
    peer: Path | None = options.peer.resolve() if options.peer else None
    systems = list(filter(None, options.systems.split(",")))
    folder = data.folder_of("S", peer)
    results = distributed.measure(folder, options.rounds, peer, systems, options.security)
    about = {**machine.describe(), "size": "S", "security": options.security}
    _print(about, [table.speed_table(results, distributed.TITLES)])
    return 0


def _limits(options: argparse.Namespace) -> int:
    import torch

    from benchmarks import limits

    torch.set_num_threads(1)
    folder = data.folder_of(options.size)
    rows = limits.measure(folder, options.size, options.rounds, not options.no_remote)
    _print({**machine.describe(), "size": options.size, "threads": "1"}, [rows])
    return 0


def _serving(options: argparse.Namespace) -> int:
    import torch

    from benchmarks import serving

    torch.set_num_threads(1)
    rows = serving.measure(data.folder_of(options.size), options.requests)
    _print({**machine.describe(), "size": options.size, "threads": "1"}, [rows])
    return 0


def _faults(options: argparse.Namespace) -> int:
    from benchmarks import faults  # needs psutil

    chosen = tuple(fault for fault in faults.FAULTS if options.only in fault)
    if not chosen:
        print(f"benchmarks: --only is part of one of {', '.join(faults.FAULTS)}", file=sys.stderr)
        return 2
    return min(1, faults.measure(options.jobs, options.seed, options.deadline, chosen))


def _progress(result: dict) -> None:
    value = table.milliseconds(result)
    shown = f"{value:.2f} ms" if value is not None else result.get("error", "no time")
    print(f"  {result['task']:24s} {result['sys']:8s} {shown}", file=sys.stderr, flush=True)


def _print(about: dict[str, str], tables: list[list[list[str]]]) -> None:
    for rows in tables:
        print("\n" + table.as_text(rows))
    print("\nIn Markdown:\n")
    print("\n".join(f"- {key}: {value}" for key, value in about.items()))
    for rows in tables:
        print("\n" + table.as_markdown(rows))


def _serve(options: argparse.Namespace) -> int:
    import torch

    from benchmarks.tasks import Tasks

    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    tasks = Tasks(options.data, options.size)
    print("READY", flush=True)
    for line in map(str.strip, sys.stdin):
        if line == "quit":
            break
        try:
            answer: dict = tasks.run(line)
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps({**answer, **_memory()}), flush=True)
    return 0


def _memory() -> dict[str, int]:
    """Resident memory now and at its highest, here or in an ended child such as METIS', in MB."""
    whose = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    peak = max(resource.getrusage(each).ru_maxrss for each in whose)
    peak_mb = peak // (2**20 if sys.platform == "darwin" else 2**10)
    statm = Path("/proc/self/statm")
    pages = int(statm.read_text().split()[1]) if statm.exists() else 0
    return {"rss": pages * resource.getpagesize() // 2**20 or peak_mb, "peak": peak_mb}


if __name__ == "__main__":
    sys.exit(main())
