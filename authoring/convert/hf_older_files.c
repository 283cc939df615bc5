/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/hf_older_files.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/word_list.h"
#include "runtime/text/tokenizer/index.h"
#include "runtime/text/tokenizer/vocabulary_json.h"

enum { MAX_FILE_BYTES = 16 << 20 };

/* ---- values ---------------------------------------------------------------------------------- */

/* The text of a token: a string, or an object with its content. */
static tern_span text_of(const tern_json_value *x) {
    const tern_json_value *content = tern_json_get(x, "content");
    x = content != NULL ? content : x;
    return x != NULL && x->type == TERN_JSON_STRING ? x->text : (tern_span){"", 0};
}

static const tern_json_value *setting(const hf_older_files *f, const char *name) {
    return tern_json_get(f->config.values, name);
}

bool hf_older_flag(const hf_older_files *f, const char *name, bool otherwise) {
    const tern_json_value *x = setting(f, name);
    return x != NULL ? tern_json_is_true(x) : otherwise;
}

tern_span hf_older_class(const hf_older_files *f) {
    const tern_span name = text_of(setting(f, "tokenizer_class"));
    return name.size > 0 ? name : text_of(tern_json_get(f->model.values, "model_type"));
}

bool hf_older_is_class(const hf_older_files *f, const char *names) {
    const tern_span name = hf_older_class(f);
    char word[WORD_BYTES];
    while (word_next(&names, word))
        if (tern_spans_equal((tern_span){word, strlen(word)}, name))
            return true;
    return false;
}

tern_status hf_older_refuse_class(const hf_older_files *f, const char *path, tern_error *err) {
    return tern_fail(err, TERN_ERR_TOKENIZER_MODEL,
                     "%s: how the class '%.*s' cuts a text is not known; "
                     "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER) of "
                     "transformers makes a tokenizer.json, which says it",
                     path, TERN_SHOWN(hf_older_class(f)));
}

tern_span hf_older_role(const hf_older_files *f, const char *name) {
    const tern_span own = text_of(setting(f, name));
    return own.size > 0 ? own : text_of(tern_json_get(f->map.values, name));
}

tern_span hf_older_role_or(const hf_older_files *f, hf_older_default d) {
    const tern_span said = hf_older_role(f, d.role);
    return said.size > 0 ? said : (tern_span){d.content, strlen(d.content)};
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static bool is_same(const hf_older_token *a, const hf_older_token *b) {
    return (a->id >= 0 && a->id == b->id) || tern_spans_equal(a->content, b->content);
}

tern_status hf_older_add(hf_older_files *f, hf_older_token token, tern_error *err) {
    for (size_t i = 0; i < f->n; i++) {
        if (!is_same(&f->tokens[i], &token))
            continue;
        f->tokens[i].special = f->tokens[i].special || token.special;
        return TERN_OK;
    }
    if (f->n == HF_OLDER_MAX_ADDED)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA,
                         "the tokenizer has more than %d added tokens", (int)HF_OLDER_MAX_ADDED);
    if (!tern_grow((void **)&f->tokens, &f->capacity, f->n, sizeof token, HF_OLDER_MAX_ADDED))
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for added tokens");
    f->tokens[f->n++] = token;
    return TERN_OK;
}

/* Adds a token that a file describes, if it has a text. */
static tern_status add_described(hf_older_files *f, int64_t id, const tern_json_value *x,
                                 bool special, tern_error *err) {
    const hf_older_token token = {
        .id = id,
        .content = text_of(x),
        .special = special || tern_json_is_true(tern_json_get(x, "special")),
        .lstrip = tern_json_is_true(tern_json_get(x, "lstrip")),
        .rstrip = tern_json_is_true(tern_json_get(x, "rstrip")),
        .single_word = tern_json_is_true(tern_json_get(x, "single_word"))};
    return token.content.size > 0 ? hf_older_add(f, token, err) : TERN_OK;
}

static bool is_id(int64_t id) {
    return id >= 0 && id < TERN_TOKENIZER_MAX_TOKENS;
}

