"""Servers that scripts start by themselves, without a launcher."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import gnnlab as dgl
from gnnlab.errors import InvalidInput
from tests.helpers import free_port, run_processes

SCRIPT = """
import os, sys
import gnnlab as dgl
from gnnlab.compat import distributed as of_dgl

ip_config, part_config = sys.argv[1:]
if os.environ.get("MY_SERVER"):
    of_dgl.DistGraphServer(1, ip_config, 1, num_clients=2, part_config=part_config).start()
    raise SystemExit("a server came back")
dgl.distributed.initialize(ip_config)
g = dgl.distributed.DistGraph("ring", part_config=part_config)
print(g.rank(), g.ndata["x"][0:40].sum().item())
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    g = dgl.graph((torch.arange(40), (torch.arange(40) + 1) % 40))
    g.ndata["x"] = torch.arange(40)
    dgl.distributed.partition_graph(g, "ring", 2, str(tmp_path), part_method="random")
    return tmp_path / "ring.json"


@pytest.fixture
def ip_config(tmp_path: Path) -> Path:
    file = tmp_path / "ip_config.txt"
    file.write_text(f"127.0.0.2 {free_port()}\n# the second\n127.0.0.3 {free_port()}\n")
    return file


def test_a_job_without_a_launcher(config: Path, ip_config: Path) -> None:
    """A few of DGL's variables will do; server 1 is a DistGraphServer, which needs none of them."""
    job = {"DGL_DIST_MODE": "distributed", "DGL_CONF_PATH": str(config), "OMP_NUM_THREADS": "1"}
    job |= {"DGL_IP_CONFIG": str(ip_config), "GNNLAB_TIMEOUT": "60"}
    servers = [job | {"DGL_ROLE": "server", "DGL_SERVER_ID": "0"}]
    servers += [{"MY_SERVER": "1", "OMP_NUM_THREADS": "1", "GNNLAB_TIMEOUT": "60"}]
    trainers = [job | {"RANK": str(rank), "WORLD_SIZE": "2"} for rank in range(2)]
    found = run_processes(SCRIPT, servers + trainers, [str(ip_config), str(config)], 110)
    assert found == ["", "", "0 780\n", "1 780\n"]


@pytest.mark.parametrize("server_id", [2, -1, "0"])
def test_a_server_that_is_not_in_the_file_is_refused(
    ip_config: Path, server_id: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ROLE", "SERVER_ID", "NUM_SERVER", "IP_CONFIG", "CONF_PATH"):
        monkeypatch.setenv(f"DGL_{name}", "")  # what it sets is taken back
    with pytest.raises(InvalidInput, match=f"server_id.* 1, .*{server_id!r}"):
        dgl.distributed.DistGraphServer(server_id, str(ip_config), 1, "ring.json")
