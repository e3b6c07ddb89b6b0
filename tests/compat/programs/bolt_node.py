"""Node classification with GraphBolt: samplers, a stage of the user, caches, inference by layers.

The old interface trains the same model from the same weights; both learn as much.
"""

import dgl
import dgl.graphbolt as gb
import torch
import torch.nn as nn
import torch.nn.functional as F
from communities import Communities
from dgl.nn import SAGEConv


class SAGE(nn.Module):
    def __init__(self, in_size, out_size):
        super().__init__()
        self.layers = nn.ModuleList([SAGEConv(in_size, 16, "mean"), SAGEConv(16, out_size, "mean")])

    def forward(self, blocks, x):
        for i, (layer, block) in enumerate(zip(self.layers, blocks)):
            x = layer(block, x if i == 0 else F.relu(x))
        return x

    def inference(self, graph, features, all_nodes_set):
        x = features.read("node", None, "feat")
        for i, layer in enumerate(self.layers):
            datapipe = gb.ItemSampler(all_nodes_set, batch_size=64)
            datapipe = datapipe.sample_neighbor(graph, [-1])
            done = []
            for data in gb.DataLoader(datapipe.copy_to("cpu")):
                out = layer(data.blocks[0], x[data.input_nodes])
                done.append(F.relu(out) if i == 0 else out)
            x = torch.cat(done)
        return x


def create_dataloader(graph, features, item_set, sampler="sample_neighbor", shuffle=True):
    datapipe = gb.ItemSampler(item_set, batch_size=10, shuffle=shuffle)
    datapipe = getattr(datapipe, sampler)(graph, [10, 10])
    datapipe = datapipe.fetch_feature(features, node_feature_keys=["feat"])
    datapipe = datapipe.transform(count)
    return gb.DataLoader(datapipe.copy_to(device="cpu"), num_workers=0)


def count(minibatch):
    minibatch.num_inputs = len(minibatch.node_ids())
    return minibatch


def step(model, optimizer, blocks, x, y):
    loss = F.cross_entropy(model(blocks, x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def fit(name, epoch):
    torch.manual_seed(0)
    model = SAGE(4, num_classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(10):
        epoch(model, optimizer)
    nodes, labels = task.test_set[:]
    with torch.no_grad():
        logits = model.inference(graph, features, dataset.all_nodes_set)
        assert torch.allclose(logits, model([g, g], g.ndata["feat"]), atol=1e-5)
    accuracy = (logits[nodes].argmax(1) == labels).float().mean().item()
    print(f"{name}: test accuracy {accuracy:.2f}")
    assert accuracy > 0.55
    return accuracy


legacy = Communities()
g = legacy[0]
dataset = gb.LegacyDataset(legacy)
graph, features, task = dataset.graph, dataset.feature, dataset.tasks[0]
num_classes = task.metadata["num_classes"]


def old(model, optimizer):
    sampler = dgl.dataloading.NeighborSampler([10, 10])
    loader = dgl.dataloading.DataLoader(
        g, task.train_set[:][0], sampler, batch_size=10, shuffle=True
    )
    for _, output_nodes, blocks in loader:
        step(model, optimizer, blocks, blocks[0].srcdata["feat"], g.ndata["label"][output_nodes])


def new(store, sampler="sample_neighbor"):
    def epoch(model, optimizer):
        for data in create_dataloader(graph, store, task.train_set, sampler):
            assert data.num_inputs == data.blocks[0].num_src_nodes()
            step(model, optimizer, data.blocks, data.node_features["feat"], data.labels)

    return epoch


before = fit("NeighborSampler", old)
assert abs(fit("sample_neighbor", new(features)) - before) < 0.15
assert abs(fit("sample_layer_neighbor", new(features, "sample_layer_neighbor")) - before) < 0.15
for cached in gb.cpu_cached_feature, gb.gpu_cached_feature:
    feature = cached(features["node", None, "feat"], 100 * 16)
    store = gb.BasicFeatureStore({("node", None, "feat"): feature})
    fit(cached.__name__, new(store))
    assert 0 < feature.miss_rate < 1

when = torch.arange(graph.total_num_edges) % 50
graph.add_edge_attribute("when", when)
items = gb.ItemSet((torch.arange(40), torch.arange(40) + 5), names=("seeds", "timestamp"))
pipe = gb.ItemSampler(items, 10).temporal_sample_neighbor(
    graph, [4, 4], edge_timestamp_attr_name="when"
)
for minibatch in pipe:
    for block in minibatch.blocks:
        limit = block.dstdata["seed_time"][block.edges()[1]]
        assert bool((when[block.edata[dgl.EID]] <= limit).all())
