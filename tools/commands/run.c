/* SPDX-License-Identifier: Apache-2.0 */
/* tern run: answers a prompt, prints text as it is generated, and figures at the end. */

#include "tools/answer/answers.h"
#include "tools/cli/interrupt.h"
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
    prompts prompts; /* of --prompts-file, or that one */
    answer_options options;
    answers answers;
    receipt_watch watch; /* with --receipt */
    touch touch;         /* with --touch-bytes */
} run;

/* The final status: an earlier failure takes precedence. */
static int worse(int first, int second) {
    return first != EXIT_DONE ? first : second;
}

/* ---- opening --------------------------------------------------------------------------------- */

static int read_prompts(run *r) {
    const char *path = options_text(r->o, OPT_PROMPTS_FILE);
    if (path != NULL)
        return prompts_read(path, true, &r->prompts);
    r->prompts = (prompts){.items = &r->prompt, .n = 1};
    return prompt_read(r->o, &r->l, &r->prompt);
}

static int open_answers(run *r) {
    r->answers = (answers){.o = r->o,
                           .l = &r->l,
                           .how = &r->options,
                           .prompts = &r->prompts,
                           .touch = r->touch.words != NULL ? &r->touch : NULL,
                           .watch = options_given(r->o, OPT_RECEIPT) ? &r->watch : NULL};
    return answers_open(&r->answers);
}

/* Opens everything that the answers need, and restores the session of --prompt-cache. */
static int open_run(run *r) {
    const bool several = answers_are_several(r->o);
    int status = several ? loader_open_model(r->o, true, &r->l) : loader_open(r->o, true, &r->l);
    if (status == EXIT_DONE)
        status = read_prompts(r);
    if (status == EXIT_DONE)
        status = answer_options_read(r->o, &r->l, &r->options);
    if (status == EXIT_DONE)
        status = touch_open_as_asked(r->o, &r->touch);
    if (status == EXIT_DONE)
        status = open_answers(r);
    return status == EXIT_DONE && !several ? prompt_cache_restore(r->o, &r->l) : status;
}

/* ---- a single answer ------------------------------------------------------------------------- */

/* Runs the tests of --receipt and writes the receipt, if it is asked for. */
static int write_receipt(run *r) {
    const answers *a = &r->answers;
    const receipt_run finished = {.o = r->o,
                                  .l = &r->l,
                                  .prompt = &r->prompt,
                                  .request = &a->request,
                                  .form = &a->form,
                                  .answer = &a->answerer,
                                  .watch = &r->watch};
    if (a->watch == NULL)
        return EXIT_DONE;
    receipt_watch_end(&r->watch, a->answerer.latest.n_tokens);
    return receipt_write(&finished, NULL);
}

static int finish_single(run *r) {
    const one_answer *told = &r->answers.answerer.latest;
    late_tuning_note(&r->l, told->n_tokens, told->p50_ms, told->figures.n_guessed);
    const int printed = answers_print_single(&r->answers);
    const int saved = prompt_cache_save(r->o, &r->l);
    return worse(write_receipt(r), worse(saved, printed));
}

static int answer(run *r) {
    const bool several = answers_are_several(r->o);
    int status = open_run(r);
    if (status != EXIT_DONE)
        return status;
    if (!several)
        r->watch = receipt_watch_begin(r->l.session);
    status = answers_run(&r->answers);
    return status == EXIT_DONE && !several ? finish_single(r) : status;
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
    else if (answers_are_several(o) && receipt)
        complain("--receipt is of one answer: not with --prompts-file or --rounds");
    else if (answers_are_several(o) && cache)
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
    answers_close(&r->answers);
    answer_options_free(&r->options);
    if (r->prompts.items != &r->prompt)
        prompts_free(&r->prompts);
    prompt_free(&r->prompt);
    loader_close(&r->l);
}

int cmd_run(const options *o) {
    run r = {.o = o};
    if (!check_prompts(o))
        return EXIT_USAGE;
    if (options_given(o, OPT_SERVER))
        return remote_run(o);
    if (!check_options(o))
        return EXIT_USAGE;
    int status = receipt_check_key(o);
    if (status == EXIT_DONE)
        status = answer(&r);
    if (status == EXIT_DONE)
        status = touch_verify_as_asked(o, &r.touch);
    if (status == EXIT_DONE)
        status = tune_late(&r);
    close_run(&r);
    return status;
}
