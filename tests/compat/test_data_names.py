"""Data sets under DGL's names, files of tensors, and splits of data sets."""

import argparse

import pytest
import torch

import gnnlab.compat as dgl
from gnnlab.compat.data.tensors import load_tensors, save_tensors
from gnnlab.errors import InvalidInput, NotFound
from tests.data.test_download import server
from tests.data.test_reddit import mirror

__all__ = ["mirror", "server"]  # fixtures


def test_reddit(mirror, tmp_path):
    assert dgl.data.RedditDataset().num_classes == 3
    assert dgl.data.RedditDataset(self_loop=True)[0].num_edges() == 8
    plain = dgl.data.RedditDataset(raw_dir=tmp_path / "plain", transform=dgl.AddSelfLoop())
    assert (plain[0].num_edges(), plain.graph.num_edges()) == (8, 4)


def test_datasets_by_argument(mirror):
    parser = argparse.ArgumentParser()
    dgl.data.register_data_args(parser)
    assert dgl.data.load_data(parser.parse_args(["--dataset=reddit"])).graph.number_of_edges() == 4
    assert dgl.data.load_data(parser.parse_args(["--dataset=reddit-self-loop"]))[0].num_edges() == 8
    for wrong in (["--dataset", "syn"], []):
        with pytest.raises(NotFound, match=r"cora, .*reddit-self-loop"):
            dgl.data.load_data(parser.parse_args(wrong))


def test_tensors_come_back(tmp_path):
    base = torch.arange(6.0).reshape(2, 3)
    tensors = {"_N/feat": base, "view": base.T, "half": base.half(), "mask": base > 2}
    save_tensors(tmp_path / "t", tensors)
    found = load_tensors(tmp_path / "t")
    assert set(found) == set(tensors)
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())
    assert all(found[name].dtype == tensor.dtype for name, tensor in tensors.items())


def test_tensors_of_a_bad_file(tmp_path):
    for act in (load_tensors, dgl.load_graphs):
        for path, builtin in ((tmp_path / "t", FileNotFoundError), (tmp_path, IsADirectoryError)):
            with pytest.raises(builtin) as found:
                act(path)
            assert isinstance(found.value, dgl.DGLError) and found.value.filename == str(path)
    for content in (b"", b"not tensors at all", b"\xff" * 64):
        (tmp_path / "t").write_bytes(content)
        with pytest.raises(InvalidInput, match="/t"):
            load_tensors(tmp_path / "t")
    with pytest.raises(InvalidInput, match="'a' are none"):
        save_tensors(tmp_path / "t", {"a": [1, 2]})


def test_split_dataset():
    """The items as DGL 2.1 gives them, in order and drawn with a seed."""
    assert [list(part) for part in dgl.data.split_dataset("abcdefghij")] == [
        list("abcdefgh"),
        ["i"],
        ["j"],
    ]
    drawn = dgl.data.split_dataset(range(10), [0.5, 0.3, 0.2], shuffle=True, random_state=3)
    assert [list(part) for part in drawn] == [[5, 4, 1, 2, 9], [6, 7, 0], [3, 8]]
