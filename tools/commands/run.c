/* SPDX-License-Identifier: Apache-2.0 */
/* tern run: a prompt in, text out while it is made, figures at the end. */

#include <inttypes.h>
#include <stdio.h>

#include "tools/answer/figures.h"
#include "tools/answer/form.h"
#include "tools/answer/many.h"
#include "tools/answer/request.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/model/json.h"
#include "tools/model/late_tuning.h"
#include "tools/model/loader.h"
#include "tools/model/prompt_cache.h"
#include "tools/receipt/form_answer.h"
#include "tools/receipt/receipt.h"
#include "tools/remote/remote.h"
#include "tools/touch/touch_options.h"

typedef struct run {
    const options *o;
    loaded l;
    prompt prompt;
    size_t n_reused; /* of the prompt, from --prompt-cache */
    answer_options options;
    answerer answerer;
    receipt_watch watch; /* with --receipt */
    touch touch;         /* with --touch-bytes */
    many_kept kept;      /* of an answer in a form, with --receipt */
    bool json;
} run;

/* ---- what is asked ----------------------------------------------------------------------------
 */

/* Each token comes here before it is evaluated. */
static bool write_text(const char *bytes, size_t size, void *user) {
    run *r = user;
    if (options_given(r->o, OPT_RECEIPT) && r->answerer.n_tokens > 0)
        receipt_watch_logits(&r->watch, r->answerer.n_tokens - 1, false);
    return (r->json || (out_write(bytes, size) && out_flush())) && !interrupt_seen();
}

static touch *touch_of(run *r) {
    return r->touch.words != NULL ? &r->touch : NULL;
}

static int prepare(run *r) {
    const int status = answer_options_read(r->o, &r->l, &r->options);
    if (status != EXIT_DONE)
        return status;
    tern_error err = {0};
    if (r->l.session != NULL && answerer_open(&r->answerer, r->l.session, r->l.tokenizer,
                                              &r->options.sampling, &err) != TERN_OK)
        return complain_error(&err);
    const int opened = touch_open_as_asked(r->o, &r->touch);
    r->answerer.touch = touch_of(r);
    return opened;
}

