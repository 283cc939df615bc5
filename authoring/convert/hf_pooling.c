/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/hf_pooling.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"

enum { CONFIG_BYTES = 1 << 20, PATH_BYTES = 4096, MODULE_BYTES = 128 };

static const char usual_folder[] = "1_Pooling";

/* A kind of pooling: a key that is true for it, and the value that "pooling_mode" has for it in
 * folders of sentence-transformers from version 6 on. */
static const struct way {
    const char *key, *mode;
    tern_pooling pooling; /* NONE: tern does not support it */
} ways[] = {
    {"pooling_mode_mean_tokens", "mean", TERN_POOLING_MEAN},
    {"pooling_mode_cls_token", "cls", TERN_POOLING_CLS},
    {"pooling_mode_lasttoken", "lasttoken", TERN_POOLING_LAST},
    {"pooling_mode_max_tokens", "max", TERN_POOLING_NONE},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", TERN_POOLING_NONE},
    {"pooling_mode_weightedmean_tokens", "weightedmean", TERN_POOLING_NONE},
};

static tern_status join(const char *folder, const char *name, char path[PATH_BYTES],
                        tern_error *err) {
    return snprintf(path, PATH_BYTES, "%s/%s", folder, name) < PATH_BYTES
               ? TERN_OK
               : tern_fail(err, TERN_ERR_IO, "%.64s...: the path is too long", folder);
}

/* Reads "pooling_mode": one kind, and tern must support it. */
static tern_status choose_mode(const char *path, const tern_json_value *mode, tern_pooling *out,
                               tern_error *err) {
    if (mode->type == TERN_JSON_ARRAY && mode->count == 1)
        mode++;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (ways[i].pooling != TERN_POOLING_NONE && tern_json_is_string(mode, ways[i].mode)) {
            *out = ways[i].pooling;
            return TERN_OK;
        }
    const bool text = mode->type == TERN_JSON_STRING && mode->text.size < 80;
    return tern_fail(
        err, TERN_ERR_CONFIG,
        "%s: \"pooling_mode\" is %.*s, which is not supported: mean, cls and lasttoken "
        "are",
        path, text ? (int)mode->text.size : 14, text ? mode->text.data : "not one of them");
}

/* Exactly one kind must be true, and tern must support it. */
static tern_status choose(const char *path, const tern_json_value *root, tern_pooling *out,
                          tern_error *err) {
    const tern_json_value *mode = tern_json_get(root, "pooling_mode");
    if (mode != NULL)
        return choose_mode(path, mode, out, err);
    const struct way *chosen = NULL;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (!tern_json_is_true(tern_json_get(root, ways[i].key)))
            continue;
        if (chosen != NULL || ways[i].pooling == TERN_POOLING_NONE)
            return tern_fail(err, TERN_ERR_CONFIG, "%s: \"%s\" is true%s, which is not supported",
                             path, ways[i].key, chosen != NULL ? " beside another" : "");
        chosen = &ways[i];
    }
    if (chosen == NULL)
        return tern_fail(err, TERN_ERR_CONFIG,
                         "%s: none of pooling_mode_mean_tokens, pooling_mode_cls_token and "
                         "pooling_mode_lasttoken is true",
                         path);
    *out = chosen->pooling;
    return TERN_OK;
}

static tern_status read_config(const char *folder, const char *module, tern_pooling *out,
                               tern_error *err) {
    char name[MODULE_BYTES + sizeof "/config.json"], path[PATH_BYTES];
    tern_json json = {.bytes = NULL};
    (void)snprintf(name, sizeof name, "%s/config.json", module);
    tern_status status = join(folder, name, path, err);
    if (status == TERN_OK)
        status = tern_json_read(path, CONFIG_BYTES, &json, err);
    if (status == TERN_OK)
        status = choose(path, json.values, out, err);
    tern_json_free(&json);
    return status;
}

/* True if a module is of that kind, whatever package its class is in. */
static bool is_kind(const tern_json_value *type, const char *kind) {
    const size_t n = strlen(kind);
    return type != NULL && type->type == TERN_JSON_STRING && type->text.size >= n &&
           memcmp(type->text.data + type->text.size - n, kind, n) == 0;
}

/* The folder of a module, which must be a bare name beside modules.json. */
static tern_status module_folder(const char *list, const tern_json_value *module,
                                 char out[MODULE_BYTES], tern_error *err) {
    const tern_json_value *name = tern_json_get(module, "path");
    if (name == NULL || name->type != TERN_JSON_STRING || name->text.size == 0 ||
        name->text.size >= MODULE_BYTES || name->text.data[0] == '.' ||
        memchr(name->text.data, '/', name->text.size) != NULL ||
        memchr(name->text.data, 0, name->text.size) != NULL)
        return tern_fail(err, TERN_ERR_JSON,
                         "%s: \"path\" of the pooling is not a folder beside it", list);
    memcpy(out, name->text.data, name->text.size);
    out[name->text.size] = '\0';
    return TERN_OK;
}

/* Writes the path of the pooling's description; "": no module pools. */
static tern_status find_module(const char *path, const tern_json_value *root,
                               char out[MODULE_BYTES], tern_error *err) {
    tern_status status = TERN_OK;
    if (root->type != TERN_JSON_ARRAY)
        return tern_fail(err, TERN_ERR_JSON, "%s: is not a list of modules", path);
    for (size_t i = 1; status == TERN_OK && i < root->size; i += root[i].size) {
        const tern_json_value *type = tern_json_get(&root[i], "type");
        if (is_kind(type, ".Pooling") && out[0] == '\0')
            status = module_folder(path, &root[i], out, err);
        else if (!is_kind(type, ".Transformer") && !is_kind(type, ".Normalize"))
            status = tern_fail(
                err, TERN_ERR_CONFIG,
                "%s: module %.*s is not supported: a Transformer, one Pooling and Normalize are",
                path, type != NULL && type->text.size < 80 ? (int)type->text.size : 1,
                type != NULL && type->text.size > 0 ? type->text.data : "?");
    }
    return status;
}

static tern_status read_modules(const char *path, char module[MODULE_BYTES], tern_error *err) {
    tern_json json = {.bytes = NULL};
    tern_status status = tern_json_read(path, CONFIG_BYTES, &json, err);
    if (status == TERN_OK)
        status = find_module(path, json.values, module, err);
    tern_json_free(&json);
    return status;
}

tern_status hf_pooling_read(const char *folder, tern_pooling *out, tern_error *err) {
    char modules[PATH_BYTES], usual[PATH_BYTES], module[MODULE_BYTES] = "";
    *out = TERN_POOLING_NONE;
    tern_status status = join(folder, "modules.json", modules, err);
    if (status == TERN_OK)
        status = join(folder, "1_Pooling/config.json", usual, err);
    if (status == TERN_OK && access(modules, F_OK) == 0)
        status = read_modules(modules, module, err);
    else if (status == TERN_OK && access(usual, F_OK) == 0)
        (void)snprintf(module, sizeof module, "%s", usual_folder);
    return status == TERN_OK && module[0] != '\0' ? read_config(folder, module, out, err) : status;
}
