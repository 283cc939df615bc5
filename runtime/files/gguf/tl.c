/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out what a tensor of type 38 or 39 is. 38 is TL1 in one family of programs and was
 * something else in another; 39 is TL2 in the first and MXFP4 in the second. The bytes that a
 * tensor takes tell. If both sizes fit, which takes an alignment of many pages, the architecture
 * tells.
 */

#include "kernels/iebs.h"
#include "kernels/import.h"
#include "runtime/files/gguf/i2s_detect.h"
#include "runtime/files/gguf/internal.h"

static uint64_t rows_of(const tern_gguf_tensor *t) {
    return t->ne[1] * t->ne[2] * t->ne[3]; /* the parser checked the product */
}

uint64_t tern_gguf_tl_bytes(const tern_gguf_tensor *t) {
    const tern_tl_kind kind = t->type == TERN_GGUF_TL1 ? TERN_TL1 : TERN_TL2;
    uint64_t at;
    return tern_tl_scale_at(kind, rows_of(t), t->ne[0], &at) ? at + TERN_I2S_TRAILER_BYTES : 0;
}

uint64_t tern_gguf_mxfp4_bytes(const tern_gguf_tensor *t) {
    uint64_t bytes;
    return tern_format_bytes(TERN_FORMAT_MXFP4, rows_of(t), t->ne[0], &bytes) == TERN_OK ? bytes
                                                                                         : 0;
}

uint64_t tern_gguf_tl_detect(const tern_gguf_tensor *t, uint32_t alignment, bool last,
                             bool ternary) {
    const tern_i2s_place place = {.extent = t->extent, .alignment = alignment, .last = last};
    const uint64_t tl = tern_gguf_tl_bytes(t), mxfp4 = tern_gguf_mxfp4_bytes(t);
    const bool is_tl = tl > 0 && tern_i2s_takes(&place, tl);
    const bool is_mxfp4 = t->type == TERN_GGUF_TL2 && mxfp4 > 0 && tern_i2s_takes(&place, mxfp4);
    if (is_tl && (!is_mxfp4 || ternary))
        return tl;
    return is_mxfp4 ? mxfp4 : 0;
}

tern_tl_kind tern_gguf_tiled(const tern_gguf_tensor *t) {
    if (t->type == TERN_GGUF_TL1)
        return t->bytes > 0 ? TERN_TL1 : 0;
    return t->type == TERN_GGUF_TL2 && t->bytes > 0 && t->bytes == tern_gguf_tl_bytes(t) ? TERN_TL2
                                                                                         : 0;
}

tern_bn_kind tern_gguf_bn(const tern_gguf_tensor *t) {
    switch (t->type) {
    case TERN_GGUF_IQ1_BN:
        return TERN_IQ1_BN;
    case TERN_GGUF_IQ2_BN:
        return TERN_IQ2_BN;
    case TERN_GGUF_IQ2_BN_R4:
        return TERN_IQ2_BN_R4;
    default:
        return 0;
    }
}

tern_format tern_gguf_format(const tern_gguf_tensor *t) {
    if (t->int4.group > 0)
        return TERN_FORMAT_INT4;
    if (t->type == TERN_GGUF_SPARSE_TYPE)
        return tern_iebs_view(t->data).format;
    if (tern_gguf_tiled(t) || tern_gguf_bn(t))
        return TERN_FORMAT_I2_S;
    return t->type == TERN_GGUF_TL2 && t->bytes == 0 ? TERN_FORMAT_NONE
                                                     : tern_format_from_gguf(t->type);
}

const char *tern_gguf_tensor_type(const tern_gguf_tensor *t) {
    if (t->type == TERN_GGUF_TL2 && t->bytes > 0)
        return tern_gguf_tiled(t) ? "tl2" : "mxfp4";
    return tern_gguf_type_name(t->type);
}
