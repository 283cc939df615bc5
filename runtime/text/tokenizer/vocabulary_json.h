/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_VOCABULARY_JSON_H
#define TERN_RUNTIME_TEXT_TOKENIZER_VOCABULARY_JSON_H

/* What the files that read JSON vocabularies share. Each fills its part of *v, whose file is set.
 */

#include "runtime/text/tokenizer/vocabulary.h"

/* For "%.*s" in messages: a string, or the start of it. */
#define TERN_SHOWN(span) (int)((span).size < 64 ? (span).size : 64), (span).data

/* A vocabulary {text: id}: tokens, types (all normal). entries: more that will be added. */
TERN_MUST_CHECK tern_status tern_json_vocabulary(tern_vocabulary *v, const tern_json_value *vocab,
                                                 size_t entries, int64_t max_id, tern_error *err);

/* The largest id in it, or TERN_ERR_TOKENIZER_DATA when a value is not an id. */
TERN_MUST_CHECK tern_status tern_json_max_id(const tern_vocabulary *v, const tern_json_value *vocab,
                                             int64_t *max_id, tern_error *err);

/*
 * A vocabulary [[text, score], ...] of room tokens, of which later ones may be added: tokens,
 * types, scores.
 */
TERN_MUST_CHECK tern_status tern_json_scored_vocabulary(tern_vocabulary *v,
                                                        const tern_json_value *vocab, size_t room,
                                                        tern_error *err);

/* The rest of the models Unigram and WordPiece, after their vocabularies. */
TERN_MUST_CHECK tern_status tern_json_read_unigram(tern_vocabulary *v, const tern_json_value *model,
                                                   tern_error *err);
TERN_MUST_CHECK tern_status tern_json_read_words(tern_vocabulary *v, const tern_json_value *model,
                                                 tern_error *err);

/* Bytes of a text in base64, with = at its end; false when it is none. out holds its size. */
bool tern_base64_decode(tern_span text, char *out, size_t *size);

/* The whole of a tokenizer.json, and of a plain vocabulary; root is v->json.values. */
TERN_MUST_CHECK tern_status tern_json_read_tokenizer(tern_vocabulary *v, tern_error *err);
TERN_MUST_CHECK tern_status tern_json_read_plain(tern_vocabulary *v, tern_error *err);

/* normalizer, pre_tokenizer: the steps. post_processor: what is added. decoder: how texts are read.
 */
TERN_MUST_CHECK tern_status tern_json_read_steps(tern_vocabulary *v, tern_error *err);
TERN_MUST_CHECK tern_status tern_json_read_post(tern_vocabulary *v, tern_error *err);

typedef struct tern_json_decoder {
    bool spells_bytes; /* <0xNN> is a byte */
} tern_json_decoder;

TERN_MUST_CHECK tern_status tern_json_read_decoder(tern_vocabulary *v, tern_json_decoder *out,
                                                   tern_error *err);

/* The token with that text, -1: none. Slow. */
int32_t tern_json_find_token(const tern_vocabulary *v, tern_span text);

/* What lies beside `path`: tokenizer_config.json, generation_config.json. */
TERN_MUST_CHECK tern_status tern_json_read_beside(tern_vocabulary *v, const char *path,
                                                  tern_error *err);

/*
 * Which tokens begin and end a text and stand for unknown text, from an object with the names that
 * tokenizer_config.json has for them; what it does not name stays.
 */
void tern_json_read_roles(tern_vocabulary *v, const tern_json_value *object);

/* Where nothing names an end of text: the special token with one of the usual texts. */
void tern_json_guess_end(tern_vocabulary *v);

#endif
