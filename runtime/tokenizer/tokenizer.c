/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/tokenizer/internal.h"

enum { BITNET_TOKENS = 128256, SHOWN_BYTES = 64 };

/* For "%.*s" in messages. */
#define SPAN_ARG(span) (int)((span).size < SHOWN_BYTES ? (span).size : SHOWN_BYTES), (span).data

static tern_span text_span(const char *text) {
    return (tern_span){text, strlen(text)};
}

/* An optional string; *out stays as it is when the key is absent. */
static tern_status read_string(const tern_gguf *file, const char *key, tern_span *out,
                               tern_error *err) {
    if (tern_gguf_find(file, key) == NULL)
        return TERN_OK;
    if (tern_gguf_string(file, key, out, NULL) != TERN_OK)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: key '%s' is not a string",
                         tern_gguf_name(file), key);
    return TERN_OK;
}

static tern_status read_bool(const tern_gguf *file, const char *key, bool *out, tern_error *err) {
    if (tern_gguf_find(file, key) == NULL)
        return TERN_OK;
    if (tern_gguf_bool(file, key, out, NULL) != TERN_OK)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: key '%s' is not a bool",
                         tern_gguf_name(file), key);
    return TERN_OK;
}

/* An optional token id. 4294967295 is how writers say "none". */
static tern_status read_id(const tern_tokenizer *t, const tern_gguf *file, const char *key,
                           int32_t *out, tern_error *err) {
    if (tern_gguf_find(file, key) == NULL)
        return TERN_OK;
    uint32_t id;
    if (tern_gguf_u32(file, key, &id, NULL) != TERN_OK)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: key '%s' is not a token id", t->file,
                         key);
    if (id != UINT32_MAX && id >= t->n_tokens)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: key '%s': %u is not below %zu tokens",
                         t->file, key, id, t->n_tokens);
    *out = id == UINT32_MAX ? TERN_TOKEN_NONE : (int32_t)id;
    return TERN_OK;
}

static tern_status read_model(tern_tokenizer *t, const tern_gguf *file, tern_error *err) {
    tern_span model = {"", 0};
    if (tern_gguf_find(file, "tokenizer.ggml.tokens") == NULL)
        return tern_fail(err, TERN_ERR_TOKENIZER_MISSING,
                         "%s: no tokenizer: key 'tokenizer.ggml.tokens' is missing", t->file);
    const tern_status status = read_string(file, "tokenizer.ggml.model", &model, err);
    if (status != TERN_OK)
        return status;
    t->spm = tern_spans_equal(model, text_span("llama"));
    if (!t->spm && !tern_spans_equal(model, text_span("gpt2")))
        return tern_fail(err, TERN_ERR_TOKENIZER_MODEL,
                         "%s: tokenizer model '%.*s' is not supported (gpt2 and llama are)",
                         t->file, SPAN_ARG(model));
    return TERN_OK;
}

static tern_status fail_pre(const tern_tokenizer *t, tern_span name, tern_error *err) {
    char known[TERN_ERROR_MESSAGE_BYTES];
    tern_pre_list(known, sizeof known);
    return tern_fail(err, TERN_ERR_TOKENIZER_PRE,
                     "%s: pre-tokenizer '%.*s' is not supported; known are %s", t->file,
                     SPAN_ARG(name), known);
}

static tern_status set_pre(tern_tokenizer *t, const tern_gguf *file, const char *override,
                           tern_error *err) {
    /* The published BitNet 2B file names no pre-tokenizer; its vocabulary is Llama 3's. */
    const bool llama3 = t->bitnet && t->n_tokens == BITNET_TOKENS;
    tern_span name = text_span(llama3 ? "llama-bpe" : "default");
    tern_status status = read_string(file, "tokenizer.ggml.pre", &name, err);
    if (status != TERN_OK)
        return status;
    if (override != NULL)
        name = text_span(override);
    const tern_pre_rule *rule = tern_pre_find(name);
    if (rule == NULL)
        return fail_pre(t, name, err);
    memcpy(t->pre, name.data, name.size);
    t->ignore_merges = rule->ignore_merges;
    t->add_bos = rule->add_bos;
    if (tern_pretokenizer_new(rule, &t->pretokenizer) != TERN_OK)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for the pre-tokenizer", t->file);
    return TERN_OK;
}

static tern_status load_bpe(tern_tokenizer *t, const tern_gguf *file, const char *pre,
                            tern_error *err) {
    enum { GPT2_END = 11 }; /* what files without the keys mean */
    t->bos = t->eos = GPT2_END < t->n_tokens ? GPT2_END : TERN_TOKEN_NONE;
    t->unknown = TERN_TOKEN_NONE;
    const tern_status status = tern_vocabulary_load_merges(t, file, err);
    return status == TERN_OK ? set_pre(t, file, pre, err) : status;
}

