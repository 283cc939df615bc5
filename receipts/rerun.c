/* SPDX-License-Identifier: Apache-2.0 */
#include "receipts/rerun.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Compares the session's logits with those recorded after `after` tokens, if there are any. */
static tern_status compare_logits(tern_session *s, const rerun_plan *plan, uint64_t after,
                                  rerun_result *out, tern_error *err) {
    for (size_t i = 0; i < plan->n_points; i++) {
        if (plan->points[i].after != after)
            continue;
        const tern_status status = receipt_hash_logits(s, out->logits, err);
        if (status != TERN_OK)
            return status;
        if (strcmp(out->logits, plan->points[i].sha256) != 0) {
            out->part = RERUN_LOGITS;
            out->position = after;
        }
    }
    return TERN_OK;
}

static tern_status steps(tern_session *s, tern_sampler *sampler, const rerun_plan *plan,
                         rerun_result *out, tern_error *err) {
    float *logits = tern_session_logits(s);
    tern_status status =
        tern_session_eval(s, plan->prompt, plan->n_prompt, TERN_LOGITS_LAST, logits, err);
    for (size_t i = 0; i < plan->n_prompt; i++)
        tern_sampler_accept(sampler, plan->prompt[i]);
    for (size_t i = 0; status == TERN_OK && i < plan->n_tokens; i++) {
        int32_t token = -1;
        status = compare_logits(s, plan, i, out, err);
        if (status != TERN_OK || out->part != RERUN_SAME)
            return status;
        status = tern_sampler_pick(sampler, logits, &token, err);
        if (status == TERN_OK && token != plan->tokens[i]) {
            *out = (rerun_result){
                .part = RERUN_TOKEN, .position = i, .expected = plan->tokens[i], .got = token};
            return TERN_OK;
        }
        tern_sampler_accept(sampler, token);
        if (status == TERN_OK)
            status = tern_session_eval(s, &token, 1, TERN_LOGITS_LAST, logits, err);
    }
    if (status == TERN_OK)
        status = compare_logits(s, plan, plan->n_tokens, out, err);
    if (status == TERN_OK && out->part == RERUN_SAME)
        status = tern_sampler_pick(sampler, logits, &out->next, err);
    return status;
}

tern_status receipt_rerun(tern_session *session, const rerun_plan *plan, rerun_result *out,
                          tern_error *err) {
    tern_model_info info;
    tern_sampler *sampler = NULL;
    tern_model_describe(tern_session_model(session), &info);
    *out = (rerun_result){.part = RERUN_SAME};
    tern_status status = tern_sampler_new(&plan->sampling, info.n_vocab, &sampler, err);
    if (status == TERN_OK)
        status = steps(session, sampler, plan, out, err);
    tern_sampler_free(&sampler);
    return status;
}

uint32_t receipt_other_threads(uint32_t threads) {
    return threads == 1 ? 2 : 1;
}

uint32_t receipt_other_batch(uint32_t batch, uint64_t n) {
    enum { OTHER = 7 };                                     /* divides no usual prompt */
    const uint32_t first = batch < n ? batch : (uint32_t)n; /* rows of the first pass */
    if (n > OTHER && first != OTHER)
        return OTHER;
    return first > 2 ? first / 2 + 1 : first == 2 ? 1 : 2;
}

void rerun_describe(const rerun_result *r, char *text, size_t size) {
    if (r->part == RERUN_TOKEN) {
        (void)snprintf(text, size, "output.ids[%" PRIu64 "]: recorded %d, this run picks %d",
                       r->position, r->expected, r->got);
    } else if (r->part == RERUN_LOGITS) {
        (void)snprintf(text, size,
                       "output.logits: the logits after %" PRIu64
                       " generated tokens have another digest in this run, %.16s...",
                       r->position, r->logits);
    } else {
        (void)snprintf(text, size, "the same");
    }
}
