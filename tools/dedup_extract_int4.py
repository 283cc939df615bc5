#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/dedup_extract_int4.py under the path that other programs' documentation gives it."""

import os
import sys
from pathlib import Path

script = Path(__file__).resolve().parents[1] / "scripts" / Path(__file__).name
os.execv(sys.executable, [sys.executable, str(script), *sys.argv[1:]])
