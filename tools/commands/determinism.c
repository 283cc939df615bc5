/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/commands/determinism.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "tools/cli/kv_layers.h"
#include "tools/cli/output.h"

static size_t cache_bytes(const record *r) {
    return (size_t)r->layers * 2 * r->heads * r->positions * r->row_bytes;
}

static uint8_t *cache_row(const record *r, uint32_t layer, bool value, uint32_t head,
                          uint32_t position) {
    const size_t row = (((size_t)layer * 2 + value) * r->heads + head) * r->positions + position;
    return r->cache + row * r->row_bytes;
}

bool record_new(const tern_model *model, tern_format kv, uint32_t positions, record *r) {
    tern_model_info info;
    tern_model_describe(model, &info);
    *r = (record){.layers = info.n_layer,
                  .heads = info.n_head_kv,
                  .positions = positions,
                  .n_vocab = info.n_vocab};
    r->row_bytes = (size_t)tern_model_kv_bytes(model, 1, kv) / 2 / kept_layers_of(model, kv).n /
                   info.n_head_kv;
    r->cache = calloc(cache_bytes(r), 1);
    r->logits = record_logits_buffer(r);
    if (r->cache == NULL || r->logits == NULL) {
        complain("no memory for the cache and logits of %u positions", positions);
        return false;
    }
    return true;
}

float *record_logits_buffer(const record *r) {
    const size_t floats = (size_t)r->positions * r->n_vocab + TERN_LANES;
    return aligned_alloc(TERN_ALIGN, floats / TERN_LANES * TERN_LANES * sizeof(float));
}

void record_free(record *r) {
    free(r->cache);
    free(r->logits);
    *r = (record){0};
}

void record_cache(record *r, const tern_session *session) {
    for (uint32_t layer = 0; layer < r->layers; layer++) {
        for (int value = 0; value < 2; value++) {
            for (uint32_t head = 0; head < r->heads; head++) {
                for (uint32_t i = 0; i < r->positions; i++) {
                    const void *row = tern_session_kv(session, value, layer, head, i);
                    if (row != NULL) /* a delta net has none: its row of the record stays 0 */
                        memcpy(cache_row(r, layer, value, head, i), row, r->row_bytes);
                }
            }
        }
    }
}

void record_hash(const record *r, char hex[65]) {
    tern_sha256 hash;
    tern_sha256_start(&hash);
    tern_sha256_add(&hash, r->cache, cache_bytes(r));
    tern_sha256_add(&hash, r->logits, (size_t)r->positions * r->n_vocab * sizeof *r->logits);
    tern_sha256_finish(&hash, hex);
}

/* Finds a difference in one layer's keys or values; part is RECORD_SAME if there is none. */
static record_difference compare_layer(const record *a, const record *b, uint32_t layer,
                                       bool value) {
    for (uint32_t i = 0; i < a->positions; i++) {
        for (uint32_t head = 0; head < a->heads; head++) {
            if (memcmp(cache_row(a, layer, value, head, i), cache_row(b, layer, value, head, i),
                       a->row_bytes) != 0) {
                return (record_difference){.part = value ? RECORD_VALUES : RECORD_KEYS,
                                           .layer = layer,
                                           .head = head,
                                           .position = i};
            }
        }
    }
    return (record_difference){.part = RECORD_SAME};
}

record_difference record_compare(const record *a, const record *b) {
    for (uint32_t layer = 0; layer < a->layers; layer++) {
        for (int value = 0; value < 2; value++) {
            const record_difference d = compare_layer(a, b, layer, value);
            if (d.part != RECORD_SAME)
                return d;
        }
    }
    for (uint32_t i = 0; i < a->positions; i++) {
        for (uint32_t token = 0; token < a->n_vocab; token++) {
            const size_t at = (size_t)i * a->n_vocab + token;
            if (memcmp(&a->logits[at], &b->logits[at], sizeof *a->logits) != 0)
                return (record_difference){.part = RECORD_LOGITS, .position = i, .index = token};
        }
    }
    return (record_difference){.part = RECORD_SAME};
}

void record_describe(const record *r, const record_difference *d, char *text, size_t size) {
    switch (d->part) {
    case RECORD_SAME:
        snprintf(text, size, "the same");
        break;
    case RECORD_LOGITS:
        snprintf(text, size,
                 "logit of token %u at position %u; all keys and values are the same, so look at "
                 "layer %u after its values, and at the head",
                 d->index, d->position, r->layers - 1);
        break;
    case RECORD_VALUES:
        snprintf(text, size,
                 "layer %u, value of head %u at position %u; the layer's keys are the same, so "
                 "look at attn_v",
                 d->layer, d->head, d->position);
        break;
    default:
        snprintf(text, size,
                 "layer %u, key of head %u at position %u; look at %s, attn_norm, attn_k and rope "
                 "of layer %u",
                 d->layer, d->head, d->position,
                 d->layer == 0 ? "the embedding" : "the layer before, after its values", d->layer);
        break;
    }
}
