/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/session/session_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash64.h"
#include "base/in_file.h"
#include "base/out_file.h"

uint64_t tern_session_header_hash(const tern_session_header *header) {
    tern_hash64 h;
    tern_hash64_start(&h);
    tern_hash64_add(&h, header, offsetof(tern_session_header, hash));
    return tern_hash64_value(&h);
}

/* Rows of one head that follow each other in the file: [position][row]. */
static size_t run_bytes(const tern_session *s, uint32_t position) {
    return position * s->pool.row_bytes;
}

static size_t run_count(const tern_session *s) {
    return (size_t)2 * s->model->config.n_layer * s->model->config.n_head_kv;
}

/* The piece of run i of the file that begins at a position, the first one of a page. Runs are in
 * the order [layer][keys, values][kv head]. */
static uint8_t *piece_at(const tern_session *s, size_t i, uint32_t position) {
    const size_t heads = s->model->config.n_head_kv;
    return tern_pool_row(&s->pool, i / heads % 2 != 0, i / heads / 2, i % heads, s->sequence.pages,
                         position);
}

/* Bytes of that piece where the session has `positions` positions: the page holds some of them. */
static size_t piece_bytes(const tern_session *s, uint32_t at, uint32_t positions) {
    return run_bytes(s, positions - at < TERN_PAGE ? positions - at : TERN_PAGE);
}

static uint64_t file_bytes(const tern_session *s, uint32_t position) {
    return sizeof(tern_session_header) + (uint64_t)position * sizeof(int32_t) +
           (uint64_t)run_count(s) * run_bytes(s, position) + sizeof(uint64_t);
}

static tern_session_header header_of(const tern_session *s) {
    const tern_config *c = &s->model->config;
    tern_session_header h = {.version = TERN_SESSION_VERSION,
                             .kv = tern_format_describe(s->pool.kv)->gguf_type,
                             .identity = tern_model_identity(s->model),
                             .n_layer = c->n_layer,
                             .n_head_kv = c->n_head_kv,
                             .head_dim = c->head_dim,
                             .n_vocab = c->n_vocab,
                             .n_ctx = s->sequence.n_ctx,
                             .position = s->sequence.position};
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

static tern_status write_session(const tern_session *s, saving *w, tern_error *err) {
    const tern_session_header header = header_of(s);
    tern_hash64_start(&w->hash);
    tern_status status = put(w, &header, sizeof header, err);
    if (status == TERN_OK)
        status = put(w, s->sequence.tokens, s->sequence.position * sizeof *s->sequence.tokens, err);
    for (size_t i = 0; i < run_count(s); i++)
        for (uint32_t at = 0; at < s->sequence.position && status == TERN_OK; at += TERN_PAGE)
            status = put(w, piece_at(s, i, at), piece_bytes(s, at, s->sequence.position), err);
    const uint64_t hash = tern_hash64_value(&w->hash);
    return status == TERN_OK ? put(w, &hash, sizeof hash, err) : status;
}

static tern_status save(const tern_session *s, const char *path, tern_out_mode mode,
                        tern_error *err) {
    if (!s || !path)
        return tern_fail(err, TERN_ERR_NULL, "tern_session_save needs a session and a path");
    for (uint32_t i = 0; i < s->sequence.position; i++)
        if (s->sequence.tokens[i] == TERN_NO_TOKEN)
            return tern_fail(err, TERN_ERR_STATE,
                             "%s: position %u came from a row, not from a token: such a session "
                             "cannot be saved",
                             path, i);
    saving w = {.file = NULL};
    tern_status status = tern_model_unchanged(s->model, err); /* else its identity means nothing */
    if (status == TERN_OK)
        status = tern_out_file_create(path, mode, &w.file, err);
    if (status != TERN_OK)
        return status;
    status = write_session(s, &w, err);
    if (status == TERN_OK)
        return tern_out_file_commit(&w.file, err);
    tern_out_file_discard(&w.file);
    return status;
}

tern_status tern_session_save(const tern_session *s, const char *path, tern_error *err) {
    return save(s, path, TERN_OUT_REPLACE, err);
}

tern_status tern_session_save_new(const tern_session *s, const char *path, tern_error *err) {
    return save(s, path, TERN_OUT_NEW, err);
}

/* ---- restoring ----------------------------------------------------------------------------- */

enum { CHUNK = 1 << 16 };

typedef struct loading {
    tern_session *session;
    FILE *in;
    const char *name;
    tern_error *err;
    tern_session_header header;
    tern_hash64 hash; /* of what was read */
    uint64_t read;    /* bytes */
    bool bad;         /* a token is outside the vocabulary: this one */
    int32_t bad_token;
    size_t bad_position;
} loading;

static tern_status get(loading *r, void *bytes, size_t n) {
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
                     r->read, file_bytes(r->session, r->header.position));
}

