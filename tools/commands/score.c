/* SPDX-License-Identifier: Apache-2.0 */
/* tern score: the probabilities of given continuations of a prompt, without generating. */

#include <stdlib.h>
#include <string.h>

#include "base/logprob.h"
#include "tools/cli/json_line.h"
#include "tools/cli/output.h"
#include "tools/cli/whole_file.h"
#include "tools/commands/commands.h"
#include "tools/load/loader.h"
#include "tools/prompt/prompt.h"

enum { MOST_FILE = 1 << 26 };

/* A continuation, and what the model says of it. */
typedef struct option_score {
    const char *text;
    size_t size;
    prompt whole;     /* the prompt with it */
    uint64_t request; /* 0: not submitted */
    double *logprobs; /* [whole.n - from] */
    size_t n_known;
    double sum, share;
} option_score;

typedef struct scoring {
    const options *o;
    loaded l;
    prompt prompt;
    char *file;            /* the text of --options-file */
    option_score *options; /* [n] */
    size_t n;
    size_t from; /* the first token that differs between options, or from the prompt */
    size_t best, best_by_length;
} scoring;

/* ---- options --------------------------------------------------------------------------------- */

static bool add_option(scoring *s, const char *text, size_t size) {
    option_score *grown = realloc(s->options, (s->n + 1) * sizeof *grown);
    if (grown == NULL)
        return false;
    s->options = grown;
    grown[s->n++] = (option_score){.text = text, .size = size};
    return true;
}

/* Adds each line of a file; empty ones are left out. */
static bool add_lines(scoring *s, const char *bytes) {
    for (const char *at = bytes; *at != '\0';) {
        const size_t line = strcspn(at, "\n");
        const size_t size = line > 0 && at[line - 1] == '\r' ? line - 1 : line;
        if (size > 0 && !add_option(s, at, size))
            return false;
        at += line + (at[line] == '\n');
    }
    return true;
}

