/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/engine/cache/sequence_file.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/hash64.h"
#include "base/in_file.h"
#include "base/out_file.h"

uint64_t tern_session_header_hash(const tern_session_header *header) {
    return tern_hash64_of(header, offsetof(tern_session_header, hash));
}

/* Consecutive rows of one head, in the order [layer][keys, values][kv head]. */
typedef struct run {
    bool value;
    uint32_t layer;
    size_t head;
    uint32_t first; /* position of its first row: for layers with a window the first one kept */
} run;

static size_t run_count(const tern_pool *pool) {
    return (size_t)2 * tern_pool_layers(pool) * pool->n_head_kv;
}

static run run_at(const tern_pool *pool, const tern_model *m, size_t i, uint32_t kept) {
    const size_t heads = pool->n_head_kv;
    const uint32_t layer = tern_pool_layer_at(pool, (uint32_t)(i / heads / 2));
    return (run){.value = i / heads % 2 != 0,
                 .layer = layer,
                 .head = i % heads,
                 .first = tern_config_has_window(&m->config, layer) ? kept : 0};
}

/* The piece of a run in one page, whose first position is given. */
static uint8_t *piece_at(const tern_pool *pool, const run *i, const uint32_t *pages,
                         uint32_t position) {
    return tern_pool_row(pool, i->value, i->layer, i->head, pages, position);
}

/* Bytes of that piece when the file has `positions` positions: the last page may be partly
 * filled. */
static size_t piece_bytes(const tern_pool *pool, uint32_t at, uint32_t positions) {
    return (positions - at < TERN_PAGE ? positions - at : TERN_PAGE) * pool->row_bytes;
}

/* Bytes of the states of delta nets, which follow the rows. */
static size_t state_bytes(const tern_pool *pool) {
    return pool->n_states > 0 ? pool->state_stride * sizeof *pool->states : 0;
}

static uint64_t file_bytes(const tern_pool *pool, const tern_model *m, uint32_t position,
                           uint32_t kept) {
    uint64_t rows = 0;
    for (size_t i = 0; i < run_count(pool); i++)
        rows += position - run_at(pool, m, i, kept).first;
    return sizeof(tern_session_header) + (uint64_t)position * sizeof(int32_t) +
           rows * pool->row_bytes + state_bytes(pool) + sizeof(uint64_t);
}

static tern_session_header header_of(const tern_model *m, const tern_pool *pool,
                                     const tern_sequence *q) {
    const tern_config *c = &m->config;
    const uint32_t kept = q->kept * TERN_PAGE;
    tern_session_header h = {.version = kept > 0 ? TERN_SESSION_VERSION_KEPT : TERN_SESSION_VERSION,
                             .kv = tern_format_describe(pool->kv)->gguf_type,
                             .identity = tern_model_identity(m),
                             .n_layer = c->n_layer,
                             .n_head_kv = c->n_head_kv,
                             .head_dim = c->head_dim,
                             .n_vocab = c->n_vocab,
                             .n_ctx = q->n_ctx,
                             .position = q->position,
                             .precision = (uint32_t)m->precision,
                             .kept = kept};
    memcpy(h.magic, TERN_SESSION_MAGIC, sizeof h.magic);
    h.hash = tern_session_header_hash(&h);
    return h;
}

/* ---- saving -------------------------------------------------------------------------------- */

typedef struct saving {
    tern_out_file *file;
    tern_hash64 hash;
} saving;

static tern_status put(saving *w, const void *bytes, size_t n, tern_error *err) {
    tern_hash64_add(&w->hash, bytes, n);
    return n > 0 ? tern_out_file_write(w->file, bytes, n, err) : TERN_OK;
}

static tern_status write_run(const tern_model *m, const tern_pool *pool, const tern_sequence *q,
                             size_t i, uint32_t kept, saving *w, tern_error *err) {
    const run r = run_at(pool, m, i, kept);
    const bool all = tern_pool_part_of(pool, r.layer) == TERN_PART_ALL;
    const uint32_t *pages = all ? q->pages : q->window_pages;
    tern_status status = TERN_OK;
    for (uint32_t at = r.first; at < q->position && status == TERN_OK; at += TERN_PAGE) {
        uint8_t *piece = piece_at(pool, &r, pages, at);
        const size_t bytes = piece_bytes(pool, at, q->position);
        status = tern_pool_fetch(pool, piece, bytes, err);
        status = status == TERN_OK ? put(w, piece, bytes, err) : status;
    }
    return status;
}

