"""What the library asks of a machine's accelerators, and what it leaves alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from unittest.mock import patch

import pytest
import torch

import gnnlab as dgl
from gnnlab.system import accelerators
from tests.accelerator import DEVICE, GPU, NAME, NUM_DEVICES, plugged
from tests.helpers import HAS_GPU

pytestmark = pytest.mark.skipif(GPU != NAME, reason=HAS_GPU)


def test_questions_do_not_start_a_driver() -> None:
    """torch.cuda.is_available() and current_device() do: children that are forked then have no GPU.

    A number of devices does not, nor the work on a CPU.
    """

    def refuse() -> None:
        raise AssertionError("the driver was started")

    with plugged(), patch.multiple(DEVICE, is_available=refuse, current_device=refuse, used_by=0):
        assert (accelerators.kind(), accelerators.count()) == (NAME, NUM_DEVICES)
        assert accelerators.read_device("cpu") == torch.device("cpu")
        assert accelerators.read_device(f"{NAME}:1") == accelerators.read_device(1)
        g, sampler = dgl.graph(([0, 1], [1, 0])), dgl.dataloading.NeighborSampler([1])
        assert len(list(dgl.dataloading.DataLoader(g, [0, 1], sampler, device="cpu"))) == 2
        accelerators.keep_device()()
        assert not accelerators.is_initialized()
    assert accelerators.kind() is None


def test_a_thread_may_keep_the_device_of_another() -> None:
    def read(**options) -> tuple[torch.device, int]:
        with ThreadPoolExecutor(1, **options) as thread:
            made = thread.submit(torch.ones, 1, device=NAME).result()
            return thread.submit(accelerators.read_device, NAME).result(), made.device.index

    with plugged():
        accelerators.set_device(torch.device(NAME, 2))
        assert accelerators.read_device(NAME) == torch.device(NAME, 2)
        assert read() == (torch.device(NAME, 0), 0)
        assert read(initializer=accelerators.keep_device()) == (torch.device(NAME, 2), 2)
