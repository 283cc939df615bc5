/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/replay/replay.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/metrics.h"
#include "receipts/accuracy.h"
#include "receipts/facts.h"
#include "receipts/rules.h"
#include "tern/inspect.h"
#include "tools/cli/output.h"
#include "tools/record/run_facts.h"
#include "tools/replay/locate.h"
#include "tools/replay/recorded_answer.h"

/* The state of a replay; everything is owned. */
typedef struct replay {
    const json_t *receipt;
    const options *o;
    const char *document;   /* path of the receipt */
    const char *model_path; /* borrowed, or in `path` */
    char path[PATH_MAX];
    receipt_findings *found;
    tern_model *model;
    tern_session *session;
    recorded_answer answer;
} replay;

/* ---- the model ------------------------------------------------------------------------------- */

/* True if the opened model has the receipt's files; *status is set after a complaint. */
static bool check_files(const replay *p, int *status) {
    char hex[RECEIPT_HEX];
    json_t *files = facts_files(p->model, hex);
    if (files == NULL || json_memory_failed()) {
        if (json_memory_failed()) /* other failures were reported */
            complain("no memory for the list of the model's files");
        json_decref(files);
        *status = EXIT_FAILED;
        return false;
    }
    const json_t *recorded = receipt_at(p->receipt, "model_info.files");
    bool same = json_array_size(files) == json_array_size(recorded);
    for (size_t i = 0; same && i < json_array_size(files); i++) {
        const json_t *now = json_array_get(files, i);
        const json_t *then = json_array_get(recorded, i);
        same = strcmp(rule_text(now, "sha256"), rule_text(then, "sha256")) == 0 &&
               rule_count(now, "bytes") == rule_count(then, "bytes");
    }
    json_decref(files);
    if (!same) {
        receipt_find(p->found, "model_info.sha256: %s is another model, its digest is %.16s...",
                     p->model_path, hex);
    }
    return same;
}

/* Does the same for a tokenizer from a separate file. */
static bool check_tokenizer(const replay *p, int *status) {
    json_t *now;
    if (!facts_tokenizer(p->model, &now)) {
        *status = EXIT_FAILED;
        return false;
    }
    const json_t *then = receipt_at(p->receipt, "model_info.tokenizer");
    const bool same = (now == NULL) == (then == NULL) &&
                      strcmp(rule_text(now, "sha256"), rule_text(then, "sha256")) == 0;
    if (!same) {
        receipt_find(p->found, "model_info.tokenizer.sha256: %s is another tokenizer",
                     now != NULL ? rule_text(now, "path") : "the model's own");
    }
    json_decref(now);
    return same;
}

/* Checks the facts about the model that its file contains. */
static void check_geometry(const replay *p) {
    tern_model_info info;
    tern_model_describe(p->model, &info);
    const struct {
        const char *path;
        uint64_t value;
    } sizes[] = {
        {"model_info.layers", info.n_layer},
        {"model_info.hidden_size", info.n_embd},
        {"model_info.ffn_size", info.n_ff},
        {"model_info.num_attention_heads", info.n_head},
        {"model_info.num_key_value_heads", info.n_head_kv},
        {"model_info.head_dim", info.head_dim},
        {"model_info.vocab_size", info.n_vocab},
        {"model_info.context_length", info.n_ctx_train},
        {"model_info.parameters", info.parameters},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        rule_equal_counts(p->receipt, p->found, sizes[i].path, (int64_t)sizes[i].value,
                          "the model's");
    }
    if (info.n_expert > 0 || rule_known(p->receipt, "model_info.experts"))
        rule_equal_counts(p->receipt, p->found, "model_info.experts", info.n_expert, "the model's");
    const struct {
        const char *path, *value;
    } names[] = {{"model_info.architecture", info.architecture}, {"model_info.name", info.name}};
    for (size_t i = 0; i < 2; i++) {
        if (strcmp(rule_text(p->receipt, names[i].path), names[i].value) != 0) {
            receipt_find(p->found, "%s: is \"%.60s\", the model's is \"%.60s\"", names[i].path,
                         rule_text(p->receipt, names[i].path), names[i].value);
        }
    }
}

/* Measures accuracy again. It does not depend on instruction set or layout. */
static tern_status check_accuracy(const replay *p, tern_error *err) {
    accuracy all[ACCURACY_MAX];
    size_t n;
    const tern_status status = accuracy_measure(p->model, all, &n, err);
    for (size_t i = 0; status == TERN_OK && i < n; i++) {
        char path[80];
        (void)snprintf(path, sizeof path, "test_results.accuracy_tests.%.23s_accuracy",
                       all[i].name);
        const json_t *test = receipt_at(p->receipt, path);
        const char *tensor = rule_text(test, "tensor");
        if (test == NULL || rule_number(test, "mse") != all[i].mse) {
            receipt_find(p->found, "%s.mse: is %.17g, this run measures %.17g", path,
                         rule_number(test, "mse"), all[i].mse);
        }
        if (strlen(tensor) != all[i].tensor_size ||
            memcmp(tensor, all[i].tensor, all[i].tensor_size) != 0) {
            receipt_find(p->found, "%s.tensor: is \"%.60s\", this run measures %.*s", path, tensor,
                         (int)all[i].tensor_size, all[i].tensor);
        }
    }
    return status;
}

