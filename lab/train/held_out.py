"""Pages of this repository that measurements of precision read; neither is part of the other."""

HELD_OUT = ["docs/tokenizers.md", "docs/robustness.md", "docs/sessions.md"]  # perplexity; never trained on
CALIBRATION = ["docs/architecture.md", "docs/serving.md", "docs/receipts.md"]  # importance of columns
