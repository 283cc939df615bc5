/* SPDX-License-Identifier: Apache-2.0 */
/* tern run: answers a prompt, prints text as it is generated, and figures at the end. */

#include <inttypes.h>
#include <stdio.h>

#include "tools/answer/figures.h"
#include "tools/answer/form.h"
#include "tools/answer/many.h"
#include "tools/answer/request.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json_line.h"
#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/load/late_tuning.h"
#include "tools/load/loader.h"
#include "tools/prompt/prompt.h"
#include "tools/prompt/prompt_cache.h"
#include "tools/record/receipt.h"
#include "tools/remote/remote.h"
#include "tools/touch/touch_options.h"

typedef struct run {
    const options *o;
    loaded l;
    prompt prompt;
    answer_options options;
    tern_request request; /* of a single answer */
    form form;            /* that the answer must have, if any */
    answerer answerer;
    receipt_watch watch; /* with --receipt */
    touch touch;         /* with --touch-bytes */
    bool json;
} run;

/* The final status: an earlier failure takes precedence. */
static int worse(int first, int second) {
    return first != EXIT_DONE ? first : second;
}

/* ---- one answer: request --------------------------------------------------------------------- */

static bool write_text(const char *bytes, size_t size, void *user) {
    const run *r = user;
    const bool written = r->json || size == 0 || (out_write(bytes, size) && out_flush());
    return written && !interrupt_seen();
}

static bool mask(void *user, const tern_progress *progress, uint64_t *allowed, size_t words) {
    const run *r = user;
    return form_mask(&r->form, 0, progress, allowed, words);
}

static void watch_logits(void *user, const tern_progress *progress, size_t position,
                         const float *logits) {
    run *r = user;
    (void)position;
    receipt_watch_logits(&r->watch, progress->n - progress->n_prompt, logits);
}

static touch *touch_of(run *r) {
    return r->touch.words != NULL ? &r->touch : NULL;
}

/* Reads the options of the answer and of --touch-bytes; the model must be open. */
static int prepare(run *r) {
    const int status = answer_options_read(r->o, &r->l, &r->options);
    return status == EXIT_DONE ? touch_open_as_asked(r->o, &r->touch) : status;
}

/* Makes the request of the prompt, with its form. */
static int make_request(run *r) {
    const int status = form_open(r->o, &r->l, 1, &r->form);
    if (status != EXIT_DONE)
        return status;
    r->request = answer_options_request(&r->options, r->o, &r->prompt);
    if (!form_ask(&r->form, 0, &r->request))
        return EXIT_FAILED;
    r->request.mask = r->form.grammar != NULL ? mask : NULL;
    r->request.user = r;
    if (options_given(r->o, OPT_RECEIPT)) {
        r->request.logits = watch_logits;
        r->request.logits_every = RECEIPT_EVERY;
        r->request.prompt_from = r->prompt.n - 1;
    }
    return EXIT_DONE;
}

/* Opens everything that an answer needs, and restores the session of --prompt-cache. */
static int open_one(run *r) {
    int status = loader_open(r->o, true, &r->l);
    if (status == EXIT_DONE)
        status = prompt_read(r->o, &r->l, &r->prompt);
    if (status == EXIT_DONE)
        status = prepare(r);
    if (status == EXIT_DONE)
        status = make_request(r);
    if (status == EXIT_DONE)
        status = prompt_cache_restore(r->o, &r->l);
    r->answerer = answerer_open(r->l.session, r->l.tokenizer);
    r->answerer.touch = touch_of(r);
    return status;
}