/* The number that a key is written as; -1: it is not an id. */
static int64_t id_of(tern_span key) {
    int64_t id = 0;
    for (size_t i = 0; i < key.size && is_id(id); i++)
        id = key.data[i] >= '0' && key.data[i] <= '9' ? 10 * id + (key.data[i] - '0') : -1;
    return key.size > 0 && is_id(id) ? id : -1;
}

/* {"ID": {"content": ...}}, of tokenizer_config.json. */
static tern_status add_decoder(hf_older_files *f, tern_error *err) {
    const tern_json_value *list = setting(f, "added_tokens_decoder");
    if (list == NULL || list->type != TERN_JSON_OBJECT)
        return TERN_OK;
    tern_status status = TERN_OK;
    const tern_json_value *key = list + 1;
    for (uint32_t i = 0; status == TERN_OK && i < list->count; i++, key += 1 + (key + 1)->size)
        if (id_of(key->text) >= 0)
            status = add_described(f, id_of(key->text), key + 1, false, err);
    return status;
}

/* {"TEXT": ID}, of added_tokens.json. */
static tern_status add_plain(hf_older_files *f, tern_error *err) {
    const tern_json_value *list = f->added.values;
    if (list == NULL || list->type != TERN_JSON_OBJECT)
        return TERN_OK;
    tern_status status = TERN_OK;
    const tern_json_value *key = list + 1;
    for (uint32_t i = 0; status == TERN_OK && i < list->count; i++, key += 1 + (key + 1)->size) {
        int64_t id;
        if (key->text.size > 0 && tern_json_integer(key + 1, &id) && is_id(id))
            status = hf_older_add(f, (hf_older_token){.id = id, .content = key->text}, err);
    }
    return status;
}

static tern_status add_list(hf_older_files *f, const tern_json_value *list, tern_error *err) {
    if (list == NULL || list->type != TERN_JSON_ARRAY)
        return TERN_OK;
    tern_status status = TERN_OK;
    const tern_json_value *x = list + 1;
    for (uint32_t i = 0; status == TERN_OK && i < list->count; i++, x += x->size)
        status = add_described(f, TERN_TOKEN_NONE, x, true, err);
    return status;
}

/* Adds the tokens that a file names by what they are for. */
static tern_status add_roles(hf_older_files *f, const tern_json_value *file, tern_error *err) {
    static const char *const roles[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                        "pad_token", "cls_token", "mask_token"};
    static const char *const lists[] = {"additional_special_tokens", "extra_special_tokens"};
    tern_status status = TERN_OK;
    for (size_t i = 0; status == TERN_OK && i < sizeof roles / sizeof *roles; i++)
        status = add_described(f, TERN_TOKEN_NONE, tern_json_get(file, roles[i]), true, err);
    for (size_t i = 0; status == TERN_OK && i < sizeof lists / sizeof *lists; i++)
        status = add_list(f, tern_json_get(file, lists[i]), err);
    return status;
}

tern_status hf_older_add_defaults(hf_older_files *f, const hf_older_default *list, size_t n,
                                  tern_error *err) {
    tern_status status = TERN_OK;
    for (size_t i = 0; status == TERN_OK && i < n; i++)
        status = hf_older_add(f,
                              (hf_older_token){.id = TERN_TOKEN_NONE,
                                               .content = hf_older_role_or(f, list[i]),
                                               .special = true},
                              err);
    return status;
}

