# SPDX-License-Identifier: Apache-2.0
"""aider changes a file of a git repository and commits it, in three forms of edits, streamed and whole. The small model
cannot program, so a grammar, which aider passes on, gives its answers; the messages of commits are its own."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from check import equal, options

BEFORE, AFTER = "print(2)\n", "print(2 + 2)\n"
ANSWERS = {
    "whole": f"hello.py\n```\n{AFTER}```\n",
    "diff": f"hello.py\n```python\n<<<<<<< SEARCH\n{BEFORE}=======\n{AFTER}>>>>>>> REPLACE\n```\n",
    "udiff": f"```diff\n--- hello.py\n+++ hello.py\n@@ ... @@\n-{BEFORE}+{AFTER}```\n",
}


def git(folder, *words):
    return subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def edit(address, form, stream):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        git(folder, "init", "-q")
        (folder / "hello.py").write_text(BEFORE)
        git(folder, "add", "hello.py")
        git(folder, "commit", "-q", "-m", "begin")
        settings = [{"name": "openai/tools", "edit_format": form, "weak_model_name": "openai/plain", "extra_params": {
            "max_tokens": 300, "extra_body": {"grammar": "root ::= " + json.dumps(ANSWERS[form])}}}]
        (folder / ".git" / "settings.yml").write_text(json.dumps(settings))  # JSON is YAML
        words = ["--model", "openai/tools", "--openai-api-base", address + "/v1", "--openai-api-key", "none", "--model-settings-file", ".git/settings.yml",
                 "--message", "Print the sum.", "--yes-always", "--no-check-update", "--analytics-disable", "--no-show-model-warnings", "--no-gitignore",
                 "--no-show-release-notes", "--no-pretty", "--stream" if stream else "--no-stream", "hello.py"]
        away = {"HOME": name, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "GIT_AUTHOR_NAME": "t", "GIT_COMMITTER_NAME": "t",
                "GIT_AUTHOR_EMAIL": "t@example.org", "GIT_COMMITTER_EMAIL": "t@example.org"}
        done = subprocess.run([sys.executable, "-m", "aider", *words], cwd=folder, env=os.environ | away, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        told = done.stdout + done.stderr
        equal((done.returncode, (folder / "hello.py").read_text()), (0, AFTER), f"{form}, {'streamed' if stream else 'whole'}: {told}")
        equal(len(git(folder, "log", "--format=%h").split()), 2, f"commits: {told}")


def main():
    with options().server_with_tools("--any-model", "--ctx", "8192", context=16384) as address:
        for form in ANSWERS:
            edit(address, form, stream=False)
        edit(address, "diff", stream=True)


main()
