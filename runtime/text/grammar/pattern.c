/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Patterns (ECMA-262), of schemas and of whole texts. Supported: characters, `.`, sets, \d \w \s
 * and their opposites, escapes of control characters, \xNN and \uNNNN, groups without names, |, * +
 * ? {m,n} (lazy ones match the same texts), ^ at the beginning and $ at the end of alternatives
 * that are in no group. Not supported: look-around, back references, \b, \p, flags.
 */

#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/utf8.h"
#include "runtime/text/grammar/schema.h"

enum { MOST_DEPTH = 32, MOST_SET = 1024 };

typedef struct set {
    tern_range ranges[MOST_SET];
    size_t n;
} set;

typedef struct reader {
    tern_exprs *x;
    const char *text;
    size_t size, at;
    unsigned depth;
    bool plain;        /* characters stand for themselves, not as JSON strings have them; and the
                          pattern is the whole text */
    const char *why;   /* why it is refused; NULL: it is not */
    tern_pattern *run; /* the latest item that was read */
    set *sets;         /* [2] the set that is being read, and what an inverted set leaves out */
} reader;

static int peek(const reader *r) {
    return r->at < r->size ? (unsigned char)r->text[r->at] : -1;
}

static bool take(reader *r, char c) {
    if (peek(r) != (unsigned char)c)
        return false;
    r->at++;
    return true;
}

static void refuse(reader *r, const char *why) {
    r->why = r->why != NULL ? r->why : why;
}

static bool is_fine(const reader *r) {
    return r->why == NULL && r->x->status == TERN_OK;
}

/* Characters of ranges[n], tidy. */
static uint32_t characters(const reader *r, const tern_range *ranges, size_t n) {
    return r->plain ? tern_expr_chars(r->x, ranges, n) : tern_schema_characters(r->x, ranges, n);
}

/* ---- sets ------------------------------------------------------------------------------------ */

static void set_add(reader *r, set *s, uint32_t low, uint32_t high) {
    if (s->n == MOST_SET)
        refuse(r, "a set of too many ranges");
    else
        s->ranges[s->n++] = (tern_range){low, high};
}

/* Adds ranges[n], which are ascending, or all characters but them. */
static void set_add_class(reader *r, set *s, const tern_range *ranges, size_t n, bool inverted) {
    uint32_t next = 0;
    for (size_t i = 0; i < n; i++) {
        if (!inverted)
            set_add(r, s, ranges[i].low, ranges[i].high);
        else if (ranges[i].low > next)
            set_add(r, s, next, ranges[i].low - 1);
        next = ranges[i].high + 1;
    }
    if (inverted && next <= 0x10ffff)
        set_add(r, s, next, 0x10ffff);
}

/* Adds the class of \d, \w, \s or of their opposites; false if c is none of these. */
static bool add_class(reader *r, set *s, int c) {
    static const tern_range digits[] = {{'0', '9'}};
    static const tern_range words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    static const tern_range spaces[] = {
        {9, 13},          {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a},
        {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}};
    const bool inverted = c >= 'A' && c <= 'Z';
    switch (c | 0x20) {
    case 'd':
        set_add_class(r, s, digits, sizeof digits / sizeof *digits, inverted);
        return true;
    case 'w':
        set_add_class(r, s, words, sizeof words / sizeof *words, inverted);
        return true;
    case 's':
        set_add_class(r, s, spaces, sizeof spaces / sizeof *spaces, inverted);
        return true;
    default:
        return false;
    }
}

static uint32_t read_hex(reader *r, unsigned n) {
    uint32_t code = 0;
    for (unsigned i = 0; i < n; i++, r->at++) {
        const int digit = hex_digit(peek(r));
        if (digit < 0)
            refuse(r, "an escape with too few hexadecimal digits");
        code = code << 4 | (uint32_t)(digit & 15);
    }
    return code;
}

static uint32_t read_unicode(reader *r) {
    const uint32_t code = read_hex(r, 4);
    if (code < 0xd800 || code > 0xdfff)
        return code;
    if (code > 0xdbff || !take(r, '\\') || !take(r, 'u')) {
        refuse(r, "half of a surrogate pair");
        return 0;
    }
    const uint32_t low = read_hex(r, 4);
    if (low < 0xdc00 || low > 0xdfff)
        refuse(r, "half of a surrogate pair");
    return 0x10000 + ((code & 0x3ff) << 10) + (low & 0x3ff);
}

