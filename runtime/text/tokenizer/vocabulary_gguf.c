/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/text/tokenizer/index.h"
#include "runtime/text/tokenizer/pre.h"
#include "runtime/text/tokenizer/vocabulary_gguf.h"

enum { LLAMA3_TOKENS = 128256, SHOWN_BYTES = 64 };

/* For "%.*s" in messages. */
#define SPAN_ARG(span) (int)((span).size < SHOWN_BYTES ? (span).size : SHOWN_BYTES), (span).data

static tern_status no_memory(const tern_vocabulary *v, tern_error *err) {
    return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for the tokenizer", v->file);
}

static tern_span text_span(const char *text) {
    return (tern_span){text, strlen(text)};
}

/* Reads an optional string; *out stays as it is when the key is absent. */
static tern_status read_string(const tern_gguf *file, const char *key, tern_span *out,
                               tern_error *err) {
    if (tern_gguf_find(file, key) == NULL)
        return TERN_OK;
    if (tern_gguf_string(file, key, out, NULL) != TERN_OK)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: key '%s' is not a string",
                         tern_gguf_name(file), key);
    return TERN_OK;
}

tern_status tern_gguf_vocabulary_bool(const tern_gguf *file, const char *key, bool *out,
                                      tern_error *err) {
    if (tern_gguf_find(file, key) == NULL)
        return TERN_OK;
    if (tern_gguf_bool(file, key, out, NULL) != TERN_OK)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: key '%s' is not a bool",
                         tern_gguf_name(file), key);
    return TERN_OK;
}

/* Reads an optional token id. 4294967295 is how writers say "none". */
tern_status tern_gguf_vocabulary_id(const tern_vocabulary *v, const tern_gguf *file,
                                    const char *key, int32_t *out, tern_error *err) {
    if (tern_gguf_find(file, key) == NULL)
        return TERN_OK;
    uint32_t id;
    if (tern_gguf_u32(file, key, &id, NULL) != TERN_OK)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: key '%s' is not a token id", v->file,
                         key);
    if (id != UINT32_MAX && id >= v->n_tokens)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: key '%s': %u is not below %zu tokens",
                         v->file, key, id, v->n_tokens);
    *out = id == UINT32_MAX ? TERN_TOKEN_NONE : (int32_t)id;
    return TERN_OK;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

/* Loads an array of strings as spans; the strings stay in the file. */
static tern_status load_strings(const tern_vocabulary *v, const tern_gguf *file, const char *key,
                                tern_span **out, size_t *n, tern_error *err) {
    const tern_gguf_value *value;
    if (tern_gguf_array(file, key, TERN_GGUF_STRING, &value, NULL) != TERN_OK)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: key '%s' is not an array of strings",
                         v->file, key);
    if (value->count == 0 || value->count > TERN_TOKENIZER_MAX_TOKENS)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: key '%s' has %llu strings, not 1 to %d",
                         v->file, key, (unsigned long long)value->count,
                         (int)TERN_TOKENIZER_MAX_TOKENS);
    *n = (size_t)value->count;
    *out = malloc(*n * sizeof **out);
    if (*out == NULL)
        return no_memory(v, err);
    const uint8_t *cursor = value->data;
    for (size_t i = 0; i < *n; i++)
        (*out)[i] = tern_gguf_next_string(&cursor);
    return TERN_OK;
}

/* Finds the array that has one element for each token; *out is NULL when it is absent. */
static tern_status find_parallel(const tern_vocabulary *v, const tern_gguf *file, const char *key,
                                 tern_gguf_type element, const tern_gguf_value **out,
                                 tern_error *err) {
    *out = tern_gguf_find(file, key);
    if (*out == NULL)
        return TERN_OK;
    if ((*out)->type != TERN_GGUF_ARRAY || (*out)->element != element)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: key '%s' is not an array of %s",
                         v->file, key, element == TERN_GGUF_F32 ? "f32" : "i32");
    if ((*out)->count != v->n_tokens)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA,
                         "%s: key '%s' has %llu elements for %zu tokens", v->file, key,
                         (unsigned long long)(*out)->count, v->n_tokens);
    return TERN_OK;
}

