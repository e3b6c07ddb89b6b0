"""Train ALIGNN on crystals: energies of atoms and bonds, forces and stresses."""

import dgl
import numpy as np
import torch
from alignn.graphs import Graph
from alignn.models.alignn import ALIGNN, ALIGNNConfig
from alignn.models.alignn_atomwise import ALIGNNAtomWise, ALIGNNAtomWiseConfig
from alignn.models.ealignn_atomwise import eALIGNNAtomWise, eALIGNNAtomWiseConfig
from figures import gradients, numbers, same_weights, write
from jarvis.core.atoms import Atoms

CRYSTALS = [("Na", "Cl", 5.64), ("Mg", "O", 4.21), ("Li", "F", 4.03), ("Na", "F", 4.62)]
crystals = []
for number, (cation, anion, length) in enumerate(CRYSTALS):
    box = length / 2 * (np.ones((3, 3)) - np.eye(3))
    crystal = Atoms(box, [[0, 0, 0], [0.5, 0.5, 0.5]], [cation, anion]).make_supercell([2, 1, 1])
    places = np.arange(crystal.num_atoms * 3).reshape(-1, 3)
    shift = 0.1 * np.sin(3.0 * places + number)  # Å, the same everywhere
    crystals.append(
        Atoms(crystal.lattice_mat, crystal.cart_coords + shift, crystal.elements, cartesian=True)
    )
labels = torch.tensor([-3.2, -5.1, -4.9, -4.4])

figures = {}
OPTIONS = {"hidden_features": 32, "embedding_features": 16, "alignn_layers": 2, "gcn_layers": 2}
for name, model in {
    "ALIGNN": ALIGNN(ALIGNNConfig(name="alignn", atom_input_features=92, **OPTIONS)),
    "ALIGNNAtomWise": ALIGNNAtomWise(
        ALIGNNAtomWiseConfig(
            name="alignn_atomwise", atom_input_features=92, stresswise_weight=0.1, **OPTIONS
        )
    ),
    "eALIGNNAtomWise": eALIGNNAtomWise(
        eALIGNNAtomWiseConfig(
            name="ealignn_atomwise", atom_input_features=92, stresswise_weight=0.1, **OPTIONS
        )
    ),
}.items():
    same_weights(model)
    model.eval()  # batch normalization with the same statistics
    pairs = [
        Graph.atom_dgl_multigraph(
            crystal, cutoff=5.0, max_neighbors=12, neighbor_strategy=strategy, atom_features="cgcnn"
        )
        for crystal in crystals
        for strategy in (["k-nearest"] if name == "ALIGNN" else ["radius_graph"])
    ]
    graphs = [dgl.batch(list(each)) for each in zip(*pairs, strict=True)]
    lattices = torch.tensor(np.array([crystal.lattice_mat for crystal in crystals])).float()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    losses = []
    for step in range(5):
        batch = [g.clone() for g in graphs]
        out = model([*batch, lattices])
        if isinstance(out, torch.Tensor):
            out = {"out": out}
        loss = (out["out"].flatten() - labels).square().mean()
        if "grad" in out:
            loss = loss + 0.1 * out["grad"].square().mean()
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            found = {"out": "energies", "grad": "forces", "stresses": "stresses"}
            figures[name] = {
                what: numbers(out[key])
                for key, what in found.items()
                if isinstance(out.get(key), torch.Tensor) and out[key].numel() > 1
            }
            figures[name]["gradients"] = gradients(model)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    figures[name]["losses"] = losses
write(figures)
