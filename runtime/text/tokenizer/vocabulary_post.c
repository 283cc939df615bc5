/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what a tokenizer.json does after the model: post_processor and decoder. */

#include <string.h>

#include "runtime/text/tokenizer/vocabulary_json.h"

static tern_status refuse(const tern_vocabulary *v, const char *part, const char *what,
                          tern_error *err) {
    return tern_fail(err, TERN_ERR_TOKENIZER_MODEL, "%s: %s: %s", v->file, part, what);
}

static bool is_type(const tern_json_value *x, const char *name) {
    return tern_json_is_string(tern_json_get(x, "type"), name);
}

static tern_status refuse_type(const tern_vocabulary *v, const char *part, const tern_json_value *x,
                               tern_error *err) {
    const tern_json_value *type = tern_json_get(x, "type");
    const tern_span name = type != NULL ? type->text : (tern_span){"", 0};
    return tern_fail(err, TERN_ERR_TOKENIZER_MODEL, "%s: %s '%.*s' is not supported", v->file, part,
                     TERN_SHOWN(name));
}

/* ---- tokens around a text ---------------------------------------------------------------------
 */

static const char post[] = "post_processor";

static tern_status set_id(const tern_vocabulary *v, const tern_json_value *x, int32_t *id,
                          bool *added, tern_error *err) {
    int64_t number;
    if (!tern_json_integer(x, &number) || number < 0 || (size_t)number >= v->n_tokens)
        return refuse(v, post, "adds a token that does not exist", err);
    if (*added)
        return refuse(v, post, "adds more than one token on a side", err);
    *id = (int32_t)number;
    *added = true;
    return TERN_OK;
}

/* Finds the ids of a name in special_tokens. */
static const tern_json_value *template_id(const tern_json_value *x, const tern_json_value *name) {
    const tern_json_value *all = tern_json_get(x, "special_tokens");
    if (name == NULL || name->type != TERN_JSON_STRING || all == NULL ||
        all->type != TERN_JSON_OBJECT)
        return NULL;
    const tern_json_value *at = all + 1;
    for (uint32_t i = 0; i < all->count; i++, at += 1 + (at + 1)->size) {
        const tern_json_value *ids = tern_json_get(at + 1, "ids");
        if (at->text.size == name->text.size &&
            memcmp(at->text.data, name->text.data, at->text.size) == 0)
            return ids != NULL && ids->type == TERN_JSON_ARRAY && ids->count == 1 ? ids + 1 : NULL;
    }
    return NULL;
}

/* Reads "single": special tokens before and after the one sequence. */
static tern_status read_template(tern_vocabulary *v, const tern_json_value *x, tern_error *err) {
    const tern_json_value *single = tern_json_get(x, "single");
    if (single == NULL || single->type != TERN_JSON_ARRAY)
        return refuse(v, post, "a template without its list", err);
    bool behind = false;
    const tern_json_value *at = single + 1;
    for (uint32_t i = 0; i < single->count; i++, at += at->size) {
        const tern_json_value *special = tern_json_get(at, "SpecialToken");
        if (special == NULL) {
            if (behind || tern_json_get(at, "Sequence") == NULL)
                return refuse(v, post, "a template of more than one text", err);
            behind = true;
            continue;
        }
        const tern_json_value *id = template_id(x, tern_json_get(special, "id"));
        const tern_status status = behind ? set_id(v, id, &v->eos, &v->add_eos, err)
                                          : set_id(v, id, &v->bos, &v->add_bos, err);
        if (status != TERN_OK)
            return status;
    }
    return behind ? TERN_OK : refuse(v, post, "a template without a text", err);
}

/* Reads the tokens of BERT and RoBERTa: ["text", id] under "cls" and "sep". */
static tern_status read_pair(tern_vocabulary *v, const tern_json_value *x, tern_error *err) {
    const tern_json_value *cls = tern_json_get(x, "cls"), *sep = tern_json_get(x, "sep");
    if (cls == NULL || cls->type != TERN_JSON_ARRAY || cls->count != 2 || sep == NULL ||
        sep->type != TERN_JSON_ARRAY || sep->count != 2)
        return refuse(v, post, "no cls or no sep", err);
    const tern_status status = set_id(v, cls + 1 + cls[1].size, &v->bos, &v->add_bos, err);
    return status == TERN_OK ? set_id(v, sep + 1 + sep[1].size, &v->eos, &v->add_eos, err) : status;
}

