/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_WORK_ANSWER_METRICS_H
#define TERN_SERVE_WORK_ANSWER_METRICS_H

/* Counters and durations of a server's answers, for /metrics. */

#include "base/json_tree/text.h"
#include "tern/engine.h"

enum { HISTOGRAM_BOUNDS = 20 };

/* Durations in seconds, counted by length. Zero-initialise it. */
typedef struct histogram {
    uint64_t counts[HISTOGRAM_BOUNDS + 1]; /* [i]: above bound i - 1 and up to bound i; the last has
                                              no upper bound */
    double sum;
} histogram;

void histogram_add(histogram *h, double seconds);

/* Appends a histogram in the text format of Prometheus, without the HELP and TYPE lines, with these
 * labels (`a="b"`, or ""). */
void histogram_write(const histogram *h, const char *name, const char *labels, text *out);

typedef struct answer_metrics {
    uint64_t jobs; /* requests that were accepted */
    uint64_t generated_tokens;
    uint64_t prompt_tokens, shared_tokens;  /* of answers that have ended */
    uint64_t guessed_tokens, right_guesses; /* of these answers, too */
    uint64_t ends[TERN_END_ERROR + 1];      /* answers by how they ended */
    uint64_t replays, mismatches;           /* repeated answers; those with another result */
    histogram first_token;                  /* from submitting to the first token of an answer */
    histogram between_tokens;
    histogram queue;   /* from submitting to admission */
    histogram prefill; /* from admission to the first token */
    histogram decode;  /* from the first token to the end */
    histogram whole;   /* from submitting to the end */
} answer_metrics;

/* Counts a token that came `seconds` after its request was submitted. The token before it came at
 * `before`; 0: it is the first. */
void answer_metrics_note_token(answer_metrics *f, double before, double seconds);

/* Counts a repeated answer; `same`: it had the same result. */
void answer_metrics_note_replay(answer_metrics *f, bool same);

/* Counts an answer that ended. */
void answer_metrics_note_end(answer_metrics *f, const tern_event *e);

#endif
