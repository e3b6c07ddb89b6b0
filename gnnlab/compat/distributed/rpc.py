"""Requests of one's own to servers, under the names of ``dgl.distributed.rpc``.

gnnlab's servers run no code of a program: they decode messages of a fixed schema and unpickle
nothing. So a request is carried to the server as a message that only asks for an answer, and
``process_request`` then runs in the sender. That serves requests which wait until a server has
done all that was sent before, such as GraphStorm's flush. A request that reads the state of the
server raises an error that says so.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from typing import Any

from gnnlab.distributed import context
from gnnlab.distributed import messages as m
from gnnlab.distributed.connections import ServerLost
from gnnlab.distributed.job import JobSettings
from gnnlab.errors import GNNLabError, InvalidInput

DistConnectError = ServerLost


class Response:
    """Base class of answers."""


class Request:
    """Base class of requests; a subclass, which is registered, defines :meth:`process_request`."""

    def process_request(self, server_state: Any) -> Response | None:
        """Return the answer, or None where none is expected."""
        raise NotImplementedError(f"{type(self).__name__} defines no process_request(server_state)")


class _ServerState:
    """Stands for the state of a server, of which a request can read nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise GNNLabError(
            f"a request read {name!r} of the server's state, but gnnlab's servers run no code of "
            "a program. Read rows by DistTensor, structure by DistGraph"
        )


_services: dict[type, int] = {}
_answers = threading.local()


def register_service(
    service_id: int, req_cls: type[Request], res_cls: type[Response] | None = None
) -> None:
    """Register a kind of requests."""
    _services[req_cls] = int(service_id)


def send_request(target: int, request: Request) -> None:
    """Send a request to server ``target``, and wait until that has done all that was sent before.

    Its answer is what the next :func:`recv_response` returns.
    """
    if type(request) not in _services:
        raise InvalidInput(
            f"{type(request).__name__} is not registered; call register_service(number, "
            f"{type(request).__name__}, …) first"
        )
    if not 0 <= target < get_num_server():
        raise InvalidInput(f"server {target} does not exist: there are {get_num_server()}")
    context.current().remote.request([(target, m.Hello())])
    answer = request.process_request(_ServerState())
    if answer is not None:
        _queue().append(answer)


def recv_response(timeout: int = 0) -> Response:
    """Return the next answer, in the order in which this thread sent its requests."""
    if not _queue():
        raise GNNLabError("no answer is expected: this thread sent no request that has one")
    return _queue().popleft()


def remote_call(
    target_and_requests: Iterable[tuple[int, Request]], timeout: int = 0
) -> list[Response | None]:
    """Send requests and return their answers in order, None for those that have none."""
    found: list[Response | None] = []
    for target, request in target_and_requests:
        before = len(_queue())
        send_request(target, request)
        found.append(_queue().pop() if len(_queue()) > before else None)
    return found


def _queue() -> deque[Any]:
    if not hasattr(_answers, "queue"):
        _answers.queue = deque()
    return _answers.queue


def _job() -> JobSettings | None:
    remote = context.current().remote
    return None if remote is None else remote.job


def get_num_server() -> int:
    """Return the number of servers on all machines; 0 in standalone mode."""
    job = _job()
    return 0 if job is None else len(job.addresses)


def get_num_machines() -> int:
    """Return the number of machines; 1 in standalone mode."""
    job = _job()
    return 1 if job is None else job.num_machines


def get_machine_id() -> int:
    """Return the number of this machine."""
    job = _job()
    return 0 if job is None else job.machine


def get_num_client() -> int:
    """Return the number of trainers."""
    return context.num_trainers()


def get_rank() -> int:
    """Return the rank of this trainer among all."""
    return context.rank()
