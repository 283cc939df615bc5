/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_VOCABULARY_JSON_H
#define TERN_RUNTIME_TEXT_TOKENIZER_VOCABULARY_JSON_H

/* Shared by the files that read JSON vocabularies. Each fills its part of *v, whose file is set. */

#include "runtime/text/tokenizer/vocabulary.h"

/* For "%.*s" in messages: a string, or the start of it. */
#define TERN_SHOWN(span) (int)((span).size < 64 ? (span).size : 64), (span).data

/* Reads a vocabulary {text: id}: tokens and types (all normal). entries: how many more will be
 * added. */
TERN_MUST_CHECK tern_status tern_json_vocabulary(tern_vocabulary *v, const tern_json_value *vocab,
                                                 size_t entries, int64_t max_id, tern_error *err);

/* Finds the largest id in it. TERN_ERR_TOKENIZER_DATA when a value is not an id. */
TERN_MUST_CHECK tern_status tern_json_max_id(const tern_vocabulary *v, const tern_json_value *vocab,
                                             int64_t *max_id, tern_error *err);

/*
 * Reads a vocabulary [[text, score], ...]: tokens, types, scores. It gets `room` tokens, of which
 * later ones may be added.
 */
TERN_MUST_CHECK tern_status tern_json_scored_vocabulary(tern_vocabulary *v,
                                                        const tern_json_value *vocab, size_t room,
                                                        tern_error *err);

/* Read the rest of the models Unigram and WordPiece, after their vocabularies. */
TERN_MUST_CHECK tern_status tern_json_read_unigram(tern_vocabulary *v, const tern_json_value *model,
                                                   tern_error *err);
TERN_MUST_CHECK tern_status tern_json_read_words(tern_vocabulary *v, const tern_json_value *model,
                                                 tern_error *err);

/* Decodes base64 with = at its end; false when it is something else. out holds text.size bytes. */
bool tern_base64_decode(tern_span text, char *out, size_t *size);

/* Read the whole of a tokenizer.json, or of a plain vocabulary. The root is v->json.values. */
TERN_MUST_CHECK tern_status tern_json_read_tokenizer(tern_vocabulary *v, tern_error *err);
TERN_MUST_CHECK tern_status tern_json_read_plain(tern_vocabulary *v, tern_error *err);

/* Read normalizer and pre_tokenizer as steps, and post_processor, which says what is added. */
TERN_MUST_CHECK tern_status tern_json_read_steps(tern_vocabulary *v, tern_error *err);
TERN_MUST_CHECK tern_status tern_json_read_post(tern_vocabulary *v, tern_error *err);

typedef struct tern_json_decoder {
    bool spells_bytes; /* <0xNN> is a byte */
} tern_json_decoder;

TERN_MUST_CHECK tern_status tern_json_read_decoder(tern_vocabulary *v, tern_json_decoder *out,
                                                   tern_error *err);

/* Finds the token with that text; -1: none. Slow. */
int32_t tern_json_find_token(const tern_vocabulary *v, tern_span text);

/* Reads the files beside `path`: tokenizer_config.json, generation_config.json. */
TERN_MUST_CHECK tern_status tern_json_read_beside(tern_vocabulary *v, const char *path,
                                                  tern_error *err);

/*
 * Read chat templates: from the value of a tokenizer_config.json, a text or a list of {name,
 * template}; from chat_template.jinja and the files NAME.jinja of two folders beside `path`, which
 * replace all others.
 */
void tern_json_read_templates(tern_vocabulary *v, const tern_json_value *x);
TERN_MUST_CHECK tern_status tern_json_read_template_files(tern_vocabulary *v, const char *path,
                                                          tern_error *err);

/* The path of `name` in the folder of `path`, from malloc; NULL when memory is short. */
char *tern_json_beside(const char *path, const char *name);

/*
 * Reads which tokens begin a text, end it and stand for unknown text, from an object with the names
 * that tokenizer_config.json has for them. Tokens that it does not name stay.
 */
void tern_json_read_roles(tern_vocabulary *v, const tern_json_value *object);

/* If nothing names an end of text, takes the special token with one of the usual texts. */
void tern_json_guess_end(tern_vocabulary *v);

#endif
