/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/replay/recorded_answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "receipts/rules.h"
#include "tools/load/adapters.h"
#include "tools/load/params.h"
#include "tools/load/placement.h"
#include "tools/replay/locate.h"

/* ---- the model ------------------------------------------------------------------------------- */

static const char *text_or_null(const json_t *record, const char *path) {
    return receipt_at(record, path) == NULL ? NULL : rule_text(record, path);
}

/*
 * The recorded way to split texts if it was asked for; NULL: the model's own, as its file says now.
 */
static const char *pre_tokenizer(const json_t *record) {
    const char *pre = rule_text(record, "model_info.pre_tokenizer");
    const bool own = strcmp(rule_text(record, "model_info.pre_tokenizer_from"), "model") == 0;
    return own || pre[0] == '\0' ? NULL : pre;
}

/* The adapters that the record names, in the files that the options give in their order. */
static tern_status read_adapters(const json_t *record, const options *o,
                                 tern_adapter_file files[TERN_MOST_ADAPTERS],
                                 tern_model_params *params, tern_error *err) {
    const json_t *list = receipt_at(record, "model_info.adapters");
    const size_t n = json_array_size(list);
    const tern_status status = adapters_read(o, OPT_LORA, params, err);
    if (status != TERN_OK)
        return status;
    if (params->n_adapters != n)
        return tern_fail(err, TERN_ERR_ARG,
                         "the answer was computed with %zu adapters: name their files with --lora, "
                         "in the order of the document",
                         n);
    for (size_t i = 0; i < n; i++)
        files[i] =
            (tern_adapter_file){.path = params->adapters[i].path,
                                .scale = (float)rule_number(json_array_get(list, i), "scale")};
    params->adapters = files;
    return TERN_OK;
}

/* Refuses other adapters than those of the record. */
static tern_status check_adapters(const json_t *record, const tern_model *model, tern_error *err) {
    const json_t *list = receipt_at(record, "model_info.adapters");
    const tern_adapter_info *infos;
    const size_t n = tern_model_adapters(model, &infos);
    for (size_t i = 0; i < n; i++) {
        const char *wanted = rule_text(json_array_get(list, i), "sha256");
        if (strcmp(infos[i].digest, wanted) != 0)
            return tern_fail(err, TERN_ERR_ARG, "%s: adapter %.16s..., the document names %.16s...",
                             infos[i].path, infos[i].digest, wanted);
    }
    return TERN_OK;
}

tern_status recorded_model_open(const json_t *record, const char *document, const char *path,
                                const options *o, tern_model **out, tern_error *err) {
    char tokenizer[PATH_MAX];
    tern_model_params params = tern_model_params_default();
    params.isa = options_text(o, OPT_ISA);
    params.disable = options_text(o, OPT_DISABLE);
    params.layout = params_layout(o);
    params.threads = (uint32_t)options_integer(o, OPT_THREADS);
    params.i2s_order = (tern_i2s_order)(rule_text(record, "model_info.i2s_layout")[0] - 'a');
    params.i2s_map = text_or_null(record, "model_info.i2s_map");
    params.tl_tiles = text_or_null(record, "model_info.tl_tiles");
    params.strict = options_switch(o, OPT_STRICT);
    params.no_sidecar = options_switch(o, OPT_NO_SIDECAR);
    params.long_context = rule_flag(record, "model_info.long_context");
    params.activations = text_or_null(record, "run.activations");
    tern_adapter_file files[TERN_MOST_ADAPTERS];
    tern_status status = placement_read(o, &params, err);
    if (status == TERN_OK)
        status = read_adapters(record, o, files, &params, err);
    if (status != TERN_OK)
        return status;
    if (receipt_at(record, "model_info.tokenizer") == NULL) {
        params.pre_tokenizer = pre_tokenizer(record);
    } else {
        params.tokenizer = locate_tokenizer(record, o, document, path, tokenizer);
    }
    status = tern_model_open(path, &params, out, err);
    if (status != TERN_OK) {
        (void)placement_lack_node(&params, err);
        return status;
    }
    status = check_adapters(record, *out, err);
    if (status != TERN_OK)
        tern_model_free(out);
    return status;
}

/* ---- the session ----------------------------------------------------------------------------- */

tern_format recorded_answer_cache(const json_t *record) {
    int format = 0;
    while (strcmp(tern_format_describe((tern_format)format)->name, rule_text(record, "run.kv")) !=
           0)
        format++; /* a document has one of the three formats */
    return (tern_format)format;
}

tern_status recorded_answer_session(const recorded_answer *a, size_t n, const tern_model *model,
                                    const options *o, tern_session **out, tern_error *err) {
    tern_session_params params = tern_session_params_default();
    const int64_t context = rule_count(a->record, "run.context");
    const int64_t positions = (int64_t)(a->plan.ask.n_tokens + n);
    params.n_ctx = (uint32_t)(positions < context ? positions : context);
    params.n_batch = (uint32_t)options_integer(o, OPT_BATCH);
    params.threads = (uint32_t)options_integer(o, OPT_THREADS);
    params.kv = recorded_answer_cache(a->record);
    return tern_session_new(model, &params, out, err);
}

/* ---- the answer ------------------------------------------------------------------------------ */

