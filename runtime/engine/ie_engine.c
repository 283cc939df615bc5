/* SPDX-License-Identifier: Apache-2.0 */
#include "tern/ie_engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"

enum { FIRST_TEXT_BYTES = 256 };

struct ie_engine {
    tern_model *model;
    tern_engine *engine;
    const tern_tokenizer *tokenizer; /* the model's */
    char *text;                      /* [capacity] of the last answer */
    size_t size, capacity;
    ie_metrics_t done;    /* only its counts; the rest is computed on request */
    uint64_t first, gaps; /* first tokens, and tokens that follow another one */
    double first_seconds, gap_seconds;
    tern_latencies between;
};

/* An answer in progress. */
typedef struct making {
    ie_engine_t *engine;
    const ie_generate_params_t *params;
    uint64_t request;
    bool has_token;
    double last; /* time of its last token, if has_token */
    bool is_over;
    tern_status status; /* an error on this side: no memory for the text */
    tern_error error;   /* the engine's error, if `end` is TERN_END_ERROR */
    tern_end end;
    tern_branch_figures figures;
    char digest[65];
} making;

/* ---- life ---------------------------------------------------------------------------------- */

static tern_status open_parts(ie_engine_t *e, const ie_engine_config_t *config, tern_error *err) {
    tern_engine_params running =
        config->running != NULL ? *config->running : tern_engine_params_default();
    if (running.n_sequences == 0)
        running.n_sequences = 1;
    if (running.n_queue == 0)
        running.n_queue = 1;
    tern_status status = tern_model_open(config->model, config->loading, &e->model, err);
    if (status == TERN_OK)
        status = tern_model_tokenizer(e->model, &e->tokenizer, err);
    if (status == TERN_OK)
        status = tern_engine_new(e->model, &running, &e->engine, err);
    return status;
}

