/* SPDX-License-Identifier: Apache-2.0 */

/*
 * llama.cpp's notation of grammars:
 *
 *     root  ::= "[" item ("," item)* "]"     # a comment
 *     item  ::= [a-z0-9_]+ | [^\x00-\x7F]{1,4}
 *
 * Names are letters, digits and '-'. Texts and sets know the escapes \n \r \t \\ \" \] \[ \xNN
 * \uNNNN \UNNNNNNNN, all of them characters; `.` is any character. A rule ends with its line,
 * unless a parenthesis is open or the next line begins with '|'.
 */

#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/utf8.h"
#include "runtime/text/grammar/grammar.h"

enum {
    MOST_DEPTH = 64,
    MOST_RULES = TERN_GRAMMAR_LIMIT(4096),
    MOST_SET = TERN_GRAMMAR_LIMIT(4096),
    MOST_NAME = 128
};

typedef struct reader {
    tern_exprs *x;
    const char *text;
    size_t size, at;
    unsigned depth;     /* open parentheses */
    tern_range *ranges; /* [2 * MOST_SET + 1] the set that is being read, and its complement */
} reader;

/* ---- characters of the text ------------------------------------------------------------------ */

static int peek(const reader *r) {
    return r->at < r->size ? (unsigned char)r->text[r->at] : -1;
}

static bool take(reader *r, char c) {
    if (peek(r) != (unsigned char)c)
        return false;
    r->at++;
    return true;
}

static void refuse(reader *r, const char *what) {
    unsigned line = 1;
    for (size_t i = 0; i < r->at && i < r->size; i++)
        line += r->text[i] == '\n';
    tern_exprs_fail(r->x, TERN_ERR_GRAMMAR, "%s: line %u: %s", r->x->name, line, what);
}

static bool is_name(int c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

/* Skips white space and comments; line ends only where they mean nothing (`lines`). */
static void skip(reader *r, bool lines) {
    for (int c = peek(r); c == ' ' || c == '\t' || c == '#' || (lines && (c == '\n' || c == '\r'));
         c = peek(r)) {
        while (c == '#' && peek(r) != '\n' && peek(r) != -1)
            r->at++;
        r->at += c != '#';
    }
}

static uint32_t read_hex(reader *r, unsigned digits) {
    uint32_t code = 0;
    for (unsigned i = 0; i < digits; i++, r->at++) {
        const int digit = hex_digit(peek(r));
        if (digit < 0) {
            refuse(r, "an escape with too few hexadecimal digits");
            return 0;
        }
        code = code << 4 | (uint32_t)digit;
    }
    return code;
}

static uint32_t read_escape(reader *r) {
    const int c = peek(r);
    r->at++;
    switch (c) {
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case '\\':
    case '"':
    case '[':
    case ']':
        return (uint32_t)c;
    case 'x':
        return read_hex(r, 2);
    case 'u':
        return read_hex(r, 4);
    case 'U':
        return read_hex(r, 8);
    default:
        refuse(r, "an unknown escape");
        return 0;
    }
}

static uint32_t read_char(reader *r) {
    if (take(r, '\\'))
        return read_escape(r);
    if (r->at >= r->size) {
        refuse(r, "it ends inside of a text or a set");
        return 0;
    }
    const tern_utf8 c = tern_utf8_next(r->text + r->at, r->size - r->at);
    if (c.kind != TERN_UTF8_VALID)
        refuse(r, "bytes that are not UTF-8");
    r->at += c.size;
    return c.code;
}

/* ---- texts, sets ----------------------------------------------------------------------------- */

static uint32_t read_text(reader *r) {
    tern_expr_list list = {.x = r->x};
    while (r->x->status == TERN_OK && !take(r, '"')) {
        const uint32_t code = read_char(r);
        tern_expr_add(&list, tern_expr_chars(r->x, &(tern_range){code, code}, 1));
    }
    return tern_expr_end_sequence(&list);
}

/* Writes all characters but those of ranges[n], which are tidy, as ranges; returns how many. */
static size_t invert(const tern_range *ranges, size_t n, tern_range *out) {
    uint32_t next = 0;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].low > next)
            out[kept++] = (tern_range){next, ranges[i].low - 1};
        next = ranges[i].high + 1;
    }
    if (next <= 0x10ffff)
        out[kept++] = (tern_range){next, 0x10ffff};
    return kept;
}

static uint32_t read_set(reader *r) {
    tern_range *ranges = r->ranges;
    tern_range *others = ranges + MOST_SET;
    const bool inverted = take(r, '^');
    size_t n = 0;
    while (r->x->status == TERN_OK && !take(r, ']')) {
        const uint32_t low = read_char(r);
        uint32_t high = low;
        if (r->at + 1 < r->size && peek(r) == '-' && r->text[r->at + 1] != ']') {
            r->at++;
            high = read_char(r);
        }
        if (high < low || high > 0x10ffff)
            refuse(r, "a range whose end lies before its beginning, or after U+10FFFF");
        if (n == MOST_SET)
            refuse(r, "a set of too many ranges");
        else
            ranges[n++] = (tern_range){low, high};
    }
    if (!inverted || r->x->status != TERN_OK)
        return tern_expr_chars(r->x, ranges, n);
    n = invert(ranges, tern_ranges_tidy(ranges, n), others);
    return tern_expr_chars(r->x, others, n);
}

/* ---- rules ------------------------------------------------------------------------------------
 */

static size_t name_size(const reader *r) {
    size_t n = 0;
    while (r->at + n < r->size && is_name((unsigned char)r->text[r->at + n]))
        n++;
    return n;
}

