#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a command with a policy of memory: `tern --numa` under a known name, for every tern that it starts.
#
#   scripts/set_numa.sh none|interleave|node:X|strict [--] COMMAND [ARGUMENTS]
set -eu
usage() {
    echo "usage: scripts/set_numa.sh none|interleave|node:X|strict [--] COMMAND [ARGUMENTS]" >&2
    exit 2
}
[ $# -ge 2 ] || usage
case $1 in
    none | interleave | strict | node:[0-9]*) TERN_NUMA=$1 ;;
    *) usage ;;
esac
export TERN_NUMA
shift
[ "$1" != -- ] || shift
[ $# -gt 0 ] || usage
exec "$@"
