/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_ANSWER_ANSWERS_H
#define TERN_TOOLS_ANSWER_ANSWERS_H

/*
 * The answers of a run, one or many: they are asked for, held to a form, printed as text or JSON,
 * and judged. One answer comes from the session of the model; several, each prompt of a file
 * repeated as often as --rounds says, from an engine of many sequences, as many at once as
 * --parallel or memory allows. Every answer has the same seed and is the same as without the
 * others. Prompts of a round that begin alike share the computation of the beginning; rounds share
 * nothing.
 */

#include "base/metrics.h"
#include "receipts/watch.h"
#include "tools/answer/answerer.h"
#include "tools/answer/form.h"
#include "tools/answer/request.h"
#include "tools/prompt/prompt_file.h"

typedef struct answers {
    const options *o;
    loaded *l;
    const answer_options *how;
    const prompts *prompts; /* tokenized by answers_open if they are texts */
    touch *touch;           /* the memory to read after every token, or NULL */
    receipt_watch *watch;   /* sees the logits of the only answer, or NULL */

    form form; /* that the answers must have, if any */
    answerer answerer;
    tern_request request; /* the one asked for last */
    bool several, json, progress;
    uint64_t rounds;
    size_t n; /* prompts times rounds */
    uint32_t n_ctx, at_once;

    /* what happened */
    size_t told, failures, tokens;
    size_t begun;                                          /* answers whose text has begun */
    size_t prompt_tokens, generated_tokens, shared_tokens; /* of the printed answers */
    uint64_t kv_hits, kv_misses;                           /* of the same answers */
    tern_latencies *latencies;       /* between the tokens of an answer, of several */
    double begin, seconds, shown;    /* seconds */
    bool broken;                     /* output cannot be written */
    bool refused;                    /* a request had no memory for its form */
    uint8_t space[TERN_SPACE_BYTES]; /* of the next request */
} answers;

/* True if the options ask for several answers. */
bool answers_are_several(const options *o);

/*
 * Opens what answers need, once the members before `form` are set: the tokens of the prompts, the
 * form, and for several answers the engine. Exit status; close in any case.
 */
int answers_open(answers *a);
void answers_close(answers *a);

/* Answers all prompts. Several answers are printed on the way, in their order, or with --json a
 * line for each, then one for the run; a prompt that cannot be answered is reported in its place
 * and the others go on. Of a single one only the text is printed. Exit status. */
int answers_run(answers *a);

/* Prints the rest of a single answer: figures, JSON, complaints. Exit status. */
int answers_print_single(answers *a);

#endif
