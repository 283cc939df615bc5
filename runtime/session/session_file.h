/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_SESSION_SESSION_FILE_H
#define TERN_RUNTIME_SESSION_SESSION_FILE_H

/*
 * A session as a file (docs/sessions.md): a header, the tokens, the rows of the cache that are in
 * use, a hash. Little endian, nothing is padded.
 */

#include <stdio.h>

#include "runtime/session/session.h"

#define TERN_SESSION_MAGIC "TERNSES\n"
/* Raised when the format changes, or when the arithmetic does: rows computed by other rules would
 * not be what this tern computes. */
enum { TERN_SESSION_VERSION = 1 };

typedef struct tern_session_header {
    char magic[8];
    uint32_t version;
    uint32_t kv;        /* GGUF type of the cache: 0 f32, 1 f16, 8 q8_0 */
    uint64_t identity;  /* of the model, see tern_model_identity */
    uint32_t n_layer;   /* these four are the model's; they say what the file must measure */
    uint32_t n_head_kv; /* without the model */
    uint32_t head_dim;  /* elements */
    uint32_t n_vocab;
    uint32_t n_ctx;    /* of the session that was saved; nothing depends on it */
    uint32_t position; /* tokens, and rows of each head */
    uint64_t reserved; /* 0 */
    uint64_t hash;     /* of the bytes before */
} tern_session_header;

_Static_assert(sizeof(tern_session_header) == 64, "the header of a session file has 64 bytes");

/* Of the bytes before `hash`. */
uint64_t tern_session_header_hash(const tern_session_header *header);

/*
 * tern_session_restore from an open stream that can be read twice: it is checked to its end before
 * anything of the session changes. `name` is for messages.
 */
TERN_MUST_CHECK tern_status tern_session_read(tern_session *s, FILE *in, const char *name,
                                              tern_error *err);

#endif
