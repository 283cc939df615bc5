/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/answer/answerer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"

const char *answer_end_name(answer_end end) {
    static const char *const names[] = {[ANSWER_COMPLETE] = "end",
                                        [ANSWER_LENGTH] = "length",
                                        [ANSWER_CONTEXT] = "context",
                                        [ANSWER_STOPPED] = "stop",
                                        [ANSWER_INTERRUPTED] = "interrupted"};
    return names[end];
}

tern_status answerer_open(answerer *a, tern_session *session, const tern_tokenizer *tokenizer,
                          const tern_sampler_params *sampling, tern_error *err) {
    *a = (answerer){.session = session, .tokenizer = tokenizer};
    tern_model_info info;
    tern_model_describe(tern_session_model(session), &info);
    tern_status status = tern_sampler_new(sampling, info.n_vocab, &a->sampler, err);
    if (status == TERN_OK) {
        /* The context bounds what can be generated. */
        a->tokens = calloc(tern_session_context(session), sizeof *a->tokens);
        if (a->tokens == NULL)
            status = tern_fail(err, TERN_ERR_NOMEM, "no memory for the tokens of an answer");
    }
    if (status != TERN_OK)
        answerer_close(a);
    return status;
}

void answerer_close(answerer *a) {
    tern_answer_text_free(&a->pieces);
    tern_sampler_free(&a->sampler);
    free(a->tokens);
    free(a->text);
    *a = (answerer){0};
}

static bool reserve_text(answerer *a, size_t size) {
    if (a->text_capacity - a->text_size >= size)
        return true;
    const size_t capacity = 2 * a->text_capacity + size + 256;
    char *grown = realloc(a->text, capacity);
    if (grown == NULL) {
        a->out_of_memory = true;
        return false;
    }
    a->text = grown;
    a->text_capacity = capacity;
    return true;
}

static bool give(const answerer *a, const char *bytes, size_t size) {
    const answer_request *r = a->request;
    return r->sink == NULL || r->sink(bytes, size, r->user);
}

/* Keeps text, and gives it to the sink. */
static bool give_text(answerer *a, const char *bytes, size_t size) {
    if (!reserve_text(a, size))
        return false;
    if (size > 0)
        memcpy(a->text + a->text_size, bytes, size);
    a->text_size += size;
    return give(a, bytes, size);
}

static bool on_token(int32_t token, double seconds, void *user) {
    (void)seconds;
    answerer *a = user;
    a->tokens[a->n_tokens++] = token;
    if (a->touch != NULL)
        touch_token(a->touch);
    if (a->pieces == NULL) {
        char number[16];
        return give(a, number, (size_t)snprintf(number, sizeof number, "%" PRId32 " ", token));
    }
    size_t size;
    tern_answer_text_turn(a->pieces);
    const char *bytes = tern_answer_text_push(a->pieces, token, &size);
    a->stopped = tern_answer_text_stopped(a->pieces, NULL);
    return give_text(a, bytes, size) && !a->stopped;
}

static answer_end end_of(const answerer *a) {
    if (a->stopped)
        return ANSWER_STOPPED;
    switch (a->figures.stop) {
    case TERN_STOP_END:
        return ANSWER_COMPLETE;
    case TERN_STOP_TOKEN:
        return ANSWER_STOPPED;
    case TERN_STOP_LENGTH:
        return ANSWER_LENGTH;
    case TERN_STOP_CONTEXT:
        return ANSWER_CONTEXT;
    case TERN_STOP_CALLER:
        break;
    }
    return ANSWER_INTERRUPTED;
}

/* What an unfinished character or a possible stop string held back. */
static void give_rest(answerer *a) {
    if (a->pieces != NULL && !a->stopped) {
        size_t size;
        tern_answer_text_turn(a->pieces);
        const char *bytes = tern_answer_text_finish(a->pieces, &size);
        a->stopped = tern_answer_text_stopped(a->pieces, NULL);
        (void)give_text(a, bytes, size);
    }
}

/*
 * Evaluates the prompt in pieces but for its last one, so that the sink can end it in between;
 * *done is how much. A prompt that does not fit is left to tern_generate, which refuses it.
 */
static tern_status read_prompt(answerer *a, size_t *done, bool *ended, tern_error *err) {
    const answer_request *r = a->request;
    const size_t room = tern_session_context(a->session) - tern_session_position(a->session);
    tern_status status = TERN_OK;
    while (r->piece > 0 && r->n_prompt <= room && r->n_prompt - *done > r->piece &&
           status == TERN_OK && !*ended) {
        status =
            tern_session_eval(a->session, r->prompt + *done, r->piece, TERN_LOGITS_NONE, NULL, err);
        for (size_t i = 0; i < r->piece && status == TERN_OK; i++)
            tern_sampler_accept(a->sampler, r->prompt[(*done)++]);
        *ended = status == TERN_OK && !give(a, "", 0);
    }
    return status;
}

static tern_status generate(answerer *a, tern_error *err) {
    const answer_request *r = a->request;
    const tern_generate_params params = {.max_tokens = r->max_tokens,
                                         .ignore_end = r->ignore_end,
                                         .stop_tokens = r->stop_tokens,
                                         .n_stop_tokens = r->n_stop_tokens,
                                         .draft = r->draft};
    const double start = tern_clock_seconds();
    size_t done = 0;
    bool ended = false;
    tern_status status = read_prompt(a, &done, &ended, err);
    const double seconds = tern_clock_seconds() - start;
    if (status == TERN_OK && ended) {
        a->figures = (tern_generation){.stop = TERN_STOP_CALLER};
    } else if (status == TERN_OK) {
        status = tern_generate(a->session, a->sampler, r->prompt + done, r->n_prompt - done,
                               &params, on_token, a, &a->figures, err);
    }
    a->figures.n_prompt += done;
    a->figures.prefill_seconds += seconds;
    a->figures.first_token_seconds += a->figures.n_generated > 0 ? seconds : 0.0;
    give_rest(a);
    return status;
}

static tern_status open_pieces(answerer *a, tern_error *err) {
    const answer_request *r = a->request;
    const tern_answer_text_params params = {
        .stops = r->stops.texts, .n_stops = r->stops.n, .drop_space = r->drop_space};
    tern_answer_text_free(&a->pieces);
    return a->tokenizer != NULL ? tern_answer_text_new(a->tokenizer, &params, &a->pieces, err)
                                : TERN_OK;
}

tern_status answerer_answer(answerer *a, const answer_request *request, tern_error *err) {
    a->request = request;
    a->n_tokens = a->text_size = 0;
    a->stopped = a->out_of_memory = false;
    a->figures = (tern_generation){0};
    const tern_status opened = open_pieces(a, err);
    if (opened != TERN_OK) {
        a->request = NULL;
        return opened;
    }
    tern_sampler_reset(a->sampler, request->seed);
    for (size_t i = 0; i < request->n_known; i++)
        tern_sampler_accept(a->sampler, request->known[i]);
    const uint64_t before = tern_dequantize_calls();
    const tern_session_work work = tern_session_work_done(a->session);
    /* Room for a byte, so that text is never NULL. */
    const tern_status status = reserve_text(a, 1) ? generate(a, err) : TERN_ERR_NOMEM;
    a->dequantized = tern_dequantize_calls() - before;
    a->kv_hits = tern_session_work_done(a->session).reused - work.reused;
    a->kv_misses = tern_session_work_done(a->session).tokens - work.tokens;
    a->end = end_of(a);
    a->request = NULL;
    if (a->out_of_memory)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for the text of an answer");
    return status;
}
