/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/answer/answers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/answer/figures.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json_line.h"
#include "tools/cli/output.h"
#include "tools/touch/touch_options.h"

enum {
    MOST_AT_ONCE = 64, /* without --parallel: beyond it a pass gains little */
    MORE_LIVE = 2,     /* answers that wait in the engine, so that a pass is never short of them */
    AHEAD = 4          /* times as many may be complete and wait until the first is printed */
};

bool answers_are_several(const options *o) {
    return options_given(o, OPT_PROMPTS_FILE) || options_integer(o, OPT_ROUNDS) > 1;
}

/* ---- requests -------------------------------------------------------------------------------- */

static const prompt *prompt_of(const answers *a, size_t number) {
    return &a->prompts->items[number / a->rounds];
}

/* A prompt's number for people. */
static size_t place_of(const answers *a, size_t number) {
    return number / a->rounds + 1;
}

static bool mask_watched(void *user, const tern_progress *progress, uint64_t *allowed,
                         size_t words) {
    const answers *a = user;
    return form_mask(&a->form, 0, progress, allowed, words);
}

static void watch_logits(void *user, const tern_progress *progress, size_t position,
                         const float *logits) {
    answers *a = user;
    (void)position;
    receipt_watch_logits(a->watch, progress->n - progress->n_prompt, logits);
}

/* Lets the watch see the logits of a request: all of its hooks then have one user. */
static void watch(answers *a, tern_request *request) {
    request->mask = request->mask != NULL ? mask_watched : NULL;
    request->logits = watch_logits;
    request->logits_every = RECEIPT_EVERY;
    request->prompt_from = request->n_tokens - 1;
    request->user = a;
}

static void ask(void *user, size_t number, tern_request *request) {
    answers *a = user;
    const uint64_t round = number % a->rounds;
    memcpy(a->space, &round, sizeof round);
    *request = answer_options_request(a->how, a->o, prompt_of(a, number));
    request->space = a->space;
    a->refused |= !form_ask(&a->form, number, request);
    if (a->watch != NULL)
        watch(a, request);
    a->request = *request;
}

/* ---- how many at once ------------------------------------------------------------------------ */

/* Tokens that the context has room for after a prompt; also 0 for a prompt that is too long. */
static size_t room_after(const answers *a, const prompt *p) {
    return p->n < a->n_ctx ? a->n_ctx - p->n : 0;
}

/* An upper bound on the positions of any answer. */
static uint32_t largest_answer(const answers *a) {
    uint32_t largest = 1;
    for (size_t i = 0; i < a->prompts->n; i++) {
        const prompt *p = &a->prompts->items[i];
        const size_t room = room_after(a, p);
        const size_t wanted = a->how->request.max_tokens;
        const size_t all = p->n + (wanted < room ? wanted : room);
        largest = all > largest && all <= a->n_ctx ? (uint32_t)all : largest;
    }
    return largest;
}

/*
 * Memory for as many of the largest answers as run at once, and for as many again so that later
 * answers still find the beginnings that they share; at most --kv-memory, or half of the free
 * memory, but enough for one answer in any case.
 */
static uint64_t pool_bytes(const answers *a, const tern_engine_params *params) {
    const uint32_t largest = largest_answer(a);
    const uint64_t given = options_integer(a->o, OPT_KV_MEMORY) << 20;
    const uint64_t limit = given > 0 ? given : tern_memory_available() / 2;
    uint64_t n = 2 * ((uint64_t)a->at_once + 1), bytes;
    do
        bytes = loader_pool_bytes(a->l, params, loader_positions(n, largest));
    while (limit > 0 && bytes > limit && --n > 0);
    return bytes;
}

