/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_CACHE_SEQUENCE_FILE_H
#define TERN_RUNTIME_ENGINE_CACHE_SEQUENCE_FILE_H

/*
 * A sequence as a file (docs/sessions.md): a header, the tokens, the rows of the cache in use, the
 * states of delta nets, a hash. Only sequences that have the first of the pool's states are saved
 * or read where there are states. Little endian, without padding. Rows go from pages to the file
 * and back; the file is the same whether the pages are a session's or an engine's.
 */

#include <stdio.h>

#include "base/hash64.h"
#include "base/out_file.h"
#include "runtime/engine/cache/pool.h"
#include "runtime/engine/cache/sequence.h"

#define TERN_SESSION_MAGIC "TERNSES\n"
/* Raised when the format changes, or when the arithmetic does: rows computed by other rules would
 * not be the ones this tern computes. A file whose layers with a window lack positions has version
 * 4, all others version 3; versions 1 and 2 were the same before TERN_NUMERICS_VERSION 2. */
enum { TERN_SESSION_VERSION = 3, TERN_SESSION_VERSION_KEPT = 4 };

typedef struct tern_session_header {
    char magic[8];
    uint32_t version;
    uint32_t kv;        /* GGUF type of the cache: 0 f32, 1 f16, 8 q8_0 */
    uint64_t identity;  /* of the model, see tern_model_identity */
    uint32_t n_layer;   /* these four are the model's; they allow the size of the file */
    uint32_t n_head_kv; /* to be checked without the model */
    uint32_t head_dim;  /* elements */
    uint32_t n_vocab;
    uint32_t n_ctx;     /* of the saved sequence; nothing depends on it */
    uint32_t position;  /* tokens, and rows of each head */
    uint32_t precision; /* of activations, a tern_precision; 0: the model's own */
    uint32_t kept;      /* the first position that layers with a window have rows for: a multiple of
                           TERN_PAGE, above 0 in version 4 and 0 in version 3 */
    uint64_t hash;      /* of the bytes before */
} tern_session_header;

_Static_assert(sizeof(tern_session_header) == 64, "the header of a session file has 64 bytes");

/* Hash of the header's bytes before `hash`. */
uint64_t tern_session_header_hash(const tern_session_header *header);

/* Writes all positions of a sequence of this model, and for layers with a window those positions
 * that it has. TERN_ERR_IO, and the errors of tern_model_unchanged. */
TERN_MUST_CHECK tern_status tern_sequence_save(const tern_model *m, const tern_pool *pool,
                                               const tern_sequence *q, const char *path,
                                               tern_out_mode mode, tern_error *err);

/*
 * A file is read twice: tern_sequence_check reads all of it; then tern_sequence_read_tokens and
 * tern_sequence_read_rows, in this order, take its content. So a refused file changes nothing.
 */
typedef struct tern_sequence_reader {
    /* Set by the maker. */
    const tern_model *model;
    const tern_pool *pool;
    uint32_t n_ctx;     /* positions that fit */
    const char *holder; /* whose cache the pool is, for messages: "session" */
    FILE *in;           /* must allow reading twice */
    const char *name;   /* of the file, for messages */
    tern_error *err;

    tern_session_header header; /* set by tern_sequence_check */

    /* Private. */
    uint64_t whole;   /* hash of the file that was checked */
    tern_hash64 hash; /* of what was read */
    uint64_t read;    /* bytes */
    bool bad;         /* a token is outside the vocabulary, the one below */
    int32_t bad_token;
    size_t bad_position;
} tern_sequence_reader;

/* Checks that the file is sound, is of this model and cache format, and fits: TERN_ERR_SESSION,
 * TERN_ERR_SESSION_MODEL, TERN_ERR_CONTEXT, TERN_ERR_TOKEN_RANGE, TERN_ERR_IO. */
TERN_MUST_CHECK tern_status tern_sequence_check(tern_sequence_reader *r);

/* Reads tokens[header.position]. TERN_ERR_SESSION when the file changed, TERN_ERR_IO. */
TERN_MUST_CHECK tern_status tern_sequence_read_tokens(tern_sequence_reader *r, int32_t *tokens);

/* Pages of a part of the pool that receive rows: pages[first] to pages[end - 1]. */
typedef struct tern_sequence_pages {
    const uint32_t *pages;
    uint32_t first, end;
} tern_sequence_pages;

/* Reads the file's rows of these pages and skips all others. Errors as for the tokens; after an
 * error the content of the pages is useless. */
TERN_MUST_CHECK tern_status
tern_sequence_read_rows(tern_sequence_reader *r, const tern_sequence_pages parts[TERN_POOL_PARTS]);

/* Opens a file for a reader of this model: TERN_ERR_IO, and the errors of tern_model_unchanged. */
TERN_MUST_CHECK tern_status tern_sequence_file_open(const tern_model *m, const char *path,
                                                    FILE **file, tern_error *err);

#endif
