/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/tokenizer/regex_rewrite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/text/tokenizer/regex.h"
#include "runtime/text/tokenizer/regex_parse.h"

enum { GROUPS = 64 /* inside each other, as in regex.c */ };

typedef struct tern_rewriter {
    tern_regex_reader in;
    char *text; /* of the bytes that are no set */
    size_t size, capacity;
    tern_code_set sets[TERN_REGEX_MAX_SETS];
    size_t places[TERN_REGEX_MAX_SETS]; /* bytes of text before each set */
    size_t n_sets;
    bool outside[GROUPS]; /* whether case does not matter around each open group */
    size_t n_groups;
} tern_rewriter;

static bool put_bytes(tern_rewriter *r, const char *bytes, size_t size) {
    if (r->text == NULL || r->capacity - r->size < size) {
        const size_t capacity = 2 * r->capacity + size + 64;
        char *grown = realloc(r->text, capacity);
        if (grown == NULL) {
            r->in.out_of_memory = true;
            return false;
        }
        r->text = grown;
        r->capacity = capacity;
    }
    memcpy(r->text + r->size, bytes, size);
    r->size += size;
    return true;
}

static bool put(tern_rewriter *r, const char *text) {
    return put_bytes(r, text, strlen(text));
}

/* Copies n bytes of the pattern. */
static bool copy(tern_rewriter *r, size_t n) {
    r->in.at += n;
    return put_bytes(r, r->in.in.data + r->in.at - n, n);
}

/* Writes a byte that stands for itself. */
static bool put_literal(tern_rewriter *r, unsigned char c) {
    char escaped[8];
    (void)snprintf(escaped, sizeof escaped, "\\x%02x", c);
    return put(r, escaped);
}

/* ---- characters and sets ----------------------------------------------------------------------
 */

/* Takes the next set of the pattern; its bytes are known when all sets are. */
static bool take_set(tern_rewriter *r, bool (*read)(tern_regex_reader *, tern_code_set *)) {
    if (r->n_sets == TERN_REGEX_MAX_SETS)
        return tern_regex_refuse(&r->in, "another set of characters (512)");
    tern_code_set *set = &r->sets[r->n_sets];
    r->places[r->n_sets++] = r->size;
    if (!read(&r->in, set))
        return false;
    const bool alone = set->n == 2 && set->ends[0] + 1 == set->ends[1] && set->ends[0] < 0x80;
    if (!alone)
        return true;
    const uint32_t code = set->ends[0];
    tern_code_set_free(set);
    r->n_sets--;
    return put_literal(r, (unsigned char)code);
}

/* Reads "." : every character but the end of a line. */
static bool read_dot(tern_regex_reader *in, tern_code_set *set) {
    in->at++;
    const bool done = tern_code_set_add(set, '\n', '\n' + 1) && tern_code_set_invert(set);
    in->out_of_memory = in->out_of_memory || !done;
    return done;
}

/* The characters of words, without moving on. */
static bool read_word(tern_regex_reader *in, tern_code_set *set) {
    static const char word[] = "\\w";
    tern_regex_reader inner = {.in = {word, sizeof word - 1}, .why = in->why};
    const bool done = tern_regex_read_escape(&inner, set);
    in->out_of_memory = in->out_of_memory || inner.out_of_memory;
    return done;
}

/* \b: a word begins or ends here. */
static bool rewrite_boundary(tern_rewriter *r) {
    r->in.at += 2;
    return put(r, "(?:(?<=") && take_set(r, read_word) && put(r, ")(?!") &&
           take_set(r, read_word) && put(r, ")|(?<!") && take_set(r, read_word) && put(r, ")(?=") &&
           take_set(r, read_word) && put(r, "))");
}

static bool rewrite_escape(tern_rewriter *r) {
    const char c = tern_regex_peek(&r->in, 1);
    if (c == 'b')
        return rewrite_boundary(r);
    return c == 'A' || c == 'z' ? copy(r, 2) : take_set(r, tern_regex_read_escape);
}

/* ---- groups and repetitions ------------------------------------------------------------------ */

/* Opens a group of n bytes of the pattern. */
static bool open_group(tern_rewriter *r, size_t n, const char *text, bool folds) {
    if (r->n_groups == GROUPS)
        return tern_regex_refuse(&r->in, "a group inside of 64");
    r->outside[r->n_groups++] = r->in.folds;
    r->in.folds = folds;
    r->in.at += n;
    return put(r, text);
}

