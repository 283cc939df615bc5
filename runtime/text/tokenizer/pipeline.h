/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_PIPELINE_H
#define TERN_RUNTIME_TEXT_TOKENIZER_PIPELINE_H

/*
 * Turns a text into the pieces that the model is given, by the compiled steps of a vocabulary. Each
 * step gets the pieces of the step before it, one after another, as if each were a whole text.
 */

#include "runtime/text/tokenizer/added.h"
#include "runtime/text/tokenizer/vocabulary.h"

typedef struct tern_pipeline tern_pipeline;                 /* immutable, shared by threads */
typedef struct tern_pipeline_scratch tern_pipeline_scratch; /* working memory of one call */

/* Compiles n steps. `why` as in regex.h: TERN_ERR_TOKENIZER_PRE (a pattern),
 * TERN_ERR_TOKENIZER_DATA (a map), TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_pipeline_new(const tern_step *steps, size_t n, tern_pipeline **out,
                                              char *why);
void tern_pipeline_free(tern_pipeline **p);

/* Says how many times shorter a text can become before it is cut into tokens; 0: nothing may be
 * left. */
size_t tern_pipeline_shrinks(const tern_pipeline *p);

tern_pipeline_scratch *tern_pipeline_scratch_new(void); /* NULL when memory is short */
void tern_pipeline_scratch_free(tern_pipeline_scratch *scratch);

/* Receives the pieces. */
typedef struct tern_piece_sink {
    tern_status (*piece)(void *user, tern_span piece);
    tern_status (*added)(void *user, int32_t id); /* a token that TERN_STEP_ADDED cut out */
    void *user;
    const tern_added_set *normalized; /* the tokens that TERN_STEP_ADDED looks for */
    bool parse;                       /* it looks for special tokens, too */
} tern_piece_sink;

/*
 * Passes the pieces of valid UTF-8 text to the sink, in order and without empty ones. first: the
 * text is the beginning of what is encoded. Errors: those of the sink; TERN_ERR_NOMEM;
 * TERN_ERR_TOKENIZER_PATTERN also when the steps make a text more than 32 times as long.
 */
TERN_MUST_CHECK tern_status tern_pipeline_run(const tern_pipeline *p,
                                              tern_pipeline_scratch *scratch, tern_span text,
                                              bool first, const tern_piece_sink *sink);

/* The regex scratch inside it, which may be used between runs. */
tern_regex_scratch *tern_pipeline_regex_scratch(tern_pipeline_scratch *scratch);

/* The byte alphabet of byte-level BPE: the character of a byte, the byte of a character or -1. */
uint32_t tern_byte_to_char(unsigned char byte);
int tern_char_to_byte(uint32_t code);

#endif
