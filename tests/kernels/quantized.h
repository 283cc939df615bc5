/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_KERNELS_QUANTIZED_H
#define TERN_TESTS_KERNELS_QUANTIZED_H

/* Shared by the tests of quantizers. */

#include "tern/kernels.h"
#include "tests/support/check.h"

/* A matrix in a format; true if nothing was lost. Fails the test where that is refused. */
static inline bool quantize(tern_format format, const float *x, size_t rows, size_t cols,
                            void *file) {
    bool lossless = false;
    tern_error err = {0};

    if (tern_quantize_weights(format, x, rows, cols, file, &lossless, &err) != TERN_OK)
        check_fail("quantizing failed: %s", err.message);
    return lossless;
}

#endif
