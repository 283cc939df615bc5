/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_SENTENCEPIECE_H
#define TERN_AUTHORING_CONVERT_SENTENCEPIECE_H

/*
 * A model of Google's SentencePiece (tokenizer.model): a protocol buffer with pieces, their
 * scores, and the rules that change a text before it is cut into pieces. Field numbers and defaults
 * are those of the public sentencepiece_model.proto.
 */

#include <stdbool.h>

#include "tern/gguf.h"
#include "tern/status.h"

typedef enum sentencepiece_model {
    SENTENCEPIECE_UNIGRAM = 1,
    SENTENCEPIECE_BPE = 2
} sentencepiece_model;

typedef enum sentencepiece_type {
    SENTENCEPIECE_NORMAL = 1,
    SENTENCEPIECE_UNKNOWN = 2,
    SENTENCEPIECE_CONTROL = 3,
    SENTENCEPIECE_USER_DEFINED = 4, /* always a token of its own, wherever a text has it */
    SENTENCEPIECE_UNUSED = 5,
    SENTENCEPIECE_BYTE = 6
} sentencepiece_type;

typedef struct sentencepiece_piece {
    tern_span text; /* UTF-8, not empty, at most SENTENCEPIECE_LONGEST bytes; in the file's bytes */
    float score;    /* finite */
    sentencepiece_type type;
} sentencepiece_piece;

enum { SENTENCEPIECE_LONGEST = 1024 };

typedef struct sentencepiece {
    sentencepiece_piece *pieces; /* [n] by id */
    size_t n, n_user_defined;
    sentencepiece_model model;
    bool byte_fallback;
    int32_t unknown, bos, eos; /* bos, eos: -1 where there is none */

    /* The changes of a text, in this order. */
    tern_span charsmap; /* replacements of characters; size 0: none */
    bool fewer_spaces;  /* spaces at both ends vanish, and one of several stays */
    bool prefix;        /* a space is put in front */
} sentencepiece;

/*
 * Parses bytes[size], which must outlive *out. `name` is used in messages. Refused are things that
 * tern does not have: other models than Unigram and BPE, unused pieces, spaces that are not marked
 * or that end words, a map of its own for decoding. TERN_ERR_TOKENIZER_MODEL, _DATA, _NOMEM.
 */
TERN_MUST_CHECK tern_status sentencepiece_parse(tern_span bytes, const char *name,
                                                sentencepiece *out, tern_error *err);
void sentencepiece_free(sentencepiece *s); /* zero-initialised or parsed */

#endif
