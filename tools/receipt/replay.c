/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/receipt/replay.h"

#ifdef TERN_HAVE_JANSSON

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/metrics.h"
#include "tools/out.h"
#include "tools/receipt/facts.h"
#include "tools/receipt/rerun.h"
#include "tools/receipt/rules.h"

/* A replay in work; everything is owned. */
typedef struct replay {
    const json_t *receipt;
    const options *o;
    receipt_findings *found;
    tern_model *model;
    tern_session *session;
    int32_t *prompt, *tokens;
    receipt_point *points;
    rerun_plan plan;
} replay;

/* ---- the model ------------------------------------------------------------------------------- */

static const char *model_path(const replay *p) {
    const char *path = options_text(p->o, OPT_MODEL);
    return path != NULL ? path : rule_text(p->receipt, "model_info.model_path");
}

/* False after a finding or a complaint: another file, or none. */
static bool check_file(const replay *p, int *status) {
    char hex[RECEIPT_HEX];
    uint64_t bytes;
    tern_error err = {0};
    if (!facts_hash_file(model_path(p), hex, &bytes, &err)) {
        complain("%s (-m FILE names the model where it lies now)", err.message);
        *status = EXIT_FAILED;
        return false;
    }
    if (strcmp(hex, rule_text(p->receipt, "model_info.sha256")) != 0) {
        receipt_find(p->found, "model_info.sha256: %s is another model, its digest is %.16s...",
                     model_path(p), hex);
        return false;
    }
    rule_equal_counts(p->receipt, p->found, "model_info.file_bytes", (int64_t)bytes, "the file's");
    return true;
}

/* What the receipt says about a model that anybody can look up in the file. */
static void check_geometry(const replay *p, const tern_model_info *info) {
    const struct {
        const char *path;
        uint64_t value;
    } sizes[] = {
        {"model_info.layers", info->n_layer},
        {"model_info.hidden_size", info->n_embd},
        {"model_info.ffn_size", info->n_ff},
        {"model_info.num_attention_heads", info->n_head},
        {"model_info.num_key_value_heads", info->n_head_kv},
        {"model_info.head_dim", info->head_dim},
        {"model_info.vocab_size", info->n_vocab},
        {"model_info.context_length", info->n_ctx_train},
        {"model_info.parameters", info->parameters},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        rule_equal_counts(p->receipt, p->found, sizes[i].path, (int64_t)sizes[i].value,
                          "the model's");
    }
    const struct {
        const char *path, *value;
    } names[] = {{"model_info.architecture", info->architecture}, {"model_info.name", info->name}};
    for (size_t i = 0; i < 2; i++) {
        if (strcmp(rule_text(p->receipt, names[i].path), names[i].value) != 0) {
            receipt_find(p->found, "%s: is \"%.60s\", the model's is \"%.60s\"", names[i].path,
                         rule_text(p->receipt, names[i].path), names[i].value);
        }
    }
}

static tern_status open_model(replay *p, tern_error *err) {
    const char *pre = rule_text(p->receipt, "model_info.pre_tokenizer");
    tern_model_params params = tern_model_params_default();
    params.isa = options_text(p->o, OPT_ISA);
    params.disable = options_text(p->o, OPT_DISABLE);
    params.layout = options_text(p->o, OPT_LAYOUT);
    params.threads = (uint32_t)options_integer(p->o, OPT_THREADS);
    params.i2s_order = (tern_i2s_order)(rule_text(p->receipt, "model_info.i2s_layout")[0] - 'a');
    params.pre_tokenizer = pre[0] != '\0' ? pre : NULL;
    return tern_model_open(model_path(p), &params, &p->model, err);
}

static tern_format cache_format(const replay *p) {
    int format = 0;
    while (strcmp(tern_format_describe((tern_format)format)->name,
                  rule_text(p->receipt, "run.kv")) != 0) {
        format++; /* the receipt's is one of three that exist */
    }
    return (tern_format)format;
}

static tern_status open_session(replay *p, tern_error *err) {
    tern_session_params params = tern_session_params_default();
    params.n_ctx = (uint32_t)(p->plan.n_prompt + p->plan.n_tokens);
    params.n_batch = (uint32_t)options_integer(p->o, OPT_BATCH);
    params.threads = (uint32_t)options_integer(p->o, OPT_THREADS);
    params.kv = cache_format(p);
    return tern_session_new(p->model, &params, &p->session, err);
}

/* ---- the plan -------------------------------------------------------------------------------- */

static int32_t *read_ids(const json_t *receipt, const char *path, size_t *n) {
    const json_t *list = receipt_at(receipt, path);
    *n = json_array_size(list);
    int32_t *ids = calloc(*n + 1, sizeof *ids);
    for (size_t i = 0; ids != NULL && i < *n; i++) {
        ids[i] = (int32_t)json_integer_value(json_array_get(list, i));
    }
    return ids;
}

