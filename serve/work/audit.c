/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/work/audit.h"

#include <stdlib.h>
#include <string.h>

struct audit {
    tern_engine *engine;
    bool busy;
    tern_grammar_state *state; /* for an answer in a form; NULL: any text */
    text expected, picked;     /* int32_t each */
    tern_end end;
    char digest[65];
};

tern_status audit_open(const tern_model *model, const tern_engine_params *like, audit **out,
                       tern_error *err) {
    audit *a = calloc(1, sizeof *a);
    if (a == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for an audit");
    tern_engine_params params = tern_engine_params_default();
    params.n_ctx = like->n_ctx;
    params.n_sequences = params.n_queue = 1;
    params.threads = like->threads;
    params.kv = like->kv;
    const tern_status status = tern_engine_new(model, &params, &a->engine, err);
    if (status != TERN_OK) {
        free(a);
        return status;
    }
    *out = a;
    return TERN_OK;
}

/* Opens the state of the answer's grammar, if there is one. False: no memory. */
static bool set_form(audit *a, tern_grammar *grammar) {
    tern_error err;
    tern_grammar_state_free(&a->state);
    return grammar == NULL || tern_grammar_state_new(grammar, 1, &a->state, &err) == TERN_OK;
}

void audit_note(audit *a, const receipt_answer *answer) {
    if (a->busy || !set_form(a, answer->grammar))
        return;
    const tern_request request = {.tokens = answer->prompt,
                                  .n_tokens = answer->n_prompt,
                                  .sampling = answer->sampling,
                                  .max_tokens =
                                      answer->end == TERN_END_CONTEXT ? 0 : answer->max_tokens,
                                  .ignore_end = answer->ignore_end,
                                  .stop_texts = answer->stops,
                                  .n_stop_texts = answer->n_stops,
                                  .drop_space = answer->drop_space,
                                  .mask = a->state != NULL ? tern_grammar_mask : NULL,
                                  .user = a->state};
    uint64_t id;
    tern_error err = {0};
    text_clear(&a->expected);
    text_clear(&a->picked);
    text_add(&a->expected, (const char *)answer->tokens, answer->n_tokens * sizeof(int32_t));
    a->end = answer->end;
    memcpy(a->digest, answer->digest, sizeof a->digest);
    a->busy = !a->expected.failed && tern_engine_submit(a->engine, &request, &id, &err) == TERN_OK;
    tern_engine_forget(a->engine); /* nothing is reused from the cache */
}

/* Counts the repeated answer as equal or not. Counts nothing if it failed or memory was short. */
static void compare(audit *a, const tern_event *e, answer_metrics *f) {
    a->busy = false;
    if (e->end == TERN_END_ERROR || a->picked.failed)
        return;
    answer_metrics_note_replay(
        f, e->end == a->end && strcmp(e->digest, a->digest) == 0 &&
               a->picked.size == a->expected.size &&
               (a->picked.size == 0 ||
                memcmp(a->picked.bytes, a->expected.bytes, a->picked.size) == 0));
}

bool audit_step(audit *a, answer_metrics *f) {
    const tern_event *events;
    size_t n;
    tern_error err = {0};
    if (!a->busy)
        return false;
    if (tern_engine_step(a->engine, &events, &n, &err) != TERN_OK || n == 0) {
        const tern_engine_state now = tern_engine_now(a->engine);
        a->busy = err.status == TERN_OK && now.waiting + now.running > 0;
        return true;
    }
    for (size_t i = 0; i < n; i++)
        if (events[i].kind == TERN_EVENT_END)
            compare(a, &events[i], f);
        else
            text_add(&a->picked, (const char *)&events[i].token, sizeof events[i].token);
    return true;
}

void audit_free(audit **a) {
    if (*a == NULL)
        return;
    tern_engine_free(&(*a)->engine);
    tern_grammar_state_free(&(*a)->state);
    text_free(&(*a)->expected);
    text_free(&(*a)->picked);
    free(*a);
    *a = NULL;
}
