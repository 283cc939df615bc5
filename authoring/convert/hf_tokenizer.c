/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the keys tokenizer.* of a GGUF file, from tokenizer.json or older files, and those beside it. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "authoring/convert/hf_metadata.h"
#include "authoring/convert/hf_older.h"
#include "authoring/convert/hf_tokenizer_models.h"
#include "runtime/text/tokenizer/index.h"

enum { PATH_BYTES = 4096, FILLER_BYTES = 24 /* "[PAD16777215]" */, TEMPLATE_NAME_BYTES = 64 };

/* Arrays in GGUF's form, of n tokens. */
typedef struct arrays {
    size_t n;
    tern_span *tokens;
    int32_t *types;
    float *scores;
    char *fillers;     /* [n][FILLER_BYTES] names of unused ids */
    char *marked;      /* texts of words with their word marks */
    tern_span *merges; /* [n_merges] "left right" */
    char *merge_text;
} arrays;

static void arrays_free(arrays *a) {
    free(a->tokens);
    free(a->types);
    free(a->scores);
    free(a->fillers);
    free(a->marked);
    free(a->merges);
    free(a->merge_text);
}

static tern_status no_memory(const tern_vocabulary *v, tern_error *err) {
    return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for its tokens", v->file);
}

/* GGUF needs a distinct text for every id. */
static tern_status fill_tokens(const tern_vocabulary *v, size_t n, arrays *a, tern_error *err) {
    a->n = n;
    a->tokens = calloc(n, sizeof *a->tokens);
    a->types = calloc(n, sizeof *a->types);
    a->fillers = calloc(n, FILLER_BYTES);
    if (a->tokens == NULL || a->types == NULL || a->fillers == NULL)
        return no_memory(v, err);
    for (size_t i = 0; i < n; i++) {
        if (i < v->n_tokens && v->tokens[i].size > 0) {
            a->tokens[i] = v->tokens[i];
            a->types[i] = v->types[i];
            continue;
        }
        char *filler = a->fillers + i * FILLER_BYTES;
        const int size = snprintf(filler, FILLER_BYTES, "[PAD%zu]", i);
        a->tokens[i] = (tern_span){filler, (size_t)size};
        a->types[i] = TERN_TOKEN_UNUSED;
    }
    return TERN_OK;
}

static tern_status fill_scores(const tern_vocabulary *v, arrays *a, tern_error *err) {
    a->scores = calloc(a->n > v->n_tokens ? a->n : v->n_tokens, sizeof *a->scores);
    if (a->scores == NULL)
        return no_memory(v, err);
    if (v->kind == TERN_VOCABULARY_TEXT_BPE)
        return tern_vocabulary_rank_scores(v, a->scores, err);
    for (size_t i = 0; i < v->n_tokens; i++)
        a->scores[i] = (float)v->scores[i];
    return TERN_OK;
}

static tern_status fill_merges(const tern_vocabulary *v, arrays *a, tern_error *err) {
    size_t bytes = 1;
    for (size_t i = 0; i < v->n_merges; i++)
        bytes += v->merges[i].left.size + 1 + v->merges[i].right.size;
    a->merges = calloc(v->n_merges + 1, sizeof *a->merges);
    a->merge_text = malloc(bytes);
    if (a->merges == NULL || a->merge_text == NULL)
        return no_memory(v, err);
    char *at = a->merge_text;
    for (size_t i = 0; i < v->n_merges; i++) {
        const tern_merge *m = &v->merges[i];
        const size_t size = m->left.size + 1 + m->right.size;
        memcpy(at, m->left.data, m->left.size);
        at[m->left.size] = ' ';
        memcpy(at + m->left.size + 1, m->right.data, m->right.size);
        a->merges[i] = (tern_span){at, size};
        at += size;
    }
    return TERN_OK;
}

/* Without a key readers take a token that other models have there, so none is said, too. */
static void put_id(tern_gguf_writer *w, const char *key, int32_t id) {
    tern_gguf_put_u32(w, key, id >= 0 ? (uint32_t)id : UINT32_MAX);
}

/* Puts all tokens that end a text. The keys for single ones are too few where there are many. */
static void put_ends(tern_gguf_writer *w, const tern_vocabulary *v) {
    int32_t ids[TERN_TOKENIZER_MAX_ENDS + 1];
    size_t n = 0;
    if (v->eos >= 0)
        ids[n++] = v->eos;
    for (size_t i = 0; i < v->n_ends; i++)
        if (v->ends[i] != v->eos)
            ids[n++] = v->ends[i];
    if (n > 1)
        tern_gguf_put_i32s(w, TERN_VOCABULARY_ENDS_KEY, ids, n);
}

/* Writes the special tokens and how texts begin and end. GGUF has names for two more ends: of a
 * turn and of a message. */
