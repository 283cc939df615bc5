/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/replay/branch.h"

#include <stdlib.h>
#include <string.h>

/* Tokens that an answer begins with, and the mask of its form. */
typedef struct beginning {
    const int32_t *tokens; /* [n] */
    size_t n;
    tern_mask_hook *mask; /* NULL: any token may follow */
    void *user;
} beginning;

/* Allows only the token that is wanted at this place, as long as there is one. It is picked like
 * any other, so that random numbers stay those of their places. */
static bool allow(void *user, const tern_progress *progress, uint64_t *allowed, size_t words) {
    const beginning *b = user;
    const size_t at = progress->n - progress->n_prompt;
    if (b->mask != NULL && !b->mask(b->user, progress, allowed, words))
        return false;
    if (at >= b->n)
        return true;
    const size_t word = (size_t)b->tokens[at] / 64;
    const uint64_t bit = UINT64_C(1) << (uint8_t)(b->tokens[at] % 64);
    const bool may = word < words && (allowed[word] & bit) != 0;
    memset(allowed, 0, words * sizeof *allowed);
    if (may)
        allowed[word] = bit;
    return may;
}

tern_status branch_ask(tern_session *session, const tern_tokenizer *tokenizer,
                       const recorded_answer *a, size_t kept, const int32_t *put, size_t n_put,
                       answerer *out, tern_error *err) {
    int32_t *tokens = malloc((kept + n_put + 1) * sizeof *tokens);
    if (tokens == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu tokens", kept + n_put);
    memcpy(tokens, a->tokens, kept * sizeof *tokens);
    if (n_put > 0)
        memcpy(tokens + kept, put, n_put * sizeof *tokens);
    beginning b = {tokens, kept + n_put, a->plan.ask.mask, a->plan.ask.user};
    tern_request request = a->plan.ask;
    request.mask = allow;
    request.user = &b;
    request.within_context = true;
    const answer_task task = {.n = 1, .ahead = 1, .live = 1, .request = &request};
    *out = answerer_of(session, tokenizer);
    const tern_status status = answerer_run(out, &task, err);
    free(tokens);
    return status;
}
