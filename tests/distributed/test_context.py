"""initialize: its forms, what it sets, and what it refuses."""

import json

import pytest

import gnnlab as dgl
from gnnlab.distributed.job import JobSettings
from gnnlab.errors import GNNLabError, InvalidInput
from gnnlab.launch.certificates import Authority, Keys
from tests.helpers import run_script

GROUP = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in (*GROUP, "DGL_DIST_MODE"):
        monkeypatch.setenv(name, "")  # restored afterwards
        monkeypatch.delenv(name)


def test_standalone_mode_is_one_process(monkeypatch):
    monkeypatch.setenv("DGL_DIST_MODE", "standalone")
    dgl.distributed.initialize("ip_config.txt")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(GNNLabError, match="WORLD_SIZE is 2"):
        dgl.distributed.initialize("ip_config.txt")


def test_a_group_of_one_again_and_again():
    """The first lines of every script of the guide, run as a notebook cell is: twice."""
    printed = run_script(
        """
        import os, torch
        import gnnlab as dgl
        for _ in range(2):
            dgl.distributed.initialize("ip_config.txt")
            torch.distributed.init_process_group(backend="gloo")
            model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
            model(torch.ones(3, 2)).sum().backward()
            print(torch.distributed.get_world_size(), model.module.bias.grad.item())
            del model  # it holds the group
        torch.distributed.destroy_process_group()
        """
    )
    assert printed.split() == ["1", "3.0"] * 2


def test_leaving(tmp_path):
    """A graph that was left says so; leaving twice does no harm, and one can come back."""
    ring = dgl.graph(([0, 1, 2, 3], [1, 2, 3, 0]))
    dgl.distributed.partition_graph(ring, "ring", 2, tmp_path, part_method="random")
    config = tmp_path / "ring.json"
    dgl.distributed.initialize()
    left = dgl.distributed.DistGraph("ring", part_config=config)
    dgl.distributed.exit_client()
    dgl.distributed.exit_client()
    with pytest.raises(GNNLabError, match="exit_client"):
        left.in_degrees([0])
    dgl.distributed.initialize()
    again = dgl.distributed.DistGraph("ring", part_config=config)
    assert again.in_degrees([0]).tolist() == [1]
    dgl.distributed.exit_client()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("GNNLAB_TIMEOUT", "soon", "GNNLAB_TIMEOUT must be a number of seconds; found 'soon'"),
        ("GNNLAB_TIMEOUT", "nan", "GNNLAB_TIMEOUT must be a number of seconds; found 'nan'"),
        ("DGL_NUM_SERVER", "0", "DGL_NUM_SERVER must be a number, 1 or more; found '0'"),
        ("RANK", "2", "environment variables of this process are inconsistent"),
        ("GNNLAB_SERVERS", "[7]", "must be a JSON list of"),
        ("GNNLAB_JOB", "../x", "GNNLAB_JOB '../x' starts with a dot; it becomes part of file"),
        ("GNNLAB_SERVERS", '[["h", 1], ["h", 1]]', "two servers cannot both listen at h:1; a mac"),
        ("GNNLAB_SECURITY", "tls", "needs keys in GNNLAB_KEYS"),
        ("GNNLAB_SECURITY", "curve", "GNNLAB_SECURITY is 'tls' or 'none'; found 'curve'"),
    ],
)
def test_environments_that_make_no_job(tmp_path, monkeypatch, name, value, message):
    for each in ("GNNLAB_TIMEOUT", "DGL_NUM_SERVER", "GNNLAB_SERVERS", "GNNLAB_SECURITY"):
        monkeypatch.delenv(each, raising=False)
    (tmp_path / "ip_config.txt").write_text("127.0.0.1  # the first\n\n127.0.0.2 4000\n")
    monkeypatch.setenv("RANK", "0")
    job = JobSettings.read(tmp_path / "ip_config.txt")
    assert job.addresses == (("127.0.0.1", 30050), ("127.0.0.2", 4000)) and job.timeout == 300
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidInput, match=message):
        JobSettings.read(tmp_path / "ip_config.txt")


def test_keys_that_cannot_be_used(tmp_path, monkeypatch):
    (tmp_path / "ip_config.txt").write_text("127.0.0.1\n")
    authority = Authority()
    own, other = (vars(authority.issue("client", machine)) for machine in range(2))
    monkeypatch.setenv("GNNLAB_KEYS", json.dumps(own))
    assert JobSettings.read(tmp_path / "ip_config.txt").keys == Keys(**own)
    no_texts = ["", "7", "[]", "{}", "[" * 100_000, own | {"secret": 7}, own | {"more": ""}]
    no_keys = [own | {"secret": other["secret"]}, own | {"authority": ""}, own | {"secret": "é"}]
    for value in [*no_texts, *no_keys]:
        said = "needs keys in GNNLAB_KEYS, as JSON" if value in no_texts else "cannot be used: "
        text = value if isinstance(value, str) else json.dumps(value)
        monkeypatch.setenv("GNNLAB_KEYS", text)
        with pytest.raises(InvalidInput, match=said) as caught:
            JobSettings.read(tmp_path / "ip_config.txt")
        assert own["secret"] not in str(caught.value)


def test_one_address_has_ports_for_all_its_servers(tmp_path, monkeypatch):
    path = tmp_path / "ip_config.txt"
    monkeypatch.setenv("RANK", "0")
    path.write_text("127.0.0.1 4000\n127.0.0.1 4002\n")
    assert JobSettings.read(path, 2).addresses == tuple(("127.0.0.1", 4000 + i) for i in range(4))
    path.write_text("127.0.0.1 4000\n127.0.0.1 4001\n")
    with pytest.raises(InvalidInput, match="2 apart"):
        JobSettings.read(path, 2)
    path.write_text("127.0.0.1\n127.0.0.1\n")
    with pytest.raises(InvalidInput, match=r"127\.0\.0\.1:30050"):
        JobSettings.read(path)