void hf_older_find_ids(hf_older_files *f, hf_older_find *find, const void *user, size_t n_model) {
    int64_t next = (int64_t)n_model;
    for (size_t i = 0; i < f->n; i++) {
        hf_older_token *t = &f->tokens[i];
        t->id = t->id >= 0 ? t->id : find(user, t->content);
        next = t->id >= next ? t->id + 1 : next;
    }
    for (size_t i = 0; i < f->n; i++)
        if (f->tokens[i].id < 0)
            f->tokens[i].id = next++;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Parses a file, if there is one. */
static tern_status read_file(const char *path, const char *name, tern_json *json, tern_error *err) {
    char *file = tern_json_beside(path, name);
    if (file == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for a path", path);
    const tern_status status =
        access(file, F_OK) == 0 ? tern_json_read(file, MAX_FILE_BYTES, json, err) : TERN_OK;
    free(file);
    return status;
}

static tern_status read_all(const char *path, hf_older_files *f, tern_error *err) {
    tern_status status = read_file(path, "tokenizer_config.json", &f->config, err);
    if (status == TERN_OK)
        status = read_file(path, "special_tokens_map.json", &f->map, err);
    if (status == TERN_OK)
        status = read_file(path, "added_tokens.json", &f->added, err);
    if (status == TERN_OK)
        status = read_file(path, "config.json", &f->model, err);
    if (status == TERN_OK)
        status = add_decoder(f, err);
    if (status == TERN_OK)
        status = add_plain(f, err);
    if (status == TERN_OK)
        status = add_roles(f, f->config.values, err);
    return status == TERN_OK ? add_roles(f, f->map.values, err) : status;
}

tern_status hf_older_files_open(const char *path, hf_older_files *out, tern_error *err) {
    hf_older_files f = {.n = 0};
    const tern_status status = read_all(path, &f, err);
    if (status != TERN_OK) {
        hf_older_files_close(&f);
        return status;
    }
    *out = f;
    return TERN_OK;
}

void hf_older_files_close(hf_older_files *f) {
    tern_json_free(&f->config);
    tern_json_free(&f->map);
    tern_json_free(&f->added);
    tern_json_free(&f->model);
    free(f->tokens);
    f->tokens = NULL;
    f->n = f->capacity = 0;
}

/* ---- parts of a tokenizer.json --------------------------------------------------------------- */

static void put_flag(text *out, const char *name, bool value) {
    text_name(out, name);
    text_print(out, value ? "true" : "false");
}

void hf_older_put_added(const hf_older_files *f, text *out) {
    text_name(out, "added_tokens");
    text_add(out, "[", 1);
    for (size_t i = 0; i < f->n; i++) {
        const hf_older_token *t = &f->tokens[i];
        text_print(out, "%s{\"id\":%lld", i > 0 ? "," : "", (long long)t->id);
        text_name(out, "content");
        text_quote(out, t->content.data, t->content.size);
        put_flag(out, "single_word", t->single_word);
        put_flag(out, "lstrip", t->lstrip);
        put_flag(out, "rstrip", t->rstrip);
        put_flag(out, "normalized", t->normalized);
        put_flag(out, "special", t->special);
        text_add(out, "}", 1);
    }
    text_add(out, "]", 1);
}

/* The token of that text; NULL: none. */
static const hf_older_token *find_token(const hf_older_files *f, tern_span content) {
    for (size_t i = 0; i < f->n && content.size > 0; i++)
        if (tern_spans_equal(f->tokens[i].content, content))
            return &f->tokens[i];
    return NULL;
}

static void put_end(text *out, const hf_older_token *t, const char *before, const char *after) {
    if (t == NULL)
        return;
    text_print(out, "%s{\"SpecialToken\":{\"id\":", before);
    text_quote(out, t->content.data, t->content.size);
    text_print(out, ",\"type_id\":0}}%s", after);
}

static void put_ids(text *out, const hf_older_token *t) {
    if (t == NULL)
        return;
    text_print(out, "%s", out->bytes != NULL && out->bytes[out->size - 1] == '{' ? "" : ",");
    text_quote(out, t->content.data, t->content.size);
    text_print(out, ":{\"id\":");
    text_quote(out, t->content.data, t->content.size);
    text_print(out, ",\"ids\":[%lld],\"tokens\":[", (long long)t->id);
    text_quote(out, t->content.data, t->content.size);
    text_print(out, "]}");
}

void hf_older_put_ends(const hf_older_files *f, tern_span first, tern_span last, text *out) {
    const hf_older_token *begin = find_token(f, first), *end = find_token(f, last);
    if (begin == NULL && end == NULL)
        return;
    text_name(out, "post_processor");
    text_print(out, "{\"type\":\"TemplateProcessing\",\"single\":[");
    put_end(out, begin, "", ",");
    text_print(out, "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}");
    put_end(out, end, ",", "");
    text_print(out, "],\"pair\":[],\"special_tokens\":{");
    put_ids(out, begin);
    if (end != begin)
        put_ids(out, end);
    text_print(out, "}}");
}
