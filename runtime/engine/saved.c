/* SPDX-License-Identifier: Apache-2.0 */

/* Saves sessions from the engine's pages, and loads them. */

#include <stdlib.h>
#include <string.h>

#include "runtime/engine/cache/sequence_file.h"
#include "runtime/engine/internal.h"

/* A sequence outside the engine, also in the form that the schedule reads. */
typedef struct guest {
    tern_sequence sequence; /* [n] tokens, tables of [n / TERN_PAGE] pages; owned */
    tern_job job;
    uint8_t space[TERN_SPACE_BYTES];
} guest;

static void free_guest(guest *g) {
    free(g->sequence.tokens);
    free(g->sequence.pages);
    free(g->sequence.window_pages);
}

/* Makes a guest of n >= TERN_PAGE tokens, which the caller then sets. */
static tern_status new_guest(const tern_engine *e, uint32_t n, const uint8_t *space, guest *g,
                             tern_error *err) {
    const tern_adapters *a = &e->model->adapters;
    tern_adapter_set_space(a, &a->usual, space, g->space);
    g->sequence =
        (tern_sequence){.tokens = calloc(n, sizeof *g->sequence.tokens),
                        .pages = calloc(n / TERN_PAGE, sizeof *g->sequence.pages),
                        .window_pages = calloc(n / TERN_PAGE, sizeof *g->sequence.window_pages),
                        .n_ctx = e->params.n_ctx};
    g->job = (tern_job){.space = g->space,
                        .tokens = g->sequence.tokens,
                        .n_tokens = n,
                        .pages = g->sequence.pages,
                        .window.pages = g->sequence.window_pages};
    if (g->sequence.tokens != NULL && g->sequence.pages != NULL && g->sequence.window_pages != NULL)
        return TERN_OK;
    free_guest(g);
    return tern_fail(err, TERN_ERR_NOMEM, "no memory for a session of %u tokens", n);
}

static tern_status refuse_session(tern_error *err) {
    return tern_fail(err, TERN_ERR_STATE,
                     "the engine of a session: tern_session_save and tern_session_restore are for "
                     "it");
}

tern_status tern_engine_save(const tern_engine *e, const int32_t *tokens, size_t n,
                             const uint8_t *space, const char *path, size_t *positions,
                             tern_error *err) {
    guest g;
    if (e == NULL || (tokens == NULL && n > 0) || path == NULL || positions == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_engine_save: NULL argument");
    *positions = 0;
    if (e->session != NULL)
        return refuse_session(err);
    const uint32_t most = n < e->frame.n_ctx ? (uint32_t)n : e->frame.n_ctx;
    if (most < TERN_PAGE)
        return TERN_OK;
    tern_status status = new_guest(e, most, space, &g, err);
    if (status != TERN_OK)
        return status;
    memcpy(g.sequence.tokens, tokens, most * sizeof *tokens);
    g.sequence.position = tern_schedule_find(e->schedule, &g.job) * TERN_PAGE;
    g.sequence.kept = tern_pool_has_windows(e->pool) ? g.job.window.first : 0;
    if (g.sequence.position > 0)
        status = tern_sequence_save(e->model, e->pool, &g.sequence, path, TERN_OUT_REPLACE, err);
    if (status == TERN_OK)
        *positions = g.sequence.position;
    free_guest(&g);
    return status;
}

/* Reads the file for the second time, into pages. */
static tern_status fill(tern_engine *e, tern_sequence_reader *r, guest *g) {
    tern_status status = tern_sequence_read_tokens(r, g->sequence.tokens);
    if (status != TERN_OK)
        return status;
    if (!tern_schedule_lend(e->schedule, &g->job))
        return tern_fail(r->err, TERN_ERR_CACHE_MEMORY,
                         "%s: the session file holds %u pages of %d positions, the cache of %u "
                         "has no room for them now",
                         r->name, g->job.n_tokens / TERN_PAGE, TERN_PAGE, e->size.pages);
    const tern_sequence_pages parts[TERN_POOL_PARTS] = {
        [TERN_PART_ALL] = {g->job.pages, g->job.n_known, g->job.n_pages},
        [TERN_PART_WINDOW] = {g->job.window.pages, g->job.window.first, g->job.window.end}};
    status = tern_sequence_read_rows(r, parts);
    tern_schedule_take_back(e->schedule, &g->job, status == TERN_OK);
    tern_engine_show(e);
    return status;
}

/* True if a file has whole pages, and of layers with a window the rows that tokens after these
 * pages see. */
static bool has_pages(const tern_engine *e, const tern_session_header *h) {
    const uint32_t whole = h->position / TERN_PAGE * TERN_PAGE;
    const uint32_t window = tern_config_window(&e->model->config);
    if (h->kept == 0 || whole == 0)
        return whole > 0;
    return tern_pool_has_windows(e->pool) &&
           h->kept / TERN_PAGE <= tern_window_first(window, whole);
}

static tern_status load(tern_engine *e, tern_sequence_reader *r, const uint8_t *space,
                        size_t *positions) {
    guest g;
    tern_status status = tern_sequence_check(r);
    if (status != TERN_OK || !has_pages(e, &r->header))
        return status;
    status = new_guest(e, r->header.position, space, &g, r->err);
    if (status != TERN_OK)
        return status;
    status = fill(e, r, &g);
    if (status == TERN_OK)
        *positions = r->header.position / TERN_PAGE * TERN_PAGE;
    free_guest(&g);
    return status;
}

tern_status tern_engine_load(tern_engine *e, const char *path, const uint8_t *space,
                             size_t *positions, tern_error *err) {
    if (e == NULL || path == NULL || positions == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_engine_load: NULL argument");
    *positions = 0;
    if (e->session != NULL)
        return refuse_session(err);
    if (tern_config_delta_layers(&e->model->config) > 0)
        return tern_fail(err, TERN_ERR_UNIMPLEMENTED,
                         "%s: an engine of many sequences does not take sessions of a model with "
                         "delta nets",
                         path);
    tern_sequence_reader r = {.model = e->model,
                              .pool = e->pool,
                              .n_ctx = e->params.n_ctx,
                              .holder = "engine",
                              .name = path,
                              .err = err};
    tern_status status = tern_sequence_file_open(e->model, path, &r.in, err);
    if (status != TERN_OK)
        return status;
    status = load(e, &r, space, positions);
    (void)fclose(r.in);
    return status;
}
