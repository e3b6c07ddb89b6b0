"""Predict a property of molecules with DGL-LifeSci, and forces on their atoms with SchNet."""

import dgl
import torch
from dgllife.model import (
    ACNN,
    AttentiveFPPredictor,
    GATPredictor,
    GCNPredictor,
    GINPredictor,
    MGCNPredictor,
    MPNNPredictor,
    NFPredictor,
    PAGTNPredictor,
    SchNetPredictor,
    WeavePredictor,
)
from dgllife.utils import (
    AttentiveFPAtomFeaturizer,
    AttentiveFPBondFeaturizer,
    CanonicalAtomFeaturizer,
    CanonicalBondFeaturizer,
    PAGTNAtomFeaturizer,
    PAGTNEdgeFeaturizer,
    PretrainAtomFeaturizer,
    PretrainBondFeaturizer,
    RandomSplitter,
    ScaffoldSplitter,
    WeaveAtomFeaturizer,
    WeaveEdgeFeaturizer,
    mol_to_bigraph,
    mol_to_complete_graph,
    mol_to_nearest_neighbor_graph,
)
from figures import gradients, numbers, same_weights, write
from rdkit import Chem
from rdkit.Chem import AllChem, Crippen

SMILES = [
    "CCO",
    "CC(=O)O",
    "c1ccccc1",
    "CC(C)O",
    "CCN",
    "c1ccncc1",
    "CC(=O)Nc1ccc(O)cc1",
    "OCC(O)CO",
    "CCOC(C)=O",
    "NC(=O)c1ccccc1",
    "C1CCCCC1",
    "CSC",
    "O=Cc1ccco1",
    "FC(F)F",
    "CC#N",
    "Clc1ccccc1",
]
molecules = [Chem.MolFromSmiles(text) for text in SMILES]
labels = torch.tensor([[Crippen.MolLogP(mol)] for mol in molecules])
figures = {}


def train(name, model, graphs, *features, steps=5):
    """Predict, then train for some steps on a batch; record what came out."""
    same_weights(model)
    model.eval()  # dropout draws other numbers with every version of torch
    batch = dgl.batch(graphs)
    inputs = [side.pop(key) for side, key in [(getattr(batch, s), k) for s, k in features]]
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    losses = []
    for step in range(steps):
        found = model(batch, *inputs)
        loss = torch.nn.functional.mse_loss(found, labels)
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            figures[name] = {"energies": numbers(found), "gradients": gradients(model)}
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    figures[name]["losses"] = losses


atoms, bonds = CanonicalAtomFeaturizer(), CanonicalBondFeaturizer()
size, edge_size = atoms.feat_size(), bonds.feat_size()
graphs = [mol_to_bigraph(mol, True, atoms) for mol in molecules]
h, e = ("ndata", "h"), ("edata", "e")
train("GCN", GCNPredictor(size, [16, 16], classifier_hidden_feats=16), graphs, h)
train("GAT", GATPredictor(size, [8, 8], [2, 2], classifier_hidden_feats=16), graphs, h)
train("NF", NFPredictor(size, 1, [16], predictor_hidden_size=16), graphs, h)

graphs = [mol_to_bigraph(mol, False, atoms, bonds) for mol in molecules]
mpnn = MPNNPredictor(size, edge_size, 16, 8, num_step_message_passing=2, num_step_set2set=2)
train("MPNN", mpnn, graphs, h, e)

featurizers = AttentiveFPAtomFeaturizer(), AttentiveFPBondFeaturizer()
graphs = [mol_to_bigraph(mol, False, *featurizers) for mol in molecules]
sizes = [each.feat_size() for each in featurizers]
train("AttentiveFP", AttentiveFPPredictor(*sizes, graph_feat_size=16), graphs, h, e)

pagtn = PAGTNAtomFeaturizer(), PAGTNEdgeFeaturizer()
graphs = [mol_to_complete_graph(mol, True, *pagtn) for mol in molecules]
sizes = [each.feat_size() for each in pagtn]
pagtn = PAGTNPredictor(sizes[0], 8, 8, sizes[1], depth=2, nheads=2)
train("PAGTN", pagtn, graphs, h, e)

weave = WeaveAtomFeaturizer(), WeaveEdgeFeaturizer()
graphs = [mol_to_complete_graph(mol, True, *weave) for mol in molecules]
sizes = [each.feat_size() for each in weave]
model = WeavePredictor(*sizes, gnn_hidden_feats=16, graph_feats=16)
train("Weave", model, graphs, h, e)