/* Reads an escape after its backslash; classes are read elsewhere. */
static uint32_t read_escape(reader *r) {
    static const char names[] = "tnrfv0";
    static const char codes[] = "\t\n\r\f\v";
    const int c = peek(r);
    const char *found = c > 0 ? strchr(names, c) : NULL;
    r->at++;
    if (c == 'x')
        return read_hex(r, 2);
    if (c == 'u')
        return read_unicode(r);
    if (found != NULL)
        return (unsigned char)codes[found - names];
    if (c < 0 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
        c >= 0x80)
        refuse(r, "an escape that is not supported");
    return (uint32_t)c;
}

static uint32_t read_character(reader *r) {
    if (take(r, '\\'))
        return read_escape(r);
    if (r->at >= r->size) {
        refuse(r, "it ends inside of a set");
        return 0;
    }
    const tern_utf8 c = tern_utf8_next(r->text + r->at, r->size - r->at);
    r->at += c.size;
    return c.code;
}

/* Reads a character or a class; true for a character. In a set \b is a character. */
static bool read_member(reader *r, set *s, bool in_set, uint32_t *code) {
    const bool escaped = peek(r) == '\\' && r->at + 1 < r->size;
    if (escaped && add_class(r, s, r->text[r->at + 1])) {
        r->at += 2;
        return false;
    }
    if (escaped && in_set && r->text[r->at + 1] == 'b') {
        r->at += 2;
        *code = '\b';
        return true;
    }
    *code = read_character(r);
    return true;
}

static void read_set(reader *r, set *s) {
    const bool inverted = take(r, '^');
    while (is_fine(r) && !take(r, ']')) {
        uint32_t low;
        uint32_t high;
        if (!read_member(r, s, true, &low))
            continue;
        high = low;
        if (peek(r) == '-' && r->at + 1 < r->size && r->text[r->at + 1] != ']') {
            r->at++;
            if (!read_member(r, s, true, &high))
                refuse(r, "a range that ends with a class");
        }
        if (high < low)
            refuse(r, "a range whose end lies before its beginning");
        set_add(r, s, low, high);
    }
    if (!inverted || !is_fine(r))
        return;
    set *left_out = &r->sets[1];
    *left_out = *s;
    left_out->n = tern_ranges_tidy(left_out->ranges, left_out->n);
    s->n = 0;
    set_add_class(r, s, left_out->ranges, left_out->n, true);
}

/* ---- items ----------------------------------------------------------------------------------- */

static uint32_t read_choice(reader *r, bool outermost);

static uint32_t read_group(reader *r) {
    if (take(r, '?') && !take(r, ':')) {
        refuse(r, "groups that begin with (? are not supported, but for (?:");
        return TERN_EXPR_NEVER;
    }
    if (++r->depth > MOST_DEPTH)
        refuse(r, "groups that are nested too deep");
    const uint32_t inner = is_fine(r) ? read_choice(r, false) : TERN_EXPR_NEVER;
    r->depth--;
    if (!take(r, ')'))
        refuse(r, "a group that is not closed");
    return inner;
}

static uint32_t read_item(reader *r, bool *character) {
    static const tern_range breaks[] = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
    set *s = &r->sets[0];
    const int c = peek(r);
    s->n = 0;
    *character = c != '(';
    if (take(r, '('))
        return read_group(r);
    if (c == '^' || c == '$')
        refuse(r, "^ and $ only at the beginning and the end of alternatives outside of groups");
    else if (c == '*' || c == '+' || c == '?' || c == '{')
        refuse(r, "a repetition of nothing");
    else if (take(r, '['))
        read_set(r, s);
    else if (take(r, '.'))
        set_add_class(r, s, breaks, sizeof breaks / sizeof *breaks, true);
    else {
        uint32_t code;
        if (read_member(r, s, false, &code))
            set_add(r, s, code, code);
    }
    s->n = tern_ranges_tidy(s->ranges, s->n);
    return is_fine(r) ? characters(r, s->ranges, s->n) : TERN_EXPR_NEVER;
}

static int32_t read_number(reader *r) {
    int32_t n = 0;
    const size_t from = r->at;
    for (int c = peek(r); c >= '0' && c <= '9' && n <= TERN_EXPR_MOST_REPEATS; r->at++, c = peek(r))
        n = 10 * n + (c - '0');
    if (r->at == from)
        refuse(r, "a repetition without a number");
    if (n > TERN_EXPR_MOST_REPEATS)
        refuse(r, "a repetition of too many times");
    return n;
}

