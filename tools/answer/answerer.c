/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/answer/answerer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *answer_end_name(tern_end end) {
    return end == TERN_END_CANCELLED ? "interrupted" : tern_end_name(end);
}

answerer answerer_open(tern_session *session, const tern_tokenizer *tokenizer) {
    return (answerer){.session = session, .tokenizer = tokenizer, .latest.text = ""};
}

void answerer_close(answerer *a) {
    free(a->tokens);
    free(a->text);
    *a = (answerer){0};
}

/* ---- one answer ------------------------------------------------------------------------------ */

typedef struct asking {
    answerer *a;
    const tern_request *request;
    answer_sink *sink;
    void *user;
    bool ended;     /* the sink ended it */
    double touched; /* seconds of work-touch before the last pass */
} asking;

static void give(asking *k, const char *bytes, size_t size) {
    k->ended = k->ended || (k->sink != NULL && !k->sink(bytes, size, k->user));
}

static void ask(void *user, size_t number, tern_request *request) {
    const asking *k = user;
    (void)number;
    *request = *k->request;
}

static double touch_seconds(const asking *k) {
    return k->a->touch != NULL ? k->a->touch->seconds : 0.0;
}

static bool go_on(void *user) {
    asking *k = user;
    k->touched = touch_seconds(k);
    give(k, "", 0);
    return !k->ended;
}

static void on_token(void *user, int32_t token, double seconds) {
    asking *k = user;
    char number[16];
    (void)seconds;
    if (k->a->touch != NULL)
        touch_token(k->a->touch);
    if (k->a->tokenizer == NULL)
        give(k, number, (size_t)snprintf(number, sizeof number, "%" PRId32 " ", token));
}

static void say(void *user, size_t number, const char *bytes, size_t size) {
    (void)number;
    give(user, bytes, size);
}

/* Replaces `before` by a copy of bytes[size], to be freed; NULL: no memory. */
static void *keep(void *before, const void *bytes, size_t size) {
    void *copy = realloc(before, size + 1);
    if (copy == NULL)
        free(before);
    else if (size > 0)
        memcpy(copy, bytes, size);
    return copy;
}

static void tell(void *user, const together_answer *told) {
    const asking *k = user;
    answerer *a = k->a;
    a->tokens = keep(a->tokens, told->tokens, told->n_tokens * sizeof *told->tokens);
    a->text = keep(a->text, told->text, told->text_size);
    a->latest = *told;
    a->latest.tokens = a->tokens;
    a->latest.text = a->text;
    a->latest.error = NULL;
    /* The engine's clock stops with the last pass, before its tokens are touched. */
    a->latest.figures.seconds += touch_seconds(k) - k->touched;
    if (told->error != NULL)
        a->error = *told->error;
    else if (a->tokens == NULL || a->text == NULL)
        (void)tern_fail(&a->error, TERN_ERR_NOMEM, "no memory for the text of an answer");
}

tern_status answerer_answer(answerer *a, const tern_request *request, answer_sink *sink, void *user,
                            tern_error *err) {
    asking k = {.a = a, .request = request, .sink = sink, .user = user};
    const together_task task = {.n = 1,
                                .ahead = 1,
                                .live = 1,
                                .evaluates_last = true,
                                .ask = ask,
                                .go_on = go_on,
                                .on_token = on_token,
                                .say = say,
                                .tell = tell,
                                .user = &k};
    const uint64_t before = tern_dequantize_calls();
    a->error = (tern_error){0};
    a->latest = (together_answer){.text = "", .digest = "", .end = TERN_END_CANCELLED};
    const tern_status status = together_run(tern_session_engine(a->session), &task, err);
    a->dequantized = tern_dequantize_calls() - before;
    if (status != TERN_OK)
        return status;
    return a->error.status == TERN_OK ? TERN_OK
                                      : tern_fail(err, a->error.status, "%s", a->error.message);
}
