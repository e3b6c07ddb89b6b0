"""The pretend device behaves as a GPU does, and torch still offers what it is built from."""

import io
import os

import pytest
import torch

from tests import accelerator
from tests.accelerator import GPU, NAME, NUM_DEVICES, counting, no_waits
from tests.helpers import HAS_GPU

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(GPU != NAME, reason=HAS_GPU)]


def test_what_it_relies_on_in_torch() -> None:
    """These are experimental: where one is missing, tests/accelerator.py needs another way."""
    from torch.utils import backend_registration

    assert callable(backend_registration._setup_privateuseone_for_python_backend)
    assert callable(torch.Tensor._make_wrapper_subclass)
    assert callable(torch.autograd.set_multithreading_enabled)
    assert torch.ops.aten._copy_from.default is not None
    assert len(torch._C._jit_get_all_schemas()) > 1000
    assert callable(torch._C._distributed_c10d._create_work_from_future)


def test_devices() -> None:
    assert torch.accelerator.device_count() == NUM_DEVICES
    assert torch.ones(2, device=NAME).device == torch.device(NAME, 0)
    x = torch.tensor([1.0, 2.0], device="pretend:2", requires_grad=True)
    (x * x).sum().backward()
    assert x.grad is not None and x.grad.device == torch.device(NAME, 2)
    assert x.grad.tolist() == [2.0, 4.0]


@pytest.mark.parametrize("other", ["cpu", "pretend:1"])
def test_devices_do_not_mix(other: str) -> None:
    here, there = torch.ones(2, device="pretend:0"), torch.ones(2, device=other)
    with pytest.raises(RuntimeError, match="devices"):
        here + there
    with pytest.raises(RuntimeError, match="devices"):
        torch.cat([here, there])
    assert (here + torch.tensor(1.0)).tolist() == [2.0, 2.0]  # a number may be on the CPU


def test_no_array_shares_its_memory() -> None:
    with pytest.raises(TypeError, match="numpy"):
        torch.ones(2, device=NAME).numpy()


def test_counts() -> None:
    x = torch.arange(6, device=NAME)
    with counting() as counts:
        y = x.view(2, 3) + torch.empty_like(x.view(2, 3))
    assert (counts["operators"], counts["dispatched"], counts["waits"]) == (1, 4, 0)
    for wait in (y.sum().item, x.nonzero, x.cpu, lambda: x[x > 3], lambda: torch.unique(x)):
        with counting() as counts:
            wait()
        assert counts["waits"] == 1
        with no_waits(), pytest.raises(RuntimeError, match="synchronizing"):
            wait()
    with counting() as counts:
        torch.ones(3).to(NAME, non_blocking=True)
        x.cpu()
    assert (counts["to_device"], counts["to_host"], counts["waits"]) == (12, 48, 1)


def test_saved_tensors_come_back() -> None:
    file = io.BytesIO()
    torch.save({"x": torch.arange(3, device="pretend:1")}, file)
    file.seek(0)
    x = torch.load(file)["x"]
    assert x.device == torch.device(NAME, 1) and x.tolist() == [0, 1, 2]


def test_unusable_in_a_forked_child() -> None:
    torch.ones(1, device=NAME)
    child = os.fork()
    if not child:
        status = 1
        try:
            torch.ones(1, device=NAME)
        except RuntimeError as error:
            status = 0 if "re-initialize" in str(error) else 2
        os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def test_there_is_none_outside_marked_tests() -> None:
    accelerator.DEVICE.plugged = False  # as the fixture of tests/conftest.py has it
    assert not torch.accelerator.is_available() and torch.accelerator.device_count() == 0