static int32_t *read_ids(const json_t *receipt, const char *path, size_t *n) {
    const json_t *list = receipt_at(receipt, path);
    *n = json_array_size(list);
    int32_t *ids = calloc(*n + 1, sizeof *ids);
    for (size_t i = 0; ids != NULL && i < *n; i++)
        ids[i] = (int32_t)json_integer_value(json_array_get(list, i));
    return ids;
}

static bool read_points(recorded_answer *a) {
    const json_t *list = receipt_at(a->record, "output.logits");
    a->plan.n_points = json_array_size(list);
    a->points = calloc(a->plan.n_points + 1, sizeof *a->points);
    for (size_t i = 0; a->points != NULL && i < a->plan.n_points; i++) {
        const json_t *point = json_array_get(list, i);
        a->points[i].after = (uint64_t)rule_count(point, "after");
        (void)snprintf(a->points[i].sha256, RECEIPT_HEX, "%s", rule_text(point, "sha256"));
    }
    a->plan.points = a->points;
    return a->points != NULL;
}

static bool read_bias(recorded_answer *a) {
    const json_t *list = receipt_at(a->record, "sampler.logit_bias");
    const size_t n = json_array_size(list);
    a->bias = calloc(n + 1, sizeof *a->bias);
    for (size_t i = 0; a->bias != NULL && i < n; i++) {
        const json_t *bias = json_array_get(list, i);
        a->bias[i] = (tern_logit_bias){.token = (int32_t)rule_count(bias, "token"),
                                       .bias = (float)rule_number(bias, "bias")};
    }
    a->sampling.bias = a->bias;
    a->sampling.n_bias = n;
    return a->bias != NULL;
}

/* Reads what ended the answer, and what might have ended it. */
static bool read_end(recorded_answer *a) {
    const json_t *r = a->record, *texts = receipt_at(r, "output.stop_texts");
    const char *stop = rule_text(r, "output.stop");
    const bool interrupted = strcmp(stop, "interrupted") == 0;
    const bool full = strcmp(stop, "context") == 0 && a->plan.n_tokens > 0;
    tern_request *ask = &a->plan.ask;
    const size_t most = interrupted ? a->plan.n_tokens : (size_t)rule_count(r, "output.max_tokens");
    ask->max_tokens = full ? 0 : most;
    ask->prompt_only = most == 0;
    ask->ignore_end = rule_flag(r, "output.ignore_end");
    /* Receipts of runs say it only where it is not so for a chat, or so for another prompt. */
    ask->drop_space = receipt_at(r, "output.drop_space") != NULL ? rule_flag(r, "output.drop_space")
                                                                 : rule_flag(r, "run.chat");
    a->plan.end = interrupted ? NULL : stop;
    a->plan.digest = json_string_value(receipt_at(r, "output.hidden_sha256"));
    ask->stop_tokens = a->stop_tokens = read_ids(r, "output.stop_tokens", &ask->n_stop_tokens);
    ask->n_stop_texts = json_array_size(texts);
    ask->stop_texts = a->stop_texts = calloc(ask->n_stop_texts + 1, sizeof *a->stop_texts);
    for (size_t i = 0; a->stop_texts != NULL && i < ask->n_stop_texts; i++)
        a->stop_texts[i] = json_string_value(json_array_get(texts, i));
    return a->stop_tokens != NULL && a->stop_texts != NULL;
}

bool recorded_answer_read(const json_t *record, recorded_answer *a) {
    const json_t *r = record;
    *a = (recorded_answer){.record = record};
    a->plan.ask.tokens = a->prompt = read_ids(r, "prompt.ids", &a->plan.ask.n_tokens);
    a->plan.tokens = a->tokens = read_ids(r, "output.ids", &a->plan.n_tokens);
    a->sampling = (tern_sampler_params){
        .temperature = (float)rule_number(r, "sampler.temperature"),
        .top_k = (uint32_t)rule_count(r, "sampler.top_k"),
        .top_p = (float)rule_number(r, "sampler.top_p"),
        .min_p = (float)rule_number(r, "sampler.min_p"),
        .repetition_penalty = (float)rule_number(r, "sampler.repetition_penalty"),
        .presence_penalty = (float)rule_number(r, "sampler.presence_penalty"),
        .frequency_penalty = (float)rule_number(r, "sampler.frequency_penalty"),
        .repeat_last_n = (uint32_t)rule_count(r, "sampler.repeat_last_n"),
        .seed = strtoull(rule_text(r, "sampler.seed"), NULL, 10)};
    a->plan.ask.sampling = &a->sampling;
    return a->prompt != NULL && a->tokens != NULL && read_points(a) && read_bias(a) && read_end(a);
}

tern_status recorded_answer_open_form(const tern_model *model, recorded_answer *a,
                                      tern_error *err) {
    const tern_status status = recorded_form_open(model, a->record, &a->form, err);
    if (a->form.state != NULL) {
        a->plan.ask.mask = tern_grammar_mask;
        a->plan.ask.user = a->form.state;
    }
    return status;
}

void recorded_answer_close(recorded_answer *a) {
    free(a->prompt);
    free(a->tokens);
    free(a->points);
    free(a->bias);
    free(a->stop_tokens);
    free(a->stop_texts);
    recorded_form_close(&a->form);
    *a = (recorded_answer){0};
}
