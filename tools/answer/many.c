/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/answer/many.h"
#include "tools/prompt/prompt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/metrics.h"
#include "tools/answer/figures.h"
#include "tools/answer/form.h"
#include "tools/answer/together.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json_line.h"
#include "tools/cli/output.h"
#include "tools/touch/touch_options.h"

enum {
    MOST_AT_ONCE = 64, /* without --parallel: beyond it a pass gains little */
    MORE_LIVE = 2,     /* answers that wait in the engine, so that a pass is never short of them */
    AHEAD = 4          /* times as many may be complete and wait until the first is printed */
};

typedef struct many {
    const options *o;
    loaded *l;
    const answer_options *how;
    touch *touch;
    const prompts *prompts;
    form form;
    uint64_t rounds;
    uint32_t n_ctx, at_once;
    uint8_t space[TERN_SPACE_BYTES]; /* of the next request */
    size_t answers, failures, tokens;
    size_t begun;                                          /* answers whose text has begun */
    size_t prompt_tokens, generated_tokens, shared_tokens; /* of the printed answers */
    uint64_t kv_hits, kv_misses;                           /* of the same answers */
    tern_latencies *latencies;                             /* between the tokens of an answer */
    double begin, shown;                                   /* seconds */
    bool json, progress, broken;
} many;

bool many_wanted(const options *o) {
    return options_given(o, OPT_PROMPTS_FILE) || options_integer(o, OPT_ROUNDS) > 1;
}

/* ---- requests -------------------------------------------------------------------------------- */

static const prompt *prompt_of(const many *m, size_t number) {
    return &m->prompts->items[number / m->rounds];
}

/* Tokens that the context has room for after a prompt; also 0 for a prompt that is too long. */
static size_t room_after(const many *m, const prompt *p) {
    return p->n < m->n_ctx ? m->n_ctx - p->n : 0;
}

static void ask(void *user, size_t number, tern_request *request) {
    many *m = user;
    const prompt *p = prompt_of(m, number);
    const uint64_t round = number % m->rounds;
    memcpy(m->space, &round, sizeof round);
    *request = answer_options_request(m->how, m->o, p);
    request->space = m->space;
    m->broken |= !form_ask(&m->form, number, request);
}

/* ---- how many at once ------------------------------------------------------------------------ */

/* An upper bound on the positions of any answer. */
static uint32_t largest_answer(const many *m) {
    uint32_t largest = 1;
    for (size_t i = 0; i < m->prompts->n; i++) {
        const prompt *p = &m->prompts->items[i];
        const size_t room = room_after(m, p);
        const size_t wanted = m->how->request.max_tokens;
        const size_t all = p->n + (wanted < room ? wanted : room);
        largest = all > largest && all <= m->n_ctx ? (uint32_t)all : largest;
    }
    return largest;
}

/*
 * Memory for as many of the largest answers as run at once, and for as many again so that later
 * answers still find the beginnings that they share; at most --kv-memory, or half of the free
 * memory, but enough for one answer in any case.
 */
static uint64_t pool_bytes(const many *m, const tern_engine_params *params) {
    const uint32_t largest = largest_answer(m);
    const uint64_t given = options_integer(m->o, OPT_KV_MEMORY) << 20;
    const uint64_t limit = given > 0 ? given : tern_memory_available() / 2;
    uint64_t n = 2 * ((uint64_t)m->at_once + 1), bytes;
    do
        bytes = loader_pool_bytes(m->l, params, loader_positions(n, largest));
    while (limit > 0 && bytes > limit && --n > 0);
    return bytes;
}

static int open_engine(many *m) {
    const uint64_t answers = m->prompts->n * m->rounds;
    const uint64_t most = options_integer(m->o, OPT_RUN_PARALLEL);
    const uint64_t at_once = most > 0 ? most : MOST_AT_ONCE;
    tern_engine_params params = loader_engine_params(m->o, m->l);
    m->n_ctx = params.n_ctx;
    m->at_once = (uint32_t)(answers < at_once ? answers : at_once);
    params.n_sequences = m->at_once;
    params.n_queue = m->at_once + MORE_LIVE;
    if (params.n_batch > 0 && params.n_batch < m->at_once)
        params.n_batch = m->at_once;
    params.pool_bytes = pool_bytes(m, &params);
    return loader_open_engine(&params, m->l);
}

