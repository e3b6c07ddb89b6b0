"""Data parallel training: every rank has the whole model and a share of each batch.

One step of k ranks with b seeds each equals one step of a single process with k·b seeds, because
the ranks average their gradients before the optimizer step. For that, ranks must agree on the order
of the seeds, take disjoint shares of equal size, and make the same number of steps; a rank with an
extra step blocks in its all-reduce. The loaders guarantee all three.

References
----------
DGL user guide, chapter 7 and the tutorial "Single machine multi-GPU minibatch training".
Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", VLDB 2020.
"""

from __future__ import annotations

import os
import socket
import warnings
import weakref
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from gnnlab.dataloading.loader import DataLoader
from gnnlab.errors import InvalidInput
from gnnlab.graph.graph import Graph
from gnnlab.parallel import rendezvous
from gnnlab.parallel.rank_order import average_in_rank_order
from gnnlab.system import accelerators
from gnnlab.system.ending import await_torch_at_exit


def free_port() -> int:
    """Return a port of this machine on which no process listens now.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> url = f"tcp://127.0.0.1:{dgl.parallel.free_port()}"  # to be passed to all ranks
    """
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def init_process_group(
    rank: int | None = None,
    world_size: int | None = None,
    *,
    device: torch.device | str | None = None,
    backend: str | None = None,
    init_method: str | None = None,
    timeout: float = 600.0,
) -> torch.device:
    """Join the process group of ``torch.distributed`` and return the device of this rank.

    With a GPU for each rank, even if a rank sees only its own (``cuda:0``), the backend is that of
    its maker, such as NCCL; otherwise gloo, through main memory.

    Parameters
    ----------
    rank, world_size : int, optional
        By default those of the launcher (``launch_processes``, torchrun); without one, 0 and 1.
    device : torch.device, optional
        By default a GPU if there is one.
    backend : str, optional
        "nccl" or "gloo", instead of the choice described above.
    init_method : str, optional
        Where ranks without a launcher meet, such as ``"tcp://127.0.0.1:29501"``; :func:`free_port`
        finds a port.
    timeout : float
        Seconds after which a rank stops waiting for another and raises an error.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> device = dgl.parallel.init_process_group(device="cpu")
    >>> device, torch.distributed.get_backend(), torch.distributed.get_world_size()
    (device(type='cpu'), 'gloo', 1)
    >>> torch.distributed.destroy_process_group()
    """
    environment = os.environ
    where: dict[str, Any] = {"init_method": init_method}
    if rank is None:
        rank = int(environment.get("RANK", 0))
        world_size = int(environment.get("WORLD_SIZE", 1)) if world_size is None else world_size
    if world_size is None or not 0 <= rank < world_size:
        raise InvalidInput(f"expected 0 <= rank < world_size; found {rank} and {world_size}")
    if init_method is None and "MASTER_PORT" not in environment:
        if world_size > 1:
            raise InvalidInput(
                f"the {world_size} ranks have not been told where to meet; start them by "
                "gnnlab.parallel.launch_processes or torchrun, or pass all of them the same "
                "init_method=f'tcp://127.0.0.1:{gnnlab.parallel.free_port()}'"
            )
        where = {"store": dist.HashStore()}
    # A process that a launched one has forked inherits variables that are not about it.
    about = {"RANK": str(rank), "WORLD_SIZE": str(world_size)}
    local = environment if all(environment.get(k, v) == v for k, v in about.items()) else {}
    place = _place(int(local.get("LOCAL_RANK", rank)), device)
    if place.type != "cpu":
        accelerators.set_device(place)
    await_torch_at_exit()
    rendezvous.watch()
    limit, between = timedelta(seconds=timeout), accelerators.group_backend(place)
    if backend is None and between is not None:
        store = where.get("store")
        if store is None:
            url = init_method or "env://"
            store = next(dist.rendezvous(url, rank, world_size, timeout=limit))[0]
        backend = between if _have_one_each(store, rank, world_size, place) else None
        where = {"store": dist.PrefixStore("gnnlab", store)}
    if backend is not None and backend == between:
        where["device_id"] = place  # otherwise NCCL guesses it, with a warning
    dist.init_process_group(
        backend or "gloo", rank=rank, world_size=world_size, timeout=limit, **where
    )
    return place


def _place(local_rank: int, device: torch.device | str | None) -> torch.device:
    """Choose the device of a rank on this machine."""
    place = torch.device(device or accelerators.kind() or "cpu")
    if place.type == "cpu" or place.index is not None:
        return place
    return torch.device(place.type, local_rank % max(accelerators.count(), 1))


def _have_one_each(store: dist.Store, rank: int, world_size: int, place: torch.device) -> bool:
    """Whether each rank has a GPU of its own, whatever the numbers by which the ranks know them."""
    store.set(f"gpu of {rank}", accelerators.unique_name(place))
    number = len({store.get(f"gpu of {other}") for other in range(world_size)})
    if number < world_size and rank == 0:
        warnings.warn(
            f"{world_size} ranks share {number} GPU(s): NCCL and its like refuse that, so their "
            "gradients go through main memory (gloo)",
            stacklevel=3,
        )
    return number == world_size


