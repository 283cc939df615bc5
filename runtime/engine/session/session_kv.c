/* SPDX-License-Identifier: Apache-2.0 */

/* Read access to the cache. */

#include <string.h>

#include "kernels/half.h"
#include "runtime/engine/session.h"

const void *tern_session_kv(const tern_session *s, bool value, uint32_t layer, uint32_t head,
                            uint32_t position) {
    const tern_config *c = &s->model->config;
    if (layer >= c->n_layer || tern_config_is_delta(c, layer) || head >= c->n_head_kv ||
        position >= s->sequence.position)
        return NULL;
    const tern_sequence *q = &s->sequence;
    const bool all = tern_pool_part_of(&s->pool, layer) == TERN_PART_ALL;
    if (tern_config_has_window(c, layer) && position / TERN_PAGE < q->kept)
        return NULL;
    uint8_t *row =
        tern_pool_row(&s->pool, value, layer, head, all ? q->pages : q->window_pages, position);
    return tern_pool_fetch(&s->pool, row, s->pool.row_bytes, NULL) == TERN_OK ? row : NULL;
}

/* Element i of a q8_0 row, which has blocks of an f16 scale and TERN_BLOCK signed bytes. */
static float q8_0_at(const uint8_t *row, size_t i) {
    const uint8_t *block = row + i / TERN_BLOCK * (2 + TERN_BLOCK);
    return (float)(int8_t)block[2 + i % TERN_BLOCK] * tern_f16_load(block);
}

bool tern_session_kv_floats(const tern_session *s, bool value, uint32_t layer, uint32_t head,
                            uint32_t position, float *out) {
    const uint8_t *row = tern_session_kv(s, value, layer, head, position);
    const size_t dim = s->model->config.head_dim;
    if (row == NULL)
        return false;
    if (s->pool.kv == TERN_FORMAT_F32)
        memcpy(out, row, dim * sizeof *out);
    else if (s->pool.kv == TERN_FORMAT_F16)
        for (size_t i = 0; i < dim; i++)
            out[i] = tern_f16_load(row + 2 * i);
    else
        for (size_t i = 0; i < dim; i++)
            out[i] = q8_0_at(row, i);
    return true;
}