static tern_status load_types(tern_vocabulary *v, const tern_gguf *file, tern_error *err) {
    const tern_gguf_value *value;
    const tern_status status =
        find_parallel(v, file, "tokenizer.ggml.token_type", TERN_GGUF_I32, &value, err);
    if (status != TERN_OK)
        return status;
    v->types = malloc(v->n_tokens);
    if (v->types == NULL)
        return no_memory(v, err);
    memset(v->types, TERN_TOKEN_NORMAL, v->n_tokens);
    for (size_t i = 0; value != NULL && i < v->n_tokens; i++) {
        int32_t type;
        memcpy(&type, value->data + i * sizeof type, sizeof type);
        if (type < 0 || type >= TERN_TOKEN_TYPE_COUNT)
            return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: token %zu has the unknown type %d",
                             v->file, i, (int)type);
        v->types[i] = (uint8_t)type;
    }
    return TERN_OK;
}

static bool needs_scores(const tern_vocabulary *v) {
    return v->kind == TERN_VOCABULARY_SCORES || v->kind == TERN_VOCABULARY_UNIGRAM;
}

/* Other kinds of vocabularies have no use for scores, which some files fill with integers. */
static tern_status load_scores(tern_vocabulary *v, const tern_gguf *file, tern_error *err) {
    static const char key[] = "tokenizer.ggml.scores";
    const tern_gguf_value *value = tern_gguf_find(file, key);
    const bool any = value != NULL && value->type == TERN_GGUF_ARRAY && !needs_scores(v);
    const tern_gguf_type element = any ? value->element : TERN_GGUF_F32;
    const tern_status status = find_parallel(v, file, key, element, &value, err);
    if (status != TERN_OK || !needs_scores(v))
        return status;
    if (value == NULL)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA,
                         "%s: key 'tokenizer.ggml.scores' is missing: %s needs scores", v->file,
                         v->kind == TERN_VOCABULARY_SCORES ? "merging" : "Unigram");
    v->scores = malloc(v->n_tokens * sizeof *v->scores);
    if (v->scores == NULL)
        return no_memory(v, err);
    for (size_t i = 0; i < v->n_tokens; i++) {
        float score;
        memcpy(&score, value->data + i * sizeof score, sizeof score);
        v->scores[i] = score;
        if (isnan(score) || (isinf(score) && v->kind == TERN_VOCABULARY_UNIGRAM))
            return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: the score of token %zu is %s",
                             v->file, i, isnan(score) ? "NaN" : "infinite");
    }
    return TERN_OK;
}

/* "left right", cut at the first space after the first character. */
static tern_status load_merges(tern_vocabulary *v, const tern_gguf *file, tern_error *err) {
    static const char key[] = "tokenizer.ggml.merges";
    tern_span *lines = NULL;
    if (tern_gguf_find(file, key) == NULL)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: key '%s' is missing", v->file, key);
    tern_status status = load_strings(v, file, key, &lines, &v->n_merges, err);
    if (status != TERN_OK)
        return status;
    v->merges = malloc(v->n_merges * sizeof *v->merges);
    if (v->merges == NULL)
        status = no_memory(v, err);
    for (size_t i = 0; i < v->n_merges && status == TERN_OK; i++) {
        const tern_span line = lines[i];
        const char *space = line.size < 3 ? NULL : memchr(line.data + 1, ' ', line.size - 2);
        if (space == NULL) {
            status =
                tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: merge %zu is not a pair", v->file, i);
            break;
        }
        const size_t left = (size_t)(space - line.data);
        v->merges[i] = (tern_merge){{line.data, left}, {space + 1, line.size - left - 1}};
    }
    free(lines);
    return status;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static tern_status read_model(tern_vocabulary *v, const tern_gguf *file, tern_error *err) {
    static const struct {
        const char *name;
        tern_vocabulary_kind kind;
    } models[] = {{"gpt2", TERN_VOCABULARY_BYTE_BPE},
                  {"llama", TERN_VOCABULARY_SCORES},
                  {"sentencepiece", TERN_VOCABULARY_SCORES},
                  {"t5", TERN_VOCABULARY_UNIGRAM},
                  {"bert", TERN_VOCABULARY_WORDPIECE}};
    tern_span model = {"", 0};
    if (tern_gguf_find(file, "tokenizer.ggml.tokens") == NULL)
        return tern_fail(err, TERN_ERR_TOKENIZER_MISSING,
                         "%s: no tokenizer: key 'tokenizer.ggml.tokens' is missing", v->file);
    const tern_status status = read_string(file, "tokenizer.ggml.model", &model, err);
    if (status != TERN_OK)
        return status;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        if (tern_spans_equal(model, text_span(models[i].name))) {
            v->kind = models[i].kind;
            return TERN_OK;
        }
    }
    return tern_fail(err, TERN_ERR_TOKENIZER_MODEL,
                     "%s: tokenizer model '%.*s' is not supported (gpt2, llama, sentencepiece, t5 "
                     "and bert are)",
                     v->file, SPAN_ARG(model));
}

