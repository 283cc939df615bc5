/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/hf_older_spm.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/word_list.h"
#include "runtime/text/tokenizer/index.h"
#include "runtime/text/tokenizer/regex.h"

static const char mark[] = "\xE2\x96\x81";

enum { LONGEST_MERGED = 256 /* bytes; trained pieces have some dozen */ };

/* True if a space is put in front of texts. */
static bool has_prefix(const hf_older_files *f, const sentencepiece *s) {
    return s->prefix && hf_older_flag(f, "add_prefix_space", true);
}

static bool is_legacy(const hf_older_files *f) {
    return hf_older_flag(f, "legacy", true);
}

/* ---- added tokens ---------------------------------------------------------------------------- */

/*
 * SentencePiece looks for pieces that users defined in the text with its marks for spaces. That is
 * after the normalizers, which must not put a space in front of the pieces themselves.
 */
static tern_status add_pieces(hf_older_files *f, const sentencepiece *s, bool prefix,
                              tern_error *err) {
    tern_status status = TERN_OK;
    for (size_t i = 0; status == TERN_OK && i < s->n; i++) {
        const sentencepiece_piece *p = &s->pieces[i];
        const bool own = p->type == SENTENCEPIECE_USER_DEFINED;
        const bool special = p->type == SENTENCEPIECE_CONTROL || p->type == SENTENCEPIECE_UNKNOWN;
        if (special || (own && !prefix))
            status = hf_older_add(
                f,
                (hf_older_token){
                    .id = (int64_t)i, .content = p->text, .special = special, .normalized = own},
                err);
    }
    return status;
}

/* ---- the steps ------------------------------------------------------------------------------- */

static void put_replace(text *out, const char *kind, const char *pattern, const char *content) {
    text_print(out, "{\"type\":\"Replace\",\"pattern\":{\"%s\":\"%s\"},\"content\":\"%s\"}", kind,
               pattern, content);
}

