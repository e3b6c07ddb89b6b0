"""Node classification with GraphBolt in two processes: DistributedItemSampler under DDP."""

import os

import dgl.graphbolt as gb
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from communities import Communities
from dgl.nn import SAGEConv
from torch.nn.parallel import DistributedDataParallel


class SAGE(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = SAGEConv(4, 16, "mean"), SAGEConv(16, 4, "mean")

    def forward(self, blocks, x):
        return self.second(blocks[1], F.relu(self.first(blocks[0], x)))


def run(rank, world_size, graph, features, train_set, test_set, store):
    dist.init_process_group("gloo", f"file://{store}", rank=rank, world_size=world_size)
    torch.manual_seed(0)
    model = DistributedDataParallel(SAGE())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)

    def loader(item_set):
        datapipe = gb.DistributedItemSampler(
            item_set, batch_size=5, drop_last=False, shuffle=True, drop_uneven_inputs=True
        )
        datapipe = datapipe.sample_neighbor(graph, [10, 10])
        datapipe = datapipe.fetch_feature(features, node_feature_keys=["feat"])
        return gb.DataLoader(datapipe.copy_to("cpu"))

    train, test = loader(train_set), loader(test_set)
    for epoch in range(12):
        seen, steps = [], 0
        for data in train:
            loss = F.cross_entropy(model(data.blocks, data.node_features["feat"]), data.labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen.append(data.seeds)
            steps += 1
        everything = [None] * world_size
        dist.all_gather_object(everything, (steps, torch.cat(seen).tolist()))
        assert len({steps for steps, _ in everything}) == 1
        assert (
            sorted(sum((nodes for _, nodes in everything), []))
            == train_set[:][0].sort()[0].tolist()
        )
    right = total = 0
    with torch.no_grad():
        for data in test:
            logits = model.module(data.blocks, data.node_features["feat"])
            right += (logits.argmax(1) == data.labels).sum()
            total += len(data.labels)
    found = torch.tensor([float(right), total])
    dist.all_reduce(found)
    accuracy = (found[0] / found[1]).item()
    if rank == 0:
        print(f"two processes: test accuracy {accuracy:.2f}")
    assert accuracy > 0.55
    del model  # it holds the group, which must not end before it
    dist.destroy_process_group()


if __name__ == "__main__":
    dataset = gb.LegacyDataset(Communities())
    task = dataset.tasks[0]
    store = os.path.join(os.environ["COMMUNITIES"], "store")
    args = (2, dataset.graph, dataset.feature, task.train_set, task.test_set, store)
    mp.spawn(run, args=args, nprocs=2)