static tern_status set_pre(tern_vocabulary *v, const tern_gguf *file, bool bitnet,
                           const char *override, tern_error *err) {
    /* The published BitNet 2B file names no pre-tokenizer; its vocabulary is Llama 3's. */
    const bool llama3 = bitnet && v->n_tokens == LLAMA3_TOKENS;
    tern_span name = text_span(llama3 ? "llama-bpe" : "default");
    tern_status status = read_string(file, "tokenizer.ggml.pre", &name, err);
    if (status != TERN_OK)
        return status;
    if (override != NULL)
        name = text_span(override);
    const tern_pre_rule *rule = tern_pre_find(name);
    if (rule == NULL)
        return tern_fail(
            err, TERN_ERR_TOKENIZER_PRE,
            "%s: pre-tokenizer '%.*s' is not supported; docs/tokenizers.md lists those "
            "that are",
            v->file, SPAN_ARG(name));
    memcpy(v->pre, name.data, name.size);
    v->ignore_merges = rule->ignore_merges;
    v->add_bos = rule->add_bos;
    tern_pre_add_steps(rule, v);
    return TERN_OK;
}

static tern_status load_bpe(tern_vocabulary *v, const tern_gguf *file, bool bitnet, const char *pre,
                            tern_error *err) {
    enum { GPT2_END = 11 }; /* the token that files without the keys mean */
    v->bos = v->eos = GPT2_END < v->n_tokens ? GPT2_END : TERN_TOKEN_NONE;
    v->unknown = TERN_TOKEN_NONE;
    v->decodes_bytes = true;
    const tern_status status = load_merges(v, file, err);
    return status == TERN_OK ? set_pre(v, file, bitnet, pre, err) : status;
}

tern_status tern_gguf_vocabulary_no_pre(const tern_vocabulary *v, const char *model,
                                        const char *pre, tern_error *err) {
    return pre == NULL ? TERN_OK
                       : tern_fail(err, TERN_ERR_TOKENIZER_PRE,
                                   "%s: a tokenizer of model %s has no pre-tokenizer to set to "
                                   "'%s'",
                                   v->file, model, pre);
}

static tern_status load_spm(tern_vocabulary *v, const char *pre, tern_error *err) {
    const tern_status status = tern_gguf_vocabulary_no_pre(v, "llama", pre, err);
    if (status != TERN_OK)
        return status;
    v->unknown = 0;
    v->bos = v->n_tokens > 1 ? 1 : TERN_TOKEN_NONE;
    v->eos = v->n_tokens > 2 ? 2 : TERN_TOKEN_NONE;
    v->add_bos = true;
    v->add_space_prefix = true;
    v->byte_fallback = v->decodes_spaces = true;
    return TERN_OK;
}

static const char *const end_keys[] = {
    "tokenizer.ggml.eot_token_id",     "tokenizer.ggml.eom_token_id",
    "tokenizer.ggml.fim_pad_token_id", "tokenizer.ggml.fim_rep_token_id",
    "tokenizer.ggml.fim_sep_token_id",
};

static void add_end(tern_vocabulary *v, uint32_t id) {
    if (v->n_ends < TERN_TOKENIZER_MAX_ENDS)
        v->ends[v->n_ends++] = (int32_t)id;
}

/* Reads a list of tokens that end a text, of any type of integers. */
static tern_status read_list_of_ends(tern_vocabulary *v, const tern_gguf *file, tern_error *err) {
    static const char key[] = TERN_VOCABULARY_ENDS_KEY;
    const tern_gguf_value *list = tern_gguf_find(file, key);
    const uint64_t n = list != NULL && list->type == TERN_GGUF_ARRAY ? list->count : 0;
    if (list != NULL && list->type != TERN_GGUF_ARRAY)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: key '%s' is not an array", v->file,
                         key);
    for (uint64_t i = 0; i < n; i++) {
        uint32_t id;
        if (!tern_gguf_element_u32(list, i, &id) || id >= v->n_tokens)
            return tern_fail(err, TERN_ERR_TOKENIZER_DATA,
                             "%s: key '%s': element %llu is not the id of one of %zu tokens",
                             v->file, key, (unsigned long long)i, v->n_tokens);
        add_end(v, id);
    }
    return TERN_OK;
}

