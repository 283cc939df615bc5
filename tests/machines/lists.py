# SPDX-License-Identifier: Apache-2.0
"""Lists the tests that run on pretended processors: names of ctest's tests as regular expressions."""

# These choose rows and count them; each takes a second or less.
CHOICE = ("features", "select", "layout_rule", "guard", "strict", "tune", "blocks", "pack_groups", "quotient", "lookup256",
          "exact_products", "tile_rows", "kernels_matmul_amx", "bench_kernels_answers", "microbench_block_sparse",
          "bench_device_answers")  # fmt: skip
# These run the rows, together and in models.
MODELS = ("engine", "engine_prompts", "session", "attention", "head", "variants", "bench", "e2e_strict")
# Every row of a set by itself: with TERN_TEST_FILTER, and of the matrix products with TERN_TEST_EVERY.
KERNELS = ("kernels_(activation|attend|hadamard|halves|matmul|round|rows|sparse)",)
EVERY = 16
# One machine a day also runs one of these: every row of every set with the engine and its schedules, or whole models.
# `make masks-all` runs the whole suite.
DAILY = ((*KERNELS, "engine_(cancel|pooled|saved|window)", "tune_.*", "device", "no_staging"),
         ("forward", "parity", "runner", "e2e_logits_hash_some", "e2e_(tune|sparse|hadamard|int4|experts|receipt_formats|quantize)"))  # fmt: skip


def pattern(*names):
    return f"^({'|'.join(names)})$"
