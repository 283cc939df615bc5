# SPDX-License-Identifier: Apache-2.0
"""Every row of the kernel table, with one bit of its output changed: the row's test must notice.

The test programs change the first or the last element themselves (TERN_TEST_MUTATE), behind the row
and in front of the comparison with the reference.
"""

import json
import re
import subprocess
from pathlib import Path

import common
from common import tern_text


def run(row, mutate):
    program = Path(common.command()[0]).parent / "tests" / f"test_{row['test']}"
    every = 13 if row["op"] == "embed" else 97  # of 64 trials and more; one of random bytes may give NaN
    env = {"TERN_TEST_FILTER": row["name"], "TERN_TEST_EVERY": str(every)}
    if mutate:
        env["TERN_TEST_MUTATE"] = mutate
    return subprocess.run(
        [program], env=common.clean_environment(**env), capture_output=True
    )


class Mutations(common.TernTest):
    def test_every_row(self):
        rows = json.loads(tern_text("kernels", "--json"))
        rows = [row for row in rows if row["device"] == "cpu" and row["runnable"]]
        self.assertGreater(len(rows), 40)
        for row in rows:
            for mutate in ("first", "last"):
                with self.subTest(row=row["name"], mutate=mutate):
                    result = run(row, mutate)
                    said = (result.stdout + result.stderr).decode(errors="replace")
                    self.assertNotIn(result.returncode, (0, 77), said[-500:])
                    self.assertRegex(said, re.escape(row["name"]) + r".*\b1 of \d+ .*differ")
        print(f"{len(rows)} rows, two mutations each")

    def test_control(self):
        """The same run without a mutation passes."""
        rows = json.loads(tern_text("kernels", "--json"))
        for op in ("gemv", "attend", "rmsnorm", "gate_silu"):
            row = next(r for r in rows if r["op"] == op and r["runnable"])
            result = run(row, None)
            self.assertEqual(result.returncode, 0, result.stdout[-500:] + result.stderr[-500:])


if __name__ == "__main__":
    common.main()