/* What every session file must be, for every reader. */
static tern_status check_header(const loading *r) {
    const tern_session_header *h = &r->header;
    if (memcmp(h->magic, TERN_SESSION_MAGIC, sizeof h->magic) != 0)
        return tern_fail(r->err, TERN_ERR_SESSION, "%s: not a session file", r->name);
    if (h->version != TERN_SESSION_VERSION)
        return tern_fail(r->err, TERN_ERR_SESSION,
                         "%s: a session file of version %u, this tern reads version %u", r->name,
                         h->version, (unsigned)TERN_SESSION_VERSION);
    if (h->hash != tern_session_header_hash(h) || h->reserved != 0)
        return tern_fail(r->err, TERN_ERR_SESSION, "%s: the header of the session file is damaged",
                         r->name);
    return TERN_OK;
}

static const char *cache_name(uint32_t gguf_type) {
    const tern_format format = tern_format_from_gguf(gguf_type);
    return format != TERN_FORMAT_NONE ? tern_format_describe(format)->name : "unknown numbers";
}

/* Whether it is a session of this model, and fits. */
static tern_status check_fit(const loading *r) {
    const tern_session *s = r->session;
    const tern_config *c = &s->model->config;
    const tern_session_header *h = &r->header;
    const uint32_t kv = tern_format_describe(s->pool.kv)->gguf_type;
    if (h->n_layer != c->n_layer || h->n_head_kv != c->n_head_kv || h->head_dim != c->head_dim ||
        h->n_vocab != c->n_vocab)
        return tern_fail(r->err, TERN_ERR_SESSION_MODEL,
                         "%s: a session of another model: %u layers, %u kv heads of %u, vocabulary "
                         "%u; this one has %u, %u of %u, %u",
                         r->name, h->n_layer, h->n_head_kv, h->head_dim, h->n_vocab, c->n_layer,
                         c->n_head_kv, c->head_dim, c->n_vocab);
    if (h->identity != tern_model_identity(s->model))
        return tern_fail(r->err, TERN_ERR_SESSION_MODEL,
                         "%s: a session of another model: identity %016" PRIx64
                         ", this one has %016" PRIx64,
                         r->name, h->identity, tern_model_identity(s->model));
    if (h->kv != kv)
        return tern_fail(r->err, TERN_ERR_SESSION_MODEL,
                         "%s: the session file holds keys and values as %s, this session as %s",
                         r->name, cache_name(h->kv), cache_name(kv));
    if (h->position > s->sequence.n_ctx)
        return tern_fail(r->err, TERN_ERR_CONTEXT,
                         "%s: the session file holds %u positions, the context has %u", r->name,
                         h->position, s->sequence.n_ctx);
    return TERN_OK;
}

/* Remembers the first token that the model does not have: a damaged file is told as such first. */
static void note_tokens(loading *r, const int32_t *tokens, size_t n, size_t first) {
    for (size_t i = 0; i < n && !r->bad; i++) {
        r->bad = tokens[i] < 0 || (uint32_t)tokens[i] >= r->header.n_vocab;
        r->bad_token = tokens[i];
        r->bad_position = first + i;
    }
}

