/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/tokenizer/vocabulary_json.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/text/tokenizer/index.h"
#include "runtime/text/tokenizer/pre.h"

enum { MAX_FILE_BYTES = 256 << 20, MAX_ADDED = 1 << 20 };

static tern_status no_memory(const tern_vocabulary *v, tern_error *err) {
    return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for the vocabulary", v->file);
}

int32_t tern_json_find_token(const tern_vocabulary *v, tern_span text) {
    for (size_t i = 0; i < v->n_tokens && text.size > 0; i++)
        if (tern_spans_equal(v->tokens[i], text))
            return (int32_t)i;
    return TERN_TOKEN_NONE;
}

/* ---- the model --------------------------------------------------------------------------------
 */

tern_status tern_json_max_id(const tern_vocabulary *v, const tern_json_value *vocab,
                             int64_t *max_id, tern_error *err) {
    *max_id = -1;
    const tern_json_value *key = vocab + 1;
    for (uint32_t i = 0; i < vocab->count; i++, key += 2) {
        int64_t id;
        if (!tern_json_integer(key + 1, &id) || id < 0 || id >= TERN_TOKENIZER_MAX_TOKENS)
            return tern_fail(err, TERN_ERR_TOKENIZER_DATA,
                             "%s: token '%.*s' has no id from 0 to %d", v->file,
                             TERN_SHOWN(key->text), TERN_TOKENIZER_MAX_TOKENS - 1);
        *max_id = id > *max_id ? id : *max_id;
    }
    return TERN_OK;
}

tern_status tern_json_vocabulary(tern_vocabulary *v, const tern_json_value *vocab, size_t entries,
                                 int64_t max_id, tern_error *err) {
    const size_t known = vocab->count + entries;
    v->n_tokens = (size_t)max_id + 1;
    if (known == 0)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: the vocabulary is empty", v->file);
    if (v->n_tokens / 2 > known + 1024) /* a short file must not claim ids that would take all
                                           memory */
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: ids up to %lld for %zu tokens", v->file,
                         (long long)max_id, known);
    v->tokens = calloc(v->n_tokens, sizeof *v->tokens);
    v->types = malloc(v->n_tokens);
    if (v->tokens == NULL || v->types == NULL)
        return no_memory(v, err);
    memset(v->types, TERN_TOKEN_UNUSED, v->n_tokens);
    for (size_t i = 0; i < v->n_tokens; i++)
        v->tokens[i].data = "";
    const tern_json_value *key = vocab + 1;
    for (uint32_t i = 0; i < vocab->count; i++, key += 2) {
        int64_t id = 0;
        (void)tern_json_integer(key + 1, &id); /* tern_json_max_id has checked that it is one */
        if (v->types[id] != TERN_TOKEN_UNUSED)
            return tern_fail(err, TERN_ERR_TOKENIZER_DATA,
                             "%s: '%.*s' and '%.*s' have one id, %lld", v->file,
                             TERN_SHOWN(v->tokens[id]), TERN_SHOWN(key->text), (long long)id);
        v->tokens[id] = key->text;
        v->types[id] = TERN_TOKEN_NORMAL;
    }
    return TERN_OK;
}

static const tern_json_value *find_model(const tern_vocabulary *v) {
    return tern_json_get(v->json.values, "model");
}

static bool is_empty_text(const tern_json_value *x) {
    return x == NULL || (x->type == TERN_JSON_STRING && x->text.size == 0);
}

/* 0, 0.0, ... */
static bool is_zero(const tern_json_value *x) {
    bool zero = x->type == TERN_JSON_NUMBER;
    for (size_t i = 0; i < x->text.size; i++)
        zero &= x->text.data[i] == '0' || x->text.data[i] == '.';
    return zero;
}

static tern_status refuse_model(const tern_vocabulary *v, const char *what, tern_error *err) {
    return tern_fail(err, TERN_ERR_TOKENIZER_MODEL, "%s: %s", v->file, what);
}

/* Reads the kind of the model. Old files without a type are BPE. */
static tern_status read_kind(tern_vocabulary *v, const tern_json_value *model, tern_error *err) {
    const tern_json_value *type = tern_json_get(model, "type");
    v->kind = TERN_VOCABULARY_TEXT_BPE;
    if (tern_json_is_string(type, "Unigram"))
        v->kind = TERN_VOCABULARY_UNIGRAM;
    else if (tern_json_is_string(type, "WordPiece"))
        v->kind = TERN_VOCABULARY_WORDPIECE;
    else if (type != NULL && !tern_json_is_string(type, "BPE"))
        return tern_fail(
            err, TERN_ERR_TOKENIZER_MODEL,
            "%s: tokenizer model '%.*s' is not supported (BPE, Unigram and WordPiece are)", v->file,
            TERN_SHOWN(type->text));
    return TERN_OK;
}

