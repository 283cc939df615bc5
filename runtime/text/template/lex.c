/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/template/lex.h"

#include <ctype.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/text/template/characters.h"

typedef struct lexer {
    tern_tpl *x;
    const char *at, *end;
    unsigned line;
    bool line_starts; /* the last text read ended with a line end, or nothing was read yet */
    tern_tpl_token *tokens;
    size_t n, capacity;
} lexer;

static bool starts(const lexer *l, const char *text) {
    const size_t n = strlen(text);
    return (size_t)(l->end - l->at) >= n && memcmp(l->at, text, n) == 0;
}

static void advance(lexer *l, size_t n) {
    for (; n > 0; n--)
        l->line += *l->at++ == '\n';
}

static bool add(lexer *l, tern_tpl_token_kind kind, tern_span text) {
    if (l->n == l->capacity) {
        const size_t capacity = 2 * l->capacity + 64;
        tern_tpl_token *grown = tern_tpl_take(l->x, capacity, sizeof *grown);
        if (grown == NULL)
            return false;
        if (l->n > 0)
            memcpy(grown, l->tokens, l->n * sizeof *grown);
        l->tokens = grown;
        l->capacity = capacity;
    }
    l->tokens[l->n++] = (tern_tpl_token){kind, l->line, text};
    return true;
}

static bool fail(lexer *l, const char *what) {
    l->x->line = l->line;
    return tern_tpl_fail(l->x, TERN_ERR_TEMPLATE, "%s", what);
}

/* ---- white space ----------------------------------------------------------------------------- */

static void skip_space(lexer *l) {
    const tern_span rest = {l->at, (size_t)(l->end - l->at)};
    advance(l, rest.size - tern_tpl_strip_left(rest, NULL).size);
}

/* Trims after the end of a tag: '-' removes white space; without a sign, a block takes one line
 * end. */
static void trim_after(lexer *l, char sign, bool is_block) {
    l->line_starts = false;
    if (sign == '-') {
        const char *before = l->at;
        skip_space(l);
        l->line_starts = l->at > before && l->at[-1] == '\n';
    } else if (sign != '+' && is_block && l->at < l->end && *l->at == '\n') {
        advance(l, 1);
        l->line_starts = true;
    }
}

/* The text before a tag, without what the tag's sign or lstrip_blocks removes. */
static tern_span trim_before(const lexer *l, tern_span data, char sign, bool is_block) {
    if (sign == '-')
        return tern_tpl_strip_right(data, NULL);
    if (sign == '+' || !is_block)
        return data;
    size_t start = data.size;
    while (start > 0 && data.data[start - 1] != '\n')
        start--;
    if (start == 0 && !l->line_starts)
        return data;
    const tern_span indent = {data.data + start, data.size - start};
    return tern_tpl_strip_left(indent, NULL).size == 0 ? (tern_span){data.data, start} : data;
}

/* ---- inside of tags -------------------------------------------------------------------------- */

static int digits(const char *at, const char *end, int most, int base, uint32_t *code) {
    int n = 0;
    *code = 0;
    while (n < most && at + n < end) {
        const int c = tolower((unsigned char)at[n]);
        const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
        if (digit >= base)
            break;
        *code = *code * (uint32_t)base + (uint32_t)digit;
        n++;
    }
    return n;
}

/* Reads an escape with a number after the backslash: bytes read, 0 for none, -1 for a wrong one. */
static int number_escape(const char *at, const char *end, uint32_t *code) {
    const int most = *at == 'x' ? 2 : *at == 'u' ? 4 : *at == 'U' ? 8 : 0;
    if (most > 0)
        return digits(at + 1, end, most, 16, code) == most ? most + 1 : -1;
    return *at >= '0' && *at <= '7' ? digits(at, end, 3, 8, code) : 0;
}