/* ---- output ---------------------------------------------------------------------------------- */

/* Shows a line that overwrites itself, on a terminal that does not get the text. */
static void show_progress(many *m, bool last) {
    const double now = tern_clock_seconds();
    if (!m->progress || (now - m->shown < 0.1 && !last))
        return;
    const tern_engine_state s = tern_engine_now(m->l->engine);
    m->shown = now;
    (void)fprintf(stderr,
                  "\r\x1b[K%zu of %" PRIu64 " answers, %" PRIu32 " at once, %.1f tokens/s%s",
                  m->answers, m->prompts->n * m->rounds, s.running,
                  (double)m->tokens / (now - m->begin), last ? "\n" : "");
}

static bool go_on(void *user) {
    many *m = user;
    show_progress(m, false);
    return !m->broken && !interrupt_seen();
}

static void on_token(void *user, int32_t token, double seconds) {
    many *m = user;
    (void)token;
    m->tokens++;
    if (seconds >= 0.0)
        tern_latencies_add(m->latencies, seconds);
    if (m->touch != NULL)
        touch_token(m->touch);
}

/* Called before the first byte of an answer's text. */
static void begin_text(many *m, size_t number) {
    const prompt *p = prompt_of(m, number);
    if (m->begun > number)
        return;
    m->begun = number + 1;
    if (options_switch(m->o, OPT_ECHO) && p->text != NULL)
        out_write(p->text, p->size);
}

static void say(void *user, size_t number, const char *bytes, size_t size) {
    many *m = user;
    if (!m->json) {
        begin_text(m, number);
        m->broken |= !(out_write(bytes, size) && out_flush());
    }
}

static void print_figures(const many *m, const together_answer *a) {
    char name[80];
    (void)snprintf(name, sizeof name, "answer %zu: %zu tokens shared, ", a->number + 1,
                   a->figures.n_shared);
    figures_print(name, a, m->l);
}

/* Ends an answer's text. */
static void print_text(many *m, const together_answer *a) {
    if (a->error != NULL) {
        complain("prompt %zu: %s", (size_t)(a->number / m->rounds) + 1, a->error->message);
        return;
    }
    begin_text(m, a->number);
    for (size_t i = 0; m->l->tokenizer == NULL && i < a->n_tokens; i++)
        out_print("%" PRId32 " ", a->tokens[i]);
    out_print("\n");
    out_flush();
    if (wants_remarks(options_switch(m->o, OPT_VERBOSE)))
        print_figures(m, a);
}

static void print_line(const many *m, const together_answer *a, bool whole) {
    json_t *line = json_pack("{s:I, s:I}", "prompt", (json_int_t)(a->number / m->rounds) + 1,
                             "round", (json_int_t)(a->number % m->rounds) + 1);
    if (a->error != NULL)
        json_object_set_new(line, "error", json_text(a->error->message, strlen(a->error->message)));
    else
        figures_set_answer(line, a, m->l);
    if (m->form.grammar != NULL)
        json_object_set_new(line, "whole", json_boolean(whole));
    (void)json_print(line);
    out_flush();
}

static void tell(void *user, const together_answer *told) {
    many *m = user;
    together_answer answer = *told;
    const together_answer *a = &answer;
    answer.error = form_error(&m->form, told);
    const bool whole = form_is_whole(&m->form, a);
    m->answers++;
    m->failures += a->error != NULL || !whole;
    m->prompt_tokens += a->error == NULL ? a->figures.n_prompt : 0;
    m->generated_tokens += a->error == NULL ? a->n_tokens : 0;
    m->shared_tokens += a->figures.n_shared;
    m->kv_hits += a->figures.n_found;
    m->kv_misses += a->figures.n_computed;
    if (m->json && !options_switch(m->o, OPT_SUMMARY))
        print_line(m, a, whole);
    else if (!m->json)
        print_text(m, a);
    if (a->error == NULL && !whole)
        complain("prompt %zu: the answer ended (%s) before its text was whole",
                 (size_t)(a->number / m->rounds) + 1, answer_end_name(a->end));
    form_end(&m->form, a->number);
}