static void put_special(tern_gguf_writer *w, const tern_vocabulary *v) {
    static const char *const keys[] = {"tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    put_id(w, "tokenizer.ggml.bos_token_id", v->bos);
    put_id(w, "tokenizer.ggml.eos_token_id", v->eos);
    put_id(w, "tokenizer.ggml.unknown_token_id", v->unknown);
    if (v->padding >= 0)
        put_id(w, "tokenizer.ggml.padding_token_id", v->padding);
    size_t used = 0;
    for (size_t i = 0; i < v->n_ends && used < sizeof keys / sizeof *keys; i++)
        if (v->ends[i] != v->eos)
            put_id(w, keys[used++], v->ends[i]);
    put_ends(w, v);
    tern_gguf_put_bool(w, "tokenizer.ggml.add_bos_token", v->add_bos);
    tern_gguf_put_bool(w, "tokenizer.ggml.add_eos_token", v->add_eos);
    if (v->kind == TERN_VOCABULARY_TEXT_BPE || v->kind == TERN_VOCABULARY_SCORES)
        tern_gguf_put_bool(w, "tokenizer.ggml.add_space_prefix", v->add_space_prefix);
}

static const char *model_name(const tern_vocabulary *v) {
    switch (v->kind) {
    case TERN_VOCABULARY_BYTE_BPE:
        return "gpt2";
    case TERN_VOCABULARY_UNIGRAM:
        return "t5";
    case TERN_VOCABULARY_WORDPIECE:
        return "bert";
    default:
        return "llama";
    }
}

/* Fills in merges, scores or word marks, as far as other keys have a use for them. */
static tern_status fill_rest(const tern_vocabulary *v, hf_said said, arrays *a, tern_error *err) {
    if (said == HF_SAID_TOKENS)
        return TERN_OK;
    if (v->kind == TERN_VOCABULARY_BYTE_BPE)
        return fill_merges(v, a, err);
    return v->kind == TERN_VOCABULARY_WORDPIECE ? hf_mark_words(v, a->tokens, a->n, &a->marked, err)
                                                : fill_scores(v, a, err);
}

static tern_status put_arrays(tern_gguf_writer *w, const tern_vocabulary *v, hf_said said,
                              size_t n_vocab, arrays *a, tern_error *err) {
    tern_status status = fill_tokens(v, n_vocab, a, err);
    if (status == TERN_OK)
        status = fill_rest(v, said, a, err);
    if (status != TERN_OK)
        return status;
    const bool bytes = a->merges != NULL;
    tern_gguf_put_string(w, "tokenizer.ggml.model",
                         said == HF_SAID_TOKENS ? TERN_VOCABULARY_WHOLE_MODEL : model_name(v));
    if (bytes)
        tern_gguf_put_string(w, "tokenizer.ggml.pre", v->pre);
    tern_gguf_put_strings(w, "tokenizer.ggml.tokens", a->tokens, a->n);
    tern_gguf_put_i32s(w, "tokenizer.ggml.token_type", a->types, a->n);
    if (bytes)
        tern_gguf_put_strings(w, "tokenizer.ggml.merges", a->merges, v->n_merges);
    if (a->scores != NULL)
        tern_gguf_put_f32s(w, "tokenizer.ggml.scores", a->scores, a->n);
    if (said != HF_SAID_TOKENS)
        hf_put_model(w, v);
    return TERN_OK;
}

static bool is_letter_or_digit(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* True for names that can end a key: from JSON they may be anything, a NUL included. */
static bool can_end_key(tern_span name) {
    static const char others[] = "_-.";
    for (size_t i = 0; i < name.size; i++) {
        const char c = name.data[i];
        if (c == '\0' || (!is_letter_or_digit(c) && strchr(others, c) == NULL))
            return false;
    }
    return name.size > 0 && name.size <= TEMPLATE_NAME_BYTES;
}

/* Puts the usual chat template, those for chats of some kind, and a list of the latter. */
static void put_templates(tern_gguf_writer *w, const tern_vocabulary *v) {
    static const char key[] = "tokenizer.chat_template";
    tern_span names[TERN_TOKENIZER_MAX_TEMPLATES];
    char one[sizeof key + TEMPLATE_NAME_BYTES];
    size_t n = 0;
    for (size_t i = 0; i < v->n_templates; i++) {
        const tern_named_template *t = &v->templates[i];
        if (!can_end_key(t->name))
            continue;
        (void)snprintf(one, sizeof one, "%s.%.*s", key, (int)t->name.size, t->name.data);
        tern_gguf_put_text(w, one, t->text);
        names[n++] = t->name;
    }
    if (n > 0)
        tern_gguf_put_strings(w, "tokenizer.chat_templates", names, n);
    if (v->chat_template.size > 0)
        tern_gguf_put_text(w, key, v->chat_template);
}

/* True if all ids that mean an end, a beginning and so on are below n. */
static bool has_special_below(const tern_vocabulary *v, size_t n) {
    const int32_t ids[] = {v->bos, v->eos, v->unknown, v->padding};
    bool below = true;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        below = below && (ids[i] < 0 || (size_t)ids[i] < n);
    for (size_t i = 0; i < v->n_ends; i++)
        below = below && (size_t)v->ends[i] < n;
    return below;
}

/*
 * True if the tokens from n on can be left out because they never occur in texts: control tokens
 * that have no function here. Gemma 3 has one for images, and its text-only models have no row of
 * the embedding for it.
 */
static bool can_leave_out(const tern_vocabulary *v, size_t n) {
    for (size_t i = n; i < v->n_tokens; i++)
        if (v->tokens[i].size > 0 && v->types[i] != TERN_TOKEN_CONTROL)
            return false;
    return has_special_below(v, n);
}

static const char *remark_of(const tern_vocabulary *v, hf_said said, size_t n_vocab) {
    if (v->n_tokens > n_vocab)
        return "control tokens that the model has no embedding for are left out";
    return said == HF_SAID_WHOLE    ? NULL
           : said == HF_SAID_NEARLY ? "the file holds tokenizer.json, since the keys that other "
                                      "programs read say only nearly how texts become tokens"
                                    : "the file holds tokenizer.json, since no keys that other "
                                      "programs read say how texts become tokens";
}

static tern_status check(const tern_vocabulary *v, size_t n_vocab, tern_error *err) {
    if (v->kind == TERN_VOCABULARY_GREEDY) {
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: has neither merges nor scores",
                         v->file);
    }
    if (v->n_tokens <= n_vocab || can_leave_out(v, n_vocab))
        return TERN_OK;
    return tern_fail(err, TERN_ERR_TOKENIZER_DATA,
                     "%s: %zu tokens, but the model has embeddings for %zu", v->file, v->n_tokens,
                     n_vocab);
}

/* *said becomes NEARLY if two merges are equal: the later one counts in tokenizer.json, the earlier
 * one in GGUF. */
static tern_status see_repeated(const arrays *a, size_t n, hf_said *said, tern_error *err) {
    tern_span_index index;
    if (*said != HF_SAID_WHOLE || a->merges == NULL)
        return TERN_OK;
    if (!tern_span_index_init(&index, n))
        return tern_fail(err, TERN_ERR_NOMEM, "no memory to compare %zu merges", n);
    bool repeats = false;
    for (size_t i = 0; i < n && !repeats; i++)
        repeats = tern_span_index_add(&index, a->merges, i) != i;
    tern_span_index_free(&index);
    if (repeats)
        *said = HF_SAID_NEARLY;
    return TERN_OK;
}

/* Puts everything; *said is less than it was if merges repeat. made: the text of a tokenizer.json
 * that is not the vocabulary's file, or NULL. */
static tern_status put_all(tern_gguf_writer *w, const tern_vocabulary *v, size_t n_vocab,
                           const char *made, hf_said *said, tern_error *err) {
    arrays a = {.n = 0};
    tern_status status = check(v, n_vocab, err);
    if (status == TERN_OK)
        status = put_arrays(w, v, *said, n_vocab, &a, err);
    if (status == TERN_OK) {
        put_special(w, v);
        put_templates(w, v);
        status = see_repeated(&a, v->n_merges, said, err);
    }
    if (status == TERN_OK && *said != HF_SAID_WHOLE && made != NULL)
        tern_gguf_put_string(w, TERN_VOCABULARY_WHOLE_KEY, made);
    else if (status == TERN_OK && *said != HF_SAID_WHOLE)
        status = hf_tokenizer_put_whole(w, v->file, err);
    arrays_free(&a);
    return status;
}

/* The tokenizer of a folder. */
typedef struct opened {
    tern_vocabulary *vocabulary; /* NULL: the folder has none */
    char *made;                  /* a tokenizer.json that was made of older files, or NULL */
    hf_said said;
} opened;

static tern_status open_tokenizer(const char *path, opened *out, tern_error *err) {
    hf_older older;
    if (access(path, F_OK) == 0) {
        const tern_status status = tern_vocabulary_open(path, &out->vocabulary, err);
        return status == TERN_OK ? hf_tokenizer_said(out->vocabulary, &out->said, err) : status;
    }
    const tern_status status = hf_older_open(path, &older, err);
    *out = (opened){older.vocabulary, older.json, older.said};
    return status;
}

tern_status hf_tokenizer_put(tern_gguf_writer *w, const char *folder, size_t n_vocab,
                             const char **remark, tern_error *err) {
    char path[PATH_BYTES];
    opened o = {.vocabulary = NULL};
    *remark = NULL;
    if (snprintf(path, sizeof path, "%s/tokenizer.json", folder) >= (int)sizeof path)
        return tern_fail(err, TERN_ERR_IO, "%.64s...: the path is too long", folder);
    tern_status status = open_tokenizer(path, &o, err);
    if (status == TERN_OK && o.vocabulary == NULL)
        *remark = "there is no tokenizer.json: the model takes only token ids";
    else if (status == TERN_OK)
        status = put_all(w, o.vocabulary, n_vocab, o.made, &o.said, err);
    if (status == TERN_OK && o.vocabulary != NULL)
        *remark = remark_of(o.vocabulary, o.said, n_vocab);
    tern_vocabulary_free(&o.vocabulary);
    free(o.made);
    return status;
}
