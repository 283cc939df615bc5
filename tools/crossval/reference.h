/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CROSSVAL_REFERENCE_H
#define TERN_TOOLS_CROSSVAL_REFERENCE_H

/*
 * The recorded results of another engine: a JSON file and files of little-endian 32-bit floats
 * beside it (docs/validation.md describes both). The parser trusts nothing: counts, ranges and
 * names are checked before use. Checks that need the model (vocabulary, context) are in run.c.
 */

#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

enum {
    REFERENCE_VERSION = 1,
    REFERENCE_MAX_CASES = 4096,
    REFERENCE_MAX_TOKENS = 1 << 20, /* of one list */
    REFERENCE_MAX_BYTES = 1 << 28   /* of the JSON */
};

/* Some logits at one position, if a file of all logits would be too large. */
typedef struct reference_row {
    uint32_t position;
    size_t n; /* at least 1 */
    int32_t *ids;
    float *logits;
} reference_row;

/* One sequence: tokens, and the tokens with which the engine continued. Strings are owned. */
typedef struct reference_case {
    char *name;
    char *text;  /* source of the tokens; NULL: not recorded */
    int special; /* whether control tokens written in the text were recognised */
    int32_t *tokens;
    size_t n_tokens; /* at least 1 */
    int32_t *greedy; /* the best token after the tokens and the greedy tokens before it */
    size_t n_greedy;
    double *margins;     /* [n_greedy] best logit - second best; NULL: not recorded */
    char *logits;        /* file of [rows][vocabulary]; NULL: none */
    uint32_t first;      /* position of its first row */
    reference_row *rows; /* some logits, by increasing position */
    size_t n_rows;
    char *keys, *values; /* files of [layer][kv head][n_tokens][head dim]; NULL: none */
} reference_case;

typedef struct reference {
    char *folder; /* of the JSON file; the other files are there, too */
    char *engine, *engine_version, *settings, *date; /* "" if not recorded */
    char *model, *sha256;                            /* of the model file; "" if not recorded */
    reference_case *cases;
    size_t n_cases; /* at least 1 */
} reference;

/*
 * Parses JSON of `size` bytes that came from the file `path` (for messages and the folder).
 * TERN_ERR_ARG with a message that names the place; *out is then untouched.
 */
TERN_MUST_CHECK tern_status reference_parse(const char *path, const char *json, size_t size,
                                            reference **out, tern_error *err);

void reference_free(reference **r); /* NULL is fine */

#endif