/* Reads a name; returns the number of its rule, which may be new. */
static uint32_t read_name(reader *r) {
    tern_exprs *x = r->x;
    const char *name = r->text + r->at;
    const size_t size = name_size(r);
    r->at += size;
    for (uint32_t i = 0; i < x->n_rules; i++)
        if (x->rules[i].name_size == size && memcmp(x->texts + x->rules[i].name, name, size) == 0)
            return i;
    if (size > MOST_NAME)
        refuse(r, "a name that is too long");
    else if (x->n_rules == MOST_RULES)
        refuse(r, "too many rules");
    return tern_expr_rule_new(x, name, size);
}

static uint32_t read_choice(reader *r);

static uint32_t read_group(reader *r) {
    if (++r->depth > MOST_DEPTH)
        refuse(r, "parentheses that are nested too deep");
    const uint32_t inner = r->x->status == TERN_OK ? read_choice(r) : TERN_EXPR_NEVER;
    r->depth--;
    if (!take(r, ')'))
        refuse(r, "a parenthesis that is not closed");
    return inner;
}

static uint32_t read_item(reader *r) {
    static const tern_range any = {0, 0x10ffff};
    if (take(r, '"'))
        return read_text(r);
    if (take(r, '['))
        return read_set(r);
    if (take(r, '('))
        return read_group(r);
    if (take(r, '.'))
        return tern_expr_chars(r->x, &any, 1);
    if (is_name(peek(r)))
        return tern_expr_rule_use(r->x, read_name(r));
    refuse(r, peek(r) == '<' || peek(r) == '!' ? "tokens in grammars are not supported"
                                               : "neither a text, a set, a name nor a parenthesis");
    return TERN_EXPR_NEVER;
}

static int32_t read_number(reader *r) {
    int32_t n = 0;
    const size_t from = r->at;
    skip(r, false);
    for (int c = peek(r); c >= '0' && c <= '9' && n <= TERN_EXPR_MOST_REPEATS; r->at++, c = peek(r))
        n = 10 * n + (c - '0');
    if (r->at == from)
        refuse(r, "a repetition without a number");
    if (n > TERN_EXPR_MOST_REPEATS)
        refuse(r, "a repetition of too many times");
    skip(r, false);
    return n;
}

static uint32_t read_braces(reader *r, uint32_t item) {
    skip(r, false);
    const int32_t least = peek(r) == ',' ? 0 : read_number(r);
    int32_t most = least;
    if (take(r, ',')) {
        skip(r, false);
        most = peek(r) == '}' ? TERN_EXPR_UNLIMITED : read_number(r);
    }
    if (!take(r, '}'))
        refuse(r, "a repetition that is not closed");
    if (most >= 0 && most < least)
        refuse(r, "a repetition {m,n} with n < m");
    return tern_expr_repeat(r->x, item, least, most);
}

static uint32_t read_repeated(reader *r) {
    uint32_t item = read_item(r);
    while (r->x->status == TERN_OK) {
        skip(r, r->depth > 0);
        if (take(r, '*'))
            item = tern_expr_repeat(r->x, item, 0, TERN_EXPR_UNLIMITED);
        else if (take(r, '+'))
            item = tern_expr_repeat(r->x, item, 1, TERN_EXPR_UNLIMITED);
        else if (take(r, '?'))
            item = tern_expr_optional(r->x, item);
        else if (take(r, '{'))
            item = read_braces(r, item);
        else
            break;
    }
    return item;
}

/* True if a sequence ends here. */
static bool at_end(const reader *r) {
    const int c = peek(r);
    return c == -1 || c == '|' || c == ')' || ((c == '\n' || c == '\r') && r->depth == 0);
}

static uint32_t read_sequence(reader *r) {
    tern_expr_list list = {.x = r->x};
    skip(r, r->depth > 0);
    while (r->x->status == TERN_OK && !at_end(r))
        tern_expr_add(&list, read_repeated(r));
    return tern_expr_end_sequence(&list);
}

/* Goes past a '|' that begins the next line; false if there is none. */
static bool take_bar(reader *r) {
    const size_t before = r->at;
    skip(r, true);
    if (take(r, '|')) {
        skip(r, true);
        return true;
    }
    r->at = before;
    return false;
}

static uint32_t read_choice(reader *r) {
    tern_expr_list list = {.x = r->x};
    do {
        tern_expr_add(&list, read_sequence(r));
    } while (r->x->status == TERN_OK && take_bar(r));
    return tern_expr_end_choice(&list);
}

static void read_rule(reader *r) {
    if (!is_name(peek(r))) {
        refuse(r, "a rule begins with NAME ::=");
        return;
    }
    const uint32_t rule = read_name(r);
    skip(r, false);
    if (r->x->status != TERN_OK)
        return;
    if (!take(r, ':') || !take(r, ':') || !take(r, '='))
        refuse(r, "a rule begins with NAME ::=");
    else if (r->x->rules[rule].defined)
        refuse(r, "a second rule of the same name");
    skip(r, true);
    tern_expr_rule_define(r->x, rule, read_choice(r));
    if (!at_end(r) || peek(r) == ')')
        refuse(r, "a rule goes on after its end");
}

void tern_gbnf_read(tern_exprs *x, const char *text, size_t size) {
    reader r = {.x = x, .text = text, .size = size};
    r.ranges = malloc((2 * (size_t)MOST_SET + 1) * sizeof *r.ranges);
    if (r.ranges == NULL)
        tern_exprs_fail(x, TERN_ERR_NOMEM, "%s: no memory", x->name);
    (void)tern_expr_rule_new(x, "root", strlen("root"));
    skip(&r, true);
    while (x->status == TERN_OK && r.at < size) {
        read_rule(&r);
        skip(&r, true);
    }
    free(r.ranges);
}
