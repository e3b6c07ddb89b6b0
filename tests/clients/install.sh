#!/bin/sh
# install.sh VENV: an environment with gnnlab and three libraries that stand on DGL, without dgl.
set -e
here=$(cd "$(dirname "$0")/../.." && pwd)
venv=${1:?usage: install.sh VENV}
"${PYTHON:-python3}" -m venv "$venv"
pip() { "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; }
trap 'test $? = 0 || echo "install.sh: pip could not install; see its last lines above. The libraries come \
from the package index: without a network, set PIP_INDEX_URL to a mirror." >&2' EXIT
pip -c "$here/constraints.txt" -e "$here"
"$venv/bin/python" -m pip freeze --exclude-editable | grep -i '^torch==' > "$venv/held.txt"
pip --no-deps dgllife==0.3.2 matgl==3.0.5 alignn==2026.8.11
# What they import, in versions that fit together: pip would search for long among those of boto3.
pip -c "$venv/held.txt" ase==3.29.0 boto3==1.44.8 huggingface_hub hyperopt jarvis-tools==2026.6.12 joblib \
    lightning==2.6.1 lmdb networkx pandas pydantic pydantic-settings pymatgen-core==2026.10.16 \
    python-dateutil==2.9.0.post0 rdkit==2026.9.1 requests scikit-learn scipy spglib torch-geometric torchdata tqdm
echo "DGL-LifeSci, MatGL and ALIGNN are in $venv"
