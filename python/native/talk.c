/* SPDX-License-Identifier: Apache-2.0 */
#include "python/native/talk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "python/native/exchange.h"
#include "serve/http/account.h"
#include "serve/interfaces/call_probe.h"
#include "serve/work/job.h"

enum { NAME_BYTES = 256 };

struct tern_talk {
    tern_engine *engine;
    char name[NAME_BYTES];
    char fingerprint[TERN_FINGERPRINT];
    call_form calls;
    grammars *grammars;
    ask_rules rules;
    job_place place;
};

struct tern_talk_answer {
    tern_talk *talk;
    job *job;
    http_exchange *x;
    text told; /* what tern_talk_text gave last */
};

/* ---- the model ------------------------------------------------------------------------------- */

/* A job's model cannot go away: the caller keeps it. */
static void lease_nothing(const void *of) {
    (void)of;
}

static void set_rules(tern_talk *t, const tern_model *model, const tern_tokenizer *tokenizer,
                      const tern_talk_params *params) {
    const tern_engine_state now = tern_engine_now(t->engine);
    tern_model_info info;
    tern_model_describe(model, &info);
    call_find(tokenizer, &t->calls);
    t->rules = (ask_rules){.tokenizer = tokenizer,
                           .model = t->name,
                           .any_model = true,
                           .sampling = params->sampling,
                           .seeded = true,
                           .max_tokens = params->max_tokens,
                           .n_vocab = info.n_vocab,
                           .n_ctx = now.n_ctx,
                           .most_choices = ASK_MOST_CHOICES,
                           .vectors = model,
                           .n_embd = info.n_embd,
                           .calls = &t->calls,
                           .thinking = thinking_find(tokenizer),
                           .grammars = t->grammars};
    t->place = (job_place){.tokenizer = tokenizer,
                           .model = t->name,
                           .fingerprint = t->fingerprint,
                           .n_ctx = now.n_ctx,
                           .threads = now.threads,
                           .draft = params->draft,
                           .lease = {t, lease_nothing, lease_nothing}};
}