static int open_engine(answers *a) {
    const uint64_t most = options_integer(a->o, OPT_RUN_PARALLEL);
    const uint64_t at_once = most > 0 ? most : MOST_AT_ONCE;
    tern_engine_params params = loader_engine_params(a->o, a->l);
    a->n_ctx = params.n_ctx;
    a->at_once = (uint32_t)(a->n < at_once ? a->n : at_once);
    params.n_sequences = a->at_once;
    params.n_queue = a->at_once + MORE_LIVE;
    if (params.n_batch > 0 && params.n_batch < a->at_once)
        params.n_batch = a->at_once;
    params.pool_bytes = pool_bytes(a, &params);
    return loader_open_engine(&params, a->l);
}

/* ---- output on the way ----------------------------------------------------------------------- */

/* Shows a line that overwrites itself, on a terminal that does not get the text. */
static void show_progress(answers *a, bool last) {
    const double now = tern_clock_seconds();
    if (!a->progress || (now - a->shown < 0.1 && !last))
        return;
    const tern_engine_state s = tern_engine_now(a->l->engine);
    a->shown = now;
    (void)fprintf(stderr, "\r\x1b[K%zu of %zu answers, %" PRIu32 " at once, %.1f tokens/s%s",
                  a->told, a->n, s.running, (double)a->tokens / (now - a->begin), last ? "\n" : "");
}

static bool go_on(void *user) {
    answers *a = user;
    show_progress(a, false);
    return !a->broken && !a->refused && !interrupt_seen();
}

static void on_token(void *user, double seconds) {
    answers *a = user;
    a->tokens++;
    if (seconds >= 0.0)
        tern_latencies_add(a->latencies, seconds);
}

/* Called before the first byte of an answer's text. */
static void begin_text(answers *a, size_t number) {
    const prompt *p = prompt_of(a, number);
    if (a->begun > number)
        return;
    a->begun = number + 1;
    if (options_switch(a->o, OPT_ECHO) && p->text != NULL)
        out_write(p->text, p->size);
}

static void say(void *user, size_t number, const char *bytes, size_t size) {
    answers *a = user;
    if (!a->json) {
        begin_text(a, number);
        a->broken |= !(out_write(bytes, size) && out_flush());
    }
}

/* ---- the end of an answer -------------------------------------------------------------------- */

static void print_figures(const answers *a, const one_answer *told) {
    char name[80] = "";
    if (!wants_remarks(options_switch(a->o, OPT_VERBOSE)))
        return;
    if (a->several)
        (void)snprintf(name, sizeof name, "answer %zu: %zu tokens shared, ", told->number + 1,
                       told->figures.n_shared);
    figures_print(name, told, a->l);
}

/* Ends an answer's text. */
static void end_text(answers *a, const one_answer *told) {
    begin_text(a, told->number);
    out_print("\n");
    out_flush();
    print_figures(a, told);
}

static void set_whole(json_t *root, const answers *a, bool whole) {
    if (a->form.grammar != NULL)
        json_object_set_new(root, "whole", json_boolean(whole));
}

static void print_line(const answers *a, const one_answer *told, bool whole) {
    json_t *line = json_pack("{s:I, s:I}", "prompt", (json_int_t)place_of(a, told->number), "round",
                             (json_int_t)(told->number % a->rounds) + 1);
    if (told->error != NULL)
        json_object_set_new(line, "error",
                            json_text(told->error->message, strlen(told->error->message)));
    else
        figures_set_answer(line, told, a->l);
    set_whole(line, a, whole);
    (void)json_print(line);
    out_flush();
}

/* Complains about an answer that was cut off: it is not a complete text of its form. Or about one
 * that does not satisfy what its mask could not enforce. Returns true if there is nothing to
 * complain of. */
static bool check_form(const answers *a, const one_answer *told, bool whole, const char *name) {
    tern_error why = {0};
    if (!whole)
        complain("%sthe answer ended (%s) before its text was whole", name,
                 answer_end_name(told->end));
    else if (!form_is_satisfied(&a->form, told, &why))
        complain("%sthe answer is not valid: %s", name, why.message);
    else
        return true;
    return false;
}

