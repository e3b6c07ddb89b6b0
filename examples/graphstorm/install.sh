#!/bin/sh
# install.sh VENV: an environment with gnnlab and GraphStorm 0.5.1, which wants DGL 2.3 and torch 2.3.
# So its package and those that pin old versions are installed without what they ask for.
set -e
here=$(cd "$(dirname "$0")/../.." && pwd)
venv=${1:?usage: install.sh VENV}
"${PYTHON:-python3}" -m venv "$venv"
pip="$venv/bin/python -m pip install --quiet --disable-pip-version-check"
$pip -c "$here/constraints.txt" -e "$here"
$pip --no-deps graphstorm==0.5.1 ogb==1.3.6 torchdata==0.9.0 transformers==4.48.0
$pip --no-deps autogluon.tabular==1.4.0 autogluon.core==1.4.0 autogluon.common==1.4.0 autogluon.features==1.4.0
$pip einops einx h5py 'huggingface-hub<1' joblib littleutils loguru omegaconf outdated packaging pandas psutil \
    pyarrow pydantic regex requests safetensors scikit-learn scipy six 'tokenizers<0.22' tqdm
echo "GraphStorm is in $venv"