static tern_status check_bpe(const tern_vocabulary *v, const tern_json_value *model,
                             tern_error *err) {
    const tern_json_value *dropout = tern_json_get(model, "dropout");
    if (dropout != NULL && !is_zero(dropout))
        return refuse_model(v, "dropout, which makes tokens a matter of luck, is not supported",
                            err);
    if (!is_empty_text(tern_json_get(model, "continuing_subword_prefix")))
        return refuse_model(v, "continuing_subword_prefix is not supported", err);
    if (!is_empty_text(tern_json_get(model, "end_of_word_suffix")))
        return refuse_model(v, "end_of_word_suffix is not supported", err);
    return TERN_OK;
}

/* Reads "left right", or ["left", "right"]; false when it is neither. *skip: the line is a
 * comment. */
static bool read_merge(const tern_json_value *x, tern_merge *out, bool *skip) {
    static const char comment[] = "#version";
    *skip = false;
    if (x->type == TERN_JSON_ARRAY && x->count == 2 && x[1].type == TERN_JSON_STRING &&
        x[2].type == TERN_JSON_STRING) {
        *out = (tern_merge){x[1].text, x[2].text};
        return true;
    }
    if (x->type != TERN_JSON_STRING)
        return false;
    const tern_span text = x->text;
    *skip = text.size >= sizeof comment - 1 && memcmp(text.data, comment, sizeof comment - 1) == 0;
    const char *space = text.size > 0 ? memchr(text.data, ' ', text.size) : NULL;
    if (space == NULL)
        return *skip;
    const size_t left = (size_t)(space - text.data), right = text.size - left - 1;
    *out = (tern_merge){{text.data, left}, {space + 1, right}};
    return *skip || memchr(space + 1, ' ', right) == NULL;
}

static tern_status read_merges(tern_vocabulary *v, const tern_json_value *merges, tern_error *err) {
    if (merges == NULL || merges->type != TERN_JSON_ARRAY)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: the model has no list of merges",
                         v->file);
    v->merges = malloc((merges->count + 1) * sizeof *v->merges);
    if (v->merges == NULL)
        return no_memory(v, err);
    const tern_json_value *x = merges + 1;
    for (uint32_t i = 0; i < merges->count; i++, x += x->size) {
        bool skip;
        tern_merge *m = &v->merges[v->n_merges];
        if (!read_merge(x, m, &skip) || (!skip && (m->left.size == 0 || m->right.size == 0)))
            return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: merge %u is not a pair", v->file,
                             i);
        v->n_merges += !skip;
    }
    return TERN_OK;
}

/* ---- added tokens -----------------------------------------------------------------------------
 */

static tern_status read_added_token(const tern_vocabulary *v, const tern_json_value *x, uint32_t i,
                                    tern_added_token *out, tern_span *text, tern_error *err) {
    const tern_json_value *content = tern_json_get(x, "content");
    const tern_json_value *normalized = tern_json_get(x, "normalized");
    int64_t id;
    if (content == NULL || content->type != TERN_JSON_STRING ||
        !tern_json_integer(tern_json_get(x, "id"), &id) || id < 0 ||
        id >= TERN_TOKENIZER_MAX_TOKENS)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA,
                         "%s: added token %u has no content or no id from 0 to %d", v->file, i,
                         TERN_TOKENIZER_MAX_TOKENS - 1);
    out->id = (int32_t)id;
    out->special = tern_json_is_true(tern_json_get(x, "special"));
    out->single_word = tern_json_is_true(tern_json_get(x, "single_word"));
    out->lstrip = tern_json_is_true(tern_json_get(x, "lstrip"));
    out->rstrip = tern_json_is_true(tern_json_get(x, "rstrip"));
    out->normalized = normalized != NULL ? tern_json_is_true(normalized) : !out->special;
    *text = content->text;
    return TERN_OK;
}

/* Reads the ids first, so that the vocabulary has room for them. */
static tern_status scan_added(tern_vocabulary *v, const tern_json_value *list, int64_t *max_id,
                              tern_error *err) {
    if (list == NULL)
        return TERN_OK;
    if (list->type != TERN_JSON_ARRAY || list->count > MAX_ADDED)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA,
                         "%s: added_tokens is not a list of at most %d", v->file, MAX_ADDED);
    v->added = malloc((list->count + 1) * sizeof *v->added);
    if (v->added == NULL)
        return no_memory(v, err);
    const tern_json_value *x = list + 1;
    for (uint32_t i = 0; i < list->count; i++, x += x->size) {
        tern_span text;
        const tern_status status = read_added_token(v, x, i, &v->added[i], &text, err);
        if (status != TERN_OK)
            return status;
        if (v->added[i].id > *max_id)
            *max_id = v->added[i].id;
    }
    v->n_added = list->count;
    return TERN_OK;
}

