#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The gate of continuous integration under a known name: scripts/receipt-gate.
#
#   scripts/validate-inference-receipt.sh [RECEIPT [TERN]]      default: those of this tree
set -eu
tree=$(dirname "$0")/..
exec "$(dirname "$0")/receipt-gate" "${1:-$tree/ci/inference.json}" "${2:-$tree/build/tern}"