static int read_options(scoring *s) {
    const char *path = options_text(s->o, OPT_OPTIONS_FILE);
    const option_value *given;
    bool added = true;
    size_t size;
    for (size_t i = 0; added && (given = options_nth(s->o, OPT_OPTION, i)) != NULL; i++)
        added = add_option(s, given->text, strlen(given->text));
    if (path != NULL && file_read(path, MOST_FILE, &s->file, &size) != EXIT_DONE)
        return EXIT_FAILED;
    if (added && path != NULL)
        added = add_lines(s, s->file);
    if (!added)
        complain("no memory for %zu options", s->n + 1);
    else if (s->n == 0)
        complain("no options: --option TEXT, once for each, or --options-file FILE");
    return !added ? EXIT_FAILED : s->n == 0 ? EXIT_USAGE : EXIT_DONE;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static size_t common_tokens(const prompt *a, const prompt *b, size_t most) {
    size_t n = 0;
    while (n < most && n < a->n && n < b->n && a->ids[n] == b->ids[n])
        n++;
    return n;
}

/* Tokenizes the prompt together with an option: so a token may lie across their border. */
static int tokenize_option(scoring *s, size_t i) {
    option_score *x = &s->options[i];
    x->whole.size = s->prompt.size + x->size;
    x->whole.text = malloc(x->whole.size + 1);
    if (x->whole.text == NULL) {
        complain("no memory for option %zu", i + 1);
        return EXIT_FAILED;
    }
    memcpy(x->whole.text, s->prompt.text, s->prompt.size);
    memcpy(x->whole.text + s->prompt.size, x->text, x->size);
    x->whole.text[x->whole.size] = '\0';
    const int status = prompt_tokenize(s->o, &s->l, &x->whole);
    if (status == EXIT_DONE)
        s->from = common_tokens(&s->prompt, &x->whole, s->from);
    return status;
}

/* All options are scored from the same token on, the first that one of them has for itself. */
static int tokenize(scoring *s) {
    int status = prompt_tokenize(s->o, &s->l, &s->prompt);
    s->from = s->prompt.n;
    for (size_t i = 0; i < s->n && status == EXIT_DONE; i++)
        status = tokenize_option(s, i);
    for (size_t i = 0; i < s->n && status == EXIT_DONE; i++) {
        option_score *x = &s->options[i];
        if (s->from == 0 || x->whole.n <= s->from) {
            complain(s->from == 0 ? "the prompt has no token before option %zu"
                                  : "option %zu has no token of its own",
                     i + 1);
            return EXIT_FAILED;
        }
        x->logprobs = calloc(x->whole.n - s->from, sizeof *x->logprobs);
        if (x->logprobs == NULL) {
            complain("no memory for option %zu", i + 1);
            return EXIT_FAILED;
        }
    }
    return status;
}

/* ---- scores ---------------------------------------------------------------------------------- */

static tern_status submit(scoring *s, option_score *x, tern_error *err) {
    const tern_request request = {.tokens = x->whole.ids,
                                  .n_tokens = x->whole.n,
                                  .prompt_only = true,
                                  .prompt_logprobs = true,
                                  .prompt_from = s->from - 1,
                                  .no_digest = true};
    return tern_engine_submit(s->l.engine, &request, &x->request, err);
}

static tern_status take(scoring *s, const tern_event *e, tern_error *err) {
    for (size_t i = 0; i < s->n; i++) {
        option_score *x = &s->options[i];
        if (x->request != e->request)
            continue;
        if (e->kind == TERN_EVENT_PROMPT && x->n_known < x->whole.n - s->from)
            x->logprobs[x->n_known++] = e->logprob;
        if (e->kind == TERN_EVENT_END && e->error != NULL)
            return tern_fail(err, e->error->status, "%s", e->error->message);
    }
    return TERN_OK;
}

/* Asks for the options in turn, as many at once as the engine takes. */
static int ask(scoring *s) {
    size_t asked = 0;
    tern_error err = {0};
    tern_status status = TERN_OK;
    tern_engine_state now = tern_engine_now(s->l.engine);
    while (status == TERN_OK && (asked < s->n || now.waiting + now.running > 0)) {
        const tern_event *events;
        size_t n = 0;
        while (status == TERN_OK && asked < s->n && now.waiting < LOADER_PROMPTS_AT_ONCE) {
            status = submit(s, &s->options[asked++], &err);
            now = tern_engine_now(s->l.engine);
        }
        if (status == TERN_OK)
            status = tern_engine_step(s->l.engine, &events, &n, &err);
        for (size_t i = 0; i < n && status == TERN_OK; i++)
            status = take(s, &events[i], &err);
        now = tern_engine_now(s->l.engine);
    }
    return status == TERN_OK ? EXIT_DONE : complain_error(&err);
}

static double by_length(const scoring *s, size_t i) {
    return s->options[i].sum / (double)(s->options[i].whole.n - s->from);
}

/* Adds up, and divides the probability of all options among them. */
static void compare(scoring *s) {
    double all = 0.0;
    for (size_t i = 0; i < s->n; i++) {
        option_score *x = &s->options[i];
        for (size_t k = 0; k < x->n_known; k++)
            x->sum += x->logprobs[k];
        s->best = x->sum > s->options[s->best].sum ? i : s->best;
        s->best_by_length =
            by_length(s, i) > by_length(s, s->best_by_length) ? i : s->best_by_length;
    }
    for (size_t i = 0; i < s->n; i++)
        all += tern_double_exp(s->options[i].sum - s->options[s->best].sum);
    for (size_t i = 0; i < s->n; i++)
        s->options[i].share = tern_double_exp(s->options[i].sum - s->options[s->best].sum) / all;
}

/* ---- output ---------------------------------------------------------------------------------- */

static void print_table(const scoring *s) {
    out_print("%12s %12s %9s %6s  %s\n", "LOGPROB", "PER TOKEN", "SHARE", "TOKENS", "OPTION");
    for (size_t i = 0; i < s->n; i++) {
        const option_score *x = &s->options[i];
        out_print("%12.6f %12.6f %8.3f%% %6zu  %.*s%s%s\n", x->sum, by_length(s, i),
                  100.0 * x->share, x->whole.n - s->from, (int)x->size, x->text,
                  i == s->best ? "  (most probable)" : "",
                  i == s->best_by_length ? "  (most probable a token)" : "");
    }
}

static json_t *tokens_json(const scoring *s, const option_score *x) {
    json_t *list = json_array();
    for (size_t k = 0; k < x->n_known; k++)
        json_array_append_new(list, json_pack("{s:i, s:f}", "token", (int)x->whole.ids[s->from + k],
                                              "logprob", x->logprobs[k]));
    return list;
}

static int print_json(const scoring *s) {
    json_t *list = json_array();
    for (size_t i = 0; i < s->n; i++) {
        const option_score *x = &s->options[i];
        json_array_append_new(list, json_pack("{s:o, s:f, s:f, s:f, s:f, s:o}", "option",
                                              json_text(x->text, x->size), "logprob", x->sum,
                                              "logprob_per_token", by_length(s, i),
                                              "logprob_per_byte", x->sum / (double)x->size, "share",
                                              x->share, "tokens", tokens_json(s, x)));
    }
    return json_print(json_pack("{s:I, s:I, s:I, s:o}", "prompt_tokens", (json_int_t)s->from,
                                "best", (json_int_t)s->best, "best_per_token",
                                (json_int_t)s->best_by_length, "options", list));
}

/* ---- the command ----------------------------------------------------------------------------- */

static int score(scoring *s) {
    size_t longest = 0;
    for (size_t i = 0; i < s->n; i++)
        longest = s->options[i].whole.n > longest ? s->options[i].whole.n : longest;
    if (longest > UINT32_MAX) {
        complain("option with %zu tokens: a context has fewer positions", longest);
        return EXIT_FAILED;
    }
    int status = loader_open_engine_of(s->o, (uint32_t)longest, &s->l);
    if (status == EXIT_DONE)
        status = ask(s);
    if (status == EXIT_DONE)
        status = loader_check_file(&s->l);
    if (status != EXIT_DONE)
        return status;
    compare(s);
    if (options_switch(s->o, OPT_JSON))
        return print_json(s);
    print_table(s);
    return EXIT_DONE;
}

int cmd_score(const options *o) {
    scoring s = {.o = o};
    int status = read_options(&s);
    if (status == EXIT_DONE)
        status = prompt_take(o, &s.prompt);
    if (status == EXIT_DONE)
        status = loader_open_model(o, true, &s.l);
    if (status == EXIT_DONE)
        status = tokenize(&s);
    if (status == EXIT_DONE)
        status = score(&s);
    for (size_t i = 0; i < s.n; i++) {
        prompt_free(&s.options[i].whole);
        free(s.options[i].logprobs);
    }
    free(s.options);
    free(s.file);
    prompt_free(&s.prompt);
    loader_close(&s.l);
    return status;
}
