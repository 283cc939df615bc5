/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/peft_config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG_BYTES = 1 << 24 };

/* ---- what is refused ------------------------------------------------------------------------- */

/* Keys that must be missing, null, false or empty: anything else adds what tern does not. */
static const char *const absent[] = {
    "use_dora",
    "modules_to_save",
    "fan_in_fan_out",
    "layer_replication",
    "use_qalora",
    "lora_bias",
    "trainable_token_indices",
    "target_parameters",
    "megatron_config",
    "alora_invocation_tokens",
    "arrow_config",
    "use_bdlora",
    "invocation_string",
};

/* Ways to begin that change the base model, too. */
static const char *const changing[] = {"pissa", "olora", "corda", "loftq", "eva_base"};

static bool is_empty(const tern_json_value *v) {
    return v == NULL || v->type == TERN_JSON_FALSE ||
           ((v->type == TERN_JSON_ARRAY || v->type == TERN_JSON_OBJECT) && v->count == 0) ||
           (v->type == TERN_JSON_STRING && v->text.size == 0);
}

static tern_status refuse_absent(const char *path, const tern_json_value *root, tern_error *err) {
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (!is_empty(tern_json_get(root, absent[i])))
            return tern_fail(err, TERN_ERR_CONFIG, "%s: adapters with \"%s\" are not supported",
                             path, absent[i]);
    return TERN_OK;
}

static bool begins(const tern_json_value *v, const char *text) {
    const size_t n = strlen(text);
    return v != NULL && v->type == TERN_JSON_STRING && v->text.size >= n &&
           memcmp(v->text.data, text, n) == 0;
}

static tern_status refuse_others(const char *path, const tern_json_value *root, tern_error *err) {
    const tern_json_value *bias = tern_json_get(root, "bias");
    const tern_json_value *start = tern_json_get(root, "init_lora_weights");
    if (!tern_json_is_string(tern_json_get(root, "peft_type"), "LORA"))
        return tern_fail(err, TERN_ERR_CONFIG, "%s: \"peft_type\" must be \"LORA\"", path);
    if (bias != NULL && !tern_json_is_string(bias, "none"))
        return tern_fail(err, TERN_ERR_CONFIG, "%s: \"bias\" must be \"none\"", path);
    for (size_t i = 0; i < sizeof changing / sizeof *changing; i++)
        if (begins(start, changing[i]))
            return tern_fail(err, TERN_ERR_CONFIG,
                             "%s: \"init_lora_weights\" %s changes the base model, which is not "
                             "supported",
                             path, changing[i]);
    return refuse_absent(path, root, err);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static double number_of(const tern_json_value *v) {
    char text[64];
    if (v == NULL || v->type != TERN_JSON_NUMBER || v->text.size >= sizeof text)
        return NAN;
    memcpy(text, v->text.data, v->text.size);
    text[v->text.size] = '\0';
    return strtod(text, NULL);
}

static bool is_alpha(double x) {
    return x > 0.0 && x < 1e12;
}

/* True if a key of alpha_pattern is the end of module names, and no other regular expression. */
static bool is_plain(tern_span key) {
    for (size_t i = 0; i < key.size; i++) {
        const char c = key.data[i];
        const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '_' || c == '.';
        if (!word)
            return false;
    }
    return key.size > 0;
}

static tern_status check_patterns(const char *path, const tern_json_value *patterns,
                                  tern_error *err) {
    const tern_json_value *key = patterns + 1;
    if (patterns->type != TERN_JSON_OBJECT)
        return tern_fail(err, TERN_ERR_KEY_TYPE, "%s: \"alpha_pattern\" is not an object", path);
    for (uint32_t i = 0; i < patterns->count; i++, key += 1 + key[1].size) {
        if (!is_plain(key->text))
            return tern_fail(err, TERN_ERR_CONFIG,
                             "%s: \"alpha_pattern\": '%.*s' is not the plain name of modules", path,
                             (int)(key->text.size < 64 ? key->text.size : 64), key->text.data);
        if (!is_alpha(number_of(key + 1)))
            return tern_fail(err, TERN_ERR_KEY_RANGE,
                             "%s: \"alpha_pattern\" must hold numbers above 0", path);
    }
    return TERN_OK;
}

tern_status peft_config_read(const char *path, peft_config *out, tern_error *err) {
    tern_status status = tern_json_read(path, CONFIG_BYTES, &out->document, err);
    if (status != TERN_OK)
        return status;
    const tern_json_value *root = out->document.values;
    status = refuse_others(path, root, err);
    if (status != TERN_OK)
        return status;
    out->alpha = number_of(tern_json_get(root, "lora_alpha"));
    out->rooted = tern_json_is_true(tern_json_get(root, "use_rslora"));
    out->patterns = tern_json_get(root, "alpha_pattern");
    if (!is_alpha(out->alpha))
        return tern_fail(err, TERN_ERR_KEY_RANGE, "%s: \"lora_alpha\" must be a number above 0",
                         path);
    return out->patterns != NULL ? check_patterns(path, out->patterns, err) : TERN_OK;
}

void peft_config_free(peft_config *c) {
    tern_json_free(&c->document);
}

tern_status peft_config_base(const char *path, char *name, size_t size, tern_error *err) {
    tern_json document = {NULL, NULL};
    const tern_status status = tern_json_read(path, CONFIG_BYTES, &document, err);
    name[0] = '\0';
    if (status != TERN_OK)
        return status;
    const tern_json_value *base = tern_json_get(document.values, "base_model_name_or_path");
    if (base != NULL && base->type == TERN_JSON_STRING && base->text.size < size)
        (void)snprintf(name, size, "%.*s", (int)base->text.size, base->text.data);
    tern_json_free(&document);
    return TERN_OK;
}

/* True if a key names the module, or the end of it after a dot. */
static bool ends_with(const char *module, tern_span key) {
    const size_t n = strlen(module);
    return n >= key.size && memcmp(module + n - key.size, key.data, key.size) == 0 &&
           (n == key.size || module[n - key.size - 1] == '.');
}

double peft_config_scale(const peft_config *c, const char *module, uint32_t rank) {
    double alpha = c->alpha;
    const tern_json_value *key = c->patterns != NULL ? c->patterns + 1 : NULL;
    for (uint32_t i = c->patterns != NULL ? c->patterns->count : 0; i > 0; i--) {
        if (ends_with(module, key->text)) {
            alpha = number_of(key + 1);
            break;
        }
        key += 1 + key[1].size;
    }
    return alpha / (c->rooted ? sqrt((double)rank) : (double)rank);
}
