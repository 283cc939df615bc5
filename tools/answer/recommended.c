/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/answer/recommended.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file_map.h"
#include "base/json.h"
#include "base/word_list.h"

enum { CONFIG_LIMIT = 1 << 20, NUMBER_BYTES = 64 };

/* Names of the parameters in the two kinds of files; NULL: it has no name there. */
static const struct {
    option_id option;
    const char *json, *key;
} parameters[SAMPLING_COUNT] = {
    [SAMPLING_TEMPERATURE] = {OPT_TEMPERATURE, "temperature", "general.sampling.temp"},
    [SAMPLING_TOP_K] = {OPT_TOP_K, "top_k", "general.sampling.top_k"},
    [SAMPLING_TOP_P] = {OPT_TOP_P, "top_p", "general.sampling.top_p"},
    [SAMPLING_MIN_P] = {OPT_MIN_P, "min_p", "general.sampling.min_p"},
    [SAMPLING_REPETITION] = {OPT_REPEAT_PENALTY, "repetition_penalty",
                             "general.sampling.penalty_repeat"},
    [SAMPLING_PRESENCE] = {OPT_PRESENCE_PENALTY, NULL, "general.sampling.penalty_present"},
    [SAMPLING_FREQUENCY] = {OPT_FREQUENCY_PENALTY, NULL, "general.sampling.penalty_freq"},
    [SAMPLING_LAST_N] = {OPT_REPEAT_LAST_N, NULL, "general.sampling.penalty_last_n"},
};

option_id sampling_option(sampling_parameter p) {
    return parameters[p].option;
}

/* True if the parameter's option accepts the value. */
static bool in_range(sampling_parameter p, double value) {
    const option_spec *spec = option_describe(parameters[p].option);
    return spec->type == OPTION_INTEGER
               ? value >= (double)spec->min && value <= (double)spec->max && value == floor(value)
               : value >= spec->low && value <= spec->high;
}

static tern_status set(recommended *out, sampling_parameter p, double value, const char *where,
                       const char *name, tern_status status, tern_error *err) {
    if (!in_range(p, value)) {
        char expected[128];
        option_expectation(option_describe(parameters[p].option), expected, sizeof expected);
        return tern_fail(err, status, "%s: %s is %g, must be %s", where, name, value, expected);
    }
    out->values[p] = value;
    out->has[p] = true;
    return TERN_OK;
}

/* ---- generation_config.json ------------------------------------------------------------------ */

static tern_status read_json(const char *path, tern_json *json, tern_error *err) {
    tern_file_map *map = NULL;
    tern_status status = tern_file_map_open(path, &map, err);
    if (status != TERN_OK)
        return status;
    const size_t size = tern_file_map_size(map);
    char *bytes = NULL;
    if (size > CONFIG_LIMIT) {
        status = tern_fail(err, TERN_ERR_CONFIG, "%s: %zu bytes, at most %d are read", path, size,
                           CONFIG_LIMIT);
    } else if ((bytes = malloc(size)) == NULL) {
        status = tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for %zu bytes", path, size);
    } else {
        memcpy(bytes, tern_file_map_bytes(map), size);
    }
    tern_file_map_close(&map);
    return status == TERN_OK ? tern_json_parse(bytes, size, path, json, err) : status;
}

static tern_status read_number(const tern_json_value *v, sampling_parameter p, const char *path,
                               recommended *out, tern_error *err) {
    char text[NUMBER_BYTES];
    const char *name = parameters[p].json;
    if (v->type != TERN_JSON_NUMBER || v->text.size >= sizeof text)
        return tern_fail(err, TERN_ERR_CONFIG, "%s: %s is not a number that can be read", path,
                         name);
    memcpy(text, v->text.data, v->text.size);
    text[v->text.size] = '\0';
    return set(out, p, strtod(text, NULL), path, name, TERN_ERR_CONFIG, err);
}

/* Selects greedy sampling: parameters that cut off tokens get neutral values. */
static void make_greedy(recommended *out) {
    static const double nothing[] = {[SAMPLING_TEMPERATURE] = 0.0,
                                     [SAMPLING_TOP_K] = 0.0,
                                     [SAMPLING_TOP_P] = 1.0,
                                     [SAMPLING_MIN_P] = 0.0};
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
        out->values[i] = nothing[i];
        out->has[i] = true;
    }
}

