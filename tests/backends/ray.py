"""A Ray cluster on one machine: the head on host 0, a node on each other host."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.backends.hosts import Hosts, obstacle
from tests.helpers import wait_until

START = 200  # seconds for one node, on a busy computer; 15 otherwise
PORT = 6379
OPTIONS = (
    *("--num-cpus=2", "--num-gpus=0", "--object-store-memory=100000000", "--disable-usage-stats"),
    *("--include-log-monitor=false", "--node-manager-port=6380", "--object-manager-port=6381"),
    *("--runtime-env-agent-port=6382", "--dashboard-agent-grpc-port=6383"),
    *("--dashboard-agent-listen-port=6384", "--metrics-export-port=6385"),
)
# What the helpers write where they serve nothing (-1), as without ray[default].
PORTS = {
    "dashboard_agent_listen_port": "-1",
    "metrics_agent_port": "-1",
    "metrics_export_port": "-1",
    "runtime_env_agent_port": "6382",
}
DASHBOARD_PORTS = {
    "dashboard_agent_listen_port": "6384",
    "metrics_agent_port": "6383",
    "metrics_export_port": "6385",
}


def ray_obstacle(dashboard: bool = False) -> str:
    """Say why there can be no Ray cluster here, or none that takes jobs; '' if there can."""
    if importlib.util.find_spec("ray") is None:
        return "needs ray: `make test-backends` installs it"
    if dashboard and importlib.util.find_spec("aiohttp_cors") is None:
        return "needs what `ray job submit` needs: `pip install 'ray[default]'`"
    return obstacle()


class RayHosts(Hosts):
    """Hosts with a Ray cluster; what its processes inherit is what a login shell would have."""

    def shell(self, **variables: str) -> list[str]:
        """Return the first words of a command line with a clean environment."""
        clean = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder / "tmp"),
            "LANG": "C.UTF-8",
            "RAY_raylet_start_wait_time_s": str(START),
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        return ["env", "-i", *(f"{name}={value}" for name, value in (clean | variables).items())]

    def start_ray(self, dashboard: bool) -> None:
        """Start one node after the other, some of them again: a busy one may miss its time."""
        self._dashboard = dashboard
        ray = Path(sys.executable).with_name("ray")
        (self.folder / "tmp").mkdir()
        for i, address in enumerate(self.addresses):
            own = self.folder / f"ray{i}"
            own.mkdir()
            # As if each host had its own disk for this.
            (self.folder / "ray").mkdir(exist_ok=True)
            self.run(i, "mount", "--bind", str(own), str(self.folder / "ray"))
            place = ["--head", f"--port={PORT}", f"--include-dashboard={dashboard}"]
            place += [f"--dashboard-host={address}"] if dashboard else []
            if i:
                place = [f"--address={self.addresses[0]}:{PORT}"]
            words = [str(ray), "start", *place, f"--node-ip-address={address}", *OPTIONS]
            if not i:
                words.append(f"--temp-dir={self.folder}/ray")
            self._start_node(i, words)

    def _start_node(self, i: int, words: list[str], attempts: int = 4) -> None:
        log = self.folder / f"started{i}"
        for attempt in range(attempts):
            try:
                # Into a file: daemons keep the streams, so a pipe would not end.
                line = f"{shlex.join([*self.shell(), *words])} >{log} 2>&1 </dev/null"
                with self._ports_written(i):
                    self.run(i, "bash", "-c", line, timeout=2 * START)
                return
            except OSError:
                if attempt == attempts - 1:
                    raise OSError(f"ray start: {log.read_text()[-2000:]}") from None
                with suppress(OSError):
                    self.run(i, *self.shell(), words[0], "stop", "--force")
                time.sleep(1.0)

    @contextmanager
    def _ports_written(self, i: int) -> Iterator[None]:
        """Write the files with ports that a raylet expects from its helpers within 15 s.

        On a busy computer, the helpers start too slowly; they only write the same again.
        """
        done = threading.Event()
        ports = PORTS | (DASHBOARD_PORTS if self._dashboard else {})

        def write() -> None:
            while not done.wait(0.3):
                for pid in self.find(i, "/raylet/raylet ", "--node_id="):
                    with suppress(OSError):
                        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
                        node = next(word[10:] for word in words if word.startswith("--node_id="))
                        for session in (self.folder / f"ray{i}").glob("session_2*"):
                            for name, port in ports.items():
                                if not (path := session / f"{name}_{node}").exists():
                                    path.write_text(port)

        thread = threading.Thread(target=write)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


@contextmanager
def ray_cluster(name: str = "rya", dashboard: bool = False) -> Iterator[RayHosts]:
    """Run a cluster of three nodes; with a dashboard, it takes jobs at port 8265 of the head."""
    with RayHosts(name) as hosts:
        hosts.start_ray(dashboard)
        count = (
            f"import ray; ray.init('{hosts.addresses[0]}:{PORT}', log_to_driver=False); "
            "print(sum(node['Alive'] for node in ray.nodes()))"
        )

        def are_up() -> bool:
            said = hosts.run(0, *hosts.shell(), "python", "-c", count, timeout=START)
            return said.strip() == str(len(hosts.names))

        wait_until("the nodes of Ray", are_up, START)
        yield hosts