static int answer(run *r) {
    const options *o = r->o;
    const bool echo = options_switch(o, OPT_ECHO) && !r->json;
    answer_request request = answer_options_request(&r->options, o, &r->prompt, write_text, r);
    const int cached = prompt_cache_restore(o, &r->l, &r->prompt, &r->n_reused);
    if (cached != EXIT_DONE)
        return cached;
    request.known = r->prompt.ids;
    request.n_known = r->n_reused;
    request.prompt += r->n_reused;
    request.n_prompt -= r->n_reused;
    if (echo && r->prompt.text != NULL)
        out_write(r->prompt.text, r->prompt.size);
    interrupt_catch();
    tern_error err = {0};
    r->watch = receipt_watch_begin(r->l.session);
    if (answerer_answer(&r->answerer, &request, &err) != TERN_OK)
        return complain_error(&err);
    const int unchanged = loader_check_file(&r->l);
    if (unchanged != EXIT_DONE)
        return unchanged;
    if (options_switch(o, OPT_STRICT) && r->answerer.dequantized > 0) {
        complain("strict: %" PRIu64 " rows of weights were expanded to floats",
                 r->answerer.dequantized);
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}

/* With --receipt: the run's tests and its receipt. */
static int write_receipt(run *r) {
    const receipt_run finished = {.o = r->o,
                                  .l = &r->l,
                                  .prompt = &r->prompt,
                                  .sampling = &r->options.sampling,
                                  .request = &r->options.request,
                                  .answer = &r->answerer,
                                  .watch = &r->watch};
    receipt_watch_logits(&r->watch, r->answerer.n_tokens, true);
    return receipt_write(&finished, NULL);
}

/* ---- what is told -----------------------------------------------------------------------------
 */

static int print_json(const run *r) {
    json_t *root = json_object();
    figures_set_answer(root, &r->answerer, &r->l);
    figures_set_process(root, &r->l);
    figures_set_choices(root, r->o);
    touch_set_json(root, r->answerer.touch);
    json_object_set_new(root, "prompt_tokens", json_integer((json_int_t)r->prompt.n));
    json_object_set_new(root, "reused_tokens", json_integer((json_int_t)r->n_reused));
    return json_print(root);
}

static int finish(const run *r) {
    if (r->json) {
        const int status = print_json(r);
        return status == EXIT_DONE ? interrupt_status(status) : status;
    }
    out_print("\n");
    out_flush();
    if (wants_remarks(options_switch(r->o, OPT_VERBOSE))) {
        figures_print(&r->answerer, &r->l);
        if (r->n_reused > 0) {
            remark("%zu more tokens of the prompt were in %s\n", r->n_reused,
                   options_text(r->o, OPT_PROMPT_CACHE));
        }
    }
    if (r->answerer.end == ANSWER_CONTEXT) {
        complain("the context of %u positions is full: the answer ends here (-c gives more, up to "
                 "%u)",
                 tern_session_context(r->l.session), r->l.info.n_ctx_train);
    }
    return interrupt_status(EXIT_DONE);
}

/* When all is written that was asked for. A signal ends it, and then the program. */
static int tune_late(run *r) {
    if (!out_flush())
        return EXIT_DONE; /* told at the end */
    if (r->l.session != NULL)
        late_tuning_note(&r->l, &r->answerer.figures);
    late_tuning_run(r->o, &r->l, NULL);
    return interrupt_status(EXIT_DONE);
}

/* One prompt. In a form, an answer that was cut off has a receipt too. */
static int run_one(run *r) {
    const prompts one = {.items = &r->prompt, .n = 1};
    const bool receipt = options_given(r->o, OPT_RECEIPT);
    const int status =
        many_answer(r->o, &r->l, &r->options, touch_of(r), &one, receipt ? &r->kept : NULL);
    if (!r->kept.there)
        return status;
    const form_answer answer = {
        .o = r->o, .l = &r->l, .prompt = &r->prompt, .how = &r->options, .kept = &r->kept};
    const int written = form_answer_write(&answer);
    return written == EXIT_DONE ? status : written;
}

/* Answers by an engine, in place of one by the session. */
static int run_many(run *r) {
    const char *path = options_text(r->o, OPT_PROMPTS_FILE);
    if (path == NULL)
        return run_one(r);
    prompts all = {0};
    int status = prompts_read(path, true, &all);
    if (status == EXIT_DONE)
        status = many_answer(r->o, &r->l, &r->options, touch_of(r), &all, NULL);
    prompts_free(&all);
    return status;
}

static int read_prompt(run *r) {
    return options_text(r->o, OPT_PROMPTS_FILE) == NULL ? prompt_read(r->o, &r->l, &r->prompt)
                                                        : EXIT_DONE;
}

/* Whether prompts come from one place; false after a complaint. */
static bool check_prompts(const options *o) {
    if (options_text(o, OPT_PROMPTS_FILE) == NULL ||
        !(options_given(o, OPT_PROMPT) || options_given(o, OPT_TOKENS) ||
          options_given(o, OPT_FILE)))
        return true;
    complain("--prompts-file excludes --prompt, --file and --tokens");
    return false;
}

/* Options that exclude each other; false after a complaint. */
static bool check_options(const options *o) {
    const bool receipt = options_given(o, OPT_RECEIPT);
    const bool cache = options_given(o, OPT_PROMPT_CACHE);
    if (o->values[OPT_SYSTEM].source == OPTION_FLAG && !options_switch(o, OPT_CHAT))
        complain("--system is part of a chat: use --chat too");
    else if (o->values[OPT_CHAT_TEMPLATE].source == OPTION_FLAG && !options_switch(o, OPT_CHAT))
        complain("--chat-template is part of a chat: use --chat too");
    else if (many_several(o) && receipt)
        complain("--receipt is of one answer: not with --prompts-file or --rounds");
    else if (many_wanted(o) && cache)
        complain(
            "--prompt-cache is for one answer without a form: not with --prompts-file, --rounds, "
            "--json-schema or --grammar");
    else if (receipt && cache)
        complain("--receipt tells of a run from its beginning: not with --prompt-cache");
    else
        return !receipt || !form_wanted(o) || form_answer_check(o);
    return false;
}

int cmd_run(const options *o) {
    if (!check_prompts(o))
        return EXIT_USAGE;
    if (options_given(o, OPT_SERVER))
        return remote_run(o);
    run r = {.o = o, .json = options_switch(o, OPT_JSON)};
    if (!check_options(o))
        return EXIT_USAGE;
    const bool many = many_wanted(o);
    int status = receipt_check_key(o);
    if (status == EXIT_DONE)
        status = many ? loader_open_model(o, true, &r.l) : loader_open(o, true, &r.l);
    if (status == EXIT_DONE)
        status = read_prompt(&r);
    if (status == EXIT_DONE)
        status = prepare(&r);
    if (status == EXIT_DONE)
        status = many ? run_many(&r) : answer(&r);
    const bool answered = status == EXIT_DONE && !many;
    if (answered) {
        status = finish(&r);
        const int saved = prompt_cache_save(o, &r.l);
        status = saved != EXIT_DONE ? saved : status;
    }
    if (answered && options_given(o, OPT_RECEIPT)) {
        const int written = write_receipt(&r);
        status = written == EXIT_DONE ? status : written;
    }
    if (status == EXIT_DONE)
        status = touch_verify_as_asked(o, &r.touch);
    if (status == EXIT_DONE)
        status = tune_late(&r);
    touch_free(&r.touch);
    receipt_watch_free(&r.watch);
    many_kept_free(&r.kept);
    answerer_close(&r.answerer);
    answer_options_free(&r.options);
    prompt_free(&r.prompt);
    loader_close(&r.l);
    return status;
}