/* Reads what lies after the header and forgets it: *hash is of everything before the hash. */
static tern_status check_body(loading *r, uint64_t *hash) {
    _Alignas(int32_t) uint8_t chunk[CHUNK];
    const uint64_t end = file_bytes(r->session, r->header.position) - sizeof *hash;
    const uint64_t tokens = sizeof r->header + (uint64_t)r->header.position * sizeof(int32_t);
    while (r->read < end) {
        const uint64_t at = r->read;
        const uint64_t left = (at < tokens ? tokens : end) - at;
        const size_t n = left < sizeof chunk ? (size_t)left : sizeof chunk;
        const tern_status status = get(r, chunk, n);
        if (status != TERN_OK)
            return status;
        if (at < tokens)
            note_tokens(r, (const int32_t *)chunk, n / sizeof(int32_t),
                        (size_t)(at - sizeof r->header) / sizeof(int32_t));
    }
    *hash = tern_hash64_value(&r->hash);
    return TERN_OK;
}

static tern_status check_end(loading *r, uint64_t hash) {
    uint64_t stored = 0;
    const tern_status status = get(r, &stored, sizeof stored);
    if (status != TERN_OK)
        return status;
    if (fgetc(r->in) != EOF)
        return tern_fail(r->err, TERN_ERR_SESSION,
                         "%s: the session file goes on after its end at %" PRIu64 " bytes", r->name,
                         r->read);
    if (stored != hash)
        return tern_fail(r->err, TERN_ERR_SESSION,
                         "%s: the session file is damaged: its hash is %016" PRIx64
                         ", it says %016" PRIx64,
                         r->name, hash, stored);
    if (r->bad)
        return tern_fail(r->err, TERN_ERR_TOKEN_RANGE,
                         "%s: the session file has token %d at position %zu, outside the "
                         "vocabulary of %u",
                         r->name, r->bad_token, r->bad_position, r->header.n_vocab);
    return TERN_OK;
}

/* From the beginning of the stream to the end of the header. */
static tern_status get_header(loading *r) {
    rewind(r->in);
    r->read = 0;
    tern_hash64_start(&r->hash);
    return get(r, &r->header, sizeof r->header);
}

/* The second reading, into the session. */
static tern_status take_body(loading *r, uint64_t hash) {
    tern_session *s = r->session;
    tern_status status = get_header(r);
    const uint32_t position = r->header.position;
    if (status == TERN_OK && position <= s->sequence.n_ctx)
        status = get(r, s->sequence.tokens, position * sizeof *s->sequence.tokens);
    for (size_t i = 0; i < run_count(s) && position <= s->sequence.n_ctx; i++)
        for (uint32_t at = 0; at < position && status == TERN_OK; at += TERN_PAGE)
            status = get(r, piece_at(s, i, at), piece_bytes(s, at, position));
    if (status == TERN_OK && tern_hash64_value(&r->hash) != hash)
        status = tern_fail(r->err, TERN_ERR_SESSION, "%s: changed while it was read", r->name);
    tern_session_move(s, status == TERN_OK ? position : 0);
    return status;
}

tern_status tern_session_read(tern_session *s, FILE *in, const char *name, tern_error *err) {
    loading r = {.session = s, .in = in, .name = name, .err = err};
    uint64_t hash = 0;
    tern_status status;
    if ((status = get_header(&r)) || (status = check_header(&r)) || (status = check_fit(&r)) ||
        (status = check_body(&r, &hash)) || (status = check_end(&r, hash)))
        return status;
    return take_body(&r, hash);
}

tern_status tern_session_restore(tern_session *s, const char *path, tern_error *err) {
    FILE *file = NULL;
    if (!s || !path)
        return tern_fail(err, TERN_ERR_NULL, "tern_session_restore needs a session and a path");
    tern_status status = tern_model_unchanged(s->model, err);
    if (status == TERN_OK)
        status = tern_in_file_open(path, TERN_IN_FILE, &file, err);
    if (status != TERN_OK)
        return status;
    status = tern_session_read(s, file, path, err);
    (void)fclose(file);
    return status;
}