def init_model(
    model: torch.nn.Module, device: torch.device | str | None = None, **kwargs: Any
) -> DistributedDataParallel:
    """Move a model to this rank's device and average its gradients over all ranks.

    All ranks start from the parameters of rank 0. On CPUs, gradients are summed in the order of the
    ranks, so that a resumed run equals one that was not interrupted
    (:mod:`gnnlab.parallel.rank_order`). To evaluate on one rank, use ``module`` of the result.

    Parameters
    ----------
    device : torch.device, optional
        As returned by :func:`init_process_group`; without it the model is not moved.
    **kwargs
        For :class:`torch.nn.parallel.DistributedDataParallel`, such as ``find_unused_parameters``
        if some batches of a typed graph lack a type.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> device = dgl.parallel.init_process_group(device="cpu")
    >>> model = dgl.parallel.init_model(torch.nn.Linear(2, 1), device)
    >>> model(torch.ones(3, 2)).shape
    torch.Size([3, 1])
    >>> torch.distributed.destroy_process_group()
    """
    if not dist.is_initialized():
        raise InvalidInput("there is no process group; call init_process_group() before")
    await_torch_at_exit()
    if device is not None:
        model = model.to(device)
    place = next((p.device for p in model.parameters()), torch.device("cpu"))
    trained = DistributedDataParallel(
        model, device_ids=None if place.type == "cpu" else [place], **kwargs
    )
    # Attributes are freed in this order, and the reducer must not hold the last reference to a
    # destroyed process group: it would wait for the group's threads while holding the
    # interpreter's lock, for which a thread that releases a tensor waits: a deadlock.
    trained.process_group = vars(trained).pop("process_group")
    if place.type == "cpu":
        trained.register_comm_hook(weakref.ref(trained), average_in_rank_order)
    return trained


def create_dataloader(
    rank: int,
    world_size: int,
    graph: Graph,
    nids: torch.Tensor | Mapping[str, torch.Tensor],
    sampler: Any,
    *,
    batch_size: int = 1024,
    shuffle: bool = True,
    drop_last: bool = False,
    seed: int = 0,
    **kwargs: Any,
) -> DataLoader:
    """Return the loader of one rank; together the ranks process all seeds every epoch.

    Step i of all ranks together has the seeds of step i of one process with ``world_size *
    batch_size`` seeds, and samples the same neighbors for them.

    Parameters
    ----------
    nids : torch.Tensor, or dict of them by node type
        Seeds of all ranks, shape (N,), integer.
    batch_size : int
        Seeds per step and rank.
    drop_last : bool
        If the seeds cannot be divided evenly: True drops the last ones, False repeats seeds from
        the epoch's beginning, fewer than one per rank.
    shuffle, seed, **kwargs
        For :class:`gnnlab.dataloading.DataLoader`; the same on all ranks.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> g, nids = dgl.rand_graph(100, 1000), torch.arange(10)
    >>> sampler = dgl.dataloading.NeighborSampler([4, 4])
    >>> for rank in range(2):
    ...     loader = dgl.parallel.create_dataloader(
    ...         rank, 2, g, nids, sampler, batch_size=3, shuffle=False
    ...     )
    ...     print([output_nodes.tolist() for input_nodes, output_nodes, blocks in loader])
    [[0, 2, 4], [6, 8]]
    [[1, 3, 5], [7, 9]]
    """
    how: Any = {"batch_size": batch_size, "shuffle": shuffle, "drop_last": drop_last, "seed": seed}
    return DataLoader(graph, nids, sampler, use_ddp=(rank, world_size), **how, **kwargs)


def rank_share(
    ids: torch.Tensor, rank: int | None = None, world_size: int | None = None
) -> torch.Tensor:
    """Return the share of IDs, shape (N,), that one rank evaluates; each is on exactly one rank.

    Shares may differ by one in length. That is fine for evaluation, where ranks synchronize only at
    the end (:func:`global_mean`); for training use :func:`create_dataloader`. By default, ``rank``
    and ``world_size`` are those of the process group.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> dgl.parallel.rank_share(torch.arange(5), 1, 2)
    tensor([1, 3])
    """
    rank = dist.get_rank() if rank is None else rank
    world_size = dist.get_world_size() if world_size is None else world_size
    return ids[rank::world_size]


def global_mean(total: float | torch.Tensor, count: int | torch.Tensor) -> float:
    """Return the mean over all ranks: the sum of totals divided by the sum of counts.

    For accuracy, the total of a rank is the number of its correct predictions. A count may be 0;
    if all are, the mean is nan. Without a process group, it is the mean of this process.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> predicted, labels = torch.tensor([1, 2, 0, 0]), torch.tensor([1, 2, 0, 1])
    >>> dgl.parallel.global_mean((predicted == labels).sum(), len(labels))
    0.75
    """
    sums = torch.tensor([float(total), float(count)], dtype=torch.float64)
    if dist.is_initialized():
        kind = accelerators.kind()
        if kind is not None and dist.get_backend() == accelerators.group_backend(kind):
            sums = sums.to(kind)
        dist.all_reduce(sums)
    return float(sums[0] / sums[1])
