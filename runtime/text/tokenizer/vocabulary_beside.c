/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the files beside a tokenizer.json: special tokens by their meaning, and what
 * ends a text. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/text/tokenizer/vocabulary_json.h"

enum { MAX_CONFIG_BYTES = 16 << 20 };

/* ---- tokens by their text ---------------------------------------------------------------------
 */

/* Reads a token as configurations write it: its text, an object with its "content", or its id. */
static void read_role(const tern_vocabulary *v, const tern_json_value *x, int32_t *id) {
    const tern_json_value *content = tern_json_get(x, "content");
    int64_t number;
    int32_t found = TERN_TOKEN_NONE;
    if (content != NULL)
        x = content;
    if (x != NULL && x->type == TERN_JSON_STRING)
        found = tern_json_find_token(v, x->text);
    else if (tern_json_integer(x, &number) && number >= 0 && (size_t)number < v->n_tokens)
        found = (int32_t)number;
    if (found >= 0)
        *id = found;
}

void tern_json_read_roles(tern_vocabulary *v, const tern_json_value *object) {
    read_role(v, tern_json_get(object, "bos_token"), &v->bos);
    read_role(v, tern_json_get(object, "eos_token"), &v->eos);
    read_role(v, tern_json_get(object, "unk_token"), &v->unknown);
    read_role(v, tern_json_get(object, "pad_token"), &v->padding);
}

void tern_json_guess_end(tern_vocabulary *v) {
    static const char *const texts[] = {"</s>", "<|end_of_text|>", "<|endoftext|>", "<eos>"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts && v->eos < 0; i++) {
        const int32_t id = tern_json_find_token(v, (tern_span){texts[i], strlen(texts[i])});
        if (id >= 0 && v->types[id] == TERN_TOKEN_CONTROL)
            v->eos = id;
    }
}

/* ---- files ------------------------------------------------------------------------------------
 */

char *tern_json_beside(const char *path, const char *name) {
    const char *slash = strrchr(path, '/');
    const size_t folder = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    char *out = malloc(folder + strlen(name) + 1);
    if (out == NULL)
        return NULL;
    memcpy(out, path, folder);
    memcpy(out + folder, name, strlen(name) + 1);
    return out;
}

/* Parses a file beside `path`; *json stays empty when there is none. */
static tern_status read_file(const tern_vocabulary *v, const char *path, const char *name,
                             tern_json *json, tern_error *err) {
    char *file = tern_json_beside(path, name);
    if (file == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for a path", v->file);
    tern_status status = TERN_OK;
    if (access(file, F_OK) == 0)
        status = tern_json_read(file, MAX_CONFIG_BYTES, json, err);
    free(file);
    return status;
}

static tern_status read_tokenizer_config(tern_vocabulary *v, const char *path, tern_error *err) {
    const tern_status status = read_file(v, path, "tokenizer_config.json", &v->config, err);
    const tern_json_value *config = v->config.values;
    if (status != TERN_OK || config == NULL)
        return status;
    const int32_t begins = v->bos, ends = v->eos;
    tern_json_read_roles(v, config);
    if (v->add_bos) /* the post-processor has decided what is added, and which */
        v->bos = begins;
    if (v->add_eos)
        v->eos = ends;
    v->add_bos |= v->bos >= 0 && tern_json_is_true(tern_json_get(config, "add_bos_token"));
    v->add_eos |= v->eos >= 0 && tern_json_is_true(tern_json_get(config, "add_eos_token"));
    tern_json_read_templates(v, tern_json_get(config, "chat_template"));
    return TERN_OK;
}

static void add_end(tern_vocabulary *v, const tern_json_value *x) {
    int64_t id;
    if (v->n_ends < TERN_TOKENIZER_MAX_ENDS && tern_json_integer(x, &id) && id >= 0 &&
        (size_t)id < v->n_tokens && v->tokens[id].size > 0)
        v->ends[v->n_ends++] = (int32_t)id;
}

static tern_status read_generation_config(tern_vocabulary *v, const char *path, tern_error *err) {
    tern_json json = {NULL, NULL};
    const tern_status status = read_file(v, path, "generation_config.json", &json, err);
    if (status != TERN_OK || json.values == NULL)
        return status;
    const tern_json_value *ends = tern_json_get(json.values, "eos_token_id");
    if (ends != NULL && ends->type == TERN_JSON_ARRAY)
        for (uint32_t i = 0; i < ends->count && ends->size == ends->count + 1; i++)
            add_end(v, ends + 1 + i);
    else
        add_end(v, ends);
    tern_json_free(&json);
    return TERN_OK;
}

/* Refuses GPT-2's old pair of files: its vocabulary alone looks like one without merges. */
static tern_status refuse_merges_beside(const tern_vocabulary *v, const char *path,
                                        tern_error *err) {
    char *file = tern_json_beside(path, "merges.txt");
    if (file == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for a path", v->file);
    const bool there = v->kind == TERN_VOCABULARY_GREEDY && access(file, F_OK) == 0;
    free(file);
    return there ? tern_fail(err, TERN_ERR_TOKENIZER_MODEL,
                             "%s: merges.txt lies beside it, so the longest match would be wrong; "
                             "use the tokenizer.json",
                             v->file)
                 : TERN_OK;
}

tern_status tern_json_read_beside(tern_vocabulary *v, const char *path, tern_error *err) {
    tern_status status = refuse_merges_beside(v, path, err);
    if (status == TERN_OK)
        status = read_tokenizer_config(v, path, err);
    if (status == TERN_OK)
        status = tern_json_read_template_files(v, path, err);
    return status == TERN_OK ? read_generation_config(v, path, err) : status;
}
