"""Scripts and functions on a simulated cluster."""

import gc
import io
import os
import re
import sys
import weakref
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import torch

import gnnlab as dgl
from gnnlab.distributed import DistGraph, DistNodeDataLoader, initialize, node_split
from gnnlab.distributed.context import current
from gnnlab.errors import InvalidInput
from gnnlab.simulate import Network, SimulationError, simulate
from tests.distributed.cut import plain
from tests.helpers import ROOT, run_script
from tests.simulate.test_design import halves


def epoch(fanout: int = 3, batch_size: int = 20, shuffle: bool = True) -> Any:
    """One epoch of sampling and reading."""
    initialize()
    g = DistGraph("graph")
    nodes = node_split(torch.arange(g.num_nodes()), g.get_partition_book())
    sampler = dgl.dataloading.NeighborSampler([fanout, fanout], prefetch_node_feats=["x"])
    loader = DistNodeDataLoader(g, nodes, sampler, batch_size=batch_size, shuffle=shuffle, seed=1)
    return [blocks[0].srcdata["x"].sum().item() for _, _, blocks in loader]


def test_the_example_trains_as_it_does_alone(tmp_path: Path) -> None:
    """Unchanged, on 2 machines with 2 trainers each, and in standalone mode: equal losses and
    accuracies, to the printed digits."""
    g = dgl.data.load("digits")[0]
    dgl.distributed.partition_graph(g, "digits", 2, str(tmp_path), part_method=halves)
    script = ROOT / "examples" / "train_dist.py"
    arguments = ["--graph_name", "digits", "--part_config", str(tmp_path / "digits.json")]
    arguments += ["--num_epochs", "2", "--batch_size", "60", "--fan_out", "4", "5"]
    argv, path = list(sys.argv), list(sys.path)
    with redirect_stdout(io.StringIO()) as out:
        result = simulate(tmp_path / "digits.json", trainers_per_machine=2).run(script, arguments)
    assert (sys.argv, sys.path) == (argv, path)
    alone = run_script(script, args=arguments, env={"OMP_NUM_THREADS": "1"})

    def figures(text: str) -> list[str]:
        return re.findall(r"loss (\S+)|accuracy (\S+)", text)

    assert figures(out.getvalue()) == figures(alone) and len(figures(alone)) == 4
    assert result.epochs[0].steps == result.epochs[1].steps > 1
    assert 0 < result.epoch_seconds < result.seconds
    assert sum(result.parts.values()) == pytest.approx(result.seconds, rel=0.2)
    assert {"compute", "allreduce", "sample"} <= set(result.parts)


def test_a_run_is_the_same_every_time() -> None:
    simulation = simulate(plain(), 4, part_method=halves, samplers_per_trainer=1)
    one, other = simulation.run(epoch), simulation.run(epoch)
    assert one.returned == other.returned
    assert one.traffic.to_list() == other.traffic.to_list()
    kinds = [[type(op).__name__ for op in track.ops] for track in one.lanes]
    assert [track.name for track in one.lanes] == ["trainer", "sampler-0"] * 4
    assert all("RoundTrip" in names for names in kinds[1::2])


def test_writes_stay_in_their_run() -> None:
    def write() -> Any:
        initialize()
        g = DistGraph("graph")
        before = g.ndata["x"][:].sum().item()
        g.barrier()
        if g.rank() == 1:
            g.ndata["x"][:] = torch.zeros(g.num_nodes(), 3)
        g.barrier()
        return before, g.ndata["x"][:].sum().item()

    simulation = simulate(plain(), 2, part_method=halves)
    total = torch.arange(600.0).sum().item()
    for _ in range(2):
        assert simulation.run(write).returned == [(total, 0.0)] * 2