static void count(answers *a, const one_answer *told, bool valid) {
    a->told++;
    a->failures += told->error != NULL || !valid;
    a->prompt_tokens += told->error == NULL ? told->figures.n_prompt : 0;
    a->generated_tokens += told->error == NULL ? told->n_tokens : 0;
    a->shared_tokens += told->figures.n_shared;
    a->kv_hits += told->figures.n_found;
    a->kv_misses += told->figures.n_computed;
}

static void tell(void *user, const one_answer *told) {
    answers *a = user;
    one_answer answer = *told;
    char name[40];
    answer.error = form_error(&a->form, told);
    const bool whole = form_is_whole(&a->form, &answer);
    (void)snprintf(name, sizeof name, "prompt %zu: ", place_of(a, told->number));
    if (a->json && !options_switch(a->o, OPT_SUMMARY))
        print_line(a, &answer, whole);
    else if (!a->json && answer.error != NULL)
        complain("%s%s", name, answer.error->message);
    else if (!a->json)
        end_text(a, &answer);
    count(a, &answer, answer.error != NULL || check_form(a, &answer, whole, name));
    form_end(&a->form, told->number);
}

/* ---- the end of the run ---------------------------------------------------------------------- */

/* Sets what is so for the whole run. */
static void set_run(json_t *root, const answers *a) {
    figures_set_process(root, a->l);
    figures_set_choices(root, a->o);
    touch_set_json(root, a->touch);
}

/* Prints the last line of several answers. */
static int print_run(const answers *a) {
    const tern_engine_state s = tern_engine_now(a->l->engine);
    const double read = (double)s.passes * (double)a->l->info.weight_bytes;
    json_t *root =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "answers", (json_int_t)a->told, "failed",
                  (json_int_t)a->failures, "prompt_tokens", (json_int_t)a->prompt_tokens,
                  "generated_tokens", (json_int_t)a->generated_tokens, "shared_tokens",
                  (json_int_t)a->shared_tokens, "passes", (json_int_t)s.passes);
    tern_latencies_sort(a->latencies);
    json_object_set_new(root, "kv_hits", json_integer((json_int_t)a->kv_hits));
    json_object_set_new(root, "kv_misses", json_integer((json_int_t)a->kv_misses));
    json_object_set_new(root, "p50_ms",
                        json_number(1e3 * tern_latencies_percentile(a->latencies, 0.50)));
    json_object_set_new(root, "p95_ms",
                        json_number(1e3 * tern_latencies_percentile(a->latencies, 0.95)));
    json_object_set_new(root, "parallel", json_integer(a->at_once));
    json_object_set_new(root, "seconds", json_number(a->seconds));
    json_object_set_new(root, "true_tps", json_number((double)a->generated_tokens / a->seconds));
    json_object_set_new(root, "bandwidth_gbs", json_number(read / a->seconds * 1e-9));
    set_run(root, a);
    return json_print(root);
}

static int print_single_json(const answers *a, bool whole) {
    const one_answer *told = &a->answerer.latest;
    json_t *root = json_object();
    figures_set_answer(root, told, a->l);
    set_run(root, a);
    json_object_set_new(root, "reused_tokens", json_integer((json_int_t)told->figures.n_shared));
    set_whole(root, a, whole);
    return json_print(root);
}

static void print_single_text(answers *a) {
    const one_answer *told = &a->answerer.latest;
    end_text(a, told);
    if (told->figures.n_shared > 0 && wants_remarks(options_switch(a->o, OPT_VERBOSE)))
        remark("%zu more tokens of the prompt were in %s\n", told->figures.n_shared,
               options_text(a->o, OPT_PROMPT_CACHE));
    if (told->end == TERN_END_CONTEXT)
        complain("the context of %u positions is full: the answer ends here (-c gives more, up to "
                 "%u)",
                 tern_session_context(a->l->session), a->l->info.n_ctx_train);
}

