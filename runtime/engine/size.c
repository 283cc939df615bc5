/* SPDX-License-Identifier: Apache-2.0 */

/* Parameters of an engine, and the division of its memory into pages. */

#include "runtime/engine/internal.h"

enum {
    DEFAULT_SEQUENCES = 16,
    DEFAULT_QUEUE = 256,
    DEFAULT_BATCH = 128,
    MOST_BRANCHES = 1 << 20,
    SPARE = 8 /* one page more of layers with a window for this many pages of the others */
};

static uint32_t or_default(uint32_t n, uint32_t otherwise) {
    return n ? n : otherwise;
}

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

tern_status tern_engine_set_params(const tern_model *model, const tern_engine_params *given,
                                   tern_engine_params *out, tern_error *err) {
    tern_engine_params p = *given;
    p.n_ctx = or_default(p.n_ctx, tern_model_default_context(model));
    p.n_sequences = or_default(p.n_sequences, DEFAULT_SEQUENCES);
    p.n_queue = or_default(p.n_queue, DEFAULT_QUEUE);
    p.n_batch = or_default(p.n_batch, DEFAULT_BATCH);
    if (!tern_model_continues(model) && p.n_batch < p.n_ctx)
        p.n_batch = p.n_ctx; /* a text is computed in one pass */
    p.threads = tern_model_threads(model, p.threads);
    const tern_session_params session = {
        .n_ctx = p.n_ctx, .n_batch = p.n_batch, .threads = given->threads, .kv = p.kv};
    uint64_t bytes;
    const tern_status status = tern_session_bytes(model, &session, &bytes, err);
    if (status != TERN_OK)
        return status;
    if (!(p.gap_seconds >= 0.0))
        return tern_fail(err, TERN_ERR_ARG, "a gap of %g seconds between tokens", p.gap_seconds);
    if (p.n_sequences > MOST_BRANCHES || p.n_queue > MOST_BRANCHES)
        return tern_fail(err, TERN_ERR_ARG, "%u sequences or a queue of %u exceed %u",
                         p.n_sequences, p.n_queue, (unsigned)MOST_BRANCHES);
    *out = p;
    return TERN_OK;
}

/*
 * The size of a pool with this many pages, and the pages of layers with a window that go with them.
 * If all layers have a window, these serve as many whole contexts as `pages` do. Otherwise they
 * serve all sequences that run at once, and some more so that prompts can be found again. There are
 * never more than `pages`, since each is useful only together with one of those.
 */
static tern_pool_size size_of(const tern_config *c, const tern_engine_params *p, uint64_t pages) {
    const uint32_t window = tern_config_window(c), each = tern_pages_of(p->n_ctx);
    const uint64_t quota = window > 0 ? tern_window_quota(window, p->n_batch, p->n_ctx) : each;
    uint64_t some = quota * p->n_sequences + pages / SPARE;
    bool all = true;
    for (uint32_t i = 0; i < c->n_layer; i++)
        all = all && tern_config_has_window(c, i);
    if (all)
        some = quota * ((pages + each - 1) / each);
    return (tern_pool_size){.pages = (uint32_t)pages,
                            .window_pages = quota < each ? (uint32_t)smaller(some, pages) : 0,
                            .states = p->n_sequences};
}

/* Bytes of this many pages; UINT64_MAX if they exceed the address space. */
static uint64_t bytes_of(const tern_model *m, const tern_engine_params *p, uint64_t pages) {
    size_t bytes = 0;
    return tern_pool_bytes(m, p->kv, size_of(&m->config, p, pages), &bytes, NULL) == TERN_OK
               ? bytes
               : UINT64_MAX;
}

/* The largest number of pages, up to `most`, that fits into `bytes`. */
static uint64_t pages_in(const tern_model *m, const tern_engine_params *p, uint64_t bytes,
                         uint64_t most) {
    uint64_t fit = 0;
    while (fit < most) {
        const uint64_t middle = most - (most - fit) / 2;
        if (bytes_of(m, p, middle) <= bytes)
            fit = middle;
        else
            most = middle - 1;
    }
    return fit;
}

tern_status tern_engine_find_pages(const tern_model *model, const tern_engine_params *params,
                                   tern_pool_size *size, tern_error *err) {
    const uint64_t most = UINT32_MAX / 4;
    const uint64_t n = params->pool_bytes ? pages_in(model, params, params->pool_bytes, most + 1)
                                          : tern_pages_of(params->n_ctx);
    if (n == 0 || n > most)
        return tern_fail(err, TERN_ERR_ARG,
                         "a cache of %llu bytes, in pages of %llu bytes for %d positions",
                         (unsigned long long)params->pool_bytes,
                         (unsigned long long)bytes_of(model, params, 1), TERN_PAGE);
    *size = size_of(&model->config, params, n);
    return TERN_OK;
}

tern_status tern_engine_pool_bytes(const tern_model *model, const tern_engine_params *params,
                                   uint64_t positions, uint64_t *bytes, tern_error *err) {
    tern_engine_params p;
    if (model == NULL || params == NULL || bytes == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_engine_pool_bytes: NULL argument");
    const tern_status status = tern_engine_set_params(model, params, &p, err);
    if (status != TERN_OK)
        return status;
    const uint64_t pages = positions / TERN_PAGE + (positions % TERN_PAGE > 0);
    if (pages > UINT32_MAX / 4)
        return tern_fail(err, TERN_ERR_ARG, "a cache of %llu positions",
                         (unsigned long long)positions);
    *bytes = bytes_of(model, &p, pages);
    return TERN_OK;
}