void hf_older_put_charsmap(text *out, tern_span charsmap) {
    text_print(out, "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"");
    text_base64(out, charsmap.data, charsmap.size);
    text_print(out, "\"}");
}

static void put_normalizers(text *out, const sentencepiece *s, bool prefix) {
    text_name(out, "normalizer");
    text_print(out, "{\"type\":\"Sequence\",\"normalizers\":[");
    if (s->charsmap.size > 0) {
        hf_older_put_charsmap(out, s->charsmap);
        text_add(out, ",", 1);
    }
    if (s->fewer_spaces) {
        put_replace(out, "Regex", "\\\\A +| +\\\\z", "");
        text_add(out, ",", 1);
        put_replace(out, "Regex", " {2,}", " ");
        text_add(out, ",", 1);
    }
    if (prefix)
        text_print(out, "{\"type\":\"Prepend\",\"prepend\":\"%s\"},", mark);
    put_replace(out, "String", " ", mark);
    text_print(out, "]}");
}

static int compare_longer(const void *a, const void *b) {
    const tern_span *x = a, *y = b;
    return (x->size < y->size) - (x->size > y->size);
}

/* A pattern that matches the pieces that users defined, the longest first. */
static void put_pattern(text *out, const tern_span *pieces, size_t n) {
    static const char meaning[] = "\\^$.|?*+()[]{}";
    for (size_t i = 0; i < n; i++) {
        text_print(out, i > 0 ? "|" : "");
        for (size_t k = 0; k < pieces[i].size; k++) {
            const char c = pieces[i].data[k];
            if (c != '\0' && strchr(meaning, c) != NULL)
                text_add(out, "\\", 1);
            text_add(out, &c, 1);
        }
    }
}

/* Cuts out the pieces that users defined. */
static tern_status put_split(text *out, const sentencepiece *s, const char *name, tern_error *err) {
    text pattern = {0};
    size_t n = 0;
    tern_span *pieces = calloc(s->n_user_defined, sizeof *pieces);
    if (pieces == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for its pieces", name);
    for (size_t i = 0; i < s->n; i++)
        if (s->pieces[i].type == SENTENCEPIECE_USER_DEFINED)
            pieces[n++] = s->pieces[i].text;
    qsort(pieces, n, sizeof *pieces, compare_longer);
    put_pattern(&pattern, pieces, n);
    free(pieces);
    const bool fits = pattern.size <= TERN_REGEX_MAX_BYTES;
    text_print(out, "{\"type\":\"Split\",\"pattern\":{\"Regex\":");
    text_quote(out, pattern.bytes != NULL ? pattern.bytes : "", pattern.size);
    text_print(out, "},\"behavior\":\"Isolated\",\"invert\":false}");
    out->failed = out->failed || pattern.failed;
    text_free(&pattern);
    return fits ? TERN_OK
                : tern_fail(err, TERN_ERR_TOKENIZER_MODEL,
                            "%s: %zu pieces that users defined are more than tern supports in a "
                            "model that puts a space in front of a text",
                            name, n);
}

static tern_status put_pre_tokenizers(text *out, const sentencepiece *s, bool first, bool splits,
                                      const char *name, tern_error *err) {
    tern_status status = TERN_OK;
    if (!first && !splits)
        return TERN_OK;
    text_name(out, "pre_tokenizer");
    text_print(out, "{\"type\":\"Sequence\",\"pretokenizers\":[");
    if (first)
        text_print(out,
                   "{\"type\":\"Metaspace\",\"replacement\":\"%s\",\"prepend_scheme\":"
                   "\"first\",\"split\":false}%s",
                   mark, splits ? "," : "");
    if (splits)
        status = put_split(out, s, name, err);
    text_print(out, "]}");
    return status;
}

static void put_decoder(text *out, const sentencepiece *s, bool prefix) {
    text_name(out, "decoder");
    text_print(out, "{\"type\":\"Sequence\",\"decoders\":[");
    put_replace(out, "String", mark, " ");
    text_print(out, "%s,{\"type\":\"Fuse\"}%s]}",
               s->byte_fallback ? ",{\"type\":\"ByteFallback\"}" : "",
               prefix ? ",{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}" : "");
}

/* ---- the model ------------------------------------------------------------------------------- */

/* Two pieces that make a third one: the first `left` bytes of its text, and the rest. */
typedef struct merge {
    float score;
    uint32_t piece, left;
} merge;

/* The pieces by their texts, and how they merge. */
typedef struct pieces {
    const sentencepiece *s;
    const char *name;
    tern_span *texts; /* [s->n] */
    tern_span_index index;
    merge *merges; /* [n] */
    size_t n, capacity;
} pieces;

static bool add_merge(pieces *p, merge item) {
    if (!tern_grow((void **)&p->merges, &p->capacity, p->n, sizeof item, SIZE_MAX / sizeof item))
        return false;
    p->merges[p->n++] = item;
    return true;
}

/* The highest score first. Between pairs that make one piece the order only has to be the same in
 * every run. */
static int compare_merges(const void *a, const void *b) {
    const merge *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    if (x->piece != y->piece)
        return x->piece < y->piece ? -1 : 1;
    return (x->left < y->left) - (x->left > y->left);
}

static bool is_inside_character(char c) {
    return ((unsigned char)c & 0xC0) == 0x80;
}

static int32_t find_piece(const pieces *p, tern_span content) {
    return tern_span_index_find(&p->index, p->texts, content, (tern_span){"", 0});
}

static bool is_normal(const pieces *p, tern_span content) {
    const int32_t id = find_piece(p, content);
    return id >= 0 && p->s->pieces[id].type == SENTENCEPIECE_NORMAL;
}

/* Adds all pairs of pieces that make piece i; false without memory. */
static bool add_pairs(pieces *p, size_t i) {
    const tern_span whole = p->texts[i];
    bool sound = true;
    for (size_t left = 1; sound && left < whole.size; left++) {
        const tern_span rest = {whole.data + left, whole.size - left};
        if (!is_inside_character(rest.data[0]) && is_normal(p, (tern_span){whole.data, left}) &&
            is_normal(p, rest))
            sound = add_merge(p, (merge){p->s->pieces[i].score, (uint32_t)i, (uint32_t)left});
    }
    return sound;
}

static tern_status index_pieces(pieces *p, tern_error *err) {
    const size_t n = p->s->n;
    p->texts = calloc(n, sizeof *p->texts);
    if (p->texts == NULL || !tern_span_index_init(&p->index, n))
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for %zu pieces", p->name, n);
    for (size_t i = 0; i < n; i++) {
        p->texts[i] = p->s->pieces[i].text;
        const size_t there = tern_span_index_add(&p->index, p->texts, i);
        if (there != i)
            return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: pieces %zu and %zu are the same",
                             p->name, there, i);
    }
    return TERN_OK;
}

static tern_status find_merges(pieces *p, tern_error *err) {
    for (size_t i = 0; i < p->s->n; i++) {
        if (p->s->pieces[i].type != SENTENCEPIECE_NORMAL)
            continue;
        if (p->texts[i].size > LONGEST_MERGED)
            return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: piece %zu has more than %d bytes",
                             p->name, i, (int)LONGEST_MERGED);
        if (!add_pairs(p, i))
            return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for its merges", p->name);
    }
    if (p->n > 0)
        qsort(p->merges, p->n, sizeof *p->merges, compare_merges);
    return TERN_OK;
}