/* Puts added tokens in place. One that the model has too keeps its place; the others are outside of
 * the model. */
static tern_status place_added(tern_vocabulary *v, const tern_json_value *list, tern_error *err) {
    v->outside = calloc(v->n_tokens, sizeof *v->outside);
    if (v->outside == NULL)
        return no_memory(v, err);
    const tern_json_value *x = list != NULL ? list + 1 : NULL;
    for (size_t i = 0; i < v->n_added; i++, x += x->size) {
        const tern_added_token *token = &v->added[i];
        const tern_span text = tern_json_get(x, "content")->text;
        uint8_t *type = &v->types[token->id];
        if (*type == TERN_TOKEN_UNUSED) {
            v->tokens[token->id] = text;
            v->outside[token->id] = true;
        } else if (!tern_spans_equal(v->tokens[token->id], text)) {
            return tern_fail(err, TERN_ERR_TOKENIZER_DATA,
                             "%s: id %d is '%.*s' and the added token '%.*s'", v->file, token->id,
                             TERN_SHOWN(v->tokens[token->id]), TERN_SHOWN(text));
        }
        *type = token->special ? TERN_TOKEN_CONTROL : TERN_TOKEN_USER_DEFINED;
    }
    return TERN_OK;
}

/* ---- tokenizer.json ---------------------------------------------------------------------------
 */

static tern_status read_bpe(tern_vocabulary *v, const tern_json_value *model, tern_error *err) {
    const tern_json_value *unknown = tern_json_get(model, "unk_token");
    if (unknown != NULL && unknown->type == TERN_JSON_STRING)
        v->unknown = tern_json_find_token(v, unknown->text);
    v->byte_fallback = tern_json_is_true(tern_json_get(model, "byte_fallback"));
    v->fuse_unknown = tern_json_is_true(tern_json_get(model, "fuse_unk"));
    v->ignore_merges = tern_json_is_true(tern_json_get(model, "ignore_merges"));
    return read_merges(v, tern_json_get(model, "merges"), err);
}

/* Checks the vocabulary, a list for Unigram and an object for the others, and finds its largest
 * id. */
static tern_status check_vocab(const tern_vocabulary *v, const tern_json_value *vocab,
                               int64_t *max_id, tern_error *err) {
    const bool list = v->kind == TERN_VOCABULARY_UNIGRAM;
    if (vocab == NULL || vocab->type != (list ? TERN_JSON_ARRAY : TERN_JSON_OBJECT) ||
        vocab->count > TERN_TOKENIZER_MAX_TOKENS)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: the model has no vocab", v->file);
    *max_id = (int64_t)vocab->count - 1;
    return list ? TERN_OK : tern_json_max_id(v, vocab, max_id, err);
}

static tern_status read_kind_of_model(tern_vocabulary *v, const tern_json_value *model,
                                      tern_error *err) {
    switch (v->kind) {
    case TERN_VOCABULARY_UNIGRAM:
        return tern_json_read_unigram(v, model, err);
    case TERN_VOCABULARY_WORDPIECE:
        return tern_json_read_words(v, model, err);
    default:
        return read_bpe(v, model, err);
    }
}

static tern_status read_model(tern_vocabulary *v, tern_error *err) {
    const tern_json_value *model = find_model(v);
    const tern_json_value *vocab = tern_json_get(model, "vocab");
    const tern_json_value *added = tern_json_get(v->json.values, "added_tokens");
    int64_t max_id = -1;
    tern_status status = read_kind(v, model, err);
    if (status == TERN_OK && v->kind == TERN_VOCABULARY_TEXT_BPE)
        status = check_bpe(v, model, err);
    if (status == TERN_OK)
        status = check_vocab(v, vocab, &max_id, err);
    if (status == TERN_OK)
        status = scan_added(v, added, &max_id, err);
    if (status == TERN_OK)
        status = v->kind == TERN_VOCABULARY_UNIGRAM
                     ? tern_json_scored_vocabulary(v, vocab, (size_t)max_id + 1, err)
                     : tern_json_vocabulary(v, vocab, v->n_added, max_id, err);
    if (status == TERN_OK)
        status = read_kind_of_model(v, model, err);
    return status == TERN_OK ? place_added(v, added, err) : status;
}