static tern_status read_post(tern_vocabulary *v, const tern_json_value *x, tern_error *err) {
    if (is_type(x, "ByteLevel")) /* it only moves offsets */
        return TERN_OK;
    if (is_type(x, "TemplateProcessing"))
        return read_template(v, x, err);
    if (is_type(x, "RobertaProcessing") || is_type(x, "BertProcessing"))
        return read_pair(v, x, err);
    const tern_json_value *list = tern_json_get(x, "processors");
    if (!is_type(x, "Sequence") || list == NULL || list->type != TERN_JSON_ARRAY)
        return refuse_type(v, post, x, err);
    const tern_json_value *at = list + 1;
    for (uint32_t i = 0; i < list->count; i++, at += at->size) {
        const tern_status status = read_post(v, at, err);
        if (status != TERN_OK)
            return status;
    }
    return TERN_OK;
}

tern_status tern_json_read_post(tern_vocabulary *v, tern_error *err) {
    const tern_json_value *x = tern_json_get(v->json.values, post);
    return x != NULL ? read_post(v, x, err) : TERN_OK;
}

/* ---- how texts of tokens are read --------------------------------------------------------------
 */

static const char decoder[] = "decoder";
static const char visible_space[] = "\xE2\x96\x81";

static tern_status read_strip(tern_vocabulary *v, const tern_json_value *x, tern_error *err) {
    int64_t start = 0, stop = 0;
    if (!tern_json_is_string(tern_json_get(x, "content"), " ") ||
        !tern_json_integer(tern_json_get(x, "start"), &start) || start < 0 || start > 1 ||
        !tern_json_integer(tern_json_get(x, "stop"), &stop) || stop != 0)
        return refuse(v, decoder, "Strip of anything but one space at the start", err);
    v->drops_space = start == 1;
    return TERN_OK;
}

/* Reads the decoder of words, which must have the model's prefix for tokens inside a word. */
static tern_status read_words(tern_vocabulary *v, const tern_json_value *x, tern_error *err) {
    const tern_json_value *prefix = tern_json_get(x, "prefix"),
                          *cleans = tern_json_get(x, "cleanup");
    if (v->kind != TERN_VOCABULARY_WORDPIECE || prefix == NULL ||
        prefix->type != TERN_JSON_STRING || prefix->text.size != v->inside.size ||
        memcmp(prefix->text.data, v->inside.data, v->inside.size) != 0)
        return refuse(v, decoder, "WordPiece with another prefix than the model's", err);
    v->joins_punctuation = cleans == NULL || tern_json_is_true(cleans);
    v->drops_space = true;
    return TERN_OK;
}

static tern_status read_decoder(tern_vocabulary *v, const tern_json_value *x,
                                tern_json_decoder *out, tern_error *err) {
    if (is_type(x, "ByteLevel")) {
        v->decodes_bytes = true;
    } else if (is_type(x, "ByteFallback")) {
        out->spells_bytes = true;
    } else if (is_type(x, "Replace")) {
        if (!tern_json_is_string(tern_json_get(tern_json_get(x, "pattern"), "String"),
                                 visible_space) ||
            !tern_json_is_string(tern_json_get(x, "content"), " "))
            return refuse(v, decoder, "Replace of anything but U+2581 by a space", err);
        v->decodes_spaces = true;
    } else if (is_type(x, "WordPiece")) {
        return read_words(v, x, err);
    } else if (is_type(x, "Strip")) {
        return read_strip(v, x, err);
    } else if (is_type(x, "Metaspace")) {
        const tern_json_value *scheme = tern_json_get(x, "prepend_scheme");
        const tern_json_value *old = tern_json_get(x, "add_prefix_space");
        if (!tern_json_is_string(tern_json_get(x, "replacement"), visible_space))
            return refuse(v, decoder, "Metaspace with another replacement than U+2581", err);
        v->decodes_spaces = true;
        v->drops_space = scheme != NULL ? !tern_json_is_string(scheme, "never")
                                        : old == NULL || tern_json_is_true(old);
    } else if (!is_type(x, "Fuse")) {
        const tern_json_value *list = tern_json_get(x, "decoders");
        if (!is_type(x, "Sequence") || list == NULL || list->type != TERN_JSON_ARRAY)
            return refuse_type(v, decoder, x, err);
        const tern_json_value *at = list + 1;
        for (uint32_t i = 0; i < list->count; i++, at += at->size) {
            const tern_status status = read_decoder(v, at, out, err);
            if (status != TERN_OK)
                return status;
        }
    }
    return TERN_OK;
}

tern_status tern_json_read_decoder(tern_vocabulary *v, tern_json_decoder *out, tern_error *err) {
    const tern_json_value *x = tern_json_get(v->json.values, decoder);
    if (x == NULL)
        return refuse(v, decoder, "there is none", err);
    const tern_status status = read_decoder(v, x, out, err);
    if (status == TERN_OK && v->decodes_bytes && v->decodes_spaces)
        return refuse(v, decoder, "both ByteLevel and U+2581", err);
    if (status == TERN_OK && v->kind == TERN_VOCABULARY_WORDPIECE && !is_type(x, "WordPiece"))
        return refuse(v, decoder, "not that of WordPiece", err);
    return status;
}
