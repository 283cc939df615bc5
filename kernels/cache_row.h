/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_CACHE_ROW_H
#define TERN_KERNELS_CACHE_ROW_H

#include <stddef.h>

#include "tern/kernels.h"

/* Bytes of one cache row, the keys or values of a position and head: whole blocks. */
static inline size_t tern_cache_row_bytes(tern_format kv, size_t head_dim) {
    const tern_format_info *info = tern_format_describe(kv);
    return (head_dim + info->block_elements - 1) / info->block_elements * info->block_bytes;
}

/* Bytes of the rows of a chunk of positions. */
static inline size_t tern_cache_page_bytes(tern_format kv, size_t head_dim) {
    return TERN_ATTEND_CHUNK * tern_cache_row_bytes(kv, head_dim);
}

#endif
