"""Texts that measurements of precision read, and pages that no model of this folder may learn from.

The texts are pages of this repository as they once were. They stay as they are, so that a figure can be
measured again; the pages themselves go on changing.
"""
from pathlib import Path

TEXTS = Path(__file__).resolve().parent / "text"
HELD_OUT_TEXT = TEXTS / "held-out.txt"  # perplexity; never trained on
CALIBRATION_TEXT = TEXTS / "calibration.txt"  # importance of columns
HELD_OUT = ["docs/tokenizers.md", "docs/robustness.md", "docs/sessions.md"]  # what the first text came from