tern_status ie_engine_create(const ie_engine_config_t *config, ie_engine_t **out, tern_error *err) {
    if (config == NULL || config->model == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "ie_engine_create needs a model's path and a place");
    ie_engine_t *e = calloc(1, sizeof *e);
    if (e == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for an engine");
    const tern_status status = open_parts(e, config, err);
    if (status != TERN_OK) {
        ie_engine_destroy(&e);
        return status;
    }
    *out = e;
    return TERN_OK;
}

void ie_engine_destroy(ie_engine_t **engine) {
    if (engine == NULL || *engine == NULL)
        return;
    tern_engine_free(&(*engine)->engine);
    tern_model_free(&(*engine)->model);
    free((*engine)->text);
    free(*engine);
    *engine = NULL;
}

/* ---- an answer ----------------------------------------------------------------------------- */

/* Makes room for `more` bytes and a terminating zero. */
static bool reserve(ie_engine_t *e, size_t more) {
    size_t capacity = e->capacity != 0 ? e->capacity : FIRST_TEXT_BYTES;
    while (capacity - e->size <= more)
        capacity *= 2;
    if (capacity == e->capacity)
        return true;
    char *text = realloc(e->text, capacity);
    if (text == NULL)
        return false;
    e->text = text;
    e->capacity = capacity;
    return true;
}

/* Cancels an answer; the events of the next steps report its end. */
static void give_up(making *m) {
    (void)tern_engine_cancel(m->engine->engine, m->request);
}

static void take_text(making *m, const tern_event *event) {
    ie_engine_t *e = m->engine;
    if (event->size == 0 || m->status != TERN_OK)
        return;
    if (!reserve(e, event->size)) {
        m->status = TERN_ERR_NOMEM;
        give_up(m);
        return;
    }
    memcpy(e->text + e->size, event->text, event->size);
    e->size += event->size;
    if (m->params->on_text != NULL &&
        !m->params->on_text(event->text, event->size, m->params->user))
        give_up(m);
}

static void take_time(making *m, double seconds) {
    ie_engine_t *e = m->engine;
    if (m->has_token) {
        tern_latencies_add(&e->between, seconds - m->last);
        e->gap_seconds += seconds - m->last;
        e->gaps++;
    } else {
        e->first_seconds += seconds;
        e->first++;
    }
    m->has_token = true;
    m->last = seconds;
}

static void take_end(making *m, const tern_event *event) {
    m->is_over = true;
    m->end = event->end;
    m->figures = event->figures;
    memcpy(m->digest, event->digest, sizeof m->digest);
    if (event->error != NULL)
        m->error = *event->error;
}

/* Runs steps until the answer is over. */
static tern_status finish(making *m, tern_error *err) {
    while (!m->is_over) {
        const tern_event *events;
        size_t n;
        const tern_status status = tern_engine_step(m->engine->engine, &events, &n, err);
        if (status != TERN_OK)
            return status;
        for (size_t i = 0; i < n; i++) {
            take_text(m, &events[i]);
            if (events[i].kind == TERN_EVENT_TOKEN)
                take_time(m, events[i].seconds);
            else
                take_end(m, &events[i]);
        }
    }
    if (m->status != TERN_OK)
        return tern_fail(err, m->status, "no memory for %zu bytes of an answer", m->engine->size);
    if (m->end != TERN_END_ERROR)
        return TERN_OK;
    return tern_fail(err, m->error.status, "%s", m->error.message);
}

static void count(ie_engine_t *e, const tern_branch_figures *f) {
    e->done.answers++;
    e->done.prompt_tokens += f->n_prompt;
    e->done.generated_tokens += f->n_generated;
    e->done.prefix_hits += f->n_shared;
    e->done.prefix_misses += f->n_prompt - f->n_shared;
}

/* Tokenizes the prompt into *n tokens; the caller frees them, also after an error. */
static tern_status read_prompt(const ie_engine_t *e, const char *prompt, int32_t **tokens,
                               size_t *n, tern_error *err) {
    const size_t size = strlen(prompt);
    const unsigned flags = TERN_TOKENIZE_SPECIAL;
    tern_status status = tern_tokenize(e->tokenizer, prompt, size, flags, NULL, 0, n, err);
    if (status != TERN_OK)
        return status;
    *tokens = malloc((*n + 1) * sizeof **tokens);
    if (*tokens == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a prompt of %zu tokens", *n);
    if (*n == 0)
        return TERN_OK;
    return tern_tokenize(e->tokenizer, prompt, size, flags, *tokens, *n, n, err);
}

static tern_status submit(making *m, const char *prompt, size_t max_new, tern_error *err) {
    int32_t *tokens = NULL;
    tern_request request = {.sampling = m->params->sampling,
                            .max_tokens = max_new,
                            .ignore_end = m->params->ignore_end,
                            .stop_texts = m->params->stop_texts,
                            .n_stop_texts = m->params->n_stop_texts};
    tern_status status = read_prompt(m->engine, prompt, &tokens, &request.n_tokens, err);
    request.tokens = tokens;
    if (status == TERN_OK)
        status = tern_engine_submit(m->engine->engine, &request, &m->request, err);
    free(tokens);
    return status;
}

tern_status ie_engine_generate(ie_engine_t *engine, const char *prompt, size_t max_new,
                               const ie_generate_params_t *params, ie_answer_t *out,
                               tern_error *err) {
    static const ie_generate_params_t defaults;
    if (engine == NULL || prompt == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_NULL,
                         "ie_engine_generate needs an engine, a prompt and a place");
    making m = {.engine = engine, .params = params != NULL ? params : &defaults};
    engine->size = 0;
    if (!reserve(engine, 0))
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for an answer");
    tern_status status = submit(&m, prompt, max_new, err);
    if (status == TERN_OK)
        status = finish(&m, err);
    if (status != TERN_OK)
        return status;
    count(engine, &m.figures);
    engine->text[engine->size] = '\0';
    *out = (ie_answer_t){
        .text = engine->text, .size = engine->size, .end = m.end, .figures = m.figures};
    memcpy(out->digest, m.digest, sizeof out->digest);
    return TERN_OK;
}

/* ---- figures ------------------------------------------------------------------------------- */

tern_status ie_engine_metrics(const ie_engine_t *engine, ie_metrics_t *out, tern_error *err) {
    if (engine == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "ie_engine_metrics needs an engine and a place");
    tern_latencies sorted = engine->between;
    tern_latencies_sort(&sorted);
    *out = engine->done;
    if (engine->first > 0)
        out->first_token_ms = 1e3 * engine->first_seconds / (double)engine->first;
    out->p50_ms = 1e3 * tern_latencies_percentile(&sorted, 0.50);
    out->p95_ms = 1e3 * tern_latencies_percentile(&sorted, 0.95);
    if (engine->gap_seconds > 0.0)
        out->tokens_per_second = (double)engine->gaps / engine->gap_seconds;
    out->peak_rss_mib = tern_peak_rss_mib();
    return TERN_OK;
}
