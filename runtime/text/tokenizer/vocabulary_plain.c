/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plain JSON vocabulary: {"text": id, ...}, or {"vocab": {...}, "special_tokens": ...}. It says
 * nothing about how text becomes tokens, so the longest one that fits is taken.
 */

#include <stdlib.h>
#include <string.h>

#include "runtime/text/tokenizer/index.h"
#include "runtime/text/tokenizer/vocabulary_json.h"

static tern_span literal(const char *text) {
    return (tern_span){text, strlen(text)};
}

/* ---- special tokens ---------------------------------------------------------------------------
 */

static bool is_one_of(tern_span text, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (tern_spans_equal(text, literal(list[i])))
            return true;
    return false;
}

#define IS_ONE_OF(text, list) is_one_of(text, list, sizeof(list) / sizeof *(list))

static const char *const begin_texts[] = {"<s>", "<bos>", "<|begin_of_text|>", "[CLS]"};
static const char *const end_texts[] = {"</s>", "<eos>", "<|end_of_text|>", "[SEP]"};
static const char *const unknown_texts[] = {"<unk>", "[UNK]"};
static const char *const other_texts[] = {"<pad>", "[PAD]", "<mask>", "[MASK]"};

/* True if a text looks like a special token. Used where the file names none. */
static bool looks_special(tern_span text) {
    const bool bars = text.size > 4 && memcmp(text.data, "<|", 2) == 0 &&
                      memcmp(text.data + text.size - 2, "|>", 2) == 0;
    return bars || IS_ONE_OF(text, begin_texts) || IS_ONE_OF(text, end_texts) ||
           IS_ONE_OF(text, unknown_texts) || IS_ONE_OF(text, other_texts);
}

/* True for the name of a role. A member of special_tokens is either a role, or a token and its
 * id. */
static bool is_role(tern_span name) {
    static const char *const roles[] = {"bos_token", "eos_token", "unk_token", "pad_token"};
    return IS_ONE_OF(name, roles);
}

static tern_status mark(tern_vocabulary *v, int32_t id, tern_span text, tern_error *err) {
    if (id < 0)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA,
                         "%s: special token '%.*s' is not in the vocabulary", v->file,
                         TERN_SHOWN(text));
    v->types[id] = TERN_TOKEN_CONTROL;
    return TERN_OK;
}

/* The text that one entry of special_tokens is about. */
static tern_span special_text(const tern_json_value *key, const tern_json_value *x) {
    const tern_json_value *content = tern_json_get(x, "content");
    if (content != NULL)
        x = content;
    return x->type == TERN_JSON_STRING ? x->text : key->text;
}

static tern_status mark_listed(tern_vocabulary *v, const tern_json_value *list, tern_error *err) {
    const bool object = list->type == TERN_JSON_OBJECT;
    if (!object && list->type != TERN_JSON_ARRAY)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: special_tokens is neither list nor map",
                         v->file);
    const tern_json_value *at = list + 1;
    for (uint32_t i = 0; i < list->count; i++, at += at->size) {
        const tern_json_value *key = at;
        at += object ? 1 : 0;
        int64_t id = TERN_TOKEN_NONE;
        const tern_span text = special_text(key, at);
        const bool numbered = tern_json_integer(at, &id);
        if (numbered && (id < 0 || (size_t)id >= v->n_tokens ||
                         !(is_role(key->text) || tern_spans_equal(v->tokens[id], key->text))))
            id = TERN_TOKEN_NONE;
        if (!numbered)
            id = tern_json_find_token(v, text);
        const tern_status status = mark(v, (int32_t)id, text, err);
        if (status != TERN_OK)
            return status;
    }
    tern_json_read_roles(v, list);
    return TERN_OK;
}

static void take_role(int32_t *role, bool fits, size_t id) {
    if (*role < 0 && fits)
        *role = (int32_t)id;
}

/* Marks tokens that look special unless the file lists them, and finds the roles of special
 * ones. */