static bool rewrite_group(tern_rewriter *r) {
    static const char *const same[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (tern_regex_sees(&r->in, same[i]))
            return open_group(r, strlen(same[i]), same[i], r->in.folds);
    if (tern_regex_sees(&r->in, "(?i:") || tern_regex_sees(&r->in, "(?-i:")) {
        const bool folds = tern_regex_peek(&r->in, 2) == 'i';
        return open_group(r, folds ? 4 : 5, "(?:", folds);
    }
    if (tern_regex_peek(&r->in, 1) == '?' || tern_regex_peek(&r->in, 1) == '*')
        return tern_regex_refuse(&r->in, "this kind of group");
    return open_group(r, 1, "(?:", r->in.folds);
}

/* One that closes nothing is for PCRE2 to refuse. */
static bool close_group(tern_rewriter *r) {
    if (r->n_groups > 0)
        r->in.folds = r->outside[--r->n_groups];
    return copy(r, 1);
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* {n}, {n,}, {n,m} and {,m}; any other brace is a character. */
static bool rewrite_brace(tern_rewriter *r) {
    size_t n = 1;
    while (is_digit(tern_regex_peek(&r->in, n)))
        n++;
    const bool low = n > 1;
    const bool comma = tern_regex_peek(&r->in, n) == ',';
    const size_t high = n + comma;
    n = high;
    while (comma && is_digit(tern_regex_peek(&r->in, n)))
        n++;
    if (tern_regex_peek(&r->in, n) != '}' || (!low && n == high)) {
        r->in.at++;
        return put_literal(r, '{');
    }
    if (n > 12)
        return tern_regex_refuse(&r->in, "a repetition as long as this");
    const char next = tern_regex_peek(&r->in, n + 1);
    if (next == '+' || next == '?' || next == '*')
        return tern_regex_refuse(&r->in, "a repetition of a repetition");
    r->in.at++;
    return put(r, low ? "{" : "{0") && copy(r, n);
}

static bool rewrite_one(tern_rewriter *r) {
    switch (tern_regex_peek(&r->in, 0)) {
    case '\\':
        return rewrite_escape(r);
    case '[':
        return take_set(r, tern_regex_read_set);
    case '(':
        return rewrite_group(r);
    case ')':
        return close_group(r);
    case '{':
        return rewrite_brace(r);
    case '.':
        return take_set(r, read_dot);
    case '|':
    case '*':
    case '+':
    case '?':
    case '^':
    case '$':
        return copy(r, 1);
    default:
        return take_set(r, tern_regex_read_character);
    }
}

/* ---- the whole --------------------------------------------------------------------------------
 */

/* Writes the letters of a set. One without any matches nothing. */
static bool put_set(tern_rewriter *r, const tern_regex_alphabet *alphabet, size_t set) {
    uint8_t marks[TERN_REGEX_LETTERS];
    tern_regex_alphabet_letters(alphabet, r->sets, set, marks);
    bool sound = true, any = false;
    for (unsigned i = 0, end; sound && i < TERN_REGEX_LETTERS; i = end) {
        for (end = i + 1; end < TERN_REGEX_LETTERS && marks[end] == marks[i]; end++) {
        }
        if (marks[i] == 0)
            continue;
        sound = (any || put(r, "[")) && put_literal(r, (unsigned char)i);
        if (sound && end - i > 1)
            sound = put(r, "-") && put_literal(r, (unsigned char)(end - 1));
        any = true;
    }
    return sound && put(r, any ? "]" : "(?!)");
}

/* Puts the sets into the text, at their places. */
static tern_status finish(tern_rewriter *r, tern_regex_text *out) {
    const tern_status status = tern_regex_alphabet_new(r->sets, r->n_sets, &out->alphabet);
    if (status == TERN_ERR_TOKENIZER_PRE)
        (void)snprintf(r->in.why, TERN_REGEX_WHY_BYTES,
                       "it tells more than 128 kinds of characters apart");
    if (status != TERN_OK)
        return status;
    char *text = r->text;
    const size_t size = r->size;
    r->text = NULL;
    r->size = r->capacity = 0;
    bool sound = true;
    size_t at = 0;
    for (size_t i = 0; sound && i < r->n_sets; at = r->places[i++])
        sound = put_bytes(r, text + at, r->places[i] - at) && put_set(r, out->alphabet, i);
    sound = sound && put_bytes(r, size > at ? text + at : "", size - at) && put(r, "");
    free(text);
    out->data = r->text;
    out->size = r->size;
    r->text = NULL;
    if (sound && out->data != NULL)
        return TERN_OK;
    free(out->data);
    tern_regex_alphabet_free(&out->alphabet);
    return TERN_ERR_NOMEM;
}

tern_status tern_regex_rewrite(tern_span pattern, tern_regex_text *out, char *why) {
    tern_rewriter *r = calloc(1, sizeof *r);
    *out = (tern_regex_text){NULL, 0, NULL};
    tern_status status = TERN_ERR_NOMEM;
    if (r != NULL) {
        r->in = (tern_regex_reader){.in = pattern, .why = why};
        bool good = put(r, ""); /* so that the empty pattern has a place, too */
        while (good && r->in.at < pattern.size)
            good = rewrite_one(r);
        if (good)
            status = finish(r, out);
        else if (!r->in.out_of_memory)
            status = TERN_ERR_TOKENIZER_PRE;
        for (size_t i = 0; i < r->n_sets; i++)
            tern_code_set_free(&r->sets[i]);
        free(r->text);
        free(r);
    }
    if (status == TERN_ERR_NOMEM)
        (void)snprintf(why, TERN_REGEX_WHY_BYTES, "no memory for it");
    return status;
}
