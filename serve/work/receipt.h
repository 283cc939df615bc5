/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_WORK_RECEIPT_H
#define TERN_SERVE_WORK_RECEIPT_H

/* The data for the receipt of an answer, and the interface of its maker: the program, which knows
 * the model's file. */

#include "base/json_tree/value.h"
#include "tern/grammar.h"

/* An answer and how it was asked for. For a receipt it was repeated with the same tokens and
 * digest. Everything is borrowed. */
typedef struct receipt_answer {
    const char *fingerprint;
    uint32_t n_ctx, threads; /* of the engine */
    const int32_t *prompt;   /* [n_prompt] */
    size_t n_prompt;
    const int32_t *tokens; /* [n_tokens] */
    size_t n_tokens;
    const tern_sampler_params *sampling;
    uint64_t seed;     /* of this answer; sampling has that of the request's first one */
    size_t max_tokens; /* >= 1 */
    bool ignore_end;
    const char *const *stops; /* [n_stops] */
    size_t n_stops;
    tern_grammar *grammar; /* for an answer in a form; NULL: any text */
    const json_t *form;    /* source of the grammar, for a receipt or a recording, as in the
                              receipt's `form` (docs/receipts.md) */
    bool drop_space;       /* one space at the start is not part of the text in which stops are
                              searched */
    tern_end end;
    const char *digest;
} receipt_answer;

typedef struct receipt_maker {
    void *user;
    /* Measures and hashes what all receipts have in common. Called before the first receipt, from
     * any thread, more than once. False: it cannot be done. */
    bool (*prepare)(void *user);
    /* Returns the document, from malloc; NULL: no memory, or it would break a rule. Called by one
     * thread. */
    char *(*make)(void *user, const receipt_answer *a);
    /* Records an answer that has ended, before the client hears of its end. Called by one thread of
     * each model. NULL: answers are not recorded. */
    void (*record)(void *user, const receipt_answer *a);
} receipt_maker;

#endif