static tern_status write_sequence(const tern_model *m, const tern_pool *pool,
                                  const tern_sequence *q, saving *w, tern_error *err) {
    const tern_session_header header = header_of(m, pool, q);
    tern_hash64_start(&w->hash);
    tern_status status = put(w, &header, sizeof header, err);
    if (status == TERN_OK)
        status = put(w, q->tokens, q->position * sizeof *q->tokens, err);
    for (size_t i = 0; i < run_count(pool); i++)
        status = status == TERN_OK ? write_run(m, pool, q, i, header.kept, w, err) : status;
    if (status == TERN_OK)
        status = put(w, pool->states, state_bytes(pool), err);
    const uint64_t hash = tern_hash64_value(&w->hash);
    return status == TERN_OK ? put(w, &hash, sizeof hash, err) : status;
}

tern_status tern_sequence_save(const tern_model *m, const tern_pool *pool, const tern_sequence *q,
                               const char *path, tern_out_mode mode, tern_error *err) {
    saving w = {.file = NULL};
    tern_status status = tern_model_unchanged(m, err); /* otherwise its identity means nothing */
    if (status == TERN_OK)
        status = tern_out_file_create(path, mode, &w.file, err);
    if (status != TERN_OK)
        return status;
    status = write_sequence(m, pool, q, &w, err);
    if (status == TERN_OK)
        return tern_out_file_commit(&w.file, err);
    tern_out_file_discard(&w.file);
    return status;
}

/* ---- restoring ----------------------------------------------------------------------------- */

enum { CHUNK = 1 << 16 };

static tern_status get(tern_sequence_reader *r, void *bytes, size_t n) {
    const size_t got = n > 0 ? fread(bytes, 1, n, r->in) : 0;
    r->read += got;
    tern_hash64_add(&r->hash, bytes, got);
    if (got == n)
        return TERN_OK;
    if (ferror(r->in))
        return tern_fail(r->err, TERN_ERR_IO, "%s: cannot be read: %s", r->name, strerror(errno));
    if (r->read < sizeof r->header)
        return tern_fail(r->err, TERN_ERR_SESSION,
                         "%s: not a session file: %" PRIu64 " bytes, its header has %zu", r->name,
                         r->read, sizeof r->header);
    return tern_fail(r->err, TERN_ERR_SESSION,
                     "%s: the session file ends after %" PRIu64 " of %" PRIu64 " bytes", r->name,
                     r->read, file_bytes(r->pool, r->model, r->header.position, r->header.kept));
}

/* Checks what holds for every session file. */
static tern_status check_header(const tern_sequence_reader *r) {
    const tern_session_header *h = &r->header;
    if (memcmp(h->magic, TERN_SESSION_MAGIC, sizeof h->magic) != 0)
        return tern_fail(r->err, TERN_ERR_SESSION, "%s: not a session file", r->name);
    if (h->version != TERN_SESSION_VERSION && h->version != TERN_SESSION_VERSION_KEPT)
        return tern_fail(r->err, TERN_ERR_SESSION,
                         "%s: a session file of version %u, this tern reads versions %u and %u",
                         r->name, h->version, (unsigned)TERN_SESSION_VERSION,
                         (unsigned)TERN_SESSION_VERSION_KEPT);
    if (h->hash != tern_session_header_hash(h) || h->kept % TERN_PAGE != 0 ||
        (h->kept > 0) != (h->version == TERN_SESSION_VERSION_KEPT))
        return tern_fail(r->err, TERN_ERR_SESSION, "%s: the header of the session file is damaged",
                         r->name);
    return TERN_OK;
}

static const char *cache_name(uint32_t gguf_type) {
    const tern_format format = tern_format_from_gguf(gguf_type);
    return format != TERN_FORMAT_NONE ? tern_format_describe(format)->name : "unknown numbers";
}

