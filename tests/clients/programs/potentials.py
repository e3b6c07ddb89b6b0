"""Train interatomic potentials of MatGL on crystals: energies, forces and stresses."""

import os
import tempfile

os.environ["MATGL_BACKEND"] = "DGL"  # before matgl is imported

import dgl
import lightning
import numpy as np
import torch
from figures import gradients, numbers, same_weights, write
from matgl.apps.pes import Potential
from matgl.ext.ase import PESCalculator
from matgl.ext.pymatgen import Structure2Graph, get_element_list
from matgl.graph.data import MGLDataLoader, MGLDataset, collate_fn_pes
from matgl.models import CHGNet, M3GNet, SO3Net, TensorNet
from matgl.utils.training import PotentialLightningModule
from pymatgen.core import Lattice, Structure
from pymatgen.io.ase import AseAtomsAdaptor

CRYSTALS = [("Na", "Cl", 5.64), ("Mg", "O", 4.21), ("Li", "F", 4.03), ("Na", "F", 4.62)]
structures, springs = [], {"energies": [], "forces": [], "stresses": []}
for number, (cation, anion, length) in enumerate(2 * CRYSTALS):
    crystal = Structure.from_spacegroup(
        "Fm-3m", Lattice.cubic(length), [cation, anion], [[0, 0, 0], [0.5, 0.5, 0.5]]
    ).get_primitive_structure()
    crystal.make_supercell([2, 1, 1])
    places = np.arange(crystal.num_sites * 3).reshape(-1, 3)
    shift = 0.1 * np.sin(3.0 * places + number)  # Å, the same everywhere
    for site, vector in enumerate(shift):
        crystal.translate_sites([site], vector, frac_coords=False)
    structures.append(crystal)
    springs["energies"].append(float((shift**2).sum()))
    springs["forces"].append((-2 * shift).tolist())
    springs["stresses"].append(np.zeros((3, 3)).tolist())

elements = get_element_list(structures)
converter = Structure2Graph(element_types=elements, cutoff=4.5)
common = {"element_types": elements, "is_intensive": False, "cutoff": 4.5}
models = {
    "M3GNet": M3GNet(units=16, dim_node_embedding=16, dim_edge_embedding=16, nblocks=2, **common),
    "CHGNet": CHGNet(
        **{**common, "dim_atom_embedding": 16, "dim_bond_embedding": 16, "dim_angle_embedding": 16},
        atom_conv_hidden_dims=(16,),
        bond_conv_hidden_dims=(16,),
        final_hidden_dims=(16,),
        num_blocks=2,
    ),
    "TensorNet": TensorNet(units=16, nblocks=2, num_rbf=8, **common),
    "SO3Net": SO3Net(units=16, dim_node_embedding=16, nblocks=2, **common),
}
figures = {}
scratch = tempfile.TemporaryDirectory()
for name, model in models.items():
    same_weights(model)
    lines = name in ("M3GNet", "CHGNet")
    data = MGLDataset(
        structures=structures,
        labels={key: list(values) for key, values in springs.items()},
        converter=converter,
        include_line_graph=lines,
        threebody_cutoff=3.0 if lines else None,
        directed_line_graph=name == "CHGNet",
        save_dir=scratch.name,
        directory_name=name,
    )
    again = MGLDataset(
        include_line_graph=lines, save_dir=scratch.name, directory_name=name
    )  # its files
    assert torch.equal(again[3][0].edges()[0], data[3][0].edges()[0]) and len(again) == len(data)

    def collate(batch, lines=lines):
        return collate_fn_pes(batch, include_stress=True, include_line_graph=lines)

    train, test = dgl.data.utils.split_dataset(data, [0.5, 0.5, 0.0])[:2]
    _, loader = MGLDataLoader(train, test, collate_fn=collate, batch_size=4, num_workers=0)

    # Energies, forces and stresses of a batch, and the gradients of a loss of all three.
    potential = Potential(model, data_mean=0.1, data_std=0.5)
    g, lattice, *others = next(iter(loader))
    line_graph = others.pop(0) if lines else None
    state = others.pop(0)
    found = potential(g, lattice, state, line_graph)
    sum(each.square().sum() for each in found[:3]).backward()
    figures[name] = {
        **{key: numbers(x) for key, x in zip(springs, found, strict=False)},
        "gradients": gradients(model),
    }
    model.zero_grad()

    # Training with Lightning; the loader without shuffling gives both libraries the same batches.
    module = PotentialLightningModule(
        model=model,
        include_line_graph=lines,
        stress_weight=0.1,
        lr=1e-3,
        optimizer=torch.optim.SGD(model.parameters(), lr=1e-4),
    )
    trainer = lightning.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        inference_mode=False,
        gradient_clip_val=1.0,
    )
    trainer.fit(module, loader, loader)
    figures[name]["losses"] = {
        key: value.item() for key, value in trainer.callback_metrics.items() if key[:3] == "val"
    }
    atoms = AseAtomsAdaptor.get_atoms(structures[0])
    atoms.calc = PESCalculator(module.model)
    figures[name]["calculator"] = [atoms.get_potential_energy(), *atoms.get_forces()[0].tolist()]
write(figures)
