/* SPDX-License-Identifier: Apache-2.0 */
/* The models t5 (Unigram) and bert (WordPiece) of GGUF files. */

#include "runtime/text/tokenizer/bert_rules.h"
#include "runtime/text/tokenizer/normalize.h"
#include "runtime/text/tokenizer/vocabulary_gguf.h"

static int32_t token_or_none(const tern_vocabulary *v, int32_t id) {
    return (size_t)id < v->n_tokens ? id : TERN_TOKEN_NONE;
}

static tern_status check_unknown(const tern_vocabulary *v, tern_error *err) {
    return v->unknown >= 0
               ? TERN_OK
               : tern_fail(err, TERN_ERR_TOKENIZER_DATA,
                           "%s: key 'tokenizer.ggml.unknown_token_id' names no token", v->file);
}

/* ---- Unigram --------------------------------------------------------------------------------- */

tern_status tern_gguf_vocabulary_begin_unigram(tern_vocabulary *v, const char *pre,
                                               tern_error *err) {
    enum { PADDING = 0, EOS = 1, UNKNOWN = 2 };
    v->bos = TERN_TOKEN_NONE;
    v->eos = token_or_none(v, EOS);
    v->unknown = token_or_none(v, UNKNOWN);
    v->padding = token_or_none(v, PADDING);
    v->add_eos = true;
    v->decodes_spaces = true;
    return tern_gguf_vocabulary_no_pre(v, "t5", pre, err);
}

/* Reads the map of replacements; size 0 when there is none. */
static tern_status read_charsmap(const tern_vocabulary *v, const tern_gguf *file, tern_span *out,
                                 tern_error *err) {
    static const char key[] = "tokenizer.ggml.precompiled_charsmap";
    const tern_gguf_value *value = tern_gguf_find(file, key);
    *out = (tern_span){"", 0};
    if (value == NULL)
        return TERN_OK;
    if (value->type != TERN_GGUF_ARRAY ||
        (value->element != TERN_GGUF_U8 && value->element != TERN_GGUF_I8))
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: key '%s' is not an array of u8",
                         v->file, key);
    *out = (tern_span){(const char *)value->data, (size_t)value->count};
    return TERN_OK;
}

tern_status tern_gguf_vocabulary_finish_unigram(tern_vocabulary *v, const tern_gguf *file,
                                                tern_error *err) {
    tern_span map;
    bool fewer = false;
    tern_status status = check_unknown(v, err);
    if (status == TERN_OK)
        status = read_charsmap(v, file, &map, err);
    if (status == TERN_OK)
        status =
            tern_gguf_vocabulary_bool(file, "tokenizer.ggml.remove_extra_whitespaces", &fewer, err);
    if (status != TERN_OK)
        return status;
    for (size_t i = 0; i < v->n_tokens; i++)
        v->byte_fallback |= v->types[i] == TERN_TOKEN_BYTE;
    v->drops_space = v->add_space_prefix;
    if (map.size > 0)
        v->steps[v->n_steps++] = (tern_step){.kind = TERN_STEP_CHARSMAP, .content = map};
    v->steps[v->n_steps++] =
        (tern_step){.kind = TERN_STEP_SPACES, .left = v->add_space_prefix, .fewer = fewer};
    return TERN_OK;
}

/* ---- WordPiece ------------------------------------------------------------------------------- */

tern_status tern_gguf_vocabulary_begin_words(tern_vocabulary *v, const char *pre, tern_error *err) {
    enum { PADDING = 0, UNKNOWN = 100, CLS = 101, SEP = 102 };
    v->bos = token_or_none(v, CLS);
    v->eos = token_or_none(v, SEP);
    v->unknown = token_or_none(v, UNKNOWN);
    v->padding = token_or_none(v, PADDING);
    v->add_bos = v->add_eos = true;
    v->marked_starts = v->joins_punctuation = v->drops_space = true;
    v->longest_word = TERN_LONGEST_WORD;
    v->inside = (tern_span){"", 0};
    return tern_gguf_vocabulary_no_pre(v, "bert", pre, err);
}

/* Reads the tokens around a text, by the names that these models use. Most files misspell one of
 * them. */
static tern_status read_around(tern_vocabulary *v, const tern_gguf *file, tern_error *err) {
    tern_status status =
        tern_gguf_vocabulary_id(v, file, "tokenizer.ggml.cls_token_id", &v->bos, err);
    if (status == TERN_OK)
        status =
            tern_gguf_vocabulary_id(v, file, "tokenizer.ggml.seperator_token_id", &v->eos, err);
    if (status == TERN_OK)
        status =
            tern_gguf_vocabulary_id(v, file, "tokenizer.ggml.separator_token_id", &v->eos, err);
    return status;
}

static tern_status read_rules(const tern_gguf *file, tern_bert_rules *rules, tern_error *err) {
    *rules = (tern_bert_rules){true, true, true, true};
    tern_status status =
        tern_gguf_vocabulary_bool(file, TERN_BERT_KEY_LOWERCASE, &rules->lowercase, err);
    rules->accents = rules->lowercase;
    if (status == TERN_OK)
        status = tern_gguf_vocabulary_bool(file, TERN_BERT_KEY_ACCENTS, &rules->accents, err);
    if (status == TERN_OK)
        status = tern_gguf_vocabulary_bool(file, TERN_BERT_KEY_CLEAN, &rules->clean, err);
    if (status == TERN_OK)
        status = tern_gguf_vocabulary_bool(file, TERN_BERT_KEY_HAN, &rules->han, err);
    return status;
}

static tern_status read_longest(tern_vocabulary *v, const tern_gguf *file, tern_error *err) {
    if (tern_gguf_find(file, TERN_BERT_KEY_LONGEST) == NULL)
        return TERN_OK;
    if (tern_gguf_u32(file, TERN_BERT_KEY_LONGEST, &v->longest_word, NULL) != TERN_OK ||
        v->longest_word > TERN_LONGEST_WORD_LIMIT)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: key '%s' is not a number from 0 to %d",
                         v->file, TERN_BERT_KEY_LONGEST, (int)TERN_LONGEST_WORD_LIMIT);
    return TERN_OK;
}

tern_status tern_gguf_vocabulary_finish_words(tern_vocabulary *v, const tern_gguf *file,
                                              tern_error *err) {
    tern_bert_rules rules;
    tern_status status = read_around(v, file, err);
    if (status == TERN_OK)
        status = check_unknown(v, err);
    if (status == TERN_OK)
        status = read_longest(v, file, err);
    if (status == TERN_OK)
        status = read_rules(file, &rules, err);
    if (status != TERN_OK)
        return status;
    if ((rules.lowercase || rules.accents) && !tern_can_normalize())
        return tern_fail(err, TERN_ERR_TOKENIZER_PRE, "%s: %s", v->file, tern_no_bert);
    (void)tern_bert_add_normalizer(v, rules); /* there is room: these are the first steps */
    v->steps[v->n_steps++] = (tern_step){.kind = TERN_STEP_WORDS};
    return TERN_OK;
}
