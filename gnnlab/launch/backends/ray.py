"""The backend ``ray``: nodes of a Ray cluster, one actor on each.

Ray is imported in one process only, the *hub* (:mod:`gnnlab.launch.backends.ray_hub`), a child of
this one: a driver that loses Ray is ended by Ray, and a notebook that is connected to Ray keeps its
own connection. The hub reserves processors and GPUs on as many nodes as are needed, and runs a
program on a node as the child of an actor. :meth:`Ray.argv` is a relay between the launcher's pipes
and the hub, through a Unix socket in a folder of this user alone.

When the launcher, a relay, the hub or an actor ends, the standard input of the agent ends or falls
silent, and the agent ends all that it has started.

References
----------
Ray documentation, "Placement Groups" and "Fault tolerance".
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from gnnlab.errors import GNNLabError, InvalidInput
from gnnlab.launch.backends import Backend, Host, HostRequest

_HUB = str(Path(__file__).with_name("ray_hub.py"))
_FAREWELL = 15.0  # seconds for the hub to end its actors


class Ray(Backend):
    """Nodes of a Ray cluster, in the order of their addresses; see :class:`Backend`."""

    name = "ray"
    remedies: ClassVar = {
        "the head of the Ray cluster": "Ray's head is lost, and jobs end with it; restart Ray on "
        "all nodes, then start the job again",
        "does not fit": "see `ray status` for what is in use",
        "No such file or directory": "name an interpreter that is on the PATH of `ray start` there",
    }

    def __init__(self, request: HostRequest) -> None:
        if find_spec("ray") is None:
            raise InvalidInput(
                "ray is not installed here; `pip install 'gnnlab[ray]'`, in the version of the "
                "cluster"
            )
        self._folder = Path(tempfile.mkdtemp(prefix="gnnlab-ray-"))  # mode 0700
        try:
            self.hosts = self._start(request.num_hosts or 0)
        except BaseException:
            self.close()
            raise

    def _start(self, number: int) -> list[Host]:
        # In a new session: Ctrl-C goes only to the launcher. Ray's messages go to a file.
        argv = [sys.executable, "-P", _HUB, "hub", str(self._folder), str(number)]
        pipe = subprocess.PIPE
        with open(self._folder / "log", "wb") as log:
            self._hub = subprocess.Popen(
                argv, stdin=pipe, stdout=pipe, stderr=log, start_new_session=True
            )
        assert self._hub.stdout
        said = self._hub.stdout.readline()
        if not said:
            log_text = (self._folder / "log").read_text("utf8", "replace").strip()
            raise GNNLabError(f"Ray ended with status {self._hub.wait()}: {log_text[-2000:]}")
        answer = json.loads(said)
        if "problem" in answer:
            raise InvalidInput(answer["problem"])
        return [Host(**host) for host in answer["hosts"]]

    def argv(self, host: Host, command: Sequence[str]) -> list[str]:
        """Return the command line of a relay to the actor of a node."""
        socket, index = str(self._folder / "socket"), str(self.hosts.index(host))
        return [sys.executable, "-I", "-S", _HUB, "relay", socket, index, *command]

    def close(self) -> None:
        """End the actors and the connection to Ray."""
        if hub := getattr(self, "_hub", None):
            with hub:
                with suppress(subprocess.TimeoutExpired):
                    hub.communicate(timeout=_FAREWELL)  # the end of its input is its sign to end
                hub.kill()
        shutil.rmtree(self._folder, ignore_errors=True)
