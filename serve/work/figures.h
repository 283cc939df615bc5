/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_WORK_FIGURES_H
#define TERN_SERVE_WORK_FIGURES_H

/* What a server counts and measures of its answers, for /metrics. */

#include "base/json_tree/text.h"
#include "tern/engine.h"

enum { HISTOGRAM_BOUNDS = 20 };

/* Durations, counted by how long they were. Zero-initialise it. */
typedef struct histogram {
    uint64_t counts[HISTOGRAM_BOUNDS + 1]; /* above the bound before, up to this one; the last one
                                              has none */
    double sum;
} histogram;

void histogram_add(histogram *h, double seconds);

/* All but the HELP and TYPE lines, in the text format of Prometheus. */
void histogram_write(const histogram *h, const char *name, text *out);

typedef struct figures {
    uint64_t jobs; /* requests that were accepted */
    uint64_t generated_tokens;
    uint64_t prompt_tokens, shared_tokens;  /* of answers that ended */
    uint64_t guessed_tokens, right_guesses; /* of these too */
    uint64_t ends[TERN_END_ERROR + 1];      /* answers, by how they ended */
    uint64_t replays, mismatches;           /* answers that were repeated; of these other ones */
    histogram first_token;                  /* from submitting to the first token of an answer */
    histogram between_tokens;
    histogram queue;   /* from submitting to admission */
    histogram prefill; /* from admission to the first token */
    histogram decode;  /* from the first token to the end */
    histogram whole;   /* from submitting to the end */
} figures;

/* A token of an answer, `seconds` after its request was submitted; the one before it came at
 * `before`, 0 for the first. */
void figures_note_token(figures *f, double before, double seconds);

/* An answer was repeated. */
void figures_note_replay(figures *f, bool same);

/* The end of an answer. */
void figures_note_end(figures *f, const tern_event *e);

#endif
