/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/config/precision.h"

#include <stdio.h>
#include <string.h>

static const char *const names[TERN_PRECISION_COUNT] = {
#define PRECISION_NAME(name, text) text,
    TERN_PRECISION_LIST(PRECISION_NAME)
#undef PRECISION_NAME
};

const char *tern_precision_name(uint32_t precision) {
    return precision < TERN_PRECISION_COUNT ? names[precision] : NULL;
}

tern_status tern_precision_find(const char *name, tern_precision *out, tern_error *err) {
    char known[128] = "";
    size_t used = 0;
    *out = TERN_PRECISION_AUTO;
    if (name == NULL)
        return TERN_OK;
    for (int p = 0; p < TERN_PRECISION_COUNT; p++) {
        if (strcmp(names[p], name) == 0) {
            *out = (tern_precision)p;
            return TERN_OK;
        }
        used +=
            (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", names[p]);
    }
    return tern_fail(err, TERN_ERR_NAME, "unknown precision of activations '%s' (one of %s)", name,
                     known);
}

tern_op tern_precision_op(tern_precision precision) {
    switch (precision) {
    case TERN_PRECISION_INT8:
        return TERN_OP_ROUND_INT8;
    case TERN_PRECISION_FP8:
        return TERN_OP_ROUND_FP8;
    case TERN_PRECISION_FP8_E5M2:
        return TERN_OP_ROUND_FP8_E5M2;
    case TERN_PRECISION_FP16:
        return TERN_OP_ROUND_FP16;
    case TERN_PRECISION_BF16:
        return TERN_OP_ROUND_BF16;
    default:
        return TERN_OP_COUNT;
    }
}

bool tern_precision_decodes(tern_precision precision) {
    return precision != TERN_PRECISION_AUTO && precision != TERN_PRECISION_INT8;
}

tern_precision tern_precision_settle(tern_precision wanted, unsigned forms) {
    const bool changes = wanted == TERN_PRECISION_INT8   ? forms & TERN_INPUT_FLOAT
                         : wanted == TERN_PRECISION_FP32 ? forms & TERN_INPUT_BLOCK
                                                         : true;
    return changes ? wanted : TERN_PRECISION_AUTO;
}
