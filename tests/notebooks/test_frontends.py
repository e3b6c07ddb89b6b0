"""What a notebook sees in other frontends: no widgets, no network, a kernel started elsewhere."""

from __future__ import annotations

import os

import nbformat
import pytest
from nbclient import NotebookClient

from tests.helpers import ROOT

BEFORE = """
import socket
import sys

sys.modules["ipywidgets"] = None  # not installed
real = socket.socket.connect, socket.getaddrinfo


def connect(self, address):
    if self.family != socket.AF_UNIX and not str(address[0]).startswith(("127.", "::1")):
        raise OSError(f"no network: {address}")
    return real[0](self, address)


def getaddrinfo(host, *more, **options):
    if host not in (None, "", "localhost", "127.0.0.1", "::1", socket.gethostname()):
        raise socket.gaierror(f"no network: {host}")
    return real[1](host, *more, **options)


socket.socket.connect, socket.getaddrinfo = connect, getaddrinfo
try:
    socket.create_connection(("192.0.2.1", 80))
except OSError as error:
    print(error)
"""
LAUNCH = """
import os
from gnnlab.parallel import launch_processes, report, track


def step(rank, world_size, batches):
    for i in track(range(batches), "batches"):
        report(loss=i)
    print("in", os.getcwd())
    return rank, batches


launch_processes(step, 2, 300)
"""
EXPLORE = """
from gnnlab import plot


def times(machines=2):
    return plot.time_parts({machines: {"compute": 8 / machines}})


plot.explore(times, machines=(1, 8))
"""
DATA = """
import gnnlab as dgl

dgl.data.load("digits")[0].num_nodes()
"""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list]:
    """Each cell's outputs, from a kernel that was started in another folder."""
    folder, home = (tmp_path_factory.mktemp(name) for name in ("elsewhere", "home"))
    sources = {"before": BEFORE, "launch": LAUNCH, "explore": EXPLORE, "data": DATA}
    cells = [nbformat.v4.new_code_cell(text.strip(), id=name) for name, text in sources.items()]
    client = NotebookClient(
        nbformat.v4.new_notebook(cells=cells),
        timeout=120,
        kernel_name="python3",
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    )
    known = filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    # Data sets are not in this home's caches.
    env = {"HOME": str(home), "XDG_CACHE_HOME": str(home), "PYTHONPATH": os.pathsep.join(known)}
    page = client.execute(env=os.environ | env)
    assert not list(folder.iterdir())
    return {cell.id: cell.outputs for cell in page.cells} | {"folder": [str(folder)]}


def text(shown: list, stream: str) -> str:
    return "".join(out.text for out in shown if out.get("name") == stream)


def test_ranks_start_from_a_kernel_in_another_folder(outputs: dict[str, list]) -> None:
    (folder,) = outputs["folder"]
    assert text(outputs["launch"], "stdout") == "".join(
        f"rank {rank} | in {folder}\n" for rank in (0, 1)
    )
    (result,) = [out for out in outputs["launch"] if out.output_type == "execute_result"]
    assert result.data["text/plain"] == "[(0, 300), (1, 300)]"


def test_a_bar_without_widgets_is_one_line(outputs: dict[str, list]) -> None:
    shown = text(outputs["launch"], "stderr").splitlines()
    (bar,) = [line for line in shown if "300/300" in line]
    assert bar.startswith("batches: 100%") and "loss=299" in bar
    others = [line for line in shown if line.strip() and line != bar]
    assert not [line for line in others if "/300" in line], shown


def test_an_explorer_without_widgets_is_a_picture(outputs: dict[str, list]) -> None:
    (shown,) = outputs["explore"]
    assert set(shown.data) == {"text/plain", "image/png"}
    assert shown.data["text/plain"] == "explorer of times: machines = 2"


def test_data_of_the_first_lesson_need_no_network(outputs: dict[str, list]) -> None:
    assert text(outputs["before"], "stdout").startswith("no network: 192.0.2.1")
    (shown,) = outputs["data"]
    assert shown.data["text/plain"] == "1797"