/* Reads how often an item repeats; false if no such mark follows: once. */
static bool read_times(reader *r, int32_t *least, int32_t *most) {
    *least = *most = 1;
    if (take(r, '*')) {
        *least = 0;
        *most = TERN_EXPR_UNLIMITED;
    } else if (take(r, '+')) {
        *most = TERN_EXPR_UNLIMITED;
    } else if (take(r, '?')) {
        *least = 0;
    } else if (take(r, '{')) {
        *least = *most = read_number(r);
        if (take(r, ','))
            *most = peek(r) == '}' ? TERN_EXPR_UNLIMITED : read_number(r);
        if (!take(r, '}') || (*most >= 0 && *most < *least))
            refuse(r, "a repetition that is not of the form {m,n}, m <= n");
    } else {
        return false;
    }
    (void)take(r, '?');
    return true;
}

static uint32_t read_repeated(reader *r) {
    tern_pattern p = {.least = 1, .most = 1};
    p.character = read_item(r, &p.is_run);
    if (!is_fine(r))
        return TERN_EXPR_NEVER;
    p.expr = read_times(r, &p.least, &p.most) ? tern_expr_repeat(r->x, p.character, p.least, p.most)
                                              : p.character;
    *r->run = p;
    return p.expr;
}

/* ---- alternatives ---------------------------------------------------------------------------- */

static uint32_t anything(tern_exprs *x) {
    static const tern_range all = {1, 0x10ffff};
    return tern_expr_repeat(x, tern_schema_characters(x, &all, 1), 0, TERN_EXPR_UNLIMITED);
}

/* True if an alternative ends here. */
static bool at_end(const reader *r, bool outermost) {
    const int c = peek(r);
    const bool last = r->at + 1 >= r->size || r->text[r->at + 1] == '|';
    return c == -1 || c == '|' || (c == ')' && !outermost) || (outermost && c == '$' && last);
}

static uint32_t read_alternative(reader *r, bool outermost) {
    tern_expr_list list = {.x = r->x};
    size_t items = 0;
    const bool begins = !outermost || take(r, '^') || r->plain;
    if (!begins)
        tern_expr_add(&list, anything(r->x));
    for (; is_fine(r) && !at_end(r, outermost); items++)
        tern_expr_add(&list, read_repeated(r));
    const bool ends = !outermost || take(r, '$') || r->plain;
    if (!ends)
        tern_expr_add(&list, anything(r->x));
    r->run->is_run = r->run->is_run && items == 1 && begins && ends;
    return tern_expr_end_sequence(&list);
}

static uint32_t read_choice(reader *r, bool outermost) {
    tern_expr_list list = {.x = r->x};
    size_t n = 0;
    do {
        tern_expr_add(&list, read_alternative(r, outermost));
        n++;
    } while (is_fine(r) && take(r, '|'));
    r->run->is_run = r->run->is_run && n == 1;
    return tern_expr_end_choice(&list);
}

static uint32_t read_pattern(reader *r) {
    r->sets = calloc(2, sizeof *r->sets);
    if (r->sets == NULL) {
        refuse(r, "no memory");
        tern_exprs_fail(r->x, TERN_ERR_NOMEM, "%s: no memory", r->x->name);
        return TERN_EXPR_NEVER;
    }
    const uint32_t expr = read_choice(r, true);
    if (r->at < r->size)
        refuse(r, "a parenthesis that closes nothing");
    free(r->sets);
    return expr;
}

bool tern_pattern_read(tern_exprs *x, const char *bytes, size_t size, tern_pattern *out,
                       const char **why) {
    tern_pattern run = {.is_run = false};
    reader r = {.x = x, .text = bytes, .size = size, .run = &run};
    const uint32_t expr = read_pattern(&r);
    *out = run;
    out->expr = expr;
    *why = r.why;
    return r.why == NULL;
}

uint32_t tern_pattern_whole(tern_exprs *x, const char *bytes, size_t size) {
    tern_pattern run = {.is_run = false};
    reader r = {.x = x, .text = bytes, .size = size, .run = &run, .plain = true};
    const uint32_t expr = read_pattern(&r);
    if (r.why != NULL && x->status == TERN_OK)
        tern_exprs_fail(x, TERN_ERR_GRAMMAR, "%s: at byte %zu: %s", x->name, r.at, r.why);
    return expr;
}
