"""Jobs of real processes on loopback addresses, as a launcher would start them."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from gnnlab.launch.certificates import Authority
from gnnlab.simulate import SimulationResult, simulate
from tests.helpers import free_port, run_processes


def environments(
    part_config: Path,
    machines: int = 2,
    servers: int = 1,
    trainers: int = 1,
    samplers: int = 0,
    security: str = "none",
    timeout: float = 60,
    **env: str,
) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Environments of all servers and of all trainers of a job."""
    addresses = [[f"127.0.0.{2 + i}", free_port()] for i in range(machines) for _ in range(servers)]
    authority = Authority()
    common = {
        "OMP_NUM_THREADS": "1",
        "DGL_DIST_MODE": "distributed",
        "DGL_NUM_SERVER": str(servers),
        "DGL_NUM_SAMPLER": str(samplers),
        "DGL_CONF_PATH": str(part_config),
        "GNNLAB_SERVERS": json.dumps(addresses),
        "GNNLAB_NUM_TRAINERS": str(trainers),
        "GNNLAB_JOB": uuid.uuid4().hex[:16],
        "GNNLAB_SECURITY": security,
        "GNNLAB_TIMEOUT": str(timeout),
        "GLOO_SOCKET_IFNAME": "lo",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        **env,
    }

    def with_machine(role: str, machine: int, **more: int) -> dict[str, str]:
        own = {"DGL_ROLE": role, "GNNLAB_MACHINE": str(machine)}
        if security == "tls":
            own["GNNLAB_KEYS"] = authority.issue(role, machine).to_json()
        return common | own | {name: str(value) for name, value in more.items()}

    total = machines * trainers
    return (
        [with_machine("server", s // servers, DGL_SERVER_ID=s) for s in range(len(addresses))],
        [
            with_machine("client", r // trainers, RANK=r, LOCAL_RANK=r % trainers, WORLD_SIZE=total)
            for r in range(total)
        ],
    )


def run_job(
    source: str | Path,
    part_config: Path,
    deadline: float = 110,
    args: Sequence[str] = (),
    **job: Any,
) -> list[str]:
    """Run a script as a job to its end; return what each trainer printed."""
    servers, trainers = environments(part_config, **job)
    return run_processes(source, servers + trainers, args, deadline)[len(servers) :]


def run_simulated(
    script: Path, part_config: Path, **options: Any
) -> tuple[SimulationResult, list[Any]]:
    """Simulate a script; return the result and what trainers printed in JSON, by their ranks."""
    with redirect_stdout(io.StringIO()) as out:
        result = simulate(part_config, **options).run(script, str(part_config))
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    return result, sorted(found, key=lambda each: each["rank"])


def outputs(lines: str) -> Mapping[str, Any]:
    """What a trainer printed as its last line, in JSON."""
    return json.loads(lines.splitlines()[-1])