static void put_merges(text *out, const pieces *p) {
    text_name(out, "merges");
    text_add(out, "[", 1);
    for (size_t i = 0; i < p->n; i++) {
        const tern_span whole = p->texts[p->merges[i].piece];
        const size_t left = p->merges[i].left;
        text_print(out, i > 0 ? ",[" : "[");
        text_quote(out, whole.data, left);
        text_add(out, ",", 1);
        text_quote(out, whole.data + left, whole.size - left);
        text_add(out, "]", 1);
    }
    text_add(out, "]", 1);
}

void hf_older_put_unigram(text *out, const sentencepiece_piece *list, size_t n, int32_t unknown) {
    text_print(out, ",\"unk_id\":%d,\"vocab\":[", (int)unknown);
    for (size_t i = 0; i < n; i++) {
        text_print(out, i > 0 ? ",[" : "[");
        text_quote(out, list[i].text.data, list[i].text.size);
        text_print(out, ",%.9g]", (double)list[i].score);
    }
    text_add(out, "]", 1);
}

/* whole: what is a piece as a whole becomes it at once. */
static void put_merged(text *out, const pieces *p, bool whole) {
    text_print(out,
               ",\"fuse_unk\":true,\"ignore_merges\":%s,\"unk_token\":", whole ? "true" : "false");
    text_quote(out, p->texts[p->s->unknown].data, p->texts[p->s->unknown].size);
    put_merges(out, p);
    for (size_t i = 0; i < p->s->n; i++) {
        text_print(out, i > 0 ? "," : ",\"vocab\":{");
        text_quote(out, p->texts[i].data, p->texts[i].size);
        text_print(out, ":%zu", i);
    }
    text_add(out, "}", 1);
}