int answers_print_single(answers *a) {
    const bool whole = form_is_whole(&a->form, &a->answerer.latest);
    int status = EXIT_DONE;
    if (a->json)
        status = print_single_json(a, whole);
    else
        print_single_text(a);
    if (status == EXIT_DONE)
        status = interrupt_status(EXIT_DONE);
    const bool valid = check_form(a, &a->answerer.latest, whole, "");
    return status == EXIT_DONE && !valid ? EXIT_FAILED : status;
}

/* ---- the run --------------------------------------------------------------------------------- */

/* Checks what holds for every run: the file did not change, and no weights were expanded. */
static int check_run(const answers *a, int printed) {
    const uint64_t dequantized = a->answerer.dequantized;
    if (printed == EXIT_DONE && options_switch(a->o, OPT_STRICT) && dequantized > 0) {
        complain("strict: %" PRIu64 " rows of weights were expanded to floats", dequantized);
        return EXIT_FAILED;
    }
    return printed;
}

/* Ends several answers. */
static int finish_several(answers *a) {
    show_progress(a, true);
    int status = loader_check_file(a->l);
    if (status == EXIT_DONE && a->json)
        status = print_run(a);
    status = check_run(a, status);
    if (status != EXIT_DONE)
        return status;
    return a->failures > 0 ? EXIT_FAILED : interrupt_status(EXIT_DONE);
}

static int finish_single(const answers *a) {
    const one_answer *told = &a->answerer.latest;
    if (told->error != NULL)
        return complain_error(form_error(&a->form, told));
    return check_run(a, loader_check_file(a->l));
}

int answers_run(answers *a) {
    const answer_task task = {.n = a->n,
                              .ahead = a->several ? (size_t)AHEAD * a->at_once : 1,
                              .live = a->several ? (size_t)a->at_once + MORE_LIVE : 1,
                              .ask = ask,
                              .go_on = go_on,
                              .say = say,
                              .on_token = a->several ? on_token : NULL,
                              .tell = a->several ? tell : NULL,
                              .user = a};
    tern_error err = {0};
    if (!a->several && !a->json)
        begin_text(a, 0);
    interrupt_catch();
    a->begin = tern_clock_seconds();
    if (answerer_run(&a->answerer, &task, &err) != TERN_OK)
        return complain_error(&err);
    a->seconds = tern_clock_seconds() - a->begin;
    if (a->refused)
        return EXIT_FAILED;
    return a->several ? finish_several(a) : finish_single(a);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Tokenizes the prompts that are texts. */
static int tokenize_all(const answers *a) {
    int status = EXIT_DONE;
    for (size_t i = 0; status == EXIT_DONE && i < a->prompts->n; i++)
        if (a->prompts->items[i].ids == NULL)
            status = prompt_tokenize(a->o, a->l, &a->prompts->items[i]);
    return status;
}

static int open_several(answers *a) {
    a->progress = isatty(STDERR_FILENO) == 1 && isatty(STDOUT_FILENO) != 1;
    a->latencies = calloc(1, sizeof *a->latencies);
    if (a->latencies == NULL) {
        complain("no memory for times of tokens");
        return EXIT_FAILED;
    }
    return open_engine(a);
}

int answers_open(answers *a) {
    a->several = answers_are_several(a->o);
    a->json = options_switch(a->o, OPT_JSON);
    a->rounds = options_integer(a->o, OPT_ROUNDS);
    a->n = a->prompts->n * a->rounds;
    int status = tokenize_all(a);
    if (status == EXIT_DONE)
        status = form_open(a->o, a->l, a->n, &a->form);
    if (status == EXIT_DONE && a->several)
        status = open_several(a);
    if (status != EXIT_DONE)
        return status;
    a->answerer = a->several ? (answerer){.engine = a->l->engine, .tokenizer = a->l->tokenizer}
                             : answerer_of(a->l->session, a->l->tokenizer);
    a->answerer.touch = a->touch;
    return EXIT_DONE;
}

void answers_close(answers *a) {
    answerer_close(&a->answerer);
    form_close(&a->form);
    free(a->latencies);
}