/* Checks the formats of the weights, and the bytes that a token reads. */
static void check_weights(const replay *p) {
    char type[16];
    json_t *weights = facts_weights(p->model, type);
    if (!json_equal(weights, receipt_at(p->receipt, "model_info.weight_formats")) ||
        strcmp(type, rule_text(p->receipt, "model_info.quantization_type")) != 0)
        receipt_find(p->found, "model_info.weight_formats: are not the model's");
    json_decref(weights);
    const char *layout = rule_text(p->receipt, "run.layout");
    if (strcmp(tern_model_layout(p->model), layout) == 0 && strcmp(layout, "mixed") != 0) {
        tern_model_info info;
        tern_model_describe(p->model, &info);
        rule_equal_counts(p->receipt, p->found, "model_info.weight_bytes",
                          (int64_t)info.weight_bytes, "the model's in this layout");
    }
}

/* ---- the run --------------------------------------------------------------------------------- */

/* Checks that the receipt is right about whether the digest of the prompt's text is that of the
 * text of the ids. */
static void check_prompt_text(const replay *p, const tern_tokenizer *tokenizer) {
    const char *recorded = json_string_value(receipt_at(p->receipt, "prompt.text_sha256"));
    const json_t *from_ids = receipt_at(p->receipt, "prompt.text_from_ids");
    if (recorded == NULL || tokenizer == NULL) {
        if (recorded != NULL || from_ids != NULL)
            receipt_find(p->found, "prompt.text_sha256: there is no text without a tokenizer");
        return;
    }
    json_t *hash = receipt_hash_text(tokenizer, p->answer.prompt, p->answer.plan.ask.n_tokens);
    const char *of_ids = json_string_value(hash);
    const bool same = of_ids != NULL && strcmp(of_ids, recorded) == 0;
    if (from_ids != NULL && same != json_is_true(from_ids)) {
        receipt_find(p->found, "prompt.text_sha256: is %sthe digest of the text of prompt.ids",
                     same ? "" : "not ");
    }
    json_decref(hash);
}

static void check_pre_tokenizer(const replay *p, const tern_tokenizer *tokenizer) {
    const char *recorded = rule_text(p->receipt, "model_info.pre_tokenizer");
    const char *now = tokenizer != NULL ? tern_tokenizer_pre(tokenizer) : "";
    if (strcmp(recorded, now) != 0) {
        receipt_find(p->found, "model_info.pre_tokenizer: is \"%.60s\", the model's is \"%.60s\"",
                     recorded, now);
    }
}

/* Checks the consequences of equal tokens: the texts. */
static void check_text(const replay *p) {
    const tern_tokenizer *tokenizer = NULL;
    const char *recorded = json_string_value(receipt_at(p->receipt, "output.text_sha256"));
    if (tern_model_tokenizer(p->model, &tokenizer, NULL) != TERN_OK)
        tokenizer = NULL;
    check_pre_tokenizer(p, tokenizer);
    check_prompt_text(p, tokenizer);
    if (tokenizer == NULL || recorded == NULL) {
        if ((tokenizer == NULL) != (recorded == NULL))
            receipt_find(p->found, "output.text_sha256: must be there for models with a tokenizer");
        return;
    }
    json_t *hash = receipt_hash_text(tokenizer, p->answer.tokens, p->answer.plan.n_tokens);
    if (hash == NULL || strcmp(json_string_value(hash), recorded) != 0)
        receipt_find(p->found, "output.text_sha256: is not the digest of the text of output.ids");
    json_decref(hash);
}

static void report_kernels(const replay *p, replay_report *report) {
    (void)snprintf(report->isa, sizeof report->isa, "%s", tern_model_isa(p->model));
    (void)snprintf(report->layout, sizeof report->layout, "%s", tern_model_layout(p->model));
    report->tokens = p->answer.plan.n_tokens;
}

/* Checks the fingerprint, which is made of the model, the cache's precision and the arithmetic. */
static void check_fingerprint(const replay *p) {
    char fingerprint[TERN_FINGERPRINT];
    const char *recorded = json_string_value(receipt_at(p->receipt, "system_fingerprint"));
    tern_fingerprint(tern_model_identity(p->model),
                     tern_format_describe(recorded_answer_cache(p->receipt))->name, fingerprint);
    if (recorded != NULL && strcmp(fingerprint, recorded) != 0)
        receipt_find(p->found, "system_fingerprint: is \"%.40s\", the model's is \"%s\"", recorded,
                     fingerprint);
}

