"""Average gradients so that the last bits do not depend on DistributedDataParallel's buckets.

Floating-point sums depend on their order. gloo sums in a ring, which starts at another rank for
each slice of a bucket, and DDP arranges the parameters in other buckets after the first backward
pass of a process. With three ranks or more, a run that is resumed from a checkpoint would therefore
differ in the last bits from an uninterrupted one. Here each element is summed in rank order.
"""

import weakref

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


# No `from __future__ import annotations`: register_comm_hook compares the annotations themselves.
def average_in_rank_order(
    model: weakref.ref[DistributedDataParallel], bucket: dist.GradBucket
) -> torch.futures.Future[torch.Tensor]:
    """Average a bucket of gradients over the ranks; a communication hook of DDP on CPUs.

    Each rank sums one slice of the bucket, so ranks send as many bytes as in a ring. The reference
    is weak, because the reducer must not keep a process group alive.
    """
    trained, gradients = model(), bucket.buffer()
    assert trained is not None  # it is in its backward pass
    group = trained.process_group
    num_ranks = dist.get_world_size(group)
    size = -(-len(gradients) // num_ranks)  # elements of a slice, rounded up
    mine = gradients.new_zeros(num_ranks * size)
    torch.div(gradients, num_ranks, out=mine[: len(gradients)])
    slices = torch.empty_like(mine)  # the same slice of all ranks
    dist.all_to_all_single(slices, mine, group=group)
    total, *others = slices.split(size)
    for other in others:
        total += other
    dist.all_gather(list(mine.split(size)), total, group=group)
    gradients.copy_(mine[: len(gradients)])
    done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    done.set_result(gradients)
    return done