static void mark_by_look(tern_vocabulary *v, bool listed) {
    for (size_t i = 0; i < v->n_tokens; i++) {
        if (!listed && looks_special(v->tokens[i]))
            v->types[i] = TERN_TOKEN_CONTROL;
        if (v->types[i] != TERN_TOKEN_CONTROL)
            continue;
        take_role(&v->bos, IS_ONE_OF(v->tokens[i], begin_texts), i);
        take_role(&v->eos, IS_ONE_OF(v->tokens[i], end_texts), i);
        take_role(&v->unknown, IS_ONE_OF(v->tokens[i], unknown_texts), i);
    }
    if (v->unknown >= 0)
        v->types[v->unknown] = TERN_TOKEN_UNKNOWN;
    v->add_bos = v->bos >= 0;
}

static tern_status list_added(tern_vocabulary *v, tern_error *err) {
    size_t n = 0;
    for (size_t i = 0; i < v->n_tokens; i++)
        n += v->types[i] == TERN_TOKEN_CONTROL || v->types[i] == TERN_TOKEN_UNKNOWN;
    v->added = malloc((n + 1) * sizeof *v->added);
    if (v->added == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for the vocabulary", v->file);
    for (size_t i = 0; i < v->n_tokens; i++)
        if (v->types[i] == TERN_TOKEN_CONTROL || v->types[i] == TERN_TOKEN_UNKNOWN)
            v->added[v->n_added++] = (tern_added_token){.id = (int32_t)i, .special = true};
    return TERN_OK;
}

/* ---- spaces -----------------------------------------------------------------------------------
 */

static const char visible_space[] = "\xE2\x96\x81", byte_space[] = "\xC4\xA0";

static size_t count_with(const tern_vocabulary *v, const char *mark_text) {
    size_t n = 0;
    for (size_t i = 0; i < v->n_tokens; i++)
        n += memmem(v->tokens[i].data, v->tokens[i].size, mark_text, strlen(mark_text)) != NULL;
    return n;
}

/* Sets the steps: how tokens write a space tells how they write text. */
static void set_steps(tern_vocabulary *v) {
    const size_t visible = count_with(v, visible_space), bytes = count_with(v, byte_space);
    if (bytes > visible) {
        v->decodes_bytes = true;
        v->steps[v->n_steps++] = (tern_step){.kind = TERN_STEP_BYTES};
    } else if (visible > 0) {
        v->decodes_spaces = v->drops_space = v->add_space_prefix = true;
        v->steps[v->n_steps++] = (tern_step){.kind = TERN_STEP_REPLACE,
                                             .pattern = literal(" "),
                                             .literal = true,
                                             .content = literal(visible_space)};
        v->steps[v->n_steps++] = (tern_step){.kind = TERN_STEP_PREPEND,
                                             .where = TERN_PREPEND_ALWAYS,
                                             .content = literal(visible_space)};
    }
    for (size_t i = 0; i < v->n_tokens; i++) {
        if (v->types[i] == TERN_TOKEN_NORMAL && v->tokens[i].size == 6 &&
            memcmp(v->tokens[i].data, "<0x", 3) == 0 && v->tokens[i].data[5] == '>') {
            v->types[i] = TERN_TOKEN_BYTE;
            v->byte_fallback = true;
        }
    }
}

/* ---- the whole --------------------------------------------------------------------------------
 */

tern_status tern_json_read_plain(tern_vocabulary *v, tern_error *err) {
    const tern_json_value *root = v->json.values;
    const tern_json_value *vocab = tern_json_get(root, "vocab");
    const bool wrapped = vocab != NULL && vocab->type == TERN_JSON_OBJECT;
    const tern_json_value *listed = wrapped ? tern_json_get(root, "special_tokens") : NULL;
    int64_t max_id;
    if (wrapped && (tern_json_get(root, "merges") != NULL || tern_json_get(root, "scores") != NULL))
        return tern_fail(err, TERN_ERR_TOKENIZER_MODEL,
                         "%s: a plain vocabulary with merges or scores does not say how to split "
                         "text; use a tokenizer.json or a GGUF file",
                         v->file);
    v->kind = TERN_VOCABULARY_GREEDY;
    v->leftmost_added = true;
    vocab = wrapped ? vocab : root;
    tern_status status = tern_json_max_id(v, vocab, &max_id, err);
    if (status == TERN_OK)
        status = tern_json_vocabulary(v, vocab, 0, max_id, err);
    if (status == TERN_OK && listed != NULL)
        status = mark_listed(v, listed, err);
    if (status != TERN_OK)
        return status;
    mark_by_look(v, listed != NULL);
    set_steps(v);
    return list_added(v, err);
}
