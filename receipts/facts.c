/* SPDX-License-Identifier: Apache-2.0 */
#include "receipts/facts.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/sha256.h"
#include "tern/inspect.h"

/* ---- hashes ---------------------------------------------------------------------------------- */

void facts_hash(const void *bytes, size_t size, char hex[RECEIPT_HEX]) {
    tern_sha256 hash;
    tern_sha256_start(&hash);
    tern_sha256_add(&hash, bytes, size);
    tern_sha256_finish(&hash, hex);
}

void facts_hash_ids(const int32_t *ids, size_t n, char hex[RECEIPT_HEX]) {
    facts_hash(n > 0 ? ids : (const int32_t[]){0}, n * sizeof *ids, hex);
}

/* ---- kernels --------------------------------------------------------------------------------- */

const char *facts_layout_family(tern_layout layout) {
    static const char *const families[TERN_LAYOUT_COUNT] = {
#define FAMILY(name, text, family, accuracy, devices) [TERN_LAYOUT_##name] = family,
        TERN_TERNARY_LAYOUT_LIST(FAMILY)
#undef FAMILY
    };
    return families[layout];
}

const char *facts_family(const tern_kernel_row *kernel) {
    if (kernel->op == TERN_OP_ROPE_NORM || kernel->op == TERN_OP_ROPE_NEOX)
        return "rope_apply";
    if (kernel->op == TERN_OP_ATTEND)
        return "attention_real";
    if (kernel->op != TERN_OP_GEMV && kernel->op != TERN_OP_GEMM)
        return NULL;
    return facts_layout_family(kernel->layout);
}

static bool has_text(const json_t *list, const char *text) {
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_array_get(list, i)), text) == 0)
            return true;
    return false;
}

json_t *facts_kernels(const tern_session *session) {
    const tern_kernel_row *kernels[64];
    const size_t n = tern_session_kernels(session, kernels, 64);
    json_t *list = json_array();
    for (size_t i = 0; i < n && i < 64; i++)
        json_array_append_new(list, json_string(kernels[i]->name));
    for (size_t i = 0; i < n && i < 64; i++) {
        const char *family = facts_family(kernels[i]);
        if (family != NULL && !has_text(list, family))
            json_array_append_new(list, json_string(family));
    }
    return list;
}

const char *facts_compute_path(const json_t *kernels) {
    for (size_t i = 0; i < json_array_size(kernels); i++) {
        const char *name = json_string_value(json_array_get(kernels, i));
        if (name != NULL && strcasestr(name, "mock") != NULL)
            return "mock";
    }
    return "real";
}

/* ---- the model ------------------------------------------------------------------------------- */

static void in_capitals(const char *name, char text[16]) {
    size_t n = 0;
    for (; name[n] != '\0' && n < 15; n++)
        text[n] = (char)toupper((unsigned char)name[n]);
    text[n] = '\0';
}

json_t *facts_weights(const tern_model *m, char quantization_type[16]) {
    uint64_t counts[TERN_FORMAT_COUNT] = {0};
    uint64_t in_head[TERN_FORMAT_COUNT] = {0};
    const tern_linear *linear;
    json_t *object = json_object();
    int most = 0;
    for (size_t i = 0; (linear = tern_model_linear(m, i)) != NULL; i++) {
        tern_linear_info info;
        tern_linear_describe(m, linear, &info);
        uint64_t *sums = info.stage == TERN_STAGE_HEAD ? in_head : counts;
        if (info.stage != TERN_STAGE_SCAN) /* which is the head again */
            sums[info.matrix.format] += (uint64_t)info.matrix.rows * info.matrix.cols;
    }
    for (int f = 0; f < TERN_FORMAT_COUNT; f++)
        most = counts[f] > counts[most] ? f : most;
    in_capitals(tern_format_describe((tern_format)most)->name, quantization_type);
    for (int f = 0; f < TERN_FORMAT_COUNT; f++) {
        if (counts[f] + in_head[f] > 0) {
            json_object_set_new(object, tern_format_describe((tern_format)f)->name,
                                json_integer((json_int_t)(counts[f] + in_head[f])));
        }
    }
    return object;
}

/* ---- the time ------------------------------------------------------------------------------- */

json_t *facts_now(void) {
    char text[32];
    const time_t seconds = time(NULL);
    struct tm utc;
    if (gmtime_r(&seconds, &utc) == NULL ||
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        return NULL;
    return json_string(text);
}

/* ---- the run --------------------------------------------------------------------------------- */

json_t *facts_ids(const int32_t *ids, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer(ids[i]));
    return list;
}

json_t *facts_tokens(const int32_t *ids, size_t n) {
    char hex[RECEIPT_HEX];
    facts_hash_ids(ids, n, hex);
    return json_pack("{s:I, s:s, s:o}", "tokens", (json_int_t)n, "ids_sha256", hex, "ids",
                     facts_ids(ids, n));
}

json_t *facts_output(const facts_answer *a) {
    json_t *root = facts_tokens(a->tokens, a->n_tokens);
    json_t *texts = json_array();
    for (size_t i = 0; i < a->n_stop_texts; i++)
        json_array_append_new(texts, json_string(a->stop_texts[i]));
    json_object_set_new(root, "stop", json_string(a->stop));
    json_object_set_new(root, "max_tokens", json_integer((json_int_t)a->max_tokens));
    json_object_set_new(root, "ignore_end", json_boolean(a->ignore_end));
    json_object_set_new(root, "stop_texts", texts);
    if (a->tokenizer != NULL)
        json_object_set_new(root, "text_sha256",
                            receipt_hash_text(a->tokenizer, a->tokens, a->n_tokens));
    return root;
}

/* Every setting must have a member here: a new one changes the size below and must be added. */
json_t *facts_sampler(const tern_sampler_params *s, uint64_t seed) {
    _Static_assert(sizeof *s == 64, "receipts record every setting of the sampler");
    char hex[RECEIPT_HEX];
    json_t *bias = json_array();
    for (size_t i = 0; i < s->n_bias; i++) {
        json_array_append_new(bias, json_pack("{s:i, s:f}", "token", s->bias[i].token, "bias",
                                              (double)s->bias[i].bias));
    }
    json_t *root =
        json_pack("{s:f, s:I, s:f, s:f, s:f, s:f, s:f, s:I, s:o, s:o}", "temperature",
                  (double)s->temperature, "top_k", (json_int_t)s->top_k, "top_p", (double)s->top_p,
                  "min_p", (double)s->min_p, "repetition_penalty", (double)s->repetition_penalty,
                  "presence_penalty", (double)s->presence_penalty, "frequency_penalty",
                  (double)s->frequency_penalty, "repeat_last_n", (json_int_t)s->repeat_last_n,
                  "logit_bias", bias, "seed", json_sprintf("%" PRIu64, seed));
    receipt_digest(root, NULL, hex);
    json_object_set_new(root, "sha256", json_string(hex));
    return root;
}

json_t *receipt_hash_text(const tern_tokenizer *t, const int32_t *ids, size_t n) {
    char hex[RECEIPT_HEX];
    size_t size = 0;
    if (tern_detokenize(t, ids, n, true, NULL, 0, &size, NULL) != TERN_OK)
        return NULL;
    char *text = malloc(size + 1);
    json_t *result = NULL;
    if (text != NULL &&
        (size == 0 || tern_detokenize(t, ids, n, true, text, size, &size, NULL) == TERN_OK)) {
        facts_hash(text, size, hex);
        result = json_string(hex);
    }
    free(text);
    return result;
}
