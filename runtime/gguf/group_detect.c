/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a tensor of type 42, 142 or 143 is. Type 42 is Q2_0, with a scale for 64 columns, in one
 * family of programs; files exist where it has one for 128 columns, which is PQ2_0; a third program
 * wrote STQ1_0 under it. 142 and 143 are PQ2_0 and PTQ1_0, or formats of another engine. The bytes
 * that a tensor takes tell.
 */

#include <inttypes.h>

#include "runtime/gguf/i2s_detect.h"
#include "runtime/gguf/internal.h"
#include "tern/kernels.h"

enum { TYPE_Q2_0 = 42, TYPE_PQ2_0 = 142, TYPE_PTQ1_0 = 143 };
enum { STQ1_0_BLOCK = 256, STQ1_0_BYTES = 42 };

static bool is_stq1_0(const tern_gguf_tensor *t, const tern_i2s_place *place) {
    uint64_t bytes;
    return t->type == TYPE_Q2_0 && place->cols % STQ1_0_BLOCK == 0 &&
           !__builtin_mul_overflow(place->rows * (place->cols / STQ1_0_BLOCK),
                                   (uint64_t)STQ1_0_BYTES, &bytes) &&
           tern_i2s_takes(place, bytes);
}

tern_status tern_gguf_group_settle(tern_gguf_tensor *t, uint32_t alignment, bool last,
                                   const char *file, tern_error *err) {
    const tern_i2s_place place = {.rows = t->ne[1] * t->ne[2] * t->ne[3],
                                  .cols = t->ne[0],
                                  .extent = t->extent,
                                  .alignment = alignment,
                                  .last = last};
    const bool mine = t->type == TYPE_Q2_0 || t->type == TYPE_PQ2_0 || t->type == TYPE_PTQ1_0;
    uint64_t wider = 0;
    if (!mine || t->extent == 0 || t->extent >= t->bytes)
        return TERN_OK;
    if (t->type == TYPE_Q2_0 && tern_gguf_type_bytes(TYPE_PQ2_0, t->ne, &wider) == TERN_OK &&
        tern_i2s_takes(&place, wider)) {
        t->type = TYPE_PQ2_0;
        t->bytes = wider;
        return TERN_OK;
    }
    const bool stq1_0 = is_stq1_0(t, &place);
    if (last && !stq1_0)
        return TERN_OK; /* cut off, which is told elsewhere */
    return tern_fail(err, TERN_ERR_TENSOR_TYPE,
                     "%s: tensor '%.*s' of type %" PRIu32 " has %" PRIu64 " bytes for %" PRIu64
                     " x %" PRIu64 ", not the %" PRIu64 " of %s: it is %s, which tern does not run",
                     file, TERN_SPAN_ARG(t->name), t->type, t->extent, place.rows, place.cols,
                     t->bytes, tern_gguf_type_name(t->type),
                     stq1_0 ? "stq1_0" : "another program's format of that number");
}