static tern_status read_ends(tern_vocabulary *v, const tern_gguf *file, tern_error *err) {
    for (size_t i = 0; i < sizeof end_keys / sizeof end_keys[0]; i++) {
        int32_t id = TERN_TOKEN_NONE;
        const tern_status status = tern_gguf_vocabulary_id(v, file, end_keys[i], &id, err);
        if (status != TERN_OK)
            return status;
        if (id >= 0)
            add_end(v, (uint32_t)id);
    }
    return read_list_of_ends(v, file, err);
}

static tern_status read_keys(tern_vocabulary *v, const tern_gguf *file, tern_error *err) {
    tern_status status =
        tern_gguf_vocabulary_id(v, file, "tokenizer.ggml.bos_token_id", &v->bos, err);
    if (status == TERN_OK)
        status = tern_gguf_vocabulary_id(v, file, "tokenizer.ggml.eos_token_id", &v->eos, err);
    if (status == TERN_OK)
        status =
            tern_gguf_vocabulary_id(v, file, "tokenizer.ggml.unknown_token_id", &v->unknown, err);
    if (status == TERN_OK)
        status = tern_gguf_vocabulary_bool(file, "tokenizer.ggml.add_bos_token", &v->add_bos, err);
    if (status == TERN_OK)
        status = tern_gguf_vocabulary_bool(file, "tokenizer.ggml.add_eos_token", &v->add_eos, err);
    if (status == TERN_OK)
        status = tern_gguf_vocabulary_bool(file, "tokenizer.ggml.add_space_prefix",
                                           &v->add_space_prefix, err);
    if (status == TERN_OK)
        status = read_string(file, "tokenizer.chat_template", &v->chat_template, err);
    tern_gguf_vocabulary_templates(v, file);
    return status;
}

static tern_status load_kind(tern_vocabulary *v, const tern_gguf *file, bool bitnet,
                             const char *pre, tern_error *err) {
    switch (v->kind) {
    case TERN_VOCABULARY_SCORES:
        return load_spm(v, pre, err);
    case TERN_VOCABULARY_UNIGRAM:
        return tern_gguf_vocabulary_begin_unigram(v, pre, err);
    case TERN_VOCABULARY_WORDPIECE:
        return tern_gguf_vocabulary_begin_words(v, pre, err);
    default:
        return load_bpe(v, file, bitnet, pre, err);
    }
}

/* Sets what depends on the keys. */
static tern_status finish_kind(tern_vocabulary *v, const tern_gguf *file, tern_error *err) {
    switch (v->kind) {
    case TERN_VOCABULARY_UNIGRAM:
        return tern_gguf_vocabulary_finish_unigram(v, file, err);
    case TERN_VOCABULARY_WORDPIECE:
        return tern_gguf_vocabulary_finish_words(v, file, err);
    case TERN_VOCABULARY_SCORES:
        v->drops_space = v->add_space_prefix;
        return TERN_OK;
    default:
        return TERN_OK;
    }
}

static tern_status read_all(tern_vocabulary *v, const tern_gguf *file, bool bitnet, const char *pre,
                            tern_error *err) {
    tern_status status = read_model(v, file, err);
    if (status == TERN_OK)
        status = load_strings(v, file, "tokenizer.ggml.tokens", &v->tokens, &v->n_tokens, err);
    if (status == TERN_OK)
        status = load_types(v, file, err);
    if (status == TERN_OK)
        status = load_scores(v, file, err);
    if (status == TERN_OK)
        status = load_kind(v, file, bitnet, pre, err);
    if (status == TERN_OK)
        status = read_keys(v, file, err);
    if (status == TERN_OK)
        status = read_ends(v, file, err);
    return status == TERN_OK ? finish_kind(v, file, err) : status;
}

/* ---- a tokenizer.json as a key ----------------------------------------------------------------
 */

/*
 * Compares the vocabulary of the tokenizer.json with the file's list of tokens, to which the rows
 * of the embedding belong. Control tokens beyond the list vanish: no row is theirs.
 */
static tern_status fit_tokens(tern_vocabulary *v, const tern_gguf *file, tern_error *err) {
    tern_span *tokens = NULL;
    size_t n = 0, kept = 0;
    if (tern_gguf_find(file, "tokenizer.ggml.tokens") == NULL)
        return TERN_OK;
    tern_status status = load_strings(v, file, "tokenizer.ggml.tokens", &tokens, &n, err);
    for (size_t i = 0; status == TERN_OK && i < v->n_tokens; i++) {
        const bool own = v->tokens[i].size > 0 && !(v->outside != NULL && v->outside[i]);
        const bool same = i < n && (tern_spans_equal(v->tokens[i], tokens[i]) ||
                                    v->kind == TERN_VOCABULARY_WORDPIECE);
        if (own && !same)
            status = tern_fail(err, TERN_ERR_TOKENIZER_DATA,
                               "%s: token %zu is '%.*s' in %s, and not in the list of tokens",
                               v->file, i, SPAN_ARG(v->tokens[i]), TERN_VOCABULARY_WHOLE_KEY);
    }
    free(tokens);
    if (status != TERN_OK || n >= v->n_tokens)
        return status;
    for (size_t i = 0; i < v->n_added; i++)
        if ((size_t)v->added[i].id < n)
            v->added[kept++] = v->added[i];
    v->n_added = kept;
    v->n_tokens = n;
    return TERN_OK;
}