/* Prints the last line, which describes the run. */
static int print_run(const many *m, double seconds) {
    const tern_engine_state s = tern_engine_now(m->l->engine);
    const double read = (double)s.passes * (double)m->l->info.weight_bytes;
    json_t *root =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "answers", (json_int_t)m->answers, "failed",
                  (json_int_t)m->failures, "prompt_tokens", (json_int_t)m->prompt_tokens,
                  "generated_tokens", (json_int_t)m->generated_tokens, "shared_tokens",
                  (json_int_t)m->shared_tokens, "passes", (json_int_t)s.passes);
    tern_latencies_sort(m->latencies);
    json_object_set_new(root, "kv_hits", json_integer((json_int_t)m->kv_hits));
    json_object_set_new(root, "kv_misses", json_integer((json_int_t)m->kv_misses));
    json_object_set_new(root, "p50_ms",
                        json_number(1e3 * tern_latencies_percentile(m->latencies, 0.50)));
    json_object_set_new(root, "p95_ms",
                        json_number(1e3 * tern_latencies_percentile(m->latencies, 0.95)));
    json_object_set_new(root, "parallel", json_integer(m->at_once));
    json_object_set_new(root, "seconds", json_number(seconds));
    json_object_set_new(root, "true_tps", json_number((double)m->generated_tokens / seconds));
    json_object_set_new(root, "bandwidth_gbs", json_number(read / seconds * 1e-9));
    figures_set_process(root, m->l);
    figures_set_choices(root, m->o);
    touch_set_json(root, m->touch);
    return json_print(root);
}

/* ---- the run --------------------------------------------------------------------------------- */

static int answer_all(many *m) {
    const together_task task = {.n = m->prompts->n * m->rounds,
                                .ahead = (size_t)AHEAD * m->at_once,
                                .live = (size_t)m->at_once + MORE_LIVE,
                                .ask = ask,
                                .go_on = go_on,
                                .on_token = on_token,
                                .say = say,
                                .tell = tell,
                                .user = m};
    const uint64_t before = tern_dequantize_calls();
    tern_error err = {0};
    interrupt_catch();
    m->begin = tern_clock_seconds();
    if (together_run(m->l->engine, &task, &err) != TERN_OK)
        return complain_error(&err);
    const double seconds = tern_clock_seconds() - m->begin;
    show_progress(m, true);
    const int unchanged = loader_check_file(m->l);
    if (unchanged != EXIT_DONE)
        return unchanged;
    if (m->json && print_run(m, seconds) != EXIT_DONE)
        return EXIT_FAILED;
    const uint64_t dequantized = tern_dequantize_calls() - before;
    if (options_switch(m->o, OPT_STRICT) && dequantized > 0) {
        complain("strict: %" PRIu64 " rows of weights were expanded to floats", dequantized);
        return EXIT_FAILED;
    }
    return m->failures > 0 ? EXIT_FAILED : interrupt_status(EXIT_DONE);
}

/* Tokenizes the prompts that are texts. */
static int tokenize_all(const options *o, const loaded *l, const prompts *p) {
    int status = EXIT_DONE;
    for (size_t i = 0; status == EXIT_DONE && i < p->n; i++)
        status = p->items[i].ids != NULL ? EXIT_DONE : prompt_tokenize(o, l, &p->items[i]);
    return status;
}

int many_answer(const options *o, loaded *l, const answer_options *how, touch *t,
                const prompts *p) {
    many m = {.o = o,
              .l = l,
              .how = how,
              .touch = t,
              .prompts = p,
              .rounds = options_integer(o, OPT_ROUNDS),
              .json = options_switch(o, OPT_JSON)};
    m.progress = isatty(STDERR_FILENO) == 1 && isatty(STDOUT_FILENO) != 1;
    int status = tokenize_all(o, l, p);
    if (status != EXIT_DONE)
        return status;
    m.latencies = calloc(1, sizeof *m.latencies);
    if (m.latencies == NULL) {
        complain("no memory for times of tokens");
        return EXIT_FAILED;
    }
    status = form_open(o, l, p->n * m.rounds, &m.form);
    if (status == EXIT_DONE)
        status = open_engine(&m);
    if (status == EXIT_DONE)
        status = answer_all(&m);
    form_close(&m.form);
    free(m.latencies);
    return status;
}