static void put_model(text *out, const pieces *p, bool whole) {
    const bool scored = p->s->model == SENTENCEPIECE_UNIGRAM;
    text_name(out, "model");
    text_print(out, "{\"type\":\"%s\",\"byte_fallback\":%s", scored ? "Unigram" : "BPE",
               p->s->byte_fallback ? "true" : "false");
    if (scored)
        hf_older_put_unigram(out, p->s->pieces, p->s->n, p->s->unknown);
    else
        put_merged(out, p, whole);
    text_add(out, "}", 1);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int64_t find_id(const void *user, tern_span content) {
    return find_piece(user, content);
}

/* A token of tokenizer_config.json with the id of a piece may give it another text. Then no text
 * becomes it by merging. */
static void rename_pieces(const hf_older_files *f, sentencepiece *s) {
    for (size_t i = 0; i < f->n; i++) {
        const hf_older_token *t = &f->tokens[i];
        if (t->id < 0 || (size_t)t->id >= s->n)
            continue;
        sentencepiece_piece *piece = &s->pieces[t->id];
        if (tern_spans_equal(piece->text, t->content))
            continue;
        s->n_user_defined -= piece->type == SENTENCEPIECE_USER_DEFINED;
        piece->type = piece->type == SENTENCEPIECE_UNKNOWN ? piece->type : SENTENCEPIECE_CONTROL;
        piece->text = t->content;
    }
}

static tern_span role_or(const hf_older_files *f, const char *name, const sentencepiece *s,
                         int32_t id) {
    const tern_span said = hf_older_role(f, name);
    return said.size > 0 || id < 0 ? said : s->pieces[id].text;
}

static void put_ends(text *out, const hf_older_files *f, const sentencepiece *s) {
    const tern_span none = {"", 0};
    const bool t5 = tern_span_begins_with(hf_older_class(f), "T5") ||
                    tern_span_begins_with(hf_older_class(f), "t5");
    const bool first = hf_older_flag(f, "add_bos_token", !t5);
    const bool last = hf_older_flag(f, "add_eos_token", t5);
    hf_older_put_ends(f, first ? role_or(f, "bos_token", s, s->bos) : none,
                      last ? role_or(f, "eos_token", s, s->eos) : none, out);
}

static tern_status write_parts(const hf_older_files *f, const pieces *p, text *out,
                               tern_error *err) {
    const sentencepiece *s = p->s;
    const bool prefix = has_prefix(f, s), splits = prefix && s->n_user_defined > 0;
    text_add(out, "{", 1);
    hf_older_put_added(f, out);
    put_normalizers(out, s, prefix && is_legacy(f));
    const tern_status status =
        put_pre_tokenizers(out, s, prefix && !is_legacy(f), splits, p->name, err);
    put_ends(out, f, s);
    put_decoder(out, s, prefix);
    put_model(out, p, splits && s->model == SENTENCEPIECE_BPE);
    text_add(out, "}", 1);
    return status;
}

static tern_status write_all(hf_older_files *f, pieces *p, text *out, tern_error *err) {
    tern_status status = index_pieces(p, err);
    if (status == TERN_OK && p->s->model == SENTENCEPIECE_BPE)
        status = find_merges(p, err);
    if (status != TERN_OK)
        return status;
    hf_older_find_ids(f, find_id, p, p->s->n);
    status = add_pieces(f, p->s, has_prefix(f, p->s), err);
    return status == TERN_OK ? write_parts(f, p, out, err) : status;
}

tern_status hf_older_spm_write(hf_older_files *f, sentencepiece *s, const char *name, text *out,
                               tern_error *err) {
    pieces p = {.s = s, .name = name};
    rename_pieces(f, s);
    const tern_status status = write_all(f, &p, out, err);
    tern_span_index_free(&p.index);
    free(p.texts);
    free(p.merges);
    return status;
}

/* ---- what GGUF's usual keys say -------------------------------------------------------------- */

static size_t count_of(const sentencepiece *s, sentencepiece_type type) {
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->pieces[i].type == type;
    return n;
}

/* True if a piece that users defined holds a mark, which stands for a space of the text. */
static bool defines_spaces(const sentencepiece *s) {
    for (size_t i = 0; i < s->n; i++)
        if (s->pieces[i].type == SENTENCEPIECE_USER_DEFINED &&
            memmem(s->pieces[i].text.data, s->pieces[i].text.size, mark, sizeof mark - 1) != NULL)
            return true;
    return false;
}

/* True if joining by score, as readers of the model "llama" do, gives the same tokens. */
static bool is_plain_bpe(const hf_older_files *f, const sentencepiece *s) {
    enum { BYTES = 256 };
    const bool own = s->n_user_defined > 0 && (has_prefix(f, s) || defines_spaces(s));
    return s->charsmap.size == 0 && !s->fewer_spaces && !own && s->byte_fallback &&
           count_of(s, SENTENCEPIECE_BYTE) == BYTES;
}

tern_status hf_older_spm_said(const hf_older_files *f, const sentencepiece *s, tern_vocabulary *v,
                              hf_said *said, tern_error *err) {
    const bool scored = s->model == SENTENCEPIECE_UNIGRAM;
    const bool first_only = has_prefix(f, s) && !is_legacy(f);
    tern_status status = hf_tokenizer_said(v, said, err);
    if (status != TERN_OK || first_only || *said == HF_SAID_TOKENS || !hf_has_plain_added(v) ||
        !(scored ? s->n_user_defined == 0 : is_plain_bpe(f, s)))
        return status;
    *said = HF_SAID_WHOLE;
    if (scored)
        return TERN_OK;
    v->scores = calloc(v->n_tokens, sizeof *v->scores);
    if (v->scores == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for its scores", v->file);
    for (size_t i = 0; i < s->n; i++)
        v->scores[i] = (double)s->pieces[i].score;
    v->kind = TERN_VOCABULARY_SCORES;
    return TERN_OK;
}