static bool read_points(replay *p) {
    const json_t *list = receipt_at(p->receipt, "output.logits");
    p->plan.n_points = json_array_size(list);
    p->points = calloc(p->plan.n_points + 1, sizeof *p->points);
    for (size_t i = 0; p->points != NULL && i < p->plan.n_points; i++) {
        const json_t *point = json_array_get(list, i);
        p->points[i].after = (uint64_t)rule_count(point, "after");
        (void)snprintf(p->points[i].sha256, RECEIPT_HEX, "%s", rule_text(point, "sha256"));
    }
    p->plan.points = p->points;
    return p->points != NULL;
}

static bool read_plan(replay *p) {
    const json_t *r = p->receipt;
    p->plan.prompt = p->prompt = read_ids(r, "prompt.ids", &p->plan.n_prompt);
    p->plan.tokens = p->tokens = read_ids(r, "output.ids", &p->plan.n_tokens);
    p->plan.sampling =
        (tern_sampler_params){.temperature = (float)rule_number(r, "sampler.temperature"),
                              .top_k = (uint32_t)rule_count(r, "sampler.top_k"),
                              .top_p = (float)rule_number(r, "sampler.top_p"),
                              .seed = strtoull(rule_text(r, "sampler.seed"), NULL, 10)};
    return p->prompt != NULL && p->tokens != NULL && read_points(p);
}

/* ---- the run --------------------------------------------------------------------------------- */

/* What follows from equal tokens: where the text ended, and the text itself. */
static void check_text(const replay *p, const rerun_result *result) {
    const tern_tokenizer *tokenizer = NULL;
    const char *recorded = json_string_value(receipt_at(p->receipt, "output.text_sha256"));
    if (tern_model_tokenizer(p->model, &tokenizer, NULL) != TERN_OK) {
        tokenizer = NULL;
    }
    const bool ended = strcmp(rule_text(p->receipt, "output.stop"), "end") == 0;
    if (ended && (tokenizer == NULL || !tern_token_ends_text(tokenizer, result->next))) {
        receipt_find(p->found, "output.stop: is \"end\", but the model goes on with token %d",
                     result->next);
    }
    if (tokenizer == NULL || recorded == NULL) {
        return;
    }
    json_t *hash = receipt_hash_text(tokenizer, p->tokens, p->plan.n_tokens);
    if (hash == NULL || strcmp(json_string_value(hash), recorded) != 0) {
        receipt_find(p->found, "output.text_sha256: is not the digest of the text of output.ids");
    }
    json_decref(hash);
}

static tern_status run(replay *p, replay_report *report, tern_error *err) {
    rerun_result result;
    char text[160];
    const tern_status status = receipt_rerun(p->session, &p->plan, &result, err);
    if (status != TERN_OK) {
        return status;
    }
    if (result.part == RERUN_SAME) {
        check_text(p, &result);
    } else {
        rerun_describe(&result, text, sizeof text);
        receipt_find(p->found, "%s", text);
    }
    (void)snprintf(report->isa, sizeof report->isa, "%s", tern_model_isa(p->model));
    (void)snprintf(report->layout, sizeof report->layout, "%s", options_text(p->o, OPT_LAYOUT));
    report->threads = tern_session_threads(p->session);
    report->tokens = p->plan.n_tokens;
    report->digests = p->plan.n_points;
    return TERN_OK;
}

static int replay_all(replay *p, replay_report *report) {
    tern_error err = {0};
    uint64_t mask;
    int status = loader_check_isa(p->o, &mask);
    if (status != EXIT_DONE || !check_file(p, &status)) {
        return status;
    }
    if (!read_plan(p)) {
        complain("no memory for the replay");
        return EXIT_FAILED;
    }
    tern_status done = open_model(p, &err);
    if (done == TERN_OK) {
        tern_model_info info;
        tern_model_describe(p->model, &info);
        check_geometry(p, &info);
        done = open_session(p, &err);
    }
    if (done == TERN_OK) {
        done = run(p, report, &err);
    }
    return done == TERN_OK ? EXIT_DONE : complain_error(&err);
}

int receipt_replay(const json_t *receipt, const options *o, receipt_findings *f,
                   replay_report *report) {
    const double start = tern_clock_seconds();
    replay p = {.receipt = receipt, .o = o, .found = f};
    *report = (replay_report){.seconds = 0.0};
    const int status = replay_all(&p, report);
    report->seconds = tern_clock_seconds() - start;
    tern_session_free(&p.session);
    tern_model_free(&p.model);
    free(p.prompt);
    free(p.tokens);
    free(p.points);
    return status;
}

#endif
