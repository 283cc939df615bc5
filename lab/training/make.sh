#!/bin/sh
# Makes models/tern-small.gguf: sh make.sh [python]
set -e
cd "$(dirname "$0")"
python=${1:-python3}
export OMP_WAIT_POLICY=PASSIVE
"$python" train.py --out run/1 --minutes 40 --rate 2.5e-3 --check 180 --stories 40000
"$python" train.py --out run/2 --resume run/1 --seed 2 --minutes 8 --rate 1e-3 --story-share 0.8
"$python" train.py --out run/3 --resume run/2 --scale-embedding 8 --seed 3 --minutes 21 \
    --rate 1.5e-3 --story-share 0.8 --stories 15000
"$python" export.py run/3 ../../models
"$python" evaluate.py ../../models/tern-small.gguf --all