class GIN(torch.nn.Module):
    """GINPredictor takes its features as lists."""

    def __init__(self):
        super().__init__()
        self.gin = GINPredictor([120, 3], [6, 3], num_layers=2, emb_dim=16, JK="last")

    def forward(self, graph, *features):
        return self.gin(graph, list(features[:2]), list(features[2:]))


pretrain = PretrainAtomFeaturizer(), PretrainBondFeaturizer()
graphs = [mol_to_bigraph(mol, True, *pretrain) for mol in molecules]
names = [("ndata", "atomic_number"), ("ndata", "chirality_type")]
names += [("edata", "bond_type"), ("edata", "bond_direction_type")]
train("GIN", GIN(), graphs, *names)

# Molecules in space: energies are differentiated by the coordinates.
spatial = [Chem.AddHs(mol) for mol in molecules]
for mol in spatial:
    assert AllChem.EmbedMolecule(mol, randomSeed=7) == 0
graphs = []
for mol in spatial:
    points = mol.GetConformer().GetPositions().round(3)
    g = mol_to_nearest_neighbor_graph(mol, points, neighbor_cutoff=4.0, max_num_neighbors=6)
    g.ndata["z"] = torch.tensor([atom.GetAtomicNum() for atom in mol.GetAtoms()])
    g.ndata["x"] = torch.tensor(points, dtype=torch.float32)
    g.edata.clear()
    graphs.append(g)
batch = dgl.batch(graphs)
for name, model in {
    "SchNet": SchNetPredictor(node_feats=16, hidden_feats=[16, 16], cutoff=5.0),
    "MGCN": MGCNPredictor(feats=16, n_layers=2, num_node_types=20, cutoff=5.0),
}.items():
    same_weights(model)
    model.eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    losses = []
    for step in range(5):
        x = batch.ndata["x"].requires_grad_()
        src, dst = batch.edges()
        distances = (x[src] - x[dst]).norm(dim=1, keepdim=True)
        energies = model(batch, batch.ndata["z"], distances)
        (forces,) = torch.autograd.grad(-energies.sum(), x, create_graph=True)
        loss = (energies - labels).square().mean() + 0.01 * forces.square().mean()
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            figures[name] = {
                "energies": numbers(energies),
                "forces": numbers(forces),
                "gradients": gradients(model),
            }
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    figures[name]["losses"] = losses

# A ligand in a pocket: atomic convolutions on three graphs with the atoms of both.
PARTS = ("ligand_atom", "protein_atom")
RELATIONS = [
    (0, "ligand", 0),
    (1, "protein", 1),
    *((i, "complex", j) for i in (0, 1) for j in (0, 1)),
]
pairs = []
for ligand, protein in zip(spatial[:6], spatial[6:12], strict=True):
    points, edges, distances = [], {}, {}
    for mol, shift in (ligand, 0.0), (protein, 2.0):
        points.append(torch.tensor(mol.GetConformer().GetPositions().round(3) + shift).float())
    for i, relation, j in RELATIONS:
        length = torch.cdist(points[i], points[j])
        src, dst = (length < 6).nonzero().unbind(1)
        edges[PARTS[i], relation, PARTS[j]] = (src, dst)
        distances[PARTS[i], relation, PARTS[j]] = length[src, dst].unsqueeze(1)
    g = dgl.heterograph(edges, {part: len(x) for part, x in zip(PARTS, points, strict=True)})
    for etype, length in distances.items():
        g.edges[etype].data["distance"] = length
    for part, mol in zip(PARTS, (ligand, protein), strict=True):
        z = [[float(atom.GetAtomicNum())] for atom in mol.GetAtoms()]
        g.nodes[part].data["atomic_number"] = torch.tensor(z)
    pairs.append(g)
model = ACNN(
    hidden_sizes=[32],
    weight_init_stddevs=[0.1, 0.1],
    dropouts=[0.0],
    features_to_use=torch.tensor([1.0, 6.0, 7.0, 8.0]),
)
same_weights(model)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
losses = []
for step in range(5):
    found = torch.cat([model(g) for g in pairs])
    loss = (found - labels[:6]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    if step == 0:
        figures["ACNN"] = {"energies": numbers(found), "gradients": gradients(model)}
    optimizer.step()
    losses.append(loss.item())
figures["ACNN"]["losses"] = losses

train_set, _, test_set = ScaffoldSplitter.train_val_test_split(
    graphs, mols=molecules, frac_train=0.75, frac_val=0.0, frac_test=0.25, log_every_n=None
)
assert len(train_set) == 12 and len(test_set) == 4
assert sum(map(len, RandomSplitter.k_fold_split(graphs, k=4)[0])) == 16
write(figures)
