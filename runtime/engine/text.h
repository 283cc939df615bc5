/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_TEXT_H
#define TERN_RUNTIME_ENGINE_TEXT_H

/*
 * The text of an answer as its tokens come: whole characters, and of these what is certain, so that
 * a stop string is never shown in part.
 */

#include "base/stops.h"
#include "tern/tern.h"

typedef struct tern_answer_text {
    tern_text_stream *stream; /* NULL: there is no tokenizer, and no text */
    tern_stops stops;         /* own copies */
    char *text;               /* [capacity] what was given since the last turn, then what is held */
    size_t capacity, size, given;
    bool drop_space; /* still to be done */
    bool stopped;    /* a stop string is complete; nothing follows */
    size_t stop;     /* which one */
} tern_answer_text;

/* Some bytes of it, until the next turn. */
typedef struct tern_text_part {
    const char *bytes;
    size_t size;
} tern_text_part;

/*
 * drop_space: one space at the start is no part of the text, before stops are looked for.
 * tokenizer may be NULL when n_stops is 0, else TERN_ERR_TOKENIZER_MISSING. piece_bytes: of the
 * longest token; most: tokens between two turns. TERN_ERR_ARG for an empty stop string,
 * TERN_ERR_NOMEM. *t needs no initialisation; close it in any case.
 */
TERN_MUST_CHECK tern_status tern_answer_text_open(tern_answer_text *t,
                                                  const tern_tokenizer *tokenizer,
                                                  const char *const *stops, size_t n_stops,
                                                  bool drop_space, size_t piece_bytes, size_t most,
                                                  tern_error *err);
void tern_answer_text_close(tern_answer_text *t);

/* What was given is not needed any more. */
void tern_answer_text_turn(tern_answer_text *t);

/* The next token; what is certain now. */
tern_text_part tern_answer_text_push(tern_answer_text *t, int32_t token);

/* No token follows: the rest. */
tern_text_part tern_answer_text_finish(tern_answer_text *t);

#endif
