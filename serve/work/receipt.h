/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_WORK_RECEIPT_H
#define TERN_SERVE_WORK_RECEIPT_H

/* What a receipt of an answer is made of, and who makes it: the program, which knows the model's
 * file. */

#include "base/json_tree/value.h"
#include "tern/grammar.h"

/* An answer that was repeated with the same tokens and digest. Everything is borrowed. */
typedef struct receipt_answer {
    const char *fingerprint;
    uint32_t n_ctx, threads; /* of the engine */
    const int32_t *prompt;   /* [n_prompt] */
    size_t n_prompt;
    const int32_t *tokens; /* [n_tokens] */
    size_t n_tokens;
    const tern_sampler_params *sampling;
    size_t max_tokens; /* >= 1 */
    bool ignore_end;
    const char *const *stops; /* [n_stops] */
    size_t n_stops;
    tern_grammar *grammar; /* of an answer in a form; NULL: any text */
    const json_t *form;    /* of such, where a receipt is wanted: what the grammar was made of, as
                              the receipt's `form` has it (docs/receipts.md) */
    bool drop_space;       /* one space at the start is not part of the text that they end */
    tern_end end;
    const char *digest;
} receipt_answer;

typedef struct receipt_maker {
    void *user;
    /* Before the first one: measures and hashes what all have in common. From any thread, more
     * than once. False: it cannot be done. */
    bool (*prepare)(void *user);
    /* The document, from malloc; NULL: no memory, or it would break a rule. By one thread. */
    char *(*make)(void *user, const receipt_answer *a);
} receipt_maker;

#endif
