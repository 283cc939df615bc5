/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/hf_older_words.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/utf8.h"
#include "runtime/text/tokenizer/index.h"

static const char classes[] = "BertTokenizer BertTokenizerFast DistilBertTokenizer "
                              "DistilBertTokenizerFast bert distilbert";

static const hf_older_default roles[] = {{"unk_token", "[UNK]"},
                                         {"sep_token", "[SEP]"},
                                         {"pad_token", "[PAD]"},
                                         {"cls_token", "[CLS]"},
                                         {"mask_token", "[MASK]"}};
enum { ROLE_UNKNOWN = 0, ROLE_LAST = 1, ROLE_FIRST = 3, N_ROLES = sizeof roles / sizeof *roles };

/* The lines of a file. Of equal ones the last counts, and empty ones are not tokens. */
typedef struct lines {
    tern_span *texts; /* [n] in the file's bytes, without white space at their ends */
    size_t n, capacity;
    tern_span_index
        last; /* numbers from the end of texts on: the first one found is the last line */
    tern_span *reversed; /* [n] */
} lines;

static void lines_free(lines *l) {
    free(l->texts);
    free(l->reversed);
    tern_span_index_free(&l->last);
}

static tern_span without_end(const char *line, size_t n) {
    static const char white[] = " \t\n\v\f\r";
    while (n > 0 && line[n - 1] != '\0' && strchr(white, line[n - 1]) != NULL)
        n--;
    return (tern_span){line, n};
}

static tern_status split(const char *path, tern_span bytes, lines *l, tern_error *err) {
    for (size_t at = 0, n; at < bytes.size; at += n + 1) {
        const char *line = bytes.data + at, *end = memchr(line, '\n', bytes.size - at);
        n = end != NULL ? (size_t)(end - line) : bytes.size - at;
        if (l->n == TERN_TOKENIZER_MAX_TOKENS)
            return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: has more than %d lines", path,
                             (int)TERN_TOKENIZER_MAX_TOKENS);
        if (!tern_grow((void **)&l->texts, &l->capacity, l->n, sizeof *l->texts,
                       TERN_TOKENIZER_MAX_TOKENS))
            return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for its tokens", path);
        if (!tern_utf8_is_valid(line, n))
            return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: line %zu is not UTF-8", path,
                             l->n + 1);
        l->texts[l->n++] = without_end(line, n);
    }
    return TERN_OK;
}

static tern_status index_lines(const char *path, lines *l, tern_error *err) {
    l->reversed = calloc(l->n + 1, sizeof *l->reversed);
    if (l->reversed == NULL || !tern_span_index_init(&l->last, l->n))
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for its tokens", path);
    for (size_t i = 0; i < l->n; i++) {
        l->reversed[i] = l->texts[l->n - 1 - i];
        (void)tern_span_index_add(&l->last, l->reversed, i);
    }
    return TERN_OK;
}

static int64_t find_line(const void *user, tern_span content) {
    const lines *l = user;
    const int32_t i = tern_span_index_find(&l->last, l->reversed, content, (tern_span){"", 0});
    return i >= 0 ? (int64_t)l->n - 1 - i : TERN_TOKEN_NONE;
}

/* ---- the parts ------------------------------------------------------------------------------- */

static const char *word_of(bool value) {
    return value ? "true" : "false";
}

/* Accents vanish where letters become small, unless the file says something else. */
static void put_steps(text *out, const hf_older_files *f) {
    const bool small = hf_older_flag(f, "do_lower_case", true);
    text_name(out, "normalizer");
    text_print(out,
               "{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":%s,"
               "\"strip_accents\":%s,\"lowercase\":%s}",
               word_of(hf_older_flag(f, "tokenize_chinese_chars", true)),
               word_of(hf_older_flag(f, "strip_accents", small)), word_of(small));
    text_name(out, "pre_tokenizer");
    text_print(out, "{\"type\":\"BertPreTokenizer\"}");
    hf_older_put_ends(f, hf_older_role_or(f, roles[ROLE_FIRST]),
                      hf_older_role_or(f, roles[ROLE_LAST]), out);
    text_name(out, "decoder");
    text_print(out, "{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}");
}

static void put_model(text *out, const hf_older_files *f, const lines *l) {
    const tern_span unknown = hf_older_role_or(f, roles[ROLE_UNKNOWN]);
    const char *between = "";
    text_name(out, "model");
    text_print(out, "{\"type\":\"WordPiece\",\"unk_token\":");
    text_quote(out, unknown.data, unknown.size);
    text_print(out, ",\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":100,"
                    "\"vocab\":{");
    for (size_t i = 0; i < l->n; i++) {
        if (l->texts[i].size == 0 || find_line(l, l->texts[i]) != (int64_t)i)
            continue;
        text_print(out, "%s", between);
        text_quote(out, l->texts[i].data, l->texts[i].size);
        text_print(out, ":%zu", i);
        between = ",";
    }
    text_print(out, "}}");
}

/* ---- the whole ------------------------------------------------------------------------------- */

static tern_status write_lines(hf_older_files *f, const lines *l, text *out, tern_error *err) {
    const tern_status status = hf_older_add_defaults(f, roles, N_ROLES, err);
    if (status != TERN_OK)
        return status;
    hf_older_find_ids(f, find_line, l, l->n);
    text_add(out, "{", 1);
    hf_older_put_added(f, out);
    put_steps(out, f);
    put_model(out, f, l);
    text_add(out, "}", 1);
    return TERN_OK;
}

tern_status hf_older_words_write(hf_older_files *f, tern_span bytes, const char *path, text *out,
                                 tern_error *err) {
    lines l = {.n = 0};
    if (!hf_older_is_class(f, classes))
        return hf_older_refuse_class(f, path, err);
    tern_status status = split(path, bytes, &l, err);
    if (status == TERN_OK)
        status = index_lines(path, &l, err);
    if (status == TERN_OK)
        status = write_lines(f, &l, out, err);
    lines_free(&l);
    return status;
}
