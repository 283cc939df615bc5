/* SPDX-License-Identifier: Apache-2.0 */
/* The models of a tokenizer.json that are not BPE: Unigram and WordPiece. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/text/tokenizer/vocabulary_json.h"

static tern_status no_memory(const tern_vocabulary *v, tern_error *err) {
    return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for the vocabulary", v->file);
}

/* ---- Unigram --------------------------------------------------------------------------------- */

static bool read_scored(const tern_json_value *x, tern_span *text, double *score) {
    if (x->type != TERN_JSON_ARRAY || x->count != 2 || x[1].type != TERN_JSON_STRING ||
        x[2].type != TERN_JSON_NUMBER)
        return false;
    *text = x[1].text;
    *score = strtod(x[2].text.data, NULL); /* a comma, a bracket or white space follows */
    return text->size > 0 && isfinite(*score);
}

tern_status tern_json_scored_vocabulary(tern_vocabulary *v, const tern_json_value *vocab,
                                        size_t room, tern_error *err) {
    if (room / 2 > vocab->count + v->n_added + 1024) /* as in tern_json_vocabulary */
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: ids up to %zu for %u tokens", v->file,
                         room - 1, vocab->count);
    v->n_tokens = room;
    v->tokens = calloc(room + 1, sizeof *v->tokens);
    v->types = malloc(room + 1);
    v->scores = calloc(room + 1, sizeof *v->scores);
    if (v->tokens == NULL || v->types == NULL || v->scores == NULL)
        return no_memory(v, err);
    memset(v->types, TERN_TOKEN_UNUSED, room);
    for (size_t i = 0; i < room; i++)
        v->tokens[i].data = "";
    const tern_json_value *x = vocab + 1;
    for (uint32_t i = 0; i < vocab->count; i++, x += x->size) {
        if (!read_scored(x, &v->tokens[i], &v->scores[i]))
            return tern_fail(err, TERN_ERR_TOKENIZER_DATA,
                             "%s: token %u is not a pair of a text and a finite score", v->file, i);
        v->types[i] = TERN_TOKEN_NORMAL;
    }
    return TERN_OK;
}

tern_status tern_json_read_unigram(tern_vocabulary *v, const tern_json_value *model,
                                   tern_error *err) {
    int64_t unknown;
    if (!tern_json_integer(tern_json_get(model, "unk_id"), &unknown) || unknown < 0 ||
        (size_t)unknown >= v->n_tokens || v->types[unknown] == TERN_TOKEN_UNUSED)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: the model's unk_id is not a token",
                         v->file);
    v->unknown = (int32_t)unknown;
    v->byte_fallback = tern_json_is_true(tern_json_get(model, "byte_fallback"));
    return TERN_OK;
}

/* ---- WordPiece ------------------------------------------------------------------------------- */

/* A text of the model; `otherwise` if it has none. */
static tern_span text_or(const tern_json_value *x, const char *otherwise) {
    return x != NULL && x->type == TERN_JSON_STRING ? x->text
                                                    : (tern_span){otherwise, strlen(otherwise)};
}

tern_status tern_json_read_words(tern_vocabulary *v, const tern_json_value *model,
                                 tern_error *err) {
    const tern_json_value *most = tern_json_get(model, "max_input_chars_per_word");
    const tern_span unknown = text_or(tern_json_get(model, "unk_token"), "[UNK]");
    int64_t longest = TERN_LONGEST_WORD;
    if (most != NULL &&
        (!tern_json_integer(most, &longest) || longest < 0 || longest > TERN_LONGEST_WORD_LIMIT))
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA,
                         "%s: max_input_chars_per_word is not a number from 0 to %d", v->file,
                         (int)TERN_LONGEST_WORD_LIMIT);
    v->longest_word = (uint32_t)longest;
    v->inside = text_or(tern_json_get(model, "continuing_subword_prefix"), "##");
    v->unknown = tern_json_find_token(v, unknown);
    if (v->unknown < 0)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA,
                         "%s: the unknown token '%.*s' is not in the vocabulary", v->file,
                         TERN_SHOWN(unknown));
    return TERN_OK;
}

/* ---- base64 ---------------------------------------------------------------------------------- */

static int base64_digit(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = c != '\0' ? strchr(digits, c) : NULL;
    return found != NULL ? (int)(found - digits) : -1;
}

bool tern_base64_decode(tern_span text, char *out, size_t *size) {
    uint32_t bits = 0;
    size_t n = text.size;
    if (text.size % 4 != 0)
        return false;
    while (n > 0 && text.size - n < 2 && text.data[n - 1] == '=')
        n--;
    *size = 0;
    for (size_t i = 0; i < n; i++) {
        const int digit = base64_digit(text.data[i]);
        if (digit < 0)
            return false;
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4 > 0)
            out[(*size)++] = (char)(bits >> (6 - 2 * (i % 4)));
    }
    return true;
}
