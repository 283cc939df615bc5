/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/hf_tokenizer_models.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/text/tokenizer/bert_rules.h"
#include "runtime/text/tokenizer/unigram_rules.h"

static const char start_mark[] = "\xE2\x96\x81";
enum { START_MARK_BYTES = 3 };

static bool goes_on(const tern_vocabulary *v, tern_span text) {
    return text.size > v->inside.size && memcmp(text.data, v->inside.data, v->inside.size) == 0;
}

static tern_status mark(const tern_vocabulary *v, tern_span *text, char *out, tern_error *err) {
    if (!goes_on(v, *text)) {
        memcpy(out, start_mark, START_MARK_BYTES);
        memcpy(out + START_MARK_BYTES, text->data, text->size);
        *text = (tern_span){out, START_MARK_BYTES + text->size};
        return TERN_OK;
    }
    *text = (tern_span){text->data + v->inside.size, text->size - v->inside.size};
    if (text->size < START_MARK_BYTES || memcmp(text->data, start_mark, START_MARK_BYTES) != 0)
        return TERN_OK;
    return tern_fail(err, TERN_ERR_TOKENIZER_DATA,
                     "%s: a token goes on in a word with U+2581, which GGUF reads as a beginning",
                     v->file);
}

tern_status hf_mark_words(const tern_vocabulary *v, tern_span *texts, size_t n, char **made,
                          tern_error *err) {
    size_t bytes = 1; /* no overflow: distinct parts of one file in memory */
    const size_t own = v->n_tokens < n ? v->n_tokens : n;
    for (size_t i = 0; i < own; i++)
        bytes += texts[i].size + START_MARK_BYTES;
    char *at = *made = malloc(bytes);
    if (at == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for its tokens", v->file);
    for (size_t i = 0; i < own; i++) {
        if (v->types[i] != TERN_TOKEN_NORMAL)
            continue;
        const size_t room = texts[i].size + START_MARK_BYTES;
        const tern_status status = mark(v, &texts[i], at, err);
        if (status != TERN_OK)
            return status;
        at += room;
    }
    return TERN_OK;
}

static void put_unigram(tern_gguf_writer *w, const tern_vocabulary *v) {
    static const char key[] = "tokenizer.ggml.precompiled_charsmap";
    tern_unigram_rules rules;
    (void)tern_unigram_recognise(v, &rules); /* always succeeds: the caller has tried it */
    tern_gguf_put_bool(w, "tokenizer.ggml.add_space_prefix", rules.prefix);
    tern_gguf_put_bool(w, "tokenizer.ggml.remove_extra_whitespaces", rules.fewer_spaces);
    if (rules.charsmap.size > 0)
        tern_gguf_put_value(w, &(tern_gguf_value){.key = {key, sizeof key - 1},
                                                  .type = TERN_GGUF_ARRAY,
                                                  .element = TERN_GGUF_U8,
                                                  .count = rules.charsmap.size,
                                                  .data = (const uint8_t *)rules.charsmap.data});
}

static void put_words(tern_gguf_writer *w, const tern_vocabulary *v) {
    tern_bert_rules rules;
    (void)tern_bert_recognise(v, &rules);
    tern_gguf_put_bool(w, TERN_BERT_KEY_LOWERCASE, rules.lowercase);
    tern_gguf_put_bool(w, TERN_BERT_KEY_ACCENTS, rules.accents);
    if (!rules.clean)
        tern_gguf_put_bool(w, TERN_BERT_KEY_CLEAN, false);
    if (!rules.han)
        tern_gguf_put_bool(w, TERN_BERT_KEY_HAN, false);
    if (v->longest_word != TERN_LONGEST_WORD)
        tern_gguf_put_u32(w, TERN_BERT_KEY_LONGEST, v->longest_word);
    if (v->bos >= 0)
        tern_gguf_put_u32(w, "tokenizer.ggml.cls_token_id", (uint32_t)v->bos);
    if (v->eos >= 0)
        tern_gguf_put_u32(w, "tokenizer.ggml.seperator_token_id", (uint32_t)v->eos);
}

void hf_put_model(tern_gguf_writer *w, const tern_vocabulary *v) {
    if (v->kind == TERN_VOCABULARY_UNIGRAM)
        put_unigram(w, v);
    if (v->kind == TERN_VOCABULARY_WORDPIECE)
        put_words(w, v);
}