static tern_status read_config(const tern_json_value *config, const char *path, recommended *out,
                               tern_error *err) {
    if (config->type != TERN_JSON_OBJECT)
        return tern_fail(err, TERN_ERR_CONFIG, "%s: is not a JSON object", path);
    tern_status status = TERN_OK;
    for (int p = 0; p < SAMPLING_COUNT && status == TERN_OK; p++) {
        const tern_json_value *v =
            parameters[p].json != NULL ? tern_json_get(config, parameters[p].json) : NULL;
        status = v != NULL ? read_number(v, (sampling_parameter)p, path, out, err) : TERN_OK;
    }
    const tern_json_value *sample = tern_json_get(config, "do_sample");
    if (sample != NULL && sample->type == TERN_JSON_FALSE)
        make_greedy(out);
    return status;
}

/* Reads the file if it exists. */
static tern_status read_file(const char *path, recommended *out, tern_error *err) {
    *out = (recommended){{false}, {0.0}};
    if (access(path, F_OK) != 0)
        return TERN_OK;
    tern_json json = {NULL, NULL};
    tern_status status = read_json(path, &json, err);
    if (status == TERN_OK) {
        status = read_config(json.values, path, out, err);
        tern_json_free(&json);
    }
    if (status != TERN_OK)
        *out = (recommended){{false}, {0.0}};
    return status;
}

/* Reads FOLDER/generation_config.json, with n bytes of the folder's path. */
static tern_status read_in_folder(const char *folder, int n, recommended *out, tern_error *err) {
    char path[PATH_MAX];
    *out = (recommended){{false}, {0.0}};
    const int size = snprintf(path, sizeof path, "%.*s/generation_config.json", n, folder);
    return size > 0 && (size_t)size < sizeof path ? read_file(path, out, err) : TERN_OK;
}

tern_status recommended_in_folder(const char *folder, recommended *out, tern_error *err) {
    return read_in_folder(folder, (int)strlen(folder), out, err);
}

tern_status recommended_beside(const char *model, recommended *out, tern_error *err) {
    static const char ending[] = ".gguf";
    char path[PATH_MAX];
    const size_t whole = strlen(model);
    const size_t stem = whole - (text_ends_with(model, ending) ? strlen(ending) : 0);
    const int size = snprintf(path, sizeof path, "%.*s.generation_config.json", (int)stem, model);
    if (size > 0 && (size_t)size < sizeof path && access(path, F_OK) == 0)
        return read_file(path, out, err);
    const char *slash = strrchr(model, '/');
    return slash != NULL ? read_in_folder(model, (int)(slash - model), out, err)
                         : read_in_folder(".", 1, out, err);
}

/* ---- keys of GGUF files ---------------------------------------------------------------------- */

tern_status recommended_in_metadata(const tern_gguf *file, recommended *out, tern_error *err) {
    *out = (recommended){{false}, {0.0}};
    tern_status status = TERN_OK;
    for (int p = 0; p < SAMPLING_COUNT && status == TERN_OK; p++) {
        const char *key = parameters[p].key;
        if (tern_gguf_find(file, key) == NULL)
            continue;
        uint32_t whole;
        float real = NAN; /* stays NAN, which is refused, if the key is not a number */
        if (tern_gguf_u32(file, key, &whole, NULL) == TERN_OK)
            real = (float)whole;
        else
            (void)tern_gguf_f32(file, key, &real, NULL);
        status = set(out, (sampling_parameter)p, (double)real, tern_gguf_name(file), key,
                     TERN_ERR_KEY_RANGE, err);
    }
    if (status != TERN_OK)
        *out = (recommended){{false}, {0.0}};
    return status;
}

void recommended_put(const recommended *r, tern_gguf_writer *w) {
    for (int p = 0; p < SAMPLING_COUNT; p++)
        if (r->has[p] && option_describe(parameters[p].option)->type == OPTION_INTEGER)
            tern_gguf_put_u32(w, parameters[p].key, (uint32_t)r->values[p]);
        else if (r->has[p])
            tern_gguf_put_f32(w, parameters[p].key, (float)r->values[p]);
}