static int answer(run *r) {
    tern_error err = {0};
    if (options_switch(r->o, OPT_ECHO) && !r->json && r->prompt.text != NULL)
        out_write(r->prompt.text, r->prompt.size);
    interrupt_catch();
    r->watch = receipt_watch_begin(r->l.session);
    if (answerer_answer(&r->answerer, &r->request, write_text, r, &err) != TERN_OK) {
        r->answerer.latest.error = &err;
        return complain_error(form_error(&r->form, &r->answerer.latest));
    }
    const int unchanged = loader_check_file(&r->l);
    if (unchanged != EXIT_DONE)
        return unchanged;
    if (options_switch(r->o, OPT_STRICT) && r->answerer.dequantized > 0) {
        complain("strict: %" PRIu64 " rows of weights were expanded to floats",
                 r->answerer.dequantized);
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}

/* ---- one answer: output ---------------------------------------------------------------------- */

static int print_json(const run *r, bool whole) {
    json_t *root = json_object();
    figures_set_answer(root, &r->answerer.latest, &r->l);
    figures_set_process(root, &r->l);
    figures_set_choices(root, r->o);
    touch_set_json(root, r->answerer.touch);
    json_object_set_new(root, "reused_tokens",
                        json_integer((json_int_t)r->answerer.latest.figures.n_shared));
    if (r->form.grammar != NULL)
        json_object_set_new(root, "whole", json_boolean(whole));
    return json_print(root);
}

static void print_end(const run *r) {
    const together_answer *a = &r->answerer.latest;
    out_print("\n");
    out_flush();
    if (wants_remarks(options_switch(r->o, OPT_VERBOSE))) {
        figures_print("", a, &r->l);
        if (a->figures.n_shared > 0)
            remark("%zu more tokens of the prompt were in %s\n", a->figures.n_shared,
                   options_text(r->o, OPT_PROMPT_CACHE));
    }
    if (a->end == TERN_END_CONTEXT)
        complain("the context of %u positions is full: the answer ends here (-c gives more, up to "
                 "%u)",
                 tern_session_context(r->l.session), r->l.info.n_ctx_train);
}

/* Prints the end. An answer that was cut off is not a complete text of its form. */
static int tell(run *r) {
    const together_answer *a = &r->answerer.latest;
    const bool whole = form_is_whole(&r->form, a);
    int status = EXIT_DONE;
    if (r->json)
        status = print_json(r, whole);
    else
        print_end(r);
    status = worse(status, interrupt_status(EXIT_DONE));
    if (whole)
        return status;
    complain("the answer ended (%s) before its text was whole", answer_end_name(a->end));
    return worse(status, EXIT_FAILED);
}

/* Runs the tests of --receipt and writes the receipt, if it is asked for. */
static int write_receipt(run *r) {
    const receipt_run finished = {.o = r->o,
                                  .l = &r->l,
                                  .prompt = &r->prompt,
                                  .request = &r->request,
                                  .form = &r->form,
                                  .answer = &r->answerer,
                                  .watch = &r->watch};
    if (!options_given(r->o, OPT_RECEIPT))
        return EXIT_DONE;
    receipt_watch_end(&r->watch, r->answerer.latest.n_tokens);
    return receipt_write(&finished, NULL);
}

static int run_one(run *r) {
    int status = open_one(r);
    if (status == EXIT_DONE)
        status = answer(r);
    if (status != EXIT_DONE)
        return status;
    const together_answer *a = &r->answerer.latest;
    late_tuning_note(&r->l, a->n_tokens, a->p50_ms, a->figures.n_guessed);
    const int told = tell(r);
    const int saved = prompt_cache_save(r->o, &r->l);
    return worse(write_receipt(r), worse(saved, told));
}

/* ---- several answers --------------------------------------------------------------------------
 */

static int run_many(run *r) {
    const char *path = options_text(r->o, OPT_PROMPTS_FILE);
    prompts all = {0};
    const prompts one = {.items = &r->prompt, .n = 1};
    int status = loader_open_model(r->o, true, &r->l);
    if (status == EXIT_DONE)
        status =
            path != NULL ? prompts_read(path, true, &all) : prompt_read(r->o, &r->l, &r->prompt);
    if (status == EXIT_DONE)
        status = prepare(r);
    if (status == EXIT_DONE)
        status = many_answer(r->o, &r->l, &r->options, touch_of(r), path != NULL ? &all : &one);
    prompts_free(&all);
    return status;
}

/* ---- the command ------------------------------------------------------------------------------
 */

/* Tunes after all output is written. A signal ends the tuning, and then the program. */
static int tune_late(run *r) {
    if (!out_flush())
        return EXIT_DONE; /* the failed write is reported at the end */
    late_tuning_run(r->o, &r->l, NULL);
    return interrupt_status(EXIT_DONE);
}

/* Refuses prompts from more than one place; false after a complaint. */
static bool check_prompts(const options *o) {
    if (options_text(o, OPT_PROMPTS_FILE) == NULL ||
        !(options_given(o, OPT_PROMPT) || options_given(o, OPT_TOKENS) ||
          options_given(o, OPT_FILE)))
        return true;
    complain("--prompts-file excludes --prompt, --file and --tokens");
    return false;
}

/* Refuses options that exclude each other; false after a complaint. */
static bool check_options(const options *o) {
    const bool receipt = options_given(o, OPT_RECEIPT);
    const bool cache = options_given(o, OPT_PROMPT_CACHE);
    if (o->values[OPT_SYSTEM].source == OPTION_FLAG && !options_switch(o, OPT_CHAT))
        complain("--system is part of a chat: use --chat too");
    else if (o->values[OPT_CHAT_TEMPLATE].source == OPTION_FLAG && !options_switch(o, OPT_CHAT))
        complain("--chat-template is part of a chat: use --chat too");
    else if (many_wanted(o) && receipt)
        complain("--receipt is of one answer: not with --prompts-file or --rounds");
    else if (many_wanted(o) && cache)
        complain("--prompt-cache is for one answer: not with --prompts-file or --rounds");
    else if (receipt && cache)
        complain("--receipt tells of a run from its beginning: not with --prompt-cache");
    else
        return true;
    return false;
}

static void close_run(run *r) {
    touch_free(&r->touch);
    receipt_watch_free(&r->watch);
    answerer_close(&r->answerer);
    form_close(&r->form);
    answer_options_free(&r->options);
    prompt_free(&r->prompt);
    loader_close(&r->l);
}

int cmd_run(const options *o) {
    run r = {.o = o, .json = options_switch(o, OPT_JSON)};
    if (!check_prompts(o))
        return EXIT_USAGE;
    if (options_given(o, OPT_SERVER))
        return remote_run(o);
    if (!check_options(o))
        return EXIT_USAGE;
    int status = receipt_check_key(o);
    if (status == EXIT_DONE)
        status = many_wanted(o) ? run_many(&r) : run_one(&r);
    if (status == EXIT_DONE)
        status = touch_verify_as_asked(o, &r.touch);
    if (status == EXIT_DONE)
        status = tune_late(&r);
    close_run(&r);
    return status;
}