/* Reads one escape, `at` after the backslash; returns bytes read, -1 for a wrong one. */
static int read_escape(const char *at, const char *end, char *out, size_t *size) {
    static const char names[] = "abfnrtv\\'\"", values[] = "\a\b\f\n\r\t\v\\'\"";
    const char *name = memchr(names, *at, sizeof names - 1);
    uint32_t code = 0;
    const int n = number_escape(at, end, &code);
    if (*at == '\n')
        return 1;
    if (name != NULL) {
        out[(*size)++] = values[name - names];
        return 1;
    }
    if (n != 0) {
        if (n < 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
            return -1;
        *size += tern_tpl_put_code(code, out + *size);
        return n;
    }
    out[(*size)++] = '\\';
    out[(*size)++] = *at;
    return *at == 'N' ? -1 : 1;
}

static bool read_string(lexer *l) {
    const char quote = *l->at;
    const char *from = l->at + 1, *to = from;
    while (to < l->end && *to != quote)
        to += *to == '\\' && to + 1 < l->end ? 2 : 1;
    if (to >= l->end)
        return fail(l, "a text has no end");
    char *out = tern_tpl_take(l->x, (size_t)(to - from) + 1, 1);
    size_t size = 0;
    for (const char *at = from; out != NULL && at < to;) {
        if (*at != '\\') {
            out[size++] = *at++;
            continue;
        }
        const int n = read_escape(at + 1, to, out, &size);
        if (n < 0)
            return fail(l, "an escape in a text is wrong or not supported");
        at += n + 1;
    }
    const bool added = out != NULL && add(l, TERN_TPL_STRING, (tern_span){out, size});
    advance(l, (size_t)(to - l->at) + 1);
    return added;
}

static bool read_number(lexer *l) {
    const char *at = l->at;
    bool real = false;
    while (at < l->end && (isdigit((unsigned char)*at) || *at == '_'))
        at++;
    if (at + 1 < l->end && *at == '.' && isdigit((unsigned char)at[1])) {
        real = true;
        for (at++; at < l->end && isdigit((unsigned char)*at);)
            at++;
    }
    if (at + 1 < l->end && (*at == 'e' || *at == 'E')) {
        const char *digit = at + 1 + (at[1] == '+' || at[1] == '-');
        if (digit < l->end && isdigit((unsigned char)*digit)) {
            real = true;
            for (at = digit; at < l->end && isdigit((unsigned char)*at);)
                at++;
        }
    }
    if (at < l->end && (isalpha((unsigned char)*at) || *at == '_'))
        return fail(l, "a number of this form is not supported");
    const tern_span text = {l->at, (size_t)(at - l->at)};
    const bool added = add(l, real ? TERN_TPL_REAL : TERN_TPL_INTEGER, text);
    advance(l, text.size);
    return added;
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static bool read_name(lexer *l) {
    const char *at = l->at;
    while (at < l->end && is_word(*at))
        at++;
    const tern_span text = {l->at, (size_t)(at - l->at)};
    advance(l, text.size);
    return add(l, TERN_TPL_NAME, text);
}

static bool read_operator(lexer *l, size_t *open) {
    static const char *const two[] = {"==", "!=", "<=", ">=", "//", "**"};
    size_t n = 1;
    for (size_t i = 0; i < sizeof two / sizeof *two; i++)
        if (starts(l, two[i]))
            n = 2;
    if (strchr("+-/*%~[](){}=<>.:|,;", *l->at) == NULL && n == 1)
        return fail(l, "a character that no expression has");
    if (strchr("[({", *l->at) != NULL)
        ++*open;
    else if (strchr("])}", *l->at) != NULL && *open > 0)
        --*open;
    const tern_span text = {l->at, n};
    advance(l, n);
    return add(l, TERN_TPL_OPERATOR, text);
}

/* True if a tag ends here; *sign is its sign, or NUL. */
static bool ends_here(const lexer *l, const char *end, char *sign) {
    const bool block = *end == '%';
    const size_t at = (*l->at == '-' || (block && *l->at == '+')) ? 1 : 0;
    *sign = at > 0 ? *l->at : '\0';
    return (size_t)(l->end - l->at) >= at + 2 && memcmp(l->at + at, end, 2) == 0;
}

static bool read_token(lexer *l, size_t *open) {
    if (*l->at == '"' || *l->at == '\'')
        return read_string(l);
    if (isdigit((unsigned char)*l->at))
        return read_number(l);
    if (is_word(*l->at))
        return read_name(l);
    return read_operator(l, open);
}

static bool read_tag(lexer *l, bool is_block) {
    const char *const end = is_block ? "%}" : "}}";
    size_t open = 0;
    if (!add(l, is_block ? TERN_TPL_OPEN_BLOCK : TERN_TPL_OPEN_PRINT, (tern_span){l->at, 2}))
        return false;
    for (skip_space(l); l->at < l->end; skip_space(l)) {
        char sign;
        if (open == 0 && ends_here(l, end, &sign)) {
            const bool added = add(l, is_block ? TERN_TPL_CLOSE_BLOCK : TERN_TPL_CLOSE_PRINT,
                                   (tern_span){l->at, 2});
            advance(l, sign != '\0' ? 3 : 2);
            trim_after(l, sign, is_block);
            return added;
        }
        if (!read_token(l, &open))
            return false;
    }
    return fail(l, "a tag has no end");
}

/* ---- outside of tags ------------------------------------------------------------------------- */

static bool skip_comment(lexer *l) {
    const char *end = memmem(l->at, (size_t)(l->end - l->at), "#}", 2);
    if (end == NULL)
        return fail(l, "a remark has no end");
    const char sign = end[-1] == '-' || end[-1] == '+' ? end[-1] : '\0';
    advance(l, (size_t)(end - l->at) + 2);
    trim_after(l, sign, true);
    return true;
}

/* Reads `{% WORD %}` at `at` with its signs; returns its bytes, 0 if something else is there. */
static size_t tag_of(const char *at, const char *end, const char *word, char *before, char *after) {
    const char *start = at;
    const size_t n = strlen(word);
    if (end - at < 2 || memcmp(at, "{%", 2) != 0)
        return 0;
    at += 2;
    *before = at < end && (*at == '-' || *at == '+') ? *at++ : '\0';
    while (at < end && isspace((unsigned char)*at))
        at++;
    if ((size_t)(end - at) < n || memcmp(at, word, n) != 0)
        return 0;
    at += n;
    while (at < end && isspace((unsigned char)*at))
        at++;
    *after = at < end && (*at == '-' || *at == '+') ? *at++ : '\0';
    return end - at >= 2 && memcmp(at, "%}", 2) == 0 ? (size_t)(at + 2 - start) : 0;
}

/* Reads the text between {% raw %} and {% endraw %}, after the first of them. */
static bool read_raw(lexer *l) {
    for (const char *at = l->at; at < l->end; at++) {
        char before, after;
        const size_t n = tag_of(at, l->end, "endraw", &before, &after);
        if (n == 0)
            continue;
        const tern_span data = {l->at, (size_t)(at - l->at)};
        const bool added = add(l, TERN_TPL_DATA, trim_before(l, data, before, true));
        advance(l, data.size + n);
        trim_after(l, after, true);
        return added;
    }
    return fail(l, "'raw' has no 'endraw'");
}

static bool read_markup(lexer *l) {
    char before, after;
    const size_t raw = tag_of(l->at, l->end, "raw", &before, &after);
    if (raw > 0) {
        advance(l, raw);
        trim_after(l, after, false);
        return read_raw(l);
    }
    const char kind = l->at[1];
    const size_t sign = l->at + 2 < l->end && (l->at[2] == '-' || l->at[2] == '+');
    advance(l, 2 + sign);
    return kind == '#' ? skip_comment(l) : read_tag(l, kind == '%');
}

/* Finds where the next tag or comment begins. */
static const char *next_markup(const lexer *l) {
    for (const char *at = l->at; at + 1 < l->end; at++)
        if (*at == '{' && (at[1] == '%' || at[1] == '{' || at[1] == '#'))
            return at;
    return l->end;
}

/* Repairs what is not UTF-8, turns line ends into \n, and drops the last one. */
static tern_span normal(tern_tpl *x, tern_span source) {
    char *out = tern_tpl_take(x, source.size + 1, TERN_UTF8_REPLACEMENT_BYTES);
    size_t n = 0;
    const size_t size = out != NULL ? tern_utf8_repair(source.data, source.size, out, NULL) : 0;
    for (size_t i = 0; i < size; i++) {
        const bool pair = out[i] == '\r' && i + 1 < size && out[i + 1] == '\n';
        if (!pair)
            out[n++] = out[i] == '\r' ? '\n' : out[i];
    }
    n -= n > 0 && out[n - 1] == '\n';
    return (tern_span){out, n};
}

tern_tpl_token *tern_tpl_lex(tern_tpl *x, tern_span source) {
    const tern_span text = normal(x, source);
    if (text.data == NULL)
        return NULL;
    lexer l = {.x = x, .at = text.data, .end = text.data + text.size, .line = 1};
    l.line_starts = true;
    while (l.at < l.end) {
        const char *next = next_markup(&l);
        const tern_span data = {l.at, (size_t)(next - l.at)};
        const bool block = next < l.end && next[1] != '{';
        const char sign = next + 2 < l.end ? next[2] : '\0';
        const tern_span kept = next < l.end ? trim_before(&l, data, sign, block) : data;
        if (kept.size > 0 && !add(&l, TERN_TPL_DATA, kept))
            return NULL;
        advance(&l, data.size);
        if (l.at < l.end && !read_markup(&l))
            return NULL;
    }
    return add(&l, TERN_TPL_END, (tern_span){"", 0}) ? l.tokens : NULL;
}
