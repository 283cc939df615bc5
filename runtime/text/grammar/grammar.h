/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_GRAMMAR_GRAMMAR_H
#define TERN_RUNTIME_TEXT_GRAMMAR_GRAMMAR_H

/* The parts of a tern_grammar. */

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/text/grammar/stacks.h"
#include "runtime/text/grammar/tokens.h"

typedef struct tern_kept_mask {
    uint64_t *bits; /* [words] */
    uint32_t state; /* its number in `met` */
    uint64_t used;  /* when it was last wanted */
} tern_kept_mask;

/* Sentences about what schemas say and texts are not held to, each with its place. */
typedef struct tern_schema_notes {
    char **texts; /* [n] */
    size_t n, capacity;
    bool narrowed; /* texts were left out to meet what cannot be met exactly */
} tern_schema_notes;

struct tern_grammar {
    atomic_uint owners;
    const tern_grammar_tokens *tokens;
    char *name; /* its name in messages */
    tern_program program;

    tern_schema_notes notes;

    pthread_mutex_t lock; /* guards the members below */
    tern_stacks met;      /* states for which masks were asked; repetition counts are equal where no
                             token can tell them apart */
    tern_kept_mask *masks;
    size_t n_masks, most_masks;
    uint64_t clock; /* masks asked for */
};

void tern_schema_notes_free(tern_schema_notes *notes);

/* Makes a grammar of expressions and notes (NULL: none), which are freed or taken over in any case.
 */
TERN_MUST_CHECK tern_status tern_grammar_make(const tern_grammar_tokens *tokens, tern_exprs *x,
                                              tern_schema_notes *notes, tern_grammar **out,
                                              tern_error *err);

/*
 * Clears the bits of tokens that may not follow in `state`, which belongs to another pool of the
 * grammar's program. *any: a bit is left. TERN_ERR_GRAMMAR, TERN_ERR_NOMEM with *why.
 */
TERN_MUST_CHECK tern_status tern_grammar_apply(tern_grammar *g, const tern_stacks *from,
                                               uint32_t state, uint64_t *allowed, size_t words,
                                               bool *any, const char **why);

/* ---- readers: the whole text becomes rule 0 of x, failures are x's ----------------------------
 */

void tern_gbnf_read(tern_exprs *x, const char *text, size_t size);

/* Words of a tag, in which the byte 1 stands for an id or a number. */
uint32_t tern_tag_words(tern_exprs *x, const char *words);

/* The arguments of a tag; values[i] is the expression of argument i, if it has a schema. */
uint32_t tern_tag_arguments(tern_exprs *x, const tern_grammar_tag *tag, const uint32_t *values);

/* Reads a schema as an expression. name: stands in messages, before the JSON pointer. Adds to
 * notes. narrow: what cannot be met exactly is met by some of its texts where that is possible; it
 * may be that none are left. Otherwise it is noted. */
uint32_t tern_schema_read(tern_exprs *x, const char *text, size_t size, const char *name,
                          const tern_schema_params *params, bool narrow, tern_schema_notes *notes);

#endif
