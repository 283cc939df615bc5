/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/hf_older_roberta.h"

#include <stdlib.h>
#include <string.h>

#include "authoring/convert/hf_older_spm.h"
#include "runtime/text/tokenizer/index.h"

static const char classes[] = "XLMRobertaTokenizer XLMRobertaTokenizerFast xlm-roberta";

enum { LEFT_OUT = 3 /* of the model's pieces */, UNKNOWN = 3, BEFORE = 4, AROUND = 5 };

static const hf_older_default roles[] = {
    {"bos_token", "<s>"},   {"eos_token", "</s>"}, {"unk_token", "<unk>"},  {"sep_token", "</s>"},
    {"pad_token", "<pad>"}, {"cls_token", "<s>"},  {"mask_token", "<mask>"}};
enum { FIRST = 0, LAST = 1, N_ROLES = sizeof roles / sizeof *roles };

/* The roles of the tokens before the pieces, and of the one after them. */
static const uint8_t around[AROUND] = {FIRST, 4, LAST, 2, 6};

/* The vocabulary by its ids. */
typedef struct ids {
    sentencepiece_piece *pieces; /* [n] */
    tern_span *texts;            /* [n] of the pieces */
    size_t n;
    tern_span_index index;
} ids;

static void ids_free(ids *v) {
    free(v->pieces);
    free(v->texts);
    tern_span_index_free(&v->index);
}

static int64_t find_id(const void *user, tern_span content) {
    const ids *v = user;
    return tern_span_index_find(&v->index, v->texts, content, (tern_span){"", 0});
}

static tern_status index_texts(ids *v, const char *path, tern_error *err) {
    for (size_t i = 0; i < v->n; i++) {
        v->texts[i] = v->pieces[i].text;
        const size_t there = tern_span_index_add(&v->index, v->texts, i);
        if (there != i)
            return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: tokens %zu and %zu are the same",
                             path, there, i);
    }
    return TERN_OK;
}

static tern_status number(const hf_older_files *f, const sentencepiece *s, const char *path, ids *v,
                          tern_error *err) {
    const size_t own = s->n - LEFT_OUT;
    v->n = own + AROUND;
    v->pieces = calloc(v->n, sizeof *v->pieces);
    v->texts = calloc(v->n, sizeof *v->texts);
    if (v->pieces == NULL || v->texts == NULL || !tern_span_index_init(&v->index, v->n))
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for %zu tokens", path, v->n);
    for (size_t i = 0; i < AROUND; i++)
        v->pieces[i < BEFORE ? i : v->n - 1].text = hf_older_role_or(f, roles[around[i]]);
    memcpy(v->pieces + BEFORE, s->pieces + LEFT_OUT, own * sizeof *v->pieces);
    return index_texts(v, path, err);
}

/* Adds the pieces that are cut out of a text before anything else happens to it. */
static tern_status add_pieces(hf_older_files *f, const ids *v, tern_error *err) {
    tern_status status = TERN_OK;
    for (size_t i = BEFORE; status == TERN_OK && i < v->n - 1; i++) {
        const sentencepiece_piece *p = &v->pieces[i];
        const bool control = p->type == SENTENCEPIECE_CONTROL;
        if (control || p->type == SENTENCEPIECE_USER_DEFINED)
            status = hf_older_add(
                f, (hf_older_token){.id = (int64_t)i, .content = p->text, .special = control}, err);
    }
    return status;
}

static void put_spaces(text *out, const char *name, const char *before, const char *scheme,
                       const char *after) {
    text_name(out, name);
    text_print(out,
               "%s{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\","
               "\"prepend_scheme\":\"%s\",\"split\":true}%s",
               before, scheme, after);
}

static void write_parts(const hf_older_files *f, const sentencepiece *s, const ids *v, text *out) {
    const char *scheme = hf_older_flag(f, "add_prefix_space", true) ? "always" : "never";
    text_add(out, "{", 1);
    hf_older_put_added(f, out);
    if (s->charsmap.size > 0) {
        text_name(out, "normalizer");
        hf_older_put_charsmap(out, s->charsmap);
    }
    put_spaces(out, "pre_tokenizer",
               "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"WhitespaceSplit\"},", scheme,
               "]}");
    hf_older_put_ends(f, hf_older_role_or(f, roles[FIRST]), hf_older_role_or(f, roles[LAST]), out);
    put_spaces(out, "decoder", "", scheme, "");
    text_name(out, "model");
    text_print(out, "{\"type\":\"Unigram\",\"byte_fallback\":false");
    hf_older_put_unigram(out, v->pieces, v->n, UNKNOWN);
    text_print(out, "}}");
}

static tern_status check(const hf_older_files *f, const sentencepiece *s, const char *path,
                         tern_error *err) {
    if (!hf_older_is_class(f, classes))
        return hf_older_refuse_class(f, path, err);
    if (s->model != SENTENCEPIECE_UNIGRAM)
        return tern_fail(err, TERN_ERR_TOKENIZER_MODEL,
                         "%s: is a model of BPE, where XLM-RoBERTa has Unigram", path);
    if (s->n < LEFT_OUT)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA,
                         "%s: %zu pieces, but the first %d are for other tokens", path, s->n,
                         (int)LEFT_OUT);
    return TERN_OK;
}

tern_status hf_older_roberta_write(hf_older_files *f, const sentencepiece *s, const char *path,
                                   text *out, tern_error *err) {
    ids v = {.n = 0};
    tern_status status = check(f, s, path, err);
    if (status == TERN_OK)
        status = number(f, s, path, &v, err);
    if (status == TERN_OK)
        status = hf_older_add_defaults(f, roles, N_ROLES, err);
    if (status == TERN_OK)
        status = add_pieces(f, &v, err);
    if (status == TERN_OK) {
        hf_older_find_ids(f, find_id, &v, v.n);
        write_parts(f, s, &v, out);
    }
    ids_free(&v);
    return status;
}