/* Refuses tokens of the tokenizer.json that have a meaning, but no place in the list of tokens. */
static tern_status check_meanings(const tern_vocabulary *v, tern_error *err) {
    const int32_t ids[] = {v->bos, v->eos, v->unknown, v->padding};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (ids[i] >= 0 && (size_t)ids[i] >= v->n_tokens)
            return tern_fail(err, TERN_ERR_TOKENIZER_DATA,
                             "%s: token %d of %s has a meaning and is not in the list of tokens",
                             v->file, (int)ids[i], TERN_VOCABULARY_WHOLE_KEY);
    return TERN_OK;
}

/* Reads the tokenizer.json, and from other keys what a text begins and ends with, and templates. */
static tern_status read_whole(const tern_gguf *file, tern_span json, tern_vocabulary **out,
                              tern_error *err) {
    tern_vocabulary *v = NULL;
    char *bytes = malloc(json.size + 1);
    if (bytes == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for the tokenizer",
                         tern_gguf_name(file));
    memcpy(bytes, json.data, json.size);
    tern_status status = tern_vocabulary_parse(bytes, json.size, tern_gguf_name(file), &v, err);
    if (status != TERN_OK)
        return status;
    const bool prefix = v->add_space_prefix; /* the key is for other programs */
    status = fit_tokens(v, file, err);
    if (status == TERN_OK)
        status = read_keys(v, file, err);
    if (status == TERN_OK)
        status = read_ends(v, file, err);
    if (status == TERN_OK)
        status = check_meanings(v, err);
    v->add_space_prefix = prefix;
    if (status != TERN_OK)
        tern_vocabulary_free(&v);
    *out = v;
    return status;
}

/* True if keys other than a tokenizer.json say how texts become tokens. */
static bool has_usual_keys(const tern_gguf *file) {
    tern_span model = {"", 0};
    (void)tern_gguf_string(file, "tokenizer.ggml.model", &model, NULL);
    return model.size > 0 && !tern_spans_equal(model, text_span(TERN_VOCABULARY_WHOLE_MODEL));
}

/* ---- entry ------------------------------------------------------------------------------------
 */

bool tern_vocabulary_is_twice_in_gguf(const tern_gguf *file) {
    return tern_gguf_find(file, TERN_VOCABULARY_WHOLE_KEY) != NULL && has_usual_keys(file);
}

tern_status tern_vocabulary_from_gguf_keys(const tern_gguf *file, bool bitnet, const char *pre,
                                           tern_vocabulary **out, tern_error *err) {
    tern_vocabulary *v = calloc(1, sizeof *v);
    if (v == NULL || (v->file = strdup(tern_gguf_name(file))) == NULL) {
        free(v);
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for the tokenizer",
                         tern_gguf_name(file));
    }
    v->borrowed = true;
    v->chat_template = text_span("");
    v->padding = TERN_TOKEN_NONE;
    const tern_status status = read_all(v, file, bitnet, pre, err);
    if (status != TERN_OK) {
        tern_vocabulary_free(&v);
        return status;
    }
    *out = v;
    return TERN_OK;
}

tern_status tern_vocabulary_from_gguf(const tern_gguf *file, bool bitnet, const char *pre,
                                      tern_vocabulary **out, tern_error *err) {
    tern_span json = {"", 0};
    const tern_status status = read_string(file, TERN_VOCABULARY_WHOLE_KEY, &json, err);
    if (status != TERN_OK || json.size == 0 || (pre != NULL && has_usual_keys(file)))
        return status == TERN_OK ? tern_vocabulary_from_gguf_keys(file, bitnet, pre, out, err) : status;
    const tern_status read = read_whole(file, json, out, err);
    const bool unsupported = read == TERN_ERR_TOKENIZER_MODEL || read == TERN_ERR_TOKENIZER_PRE;
    return unsupported && has_usual_keys(file) ? tern_vocabulary_from_gguf_keys(file, bitnet, pre, out, err) : read;
}
