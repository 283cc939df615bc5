/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RECEIPTS_ACCURACY_H
#define TERN_RECEIPTS_ACCURACY_H

/*
 * The difference between the products of a loaded model and products of floats, measured on its own
 * weights: for each format the first matrix that has it, at most ACCURACY_ROWS of its rows, with
 * ACCURACY_TOKENS random activations of magnitudes in [0.5, 1). The rows are expanded by
 * tern_dequantize_row and multiplied in plain floats, and the results are compared with those of
 * the session's kernels. The mean squared error is that of outputs scaled to variance 1, as in
 * docs/numerics.md, "Accuracy". Ternary matrices are measured in the layout in use, and also packed
 * for both kinds of table lookup.
 */

#include "tern/tern.h"

enum { ACCURACY_ROWS = 256, ACCURACY_TOKENS = 32, ACCURACY_MAX = 24 };

typedef struct accuracy {
    char name[24];      /* "i2s", "tl1", "tl2", or the format's name: "q4_1" */
    const char *tensor; /* the tensor's name in the file; `tensor_size` bytes, not terminated */
    size_t tensor_size;
    const tern_kernel_row *gemv, *gemm; /* the measured kernels */
    double mse, tolerance;
    bool passed;
} accuracy;

/* The description of the activations, for receipts. */
#define ACCURACY_INPUTS "random sign, magnitude uniform in [0.5, 1)"

/* The tolerance for a name: 1e-5 for i2s, 1e-4 for tl1, tl2 and block formats, 1e-11 for floats. */
double accuracy_tolerance(const char *name);

/* Measures all formats; writes at most ACCURACY_MAX results and sets *n. TERN_ERR_NOMEM,
 * TERN_ERR_KERNEL. */
TERN_MUST_CHECK tern_status accuracy_measure(const tern_model *model, accuracy out[ACCURACY_MAX],
                                             size_t *n, tern_error *err);

#endif
