/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_CONFIG_PRECISION_H
#define TERN_RUNTIME_MODEL_CONFIG_PRECISION_H

/* The precision of activations that a model is computed with (docs/numerics.md). */

#include "tern/kernels.h"

/* X(NAME, text). Session files contain the numbers, identities hash the texts. */
#define TERN_PRECISION_LIST(X)                                                                     \
    X(AUTO, "auto")                                                                                \
    X(INT8, "int8")                                                                                \
    X(FP8, "fp8")                                                                                  \
    X(FP8_E5M2, "fp8-e5m2")                                                                        \
    X(FP16, "fp16")                                                                                \
    X(BF16, "bf16")                                                                                \
    X(FP32, "fp32")

typedef enum tern_precision {
#define TERN_PRECISION_ENUM(name, text) TERN_PRECISION_##name,
    TERN_PRECISION_LIST(TERN_PRECISION_ENUM)
#undef TERN_PRECISION_ENUM
        TERN_PRECISION_COUNT
} tern_precision;

/* Static storage; NULL if out of range: the number may come from a file. */
const char *tern_precision_name(uint32_t precision);

/* The precision of that name, AUTO for NULL. TERN_ERR_NAME. */
TERN_MUST_CHECK tern_status tern_precision_find(const char *name, tern_precision *out,
                                                tern_error *err);

/* The operation that rounds float activations to the precision; TERN_OP_COUNT: they stay floats. */
tern_op tern_precision_op(tern_precision precision);

/* True if matrices in blocks are multiplied with floats, and so are read as the file has them. */
bool tern_precision_decodes(tern_precision precision);

/* The precision that a wish gives a model whose matrices read activations in these forms, bits of
 * tern_input_form; AUTO if it would change nothing. */
tern_precision tern_precision_settle(tern_precision wanted, unsigned forms);

#endif
