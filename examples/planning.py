"""Plan a job for a graph that no computer at hand can hold: machines, memory, traffic, time, cost.

    python3 planning.py --num_nodes 1_000_000_000

The graph is never in memory: `Endless` draws the neighbors of a node when a batch asks for them.
The table gives each quantity as a range: at least, if parts follow the communities of the graph,
the best that METIS could do; at most, if parts are random. docs/planning.md explains the lines.
"""

from __future__ import annotations

import argparse
import itertools
from dataclasses import dataclass

import numpy as np

from gnnlab.data.generate import EXPONENT, INSIDE, LARGEST_WEIGHT, NUM_CLASSES
from gnnlab.kernels.sample import sample_neighbors
from gnnlab.simulate import Network
from gnnlab.simulate.optrace import Collective, RoundTrip, Track, Work
from gnnlab.simulate.replay import Machines, replay

FANOUTS, BATCH = (10, 10), 128  # seeds of a trainer in a step; one trainer a machine
ROW, GRADIENTS = 400, 302_268  # bytes: 100 float32 numbers; the model of lesson 10
SERVE = 2e-7  # processor seconds in which a server copies a row
IMBALANCE = 1.1  # largest part / mean part, at most
TYPICAL, WORST = 0.09, 0.37  # error of the simulator's times, by docs/performance.md
STEPS = 3  # that are replayed


