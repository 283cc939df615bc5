#!/bin/sh
# Makes models/tern-small.gguf: sh make.sh [python] [minutes]
set -e
cd "$(dirname "$0")"
python=${1:-python3}
"$python" train.py --out run --minutes "${2:-55}" --check 180 --stories 40000
"$python" export.py run ../../models
"$python" evaluate.py ../../models/tern-small.gguf --all
