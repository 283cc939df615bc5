/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/record/served_answer.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/write.h"
#include "base/os/os.h"
#include "base/thread_signals.h"
#include "receipts/facts.h"
#include "tools/cli/output.h"
#include "tools/load/loaded_json.h"
#include "tools/record/run_facts.h"
#include "tools/record/selftest.h"

static void set(json_t *object, const char *key, json_t *value) {
    json_object_set_new(object, key, value);
}

/* ---- facts of all receipts ------------------------------------------------------------------- */

/* Collects the facts that all receipts share; NULL after a complaint. */
static json_t *make_common(const answer_receipts *a) {
    double seconds;
    json_t *model = facts_model(a->l, a->o, &seconds);
    json_t *accurate = model != NULL ? selftest_accuracy(a->l->model) : NULL;
    json_t *root = json_object();
    set(root, "$schema", json_string(ANSWER_SCHEMA));
    set(root, "schema_version", json_string(RECEIPT_VERSION));
    set(root, "compute_path", json_string("real"));
    set(root, "backend", json_string("cpu"));
    set(root, "model_info", model);
    set(root, "machine", facts_machine(a->l->model));
    set(root, "versions", facts_versions());
    set(root, "test_results",
        json_pack("{s:o, s:{s:b, s:i}}", "accuracy_tests", accurate, "determinism_tests",
                  "identical_sequences", 1, "runs", 2));
    if (model == NULL || accurate == NULL || json_memory_failed()) {
        json_decref(root);
        return NULL;
    }
    return root;
}

static bool prepare(void *user) {
    answer_receipts *a = user;
    (void)pthread_mutex_lock(&a->lock);
    if (a->common == NULL) {
        (void)json_remember(false);
        a->common = make_common(a);
    }
    const bool made = a->common != NULL;
    (void)pthread_mutex_unlock(&a->lock);
    return made;
}

/* ---- one receipt ----------------------------------------------------------------------------- */

static json_t *run_json(const answer_receipts *a, const receipt_answer *answer) {
    json_t *root = json_pack("{s:s, s:s, s:s, s:I, s:I}", "isa", tern_model_isa(a->l->model),
                             "layout", tern_model_layout(a->l->model), "kv",
                             tern_format_describe(loader_kv_format(a->o))->name, "context",
                             (json_int_t)answer->n_ctx, "threads", (json_int_t)answer->threads);
    json_set_activations(root, a->l->model);
    return root;
}

static json_t *output_json(const answer_receipts *r, const receipt_answer *a) {
    json_t *root = facts_output(&(const facts_answer){.tokens = a->tokens,
                                                      .n_tokens = a->n_tokens,
                                                      .stop = tern_end_name(a->end),
                                                      .max_tokens = a->max_tokens,
                                                      .ignore_end = a->ignore_end,
                                                      .stop_texts = a->stops,
                                                      .n_stop_texts = a->n_stops,
                                                      .tokenizer = r->l->tokenizer});
    set(root, "drop_space", json_boolean(a->drop_space));
    set(root, "hidden_sha256", json_string(a->digest));
    return root;
}

/* The document as text; NULL if it breaks a rule. */
static char *print_checked(const json_t *receipt) {
    receipt_findings found = {0};
    (void)receipt_check(receipt, &found);
    for (size_t i = 0; i < found.n; i++)
        complain("receipt: %s", found.lines[i]);
    const bool sound = found.n == 0 && !found.out_of_memory && !json_memory_failed();
    receipt_findings_free(&found);
    return sound ? json_dump(receipt, (json_style){0}) : NULL;
}

/* Sets what a receipt and a line of a recording say of an answer. */
static void set_answer(json_t *root, const answer_receipts *a, const receipt_answer *answer) {
    set(root, "timestamp", facts_now());
    set(root, "system_fingerprint", json_string(answer->fingerprint));
    set(root, "run", run_json(a, answer));
    set(root, "sampler", facts_sampler(answer->sampling, answer->seed));
    if (answer->form != NULL)
        set(root, "form", json_deep_copy(answer->form));
    set(root, "prompt", facts_tokens(answer->prompt, answer->n_prompt));
    set(root, "output", output_json(a, answer));
}

json_t *answer_receipts_build(answer_receipts *a, const receipt_answer *answer) {
    if (!prepare(a))
        return NULL;
    (void)json_remember(false);
    (void)pthread_mutex_lock(&a->lock);
    json_t *receipt = json_deep_copy(a->common);
    (void)pthread_mutex_unlock(&a->lock);
    set_answer(receipt, a, answer);
    return receipt;
}

static char *make(void *user, const receipt_answer *answer) {
    const answer_receipts *a = user;
    json_t *receipt = answer_receipts_build(user, answer);
    if (receipt != NULL && loader_check_file(a->l) != EXIT_DONE) {
        json_decref(receipt);
        return NULL;
    }
    if (receipt == NULL)
        return NULL;
    receipt_seal(receipt);
    char *text = print_checked(receipt);
    json_decref(receipt);
    return text;
}

/* Appends an answer to the recording. */
static void record(void *user, const receipt_answer *answer) {
    const answer_receipts *a = user;
    (void)json_remember(false);
    json_t *line = json_pack("{s:s, s:O}", "$schema", RECORD_SCHEMA, "model_info", a->opening);
    set_answer(line, a, answer);
    set(json_object_get(line, "prompt"), "text_sha256",
        receipt_hash_text(a->l->tokenizer, answer->prompt, answer->n_prompt));
    recording_add(a->recording, line);
    json_decref(line);
}

/* ---- life ------------------------------------------------------------------------------------ */

void answer_receipts_open(answer_receipts *a, const options *o, const loaded *l, recording *to) {
    *a = (answer_receipts){.o = o,
                           .l = l,
                           .recording = to,
                           .opening = to != NULL ? facts_opening(l, o) : NULL,
                           .maker = {a, prepare, make, to != NULL ? record : NULL}};
    (void)pthread_mutex_init(&a->lock, NULL);
}

/* Hashing a file keeps a core busy for seconds, and passes and replies go first. */
static void *begin(void *user) {
    tern_os_give_way();
    (void)prepare(user);
    return NULL;
}

void answer_receipts_begin(answer_receipts *a) {
    sigset_t before;
    tern_signals_block(&before); /* signals go to the thread that waits for them */
    a->has_thread = pthread_create(&a->thread, NULL, begin, a) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void answer_receipts_close(answer_receipts *a) {
    if (a->has_thread)
        (void)pthread_join(a->thread, NULL);
    if (a->maker.make != NULL) {
        json_decref(a->common);
        json_decref(a->opening);
        (void)pthread_mutex_destroy(&a->lock);
    }
}