class Endless:
    """The graph of the data set "products-like", of any size, whose edges are drawn on demand.

    Nodes are sorted by community, and in a community by weight. Each end of an edge is drawn in
    proportion to the weights, as `gnnlab.data.generate` does, and no two edges have the same ends.

    Parameters
    ----------
    num_nodes : int
    mean_degree : float
        Edges per node; an edge and its reverse are two.
    """

    def __init__(self, num_nodes: int, mean_degree: float = 20.0) -> None:
        self.num_nodes, self.num_edges = num_nodes, round(num_nodes * mean_degree)
        share = np.cumsum((np.arange(NUM_CLASSES) + 3.0) ** -0.9)
        cuts = np.round(share / share[-1] * num_nodes)
        self.starts = np.concatenate([[0], cuts]).astype(np.int64)
        self.sizes = np.diff(self.starts)
        # The weight at quantile t is (1 - t) ** -power, and the largest one from `top` on.
        self.power = 1 / (EXPONENT - 1)
        self.top = 1 - LARGEST_WEIGHT ** (-1 / self.power)
        self.below = (1 - (1 - self.top) ** (1 - self.power)) / (1 - self.power)
        self.mass = self.below + LARGEST_WEIGHT * (1 - self.top)
        # Of the draws of a node those are kept that are distinct; their mean shall be mean_degree.
        self.mean_draws, random = mean_degree, np.random.default_rng(0)
        ends = self.draw_neighbors(random.integers(0, num_nodes, 2000), random)
        for _ in range(4):
            kept = self.draw_lists(ends, random)[0] / self.draws(self.quantile(ends))
            self.mean_draws = mean_degree / kept.mean()

    def community(self, nodes: np.ndarray) -> np.ndarray:
        """Return the community of each node."""
        return np.searchsorted(self.starts, nodes, side="right") - 1

    def quantile(self, nodes: np.ndarray) -> np.ndarray:
        """Return the share of its community that has a smaller weight than each node."""
        at = self.community(nodes)
        return (nodes - self.starts[at] + 0.5) / self.sizes[at]

    def draws(self, quantile: np.ndarray) -> np.ndarray:
        """Return the mean number of draws of a node: its expected degree, if all are distinct."""
        weight = np.minimum((1 - quantile) ** -self.power, LARGEST_WEIGHT)
        return self.mean_draws / self.mass * weight

    def draw_neighbors(self, nodes: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Draw a neighbor of each node."""
        anywhere = self.community(random.integers(0, self.num_nodes, len(nodes)))
        at = np.where(random.random(len(nodes)) < INSIDE, self.community(nodes), anywhere)
        mass = random.random(len(nodes)) * self.mass  # the inverse of the weights' integral
        rest = np.maximum(1 - (1 - self.power) * mass, 0) ** (1 / (1 - self.power))
        large = self.top + (mass - self.below) / LARGEST_WEIGHT
        quantile = np.where(mass < self.below, 1 - rest, large)
        return self.starts[at] + (quantile * self.sizes[at]).astype(np.int64)

    def draw_lists(
        self, nodes: np.ndarray, random: np.random.Generator, known: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw the neighbors of distinct nodes.

        Parameters
        ----------
        nodes : ndarray
            Shape (S,).
        random : Generator
        known : ndarray, optional
            Shape (S,): a neighbor of each node over which it was found.

        Returns
        -------
        degrees, neighbors : ndarray
            Shapes (S,) and (sum of degrees,).
        """
        rows = np.arange(len(nodes))
        times = random.poisson(self.draws(self.quantile(nodes)))
        pairs = np.repeat(rows, times) * self.num_nodes
        pairs += self.draw_neighbors(np.repeat(nodes, times), random)
        if known is not None:
            pairs = np.concatenate([pairs, rows * self.num_nodes + known])
        pairs.sort()  # much faster than np.unique, which hashes
        rows, neighbors = np.divmod(pairs[np.diff(pairs, prepend=-1) > 0], self.num_nodes)
        return np.bincount(rows, minlength=len(nodes)), neighbors


@dataclass
class Batch:
    """What a trainer reads in a step: counts by distance of the owner, (owner - own) % machines."""

    rows: np.ndarray  # of features
    asked: np.ndarray  # nodes whose neighbors are sampled after those of the seeds
    found: np.ndarray  # these neighbors


class Cut:
    """A graph on machines: who owns a node follows from its ID.

    Parameters
    ----------
    graph : Endless
    machines : int
    follows : bool
        Whether parts follow communities; otherwise they are random.
    """

    def __init__(self, graph: Endless, machines: int, follows: bool) -> None:
        self.graph, self.machines, self.follows = graph, machines, follows

    def owner(self, nodes: np.ndarray) -> np.ndarray:
        """Return the machine of each node."""
        graph, place = self.graph, nodes * 0.6180339887498949 % 1  # spreads consecutive IDs
        if self.follows:
            at = graph.community(nodes)
            place = (graph.starts[at] + graph.sizes[at] * place) / graph.num_nodes
        return np.minimum(place * self.machines, self.machines - 1).astype(np.int64)

    def part_bytes(self) -> tuple[float, float]:
        """Return the sizes of the mean part: of its features, and of what describes its edges."""
        graph, machines = self.graph, self.machines
        bounds = np.linspace(0, graph.num_nodes, machines + 1)
        inside = np.diff(np.clip(bounds, graph.starts[:-1, None], graph.starts[1:, None]))
        share = graph.sizes / graph.num_nodes
        # Shape (communities, machines): owners of the nodes, and of their neighbors.
        own = inside / graph.sizes[:, None] if self.follows else np.full(inside.shape, 1 / machines)
        to = INSIDE * own + (1 - INSIDE) / machines
        between = graph.num_edges * (1 - share @ (own * to).sum(1))
        draws = graph.draws((np.arange(1000) + 0.5) / 1000)[:, None, None]
        halo = graph.num_nodes * (share @ ((1 - own) * -np.expm1(-draws * to)).mean(0).sum(1))
        edge_id = 4 if graph.num_edges < 2**31 else 8
        nodes = 16 * graph.num_nodes + 24 * halo
        edges = (4 + edge_id) * (graph.num_edges + between) + 8 * between
        return ROW * graph.num_nodes / machines, (nodes + edges) / machines

    def read(self, machine: int, random: np.random.Generator) -> Batch:
        """Draw seeds that a machine owns, and sample their neighbors."""
        graph, nodes = self.graph, np.empty(0, np.int64)
        while len(nodes) < BATCH:
            some = random.integers(0, graph.num_nodes, 2 * BATCH * self.machines)
            nodes = np.union1d(nodes, some[self.owner(some) == machine])
        nodes = random.choice(nodes, BATCH, replace=False)
        indptr, indices, parents = np.zeros(1, np.int64), nodes[:0], None
        asked = found = np.zeros(self.machines)
        for layer, fanout in enumerate(reversed(FANOUTS)):
            degrees, more = graph.draw_lists(nodes[len(indptr) - 1 :], random, parents)
            indptr = np.concatenate([indptr, indptr[-1] + np.cumsum(degrees)])
            indices = np.concatenate([indices, more])
            key = int(random.integers(2**63))
            ptr, _, sources = sample_neighbors(indptr, indices, np.arange(len(nodes)), fanout, key)
            if layer:
                asked = asked + self._by_owner(nodes, machine)
                found = found + self._by_owner(nodes, machine, np.diff(ptr))
            ids, first = np.unique(sources, return_index=True)
            is_new = ~np.isin(ids, nodes)
            parents = nodes[np.searchsorted(ptr, first[is_new], side="right") - 1]
            nodes = np.concatenate([nodes, ids[is_new]])
        return Batch(self._by_owner(nodes, machine), asked, found)

    def _by_owner(self, nodes: np.ndarray, own: int, times: np.ndarray | None = None) -> np.ndarray:
        return np.bincount((self.owner(nodes) - own) % self.machines, times, self.machines)


@dataclass
class Estimate:
    """What a step of a machine needs: means over the sampled batches."""

    rows: float  # nodes that a seed reads
    error: float  # twice the standard error of rows
    remote: float  # share of rows that other machines own
    received: float  # bytes: features, lists of neighbors, gradients
    seconds: float  # by the simulator's time model


def estimate(cut: Cut, row_seconds: float, network: Network) -> Estimate:
    """Sample batches of all machines, and replay steps without prefetching."""
    random, machines = np.random.default_rng(0), cut.machines
    batches = [cut.read(number % machines, random) for number in range(max(32, machines))]
    rows = np.array([batch.rows.sum() for batch in batches])
    away = [(ROW * batch.rows + 8 * (batch.asked + batch.found))[1:].sum() for batch in batches]
    return Estimate(
        rows=rows.mean() / BATCH,
        error=2 * rows.std(ddof=1) / len(rows) ** 0.5 / BATCH,
        remote=sum(batch.rows[1:].sum() for batch in batches) / rows.sum(),
        received=np.mean(away) + 2 * (1 - 1 / machines) * GRADIENTS,
        seconds=step_seconds(batches, machines, row_seconds, network),
    )


def step_seconds(
    batches: list[Batch], machines: int, row_seconds: float, network: Network
) -> float:
    """Return the simulator's time of a step in which all machines train, one batch each."""
    tracks = [Track(rank, rank, "trainer") for rank in range(machines)]
    for number in range(STEPS * machines):
        step, rank = divmod(number, machines)
        batch = batches[number % len(batches)]
        lists, rows = 8 * (batch.asked + batch.found), ROW * batch.rows
        tracks[rank].ops += [
            ask("sample", rank, 8 * batch.asked, lists, batch.asked),
            ask("fetch", rank, 8 * batch.rows, rows, batch.rows),
            Work("compute", row_seconds * batch.rows.sum()),
            Collective("allreduce", step, GRADIENTS),
        ]
    return replay(tracks, network, Machines(machines, cores=2)).seconds / STEPS


def ask(kind: str, rank: int, out: np.ndarray, back: np.ndarray, copied: np.ndarray) -> RoundTrip:
    """Return a request to all other machines, from counts by distance."""
    at = {(rank + far) % len(out): far for far in range(1, len(out))}
    sent, received = ({k: int(sizes[far]) for k, far in at.items()} for sizes in (out, back))
    serve = {k: SERVE * copied[far] for k, far in at.items()}
    return RoundTrip(kind, sent, received, serve, requests=len(at))


def plan(
    num_nodes: int,
    machines: int | None = None,
    memory: float = 64,
    bandwidth: float = 10,
    row_seconds: tuple[float, float] = (1.1e-6, 2.2e-6),
) -> list[tuple[str, ...]]:
    """Return the rows of the table: quantity, at least, at most, where both come from."""
    graph, room = Endless(num_nodes), memory * 1e9 / 2
    spare = {True: 1.0, False: IMBALANCE}

    def part(follows: bool, machines: int) -> np.ndarray:
        return spare[follows] * np.array(Cut(graph, machines, follows).part_bytes())

    least = max(1, int(ROW * num_nodes / room))
    needed = [next(k for k in itertools.count(least) if part(f, k).sum() <= room) for f in spare]
    machines = machines or needed[1]
    steps = num_nodes / 100 / machines / BATCH  # one node in a hundred is for training
    found = [
        estimate(Cut(graph, machines, follows), seconds, Network(bandwidth=bandwidth * 1e9))
        for follows, seconds in zip(spare, row_seconds, strict=True)
    ]
    times = [steps * each.seconds for each in found]

    def widen(error: float) -> tuple[list[float], str]:
        return [times[0] * (1 - error), times[1] * (1 + error)], "measured on small graphs"

    hours = [seconds * machines / 3600 for seconds in widen(WORST)[0]]
    features, structure = zip(*(part(follows, machines) / 1e9 for follows in spare), strict=True)
    received = [steps * each.received / 1e9 for each in found]
    error = max(each.error for each in found)
    lines = [
        ("machines", "{}", needed, f"{memory:g} GB each, half of it for the graph"),
        ("features of a machine (GB)", "{:.1f}", features, "calculated"),
        ("its structure and halo (GB)", "{:.1f}", structure, "calculated"),
        ("nodes that a seed reads", "{:.1f}", [e.rows for e in found], f"sampled, ± {error:.1f}"),
        ("of these remote", "{:.0%}", [e.remote for e in found], "sampled"),
        ("received by a machine in an epoch (GB)", "{:.1f}", received, "sampled"),
        ("time of an epoch (s)", "{:.0f}", times, "replayed"),
        (f"… with the model's typical error, {TYPICAL:.0%}", "{:.0f}", *widen(TYPICAL)),
        (f"… with its worst, {WORST:.0%}", "{:.0f}", *widen(WORST)),
        (
            "cost of an epoch (machine hours)",
            "{:.2f}",
            hours,
            f"worst times, on {machines} machines",
        ),
    ]
    return [(what, *(form.format(n) for n in pair), source) for what, form, pair, source in lines]


def main() -> None:
    """Read the command line; print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--num_nodes", "--num-nodes", type=int, default=100_000_000)
    parser.add_argument("--machines", type=int, help="by default as many as memory needs at most")
    parser.add_argument("--memory", type=float, default=64, help="GB of a machine")
    parser.add_argument("--bandwidth", type=float, default=10, help="Gbit/s")
    parser.add_argument(
        *("--row_seconds", "--row-seconds"),
        nargs=2,
        type=float,
        default=(1.1e-6, 2.2e-6),
        metavar=("LEAST", "MOST"),
        help="work on a row: SECONDS_A_ROW of lesson 10, and what memory may make of it",
    )
    print("| quantity | at least | at most | from |\n| --- | ---: | ---: | --- |")
    for row in plan(**vars(parser.parse_args())):
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