static tern_status load_spm(tern_tokenizer *t, const char *pre, tern_error *err) {
    if (pre != NULL)
        return tern_fail(err, TERN_ERR_TOKENIZER_PRE,
                         "%s: a tokenizer of model llama has no pre-tokenizer to set to '%s'",
                         t->file, pre);
    t->unknown = 0;
    t->bos = t->n_tokens > 1 ? 1 : TERN_TOKEN_NONE;
    t->eos = t->n_tokens > 2 ? 2 : TERN_TOKEN_NONE;
    t->add_bos = true;
    t->add_space_prefix = true;
    return TERN_OK;
}

/* Tokens that end a text whatever the keys say, by their text. */
static const char *const end_texts[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<EOT>",
    "<|endoftext|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<\357\275\234end\342\226\201of\342\226\201sentence\357\275\234>", /* DeepSeek */
    "<|fim_pad|>",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<|file_sep|>",
};

static const char *const end_keys[] = {
    "tokenizer.ggml.eot_token_id",     "tokenizer.ggml.eom_token_id",
    "tokenizer.ggml.fim_pad_token_id", "tokenizer.ggml.fim_rep_token_id",
    "tokenizer.ggml.fim_sep_token_id",
};

static void mark_end(tern_tokenizer *t, int32_t id) {
    if (id < 0)
        return;
    t->ends[id] = true;
    t->types[id] = TERN_TOKEN_CONTROL; /* some files call them normal: they must never be text */
}

static tern_status set_ends(tern_tokenizer *t, const tern_gguf *file, tern_error *err) {
    for (size_t i = 0; i < sizeof end_keys / sizeof end_keys[0]; i++) {
        int32_t id = TERN_TOKEN_NONE;
        const tern_status status = read_id(t, file, end_keys[i], &id, err);
        if (status != TERN_OK)
            return status;
        mark_end(t, id);
    }
    for (size_t i = 0; i < sizeof end_texts / sizeof end_texts[0]; i++)
        mark_end(t, tern_token_find_text(t, end_texts[i]));
    if (t->eos >= 0)
        t->ends[t->eos] =
            true; /* its type is the file's affair: the default may be a normal token */
    return TERN_OK;
}

static tern_status read_keys(tern_tokenizer *t, const tern_gguf *file, tern_error *err) {
    tern_status status = read_id(t, file, "tokenizer.ggml.bos_token_id", &t->bos, err);
    if (status == TERN_OK)
        status = read_id(t, file, "tokenizer.ggml.eos_token_id", &t->eos, err);
    if (status == TERN_OK)
        status = read_id(t, file, "tokenizer.ggml.unknown_token_id", &t->unknown, err);
    if (status == TERN_OK)
        status = read_bool(file, "tokenizer.ggml.add_bos_token", &t->add_bos, err);
    if (status == TERN_OK)
        status = read_bool(file, "tokenizer.ggml.add_eos_token", &t->add_eos, err);
    if (status == TERN_OK)
        status = read_bool(file, "tokenizer.ggml.add_space_prefix", &t->add_space_prefix, err);
    if (status == TERN_OK)
        status = read_string(file, "tokenizer.chat_template", &t->chat_template, err);
    return status;
}

tern_status tern_tokenizer_new(const tern_gguf *file, const char *architecture, const char *pre,
                               tern_tokenizer **out, tern_error *err) {
    tern_tokenizer *t = calloc(1, sizeof *t);
    if (t == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for the tokenizer",
                         tern_gguf_name(file));
    t->file = tern_gguf_name(file);
    t->chat_template = text_span("");
    t->bitnet = architecture != NULL && (strcmp(architecture, "bitnet-b1.58") == 0 ||
                                         strcmp(architecture, "bitnet-25") == 0);
    tern_status status = read_model(t, file, err);
    if (status == TERN_OK)
        status = tern_vocabulary_load(t, file, err);
    if (status == TERN_OK)
        status = t->spm ? load_spm(t, pre, err) : load_bpe(t, file, pre, err);
    if (status == TERN_OK)
        status = read_keys(t, file, err);
    if (status == TERN_OK)
        status = set_ends(t, file, err);
    if (status == TERN_OK)
        status = tern_vocabulary_set_special(t, err);
    if (status == TERN_OK)
        status = tern_vocabulary_set_pieces(t, err);
    if (status != TERN_OK) {
        tern_tokenizer_free(&t);
        return status;
    }
    *out = t;
    return TERN_OK;
}

void tern_tokenizer_free(tern_tokenizer **tokenizer) {
    if (tokenizer == NULL || *tokenizer == NULL)
        return;
    tern_tokenizer *t = *tokenizer;
    *tokenizer = NULL;
    tern_span_index_free(&t->by_text);
    tern_span_index_free(&t->by_merge);
    tern_pretokenizer_free(&t->pretokenizer);
    free(t->tokens);
    free(t->pieces);
    free(t->types);
    free(t->ends);
    free(t->piece_bytes);
    free(t->special);
    free(t->merges);
    free(t->scores);
    free(t);
}