tern_status tern_talk_open(const tern_model *model, tern_engine *engine,
                           const tern_talk_params *params, tern_talk **out, tern_error *err) {
    if (model == NULL || engine == NULL || params == NULL || params->name == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_talk_open: an argument is NULL");
    const tern_tokenizer *tokenizer;
    tern_status status = tern_model_tokenizer(model, &tokenizer, err);
    if (status != TERN_OK)
        return status;
    tern_talk *t = calloc(1, sizeof *t);
    if (t == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for what requests are read with");
    t->engine = engine;
    (void)snprintf(t->name, sizeof t->name, "%s", params->name);
    tern_model_info info;
    tern_model_describe(model, &info);
    status = grammars_open(tokenizer, info.n_vocab, &t->grammars, err);
    if (status != TERN_OK) {
        free(t);
        return status;
    }
    tern_fingerprint(tern_model_identity(model), tern_format_describe(params->kv)->name,
                     t->fingerprint);
    set_rules(t, model, tokenizer, params);
    *out = t;
    return TERN_OK;
}

void tern_talk_close(tern_talk **talk) {
    if (talk == NULL || *talk == NULL)
        return;
    grammars_free(&(*talk)->grammars);
    free(*talk);
    *talk = NULL;
}

/* ---- a request ------------------------------------------------------------------------------- */

static ask_kind kind_of(tern_talk_kind kind) {
    switch (kind) {
    case TERN_TALK_COMPLETION:
        return ASK_COMPLETION;
    case TERN_TALK_RESPONSE:
        return ASK_RESPONSE;
    case TERN_TALK_MESSAGE:
        return ASK_MESSAGE;
    default:
        return ASK_CHAT;
    }
}

static tern_status refused(const refusal *r, char *param, tern_error *err) {
    (void)snprintf(param, TERN_TALK_PARAM_BYTES, "%s", r->param);
    const tern_status status = r->n_ctx > 0       ? TERN_ERR_CONTEXT
                               : r->status == 503 ? TERN_ERR_NOMEM
                                                  : TERN_ERR_ARG;
    return tern_fail(err, status, "%s", r->message);
}

/* Takes over what `a` holds. NULL: no memory. */
static tern_talk_answer *answer_new(tern_talk *t, ask *a) {
    tern_talk_answer *answer = calloc(1, sizeof *answer);
    account *v = account_new(NULL);
    http_exchange *x = exchange_new();
    if (answer != NULL && v != NULL && x != NULL)
        answer->job = job_new(&t->place, x, v, a);
    account_release(v); /* the job has its own part */
    if (answer == NULL || answer->job == NULL) {
        if (x != NULL)
            http_release(x);
        free(answer);
        return NULL;
    }
    answer->talk = t;
    answer->x = x;
    return answer;
}

tern_status tern_talk_ask(tern_talk *talk, tern_talk_kind kind, const char *body, size_t size,
                          tern_talk_answer **out, char *param, tern_error *err) {
    if (talk == NULL || body == NULL || out == NULL || param == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_talk_ask: an argument is NULL");
    refusal r = {0};
    ask a = {0};
    tern_status status = TERN_OK;
    tern_talk_answer *answer = NULL;
    param[0] = '\0';
    if (!ask_read(&a, kind_of(kind), &talk->rules, body, size, &r))
        status = refused(&r, param, err);
    else if ((answer = answer_new(talk, &a)) == NULL)
        status = tern_fail(err, TERN_ERR_NOMEM, "no memory for the request");
    ask_free(&a);
    if (status == TERN_OK)
        *out = answer;
    return status;
}

const char *tern_talk_ignored(const tern_talk_answer *answer) {
    const text *ignored = &answer->job->ask.ignored;
    return ignored->size > 0 ? ignored->bytes : "";
}

tern_status tern_talk_submit(tern_talk_answer *answer, const uint64_t **ids, size_t *n,
                             tern_error *err) {
    if (answer == NULL || ids == NULL || n == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_talk_submit: an argument is NULL");
    job *j = answer->job;
    *ids = j->ids;
    *n = 0;
    if (j->n_asked > 0)
        return tern_fail(err, TERN_ERR_STATE, "the request was submitted before");
    while (job_unasked(j) > 0) {
        const tern_request request = job_request(j, j->n_asked);
        const tern_status status =
            tern_engine_submit(answer->talk->engine, &request, &j->ids[j->n_asked], err);
        if (status != TERN_OK) {
            j->over = true;
            tern_talk_cancel(answer);
            return status;
        }
        *n = ++j->n_asked;
    }
    job_begin(j);
    return TERN_OK;
}

/* ---- its events ------------------------------------------------------------------------------ */

bool tern_talk_take(tern_talk_answer *answer, const tern_event *event) {
    job *j = answer->job;
    for (size_t i = 0; i < j->n_requests; i++) {
        if (j->ids[i] != event->request)
            continue;
        if (!job_take(j, i, event) && j->n_left > 0) {
            j->over = true;
            tern_talk_cancel(answer);
        }
        break;
    }
    return job_is_done(j);
}

void tern_talk_cancel(tern_talk_answer *answer) {
    for (size_t i = 0; i < answer->job->n_asked; i++)
        (void)tern_engine_cancel(answer->talk->engine, answer->job->ids[i]);
}

const char *tern_talk_text(tern_talk_answer *answer, size_t *size) {
    text_free(&answer->told);
    answer->told = exchange_take(answer->x);
    *size = answer->told.size;
    return answer->told.size > 0 ? answer->told.bytes : "";
}

unsigned tern_talk_status(const tern_talk_answer *answer) {
    return http_status(answer->x);
}

void tern_talk_answer_free(tern_talk_answer **answer) {
    if (answer == NULL || *answer == NULL)
        return;
    job_free((*answer)->job);
    http_release((*answer)->x);
    text_free(&(*answer)->told);
    free(*answer);
    *answer = NULL;
}
