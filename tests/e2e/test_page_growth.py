# SPDX-License-Identifier: Apache-2.0
"""The page's Markdown: its steps are counted for texts that someone could write to make it slow."""

import shutil
import subprocess
import unittest

import common

PAGE = common.ROOT / "serve" / "page"


class Growth(common.FolderTest):
    @unittest.skipUnless(shutil.which("node"), "node is not installed: the page's scripts run in no browser of this test")
    def test_steps_grow_with_the_text(self):
        for script in PAGE.glob("*.js"):
            shutil.copy(script, self.dir)
        (self.dir / "package.json").write_text('{"type": "module"}')
        steps = common.ROOT / "tests" / "page" / "steps.mjs"
        result = subprocess.run(["node", steps, self.dir], capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)


if __name__ == "__main__":
    common.main()