static const char *precision_name(uint32_t precision) {
    const char *name = tern_precision_name(precision);
    return name != NULL ? name : "a precision that is not known here";
}

/* Checks that layers with a window have all rows that a token after the last position sees. */
static tern_status check_kept(const tern_sequence_reader *r) {
    const tern_session_header *h = &r->header;
    const uint32_t window = tern_config_window(&r->model->config);
    const uint32_t first = window > 0 ? tern_window_first(window, h->position) * TERN_PAGE : 0;
    if (h->kept > first)
        return tern_fail(r->err, TERN_ERR_SESSION,
                         "%s: the session file has layers with a window from position %u on, what "
                         "follows its %u positions needs them from %u on",
                         r->name, h->kept, h->position, first);
    return TERN_OK;
}

/* Checks that the session belongs to this model, and fits. */
static tern_status check_fit(const tern_sequence_reader *r) {
    const tern_config *c = &r->model->config;
    const tern_session_header *h = &r->header;
    const uint32_t kv = tern_format_describe(r->pool->kv)->gguf_type;
    if (h->n_layer != c->n_layer || h->n_head_kv != c->n_head_kv || h->head_dim != c->head_dim ||
        h->n_vocab != c->n_vocab)
        return tern_fail(r->err, TERN_ERR_SESSION_MODEL,
                         "%s: a session of another model: %u layers, %u kv heads of %u, vocabulary "
                         "%u; this one has %u, %u of %u, %u",
                         r->name, h->n_layer, h->n_head_kv, h->head_dim, h->n_vocab, c->n_layer,
                         c->n_head_kv, c->head_dim, c->n_vocab);
    if (h->precision != (uint32_t)r->model->precision)
        return tern_fail(r->err, TERN_ERR_SESSION_MODEL,
                         "%s: the session file was computed with activations in %s, this %s in %s",
                         r->name, precision_name(h->precision), r->holder,
                         tern_precision_name(r->model->precision));
    if (h->identity != tern_model_identity(r->model))
        return tern_fail(r->err, TERN_ERR_SESSION_MODEL,
                         "%s: a session of another model: identity %016" PRIx64
                         ", this one has %016" PRIx64 ", adapters included",
                         r->name, h->identity, tern_model_identity(r->model));
    if (h->kv != kv)
        return tern_fail(r->err, TERN_ERR_SESSION_MODEL,
                         "%s: the session file holds keys and values as %s, this %s as %s", r->name,
                         cache_name(h->kv), r->holder, cache_name(kv));
    if (h->position > r->n_ctx)
        return tern_fail(r->err, TERN_ERR_CONTEXT,
                         "%s: the session file holds %u positions, the context has %u", r->name,
                         h->position, r->n_ctx);
    return check_kept(r);
}

/* Notes the first token outside the vocabulary. It is reported last, since damage comes first. */
static void note_tokens(tern_sequence_reader *r, const int32_t *tokens, size_t n, size_t first) {
    for (size_t i = 0; i < n && !r->bad; i++) {
        r->bad = tokens[i] < 0 || (uint32_t)tokens[i] >= r->header.n_vocab;
        r->bad_token = tokens[i];
        r->bad_position = first + i;
    }
}

static tern_status check_tokens(tern_sequence_reader *r) {
    int32_t chunk[CHUNK / sizeof(int32_t)];
    tern_status status = TERN_OK;
    for (uint32_t at = 0, n; at < r->header.position && status == TERN_OK; at += n) {
        const uint32_t left = r->header.position - at;
        n = left < sizeof chunk / sizeof *chunk ? left : (uint32_t)(sizeof chunk / sizeof *chunk);
        status = get(r, chunk, n * sizeof *chunk);
        if (status == TERN_OK)
            note_tokens(r, chunk, n, at);
    }
    return status;
}

/* Reads n bytes and forgets them. */
static tern_status skip(tern_sequence_reader *r, uint64_t n) {
    uint8_t chunk[CHUNK];
    tern_status status = TERN_OK;
    for (size_t size; n > 0 && status == TERN_OK; n -= size) {
        size = n < sizeof chunk ? (size_t)n : sizeof chunk;
        status = get(r, chunk, size);
    }
    return status;
}