static void set_types(tern_vocabulary *v, const tern_json_decoder *decoder) {
    for (size_t i = 0; i < v->n_tokens; i++) {
        const tern_span text = v->tokens[i];
        if (v->byte_fallback && decoder->spells_bytes && v->types[i] == TERN_TOKEN_NORMAL &&
            text.size == 6 && memcmp(text.data, "<0x", 3) == 0 && text.data[5] == '>')
            v->types[i] = TERN_TOKEN_BYTE;
    }
    if (v->unknown >= 0 && v->types[v->unknown] == TERN_TOKEN_CONTROL)
        v->types[v->unknown] = TERN_TOKEN_UNKNOWN;
}

tern_status tern_json_read_tokenizer(tern_vocabulary *v, tern_error *err) {
    tern_json_decoder decoder = {false};
    v->closed_merges = v->last_merge_counts = v->leftmost_added = true;
    tern_status status = read_model(v, err);
    if (status == TERN_OK)
        status = tern_json_read_steps(v, err);
    if (status == TERN_OK)
        status = tern_json_read_post(v, err);
    if (status == TERN_OK)
        status = tern_json_read_decoder(v, &decoder, err);
    if (status != TERN_OK)
        return status;
    set_types(v, &decoder);
    for (size_t i = 0; i < v->n_steps; i++)
        if (v->steps[i].kind == TERN_STEP_BYTES && v->kind == TERN_VOCABULARY_TEXT_BPE)
            v->kind = TERN_VOCABULARY_BYTE_BPE;
    if (v->kind == TERN_VOCABULARY_BYTE_BPE)
        tern_pre_recognise(v);
    v->add_space_prefix = v->drops_space;
    return TERN_OK;
}

/* ---- entry ------------------------------------------------------------------------------------
 */

static tern_status new_vocabulary(const char *name, tern_vocabulary **out, tern_error *err) {
    tern_vocabulary *v = calloc(1, sizeof *v);
    if (v == NULL || (v->file = strdup(name)) == NULL) {
        free(v);
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for the vocabulary", name);
    }
    v->bos = v->eos = v->unknown = v->padding = TERN_TOKEN_NONE;
    v->chat_template = (tern_span){"", 0};
    *out = v;
    return TERN_OK;
}

static tern_status read_root(tern_vocabulary *v, tern_error *err) {
    if (v->json.values->type != TERN_JSON_OBJECT)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: neither a tokenizer nor a vocabulary",
                         v->file);
    const tern_json_value *model = find_model(v);
    return model != NULL && model->type == TERN_JSON_OBJECT ? tern_json_read_tokenizer(v, err)
                                                            : tern_json_read_plain(v, err);
}

/* Hands *v over when status is good. */
static tern_status finish(tern_vocabulary *v, tern_status status, tern_vocabulary **out) {
    if (status != TERN_OK) {
        tern_vocabulary_free(&v);
        return status;
    }
    tern_json_guess_end(v);
    *out = v;
    return TERN_OK;
}

/* Reads v->json, and the files beside `path`, as those of a tokenizer. */
static tern_status read_at(tern_vocabulary *v, const char *path, tern_error *err) {
    const tern_status status = read_root(v, err);
    return status == TERN_OK ? tern_json_read_beside(v, path, err) : status;
}

tern_status tern_vocabulary_open(const char *path, tern_vocabulary **out, tern_error *err) {
    tern_vocabulary *v = NULL;
    tern_status status = new_vocabulary(path, &v, err);
    if (status != TERN_OK)
        return status;
    status = tern_json_read(path, MAX_FILE_BYTES, &v->json, err);
    return finish(v, status == TERN_OK ? read_at(v, path, err) : status, out);
}

/* Parses bytes that it takes over; with `beside` it reads the files beside `name`, too. */
static tern_status parse(char *bytes, size_t size, const char *name, bool beside,
                         tern_vocabulary **out, tern_error *err) {
    tern_vocabulary *v = NULL;
    tern_status status = new_vocabulary(name, &v, err);
    if (status != TERN_OK) {
        free(bytes);
        return status;
    }
    status = tern_json_parse(bytes, size, name, &v->json, err);
    if (status == TERN_OK)
        status = beside ? read_at(v, name, err) : read_root(v, err);
    return finish(v, status, out);
}

tern_status tern_vocabulary_open_as(char *bytes, size_t size, const char *path,
                                    tern_vocabulary **out, tern_error *err) {
    return parse(bytes, size, path, true, out, err);
}

tern_status tern_vocabulary_parse(char *bytes, size_t size, const char *name, tern_vocabulary **out,
                                  tern_error *err) {
    return parse(bytes, size, name, false, out, err);
}
