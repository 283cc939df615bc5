/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_CACHE_SEQUENCE_FILE_H
#define TERN_RUNTIME_ENGINE_CACHE_SEQUENCE_FILE_H

/*
 * A sequence as a file (docs/sessions.md): a header, the tokens, the rows of the cache that are in
 * use, a hash. Little endian, nothing is padded. Rows go from pages to the file and back; whose
 * pages they are, a session's or an engine's, makes no difference to the file.
 */

#include <stdio.h>

#include "base/hash64.h"
#include "base/out_file.h"
#include "runtime/engine/cache/pool.h"
#include "runtime/engine/cache/sequence.h"

#define TERN_SESSION_MAGIC "TERNSES\n"
/* Raised when the format changes, or when the arithmetic does: rows computed by other rules would
 * not be what this tern computes. A file whose layers with a window lack positions is of version
 * 4, all others are of version 3; 1 and 2 were the same before TERN_NUMERICS_VERSION 2. */
enum { TERN_SESSION_VERSION = 3, TERN_SESSION_VERSION_KEPT = 4 };

typedef struct tern_session_header {
    char magic[8];
    uint32_t version;
    uint32_t kv;        /* GGUF type of the cache: 0 f32, 1 f16, 8 q8_0 */
    uint64_t identity;  /* of the model, see tern_model_identity */
    uint32_t n_layer;   /* these four are the model's; they say what the file must measure */
    uint32_t n_head_kv; /* without the model */
    uint32_t head_dim;  /* elements */
    uint32_t n_vocab;
    uint32_t n_ctx;     /* of what was saved; nothing depends on it */
    uint32_t position;  /* tokens, and rows of each head */
    uint32_t precision; /* of activations, a tern_precision; 0: the model's own */
    uint32_t kept;      /* the first position of which layers with a window have rows: a multiple of
                           TERN_PAGE, not 0 in version 4 and 0 in version 3 */
    uint64_t hash;      /* of the bytes before */
} tern_session_header;

_Static_assert(sizeof(tern_session_header) == 64, "the header of a session file has 64 bytes");

/* Of the bytes before `hash`. */
uint64_t tern_session_header_hash(const tern_session_header *header);

/* Writes all positions of a sequence, whose tokens are the model's, and of layers with a window
 * those that it has. TERN_ERR_IO, and what tern_model_unchanged says. */
TERN_MUST_CHECK tern_status tern_sequence_save(const tern_model *m, const tern_pool *pool,
                                               const tern_sequence *q, const char *path,
                                               tern_out_mode mode, tern_error *err);

/*
 * A file is read twice: tern_sequence_check looks at all of it, then tern_sequence_read_tokens and
 * tern_sequence_read_rows, in this order, take it. So nothing changes for a file that is refused.
 */
typedef struct tern_sequence_reader {
    /* Set by its maker. */
    const tern_model *model;
    const tern_pool *pool;
    uint32_t n_ctx;     /* positions that fit */
    const char *holder; /* whose cache the pool is, for messages: "session" */
    FILE *in;           /* can be read twice */
    const char *name;   /* of the file, for messages */
    tern_error *err;

    tern_session_header header; /* set by tern_sequence_check */

    /* Its own. */
    uint64_t whole;   /* hash of the file that was checked */
    tern_hash64 hash; /* of what was read */
    uint64_t read;    /* bytes */
    bool bad;         /* a token is outside the vocabulary: this one */
    int32_t bad_token;
    size_t bad_position;
} tern_sequence_reader;

/* Whether it is a sound file of this model and cache format, and fits: TERN_ERR_SESSION,
 * TERN_ERR_SESSION_MODEL, TERN_ERR_CONTEXT, TERN_ERR_TOKEN_RANGE, TERN_ERR_IO. */
TERN_MUST_CHECK tern_status tern_sequence_check(tern_sequence_reader *r);

/* tokens[header.position]. TERN_ERR_SESSION when the file changed, TERN_ERR_IO. */
TERN_MUST_CHECK tern_status tern_sequence_read_tokens(tern_sequence_reader *r, int32_t *tokens);

/* Pages of a part of the pool that take rows: from pages[first] to pages[end - 1]. */
typedef struct tern_sequence_pages {
    const uint32_t *pages;
    uint32_t first, end;
} tern_sequence_pages;

/* The rows of these pages, which the file has; others are left out. Errors as of tokens, and then
 * the pages' content is of no use. */
TERN_MUST_CHECK tern_status
tern_sequence_read_rows(tern_sequence_reader *r, const tern_sequence_pages parts[TERN_POOL_PARTS]);

/* Opens a file for a reader of this model: TERN_ERR_IO, and what tern_model_unchanged says. */
TERN_MUST_CHECK tern_status tern_sequence_file_open(const tern_model *m, const char *path,
                                                    FILE **file, tern_error *err);

#endif