/* True if an operation runs for the same weights on every instruction set, in every layout and
 * division of the prompt. */
static bool is_everywhere(tern_op op) {
    return op != TERN_OP_GEMV && op != TERN_OP_GEMM && op != TERN_OP_QUANTIZE_TOKEN &&
           op != TERN_OP_QUANTIZE_BLOCK;
}

static bool does_the_same(const tern_kernel_row *a, const tern_kernel_row *b) {
    return a != NULL && b != NULL && a->op == b->op && a->format == b->format;
}

enum { KERNELS = 64 }; /* in a session */

/*
 * Checks that the receipt's kernels perform the operations of this run, perhaps by other kernels.
 */
static void check_kernels(const replay *p) {
    const tern_kernel_row *ran[KERNELS];
    const json_t *names = receipt_at(p->receipt, "kernels"); /* not in receipts of answers */
    const size_t n = names != NULL ? tern_session_kernels(p->session, ran, KERNELS) : 0;
    bool known[KERNELS] = {false};
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        const tern_kernel_row *kernel = tern_kernel_find(name);
        bool found =
            kernel == NULL || !is_everywhere(kernel->op); /* a family, or machine-specific */
        for (size_t k = 0; k < n && k < KERNELS; k++)
            if (does_the_same(kernel, ran[k]))
                found = known[k] = true;
        if (!found)
            receipt_find(p->found, "kernels[%zu]: \"%.60s\" is listed, this run runs no %s", i,
                         name, tern_op_name(kernel->op));
    }
    for (size_t k = 0; k < n && k < KERNELS; k++)
        if (!known[k] && is_everywhere(ran[k]->op))
            receipt_find(p->found, "kernels: none for %s, this run runs \"%s\"",
                         tern_op_name(ran[k]->op), ran[k]->name);
}

static tern_status run(replay *p, replay_report *report, tern_error *err) {
    rerun_result result;
    char text[160];
    tern_status status = recorded_answer_open_form(p->model, &p->answer, err);
    if (status == TERN_OK)
        status = receipt_rerun(p->session, &p->answer.plan, &result, err);
    if (status != TERN_OK)
        return status;
    if (result.part == RERUN_SAME) {
        check_text(p);
        check_kernels(p);
    } else {
        rerun_describe(&p->answer.plan, &result, text, sizeof text);
        receipt_find(p->found, "%s", text);
    }
    check_fingerprint(p);
    report_kernels(p, report);
    report->threads = tern_session_threads(p->session);
    report->digests = p->answer.plan.digest != NULL ? 1 : p->answer.plan.n_points;
    return TERN_OK;
}

/* Checks the version of the numerics. Receipts record it since version 2; without it they mean
 * version 1. */
static bool check_numerics(const replay *p) {
    const bool said = rule_known(p->receipt, "versions.numerics");
    const int64_t recorded = said ? rule_count(p->receipt, "versions.numerics") : 1;
    if (recorded == TERN_NUMERICS_VERSION)
        return true;
    receipt_find(p->found,
                 "versions.numerics: %s%" PRId64 ", this tern computes by version %d of its "
                 "numerics: only a tern of the receipt's can replay it",
                 said ? "is " : "is not there, which means ", recorded, TERN_NUMERICS_VERSION);
    return false;
}

static int replay_all(replay *p, replay_report *report) {
    tern_error err = {0};
    int status = EXIT_DONE;
    if (!check_numerics(p))
        return EXIT_DONE;
    loader_report_isas();
    p->model_path = locate_model(p->receipt, p->o, p->document, p->path);
    if (p->model_path == NULL)
        return EXIT_FAILED;
    if (!recorded_answer_read(p->receipt, &p->answer)) {
        complain("no memory for the replay");
        return EXIT_FAILED;
    }
    tern_status done =
        recorded_model_open(p->receipt, p->document, p->model_path, p->o, &p->model, &err);
    if (done == TERN_OK && (!check_files(p, &status) || !check_tokenizer(p, &status)))
        return status;
    if (done == TERN_OK) {
        check_geometry(p);
        check_weights(p);
        done = check_accuracy(p, &err);
    }
    if (done == TERN_OK)
        done = recorded_answer_session(&p->answer, p->answer.plan.n_tokens + 1, p->model, p->o,
                                       &p->session, &err); /* one more: what ended it */
    if (done == TERN_OK)
        done = run(p, report, &err);
    return done == TERN_OK ? EXIT_DONE : complain_error(&err);
}

int receipt_replay(const json_t *receipt, const char *path, const options *o, receipt_findings *f,
                   replay_report *report) {
    const double start = tern_clock_seconds();
    replay p = {.receipt = receipt, .o = o, .document = path, .found = f};
    *report = (replay_report){.seconds = 0.0};
    const int status = replay_all(&p, report);
    report->seconds = tern_clock_seconds() - start;
    tern_session_free(&p.session);
    tern_model_free(&p.model);
    recorded_answer_close(&p.answer);
    return status;
}
