/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out what a tensor of type 42, 43, 142 or 143 is, by the bytes that it takes. Type 42 is
 * Q2_0, with a scale for 64 columns, in one family of programs. Files exist where it has a scale
 * for 128 columns, which is PQ2_0. A third program wrote STQ1_0 as type 42; that is type 43 now.
 * 43, 142 and 143 are STQ1_0, PQ2_0 and PTQ1_0, or formats of other engines.
 */

#include <inttypes.h>

#include "runtime/files/gguf/i2s_detect.h"
#include "runtime/files/gguf/internal.h"
#include "tern/kernels.h"

enum { TYPE_Q2_0 = 42, TYPE_STQ1_0 = 43, TYPE_PQ2_0 = 142, TYPE_PTQ1_0 = 143 };

/* Gives the tensor `type` if it has exactly the bytes of that type. */
static bool becomes(tern_gguf_tensor *t, const tern_i2s_place *place, uint32_t type) {
    uint64_t bytes = 0;
    if (tern_gguf_type_bytes(type, t->ne, &bytes) != TERN_OK || !tern_i2s_takes(place, bytes))
        return false;
    t->type = type;
    t->bytes = bytes;
    return true;
}

/* True if the tensor may be what its type says. Other formats of type 43 have more bytes. */
static bool may_be(const tern_gguf_tensor *t, const tern_i2s_place *place) {
    if (t->type == TYPE_STQ1_0 && !place->last)
        return tern_i2s_takes(place, t->bytes);
    return t->extent >= t->bytes;
}

tern_status tern_gguf_group_settle(tern_gguf_tensor *t, uint32_t alignment, bool last,
                                   const char *file, tern_error *err) {
    const tern_i2s_place place = {.rows = t->ne[1] * t->ne[2] * t->ne[3],
                                  .cols = t->ne[0],
                                  .extent = t->extent,
                                  .alignment = alignment,
                                  .last = last};
    const bool mine = t->type == TYPE_Q2_0 || t->type == TYPE_STQ1_0 || t->type == TYPE_PQ2_0 ||
                      t->type == TYPE_PTQ1_0;
    if (!mine || t->extent == 0 || may_be(t, &place))
        return TERN_OK;
    if (t->type == TYPE_Q2_0 && (becomes(t, &place, TYPE_PQ2_0) || becomes(t, &place, TYPE_STQ1_0)))
        return TERN_OK;
    if (last)
        return TERN_OK; /* it is cut off, which is reported elsewhere */
    return tern_fail(err, TERN_ERR_TENSOR_TYPE,
                     "%s: tensor '%.*s' of type %" PRIu32 " has %" PRIu64 " bytes for %" PRIu64
                     " x %" PRIu64 ", not the %" PRIu64 " of %s: it is another program's format of "
                     "that number, which tern does not run",
                     file, TERN_SPAN_ARG(t->name), t->type, t->extent, place.rows, place.cols,
                     t->bytes, tern_gguf_type_name(t->type));
}