def test_features_that_are_not_there_are_counted() -> None:
    """Bytes are those of real features of that width; no row is moved or stored."""
    g = plain()
    g.ndata["x"] = torch.zeros(200, 64, dtype=torch.float16)
    real = simulate(g, 2, part_method=halves).run(epoch).traffic
    pretended = {"x": ((64,), torch.float16)}
    for given in (plain(), g):
        mine = simulate(given, 2, part_method=halves, features=pretended).run(epoch).traffic
        assert mine.to_list() == real.to_list()


def test_another_network_or_processor_needs_no_new_run() -> None:
    result = simulate(plain(), 2, part_method=halves, shared_cores=1).run(epoch)
    assert (result.machines.shared, result.machines.cores) == (1, 3)
    slow = result.retimed(network=Network(bandwidth=1e3, per_request=0, latency=0), cores=2)
    assert slow.seconds > result.seconds and slow.limit == "bandwidth"
    assert slow.traffic is result.traffic and slow.machines.cores == 2
    lower = result.traffic.matrix("features").sum(1).max() / 1e3 * 8
    assert slow.seconds > float(lower)  # what a machine takes in goes over its link
    for wrong in ({"cores": 0}, {"slowdown": {"gather": 2.0}}):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            result.retimed(**wrong)


def test_what_a_trainer_finds() -> None:
    def look() -> Any:
        before = dgl.distributed.context.process().context
        initialize("unused.txt", num_workers=7)
        me = current()
        g = DistGraph("graph")
        same = dgl.distributed.context.client_of(g.get_partition_book()) is g.client
        names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
        found = [int(os.environ[name]) for name in names]
        return [before, me.mode, me.role, same, g.rank(), g.local_partition.num_nodes(), *found]

    returned = simulate(plain(), 2, 2, part_method=halves).run(look).returned
    assert [one[:5] for one in returned] == [
        [None, "distributed", "trainer", True, rank] for rank in range(4)
    ]
    assert [one[6:] for one in returned] == [[r, r % 2, 4, 2] for r in range(4)]
    assert returned[0][5] == returned[1][5] >= 100


def test_modules_beside_a_script_are_read_anew_in_each_run(tmp_path: Path) -> None:
    script, module, found = (tmp_path / name for name in ("script.py", "beside.py", "found"))
    script.write_text(f"import beside\nopen({str(found)!r}, 'a').write(beside.said)\n")
    for said in ("first ", "the second "):
        module.write_text(f"said = {said!r}\n")
        simulate(plain(), 2, part_method=halves).run(script)
    assert found.read_text() == "first first the second the second "
    assert "beside" not in sys.modules


def test_failures_say_where(tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text("import os\nif os.environ['RANK'] == '1':\n    1 / 0\n")
    simulation = simulate(plain(), 2, part_method=halves)
    with pytest.raises(SimulationError, match="rank 1 of 2 failed: ZeroDivisionError") as caught:
        simulation.run(script)
    assert 'broken.py", line 3' in str(caught.value)
    with pytest.raises(SimulationError, match=r"missing\.py"):
        simulation.run(tmp_path / "missing.py")

    def ask_wrongly() -> None:
        initialize()
        DistGraph("graph").ndata["x"][[5000]]

    with pytest.raises(SimulationError, match="row 5000"):
        simulation.run(ask_wrongly)

    def other() -> None:
        initialize()
        DistGraph("another")

    with pytest.raises(SimulationError, match=r"graph 'graph'.*'another'"):
        simulation.run(other)


@pytest.mark.parametrize("fails", [True, False])
def test_a_run_keeps_nothing_of_what_its_ranks_had(fails: bool) -> None:
    simulation = simulate(plain(), 2, part_method=halves)
    folder, tensors = Path(simulation.part_config).parent, []

    def main() -> Any:
        initialize()
        tensor = DistGraph("graph").ndata["x"]
        tensors.append(weakref.ref(tensor))
        return tensor[[5000]] if fails else tensor

    with pytest.raises(SimulationError, match="5000") if fails else nullcontext():
        simulation.run(main)
    assert folder.is_dir() and tensors
    del simulation
    gc.collect()
    assert not folder.exists() and not any(reference() for reference in tensors)