static tern_status check_end(tern_sequence_reader *r) {
    uint64_t stored = 0;
    r->whole = tern_hash64_value(&r->hash);
    const tern_status status = get(r, &stored, sizeof stored);
    if (status != TERN_OK)
        return status;
    if (fgetc(r->in) != EOF)
        return tern_fail(r->err, TERN_ERR_SESSION,
                         "%s: the session file goes on after its end at %" PRIu64 " bytes", r->name,
                         r->read);
    if (stored != r->whole)
        return tern_fail(r->err, TERN_ERR_SESSION,
                         "%s: the session file is damaged: its hash is %016" PRIx64
                         ", it says %016" PRIx64,
                         r->name, r->whole, stored);
    if (r->bad)
        return tern_fail(r->err, TERN_ERR_TOKEN_RANGE,
                         "%s: the session file has token %d at position %zu, outside the "
                         "vocabulary of %u",
                         r->name, r->bad_token, r->bad_position, r->header.n_vocab);
    return TERN_OK;
}

/* Reads the header, from the beginning of the stream. */
static tern_status get_header(tern_sequence_reader *r) {
    rewind(r->in);
    r->read = 0;
    tern_hash64_start(&r->hash);
    return get(r, &r->header, sizeof r->header);
}

tern_status tern_sequence_check(tern_sequence_reader *r) {
    tern_status status;
    if ((status = get_header(r)) || (status = check_header(r)) || (status = check_fit(r)) ||
        (status = check_tokens(r)))
        return status;
    status = skip(r, file_bytes(r->pool, r->model, r->header.position, r->header.kept) -
                         sizeof r->whole - r->read);
    return status == TERN_OK ? check_end(r) : status;
}

static tern_status changed(const tern_sequence_reader *r) {
    return tern_fail(r->err, TERN_ERR_SESSION, "%s: changed while it was read", r->name);
}

tern_status tern_sequence_read_tokens(tern_sequence_reader *r, int32_t *tokens) {
    const tern_session_header first = r->header;
    const tern_status status = get_header(r);
    if (status != TERN_OK)
        return status;
    if (memcmp(&first, &r->header, sizeof first) != 0)
        return changed(r);
    return get(r, tokens, first.position * sizeof *tokens);
}

/* Reads rows into the pool, and on to the device where passes read them. */
static tern_status get_rows(tern_sequence_reader *r, uint8_t *rows, size_t bytes) {
    const tern_status status = get(r, rows, bytes);
    return status == TERN_OK ? tern_pool_send(r->pool, rows, bytes, r->err) : status;
}

static tern_status read_run(tern_sequence_reader *r, size_t number,
                            const tern_sequence_pages *parts) {
    const run i = run_at(r->pool, r->model, number, r->header.kept);
    const tern_sequence_pages *to = &parts[tern_pool_part_of(r->pool, i.layer)];
    tern_status status = TERN_OK;
    for (uint32_t at = i.first; at < r->header.position && status == TERN_OK; at += TERN_PAGE) {
        const size_t bytes = piece_bytes(r->pool, at, r->header.position);
        const uint32_t page = at / TERN_PAGE;
        status = page >= to->first && page < to->end
                     ? get_rows(r, piece_at(r->pool, &i, to->pages, at), bytes)
                     : skip(r, bytes);
    }
    return status;
}

tern_status tern_sequence_read_rows(tern_sequence_reader *r,
                                    const tern_sequence_pages parts[TERN_POOL_PARTS]) {
    tern_status status = TERN_OK;
    for (size_t i = 0; i < run_count(r->pool) && status == TERN_OK; i++)
        status = read_run(r, i, parts);
    if (status == TERN_OK && state_bytes(r->pool) > 0)
        status = get(r, r->pool->states, state_bytes(r->pool));
    return status == TERN_OK && tern_hash64_value(&r->hash) != r->whole ? changed(r) : status;
}

tern_status tern_sequence_file_open(const tern_model *m, const char *path, FILE **file,
                                    tern_error *err) {
    const tern_status status = tern_model_unchanged(m, err);
    return status == TERN_OK ? tern_in_file_open(path, TERN_IN_FILE, file, err) : status;
}
