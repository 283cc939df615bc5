/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/tokenizer/regex_parse.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/text/tokenizer/regex.h"

enum { NAME_BYTES = 40, DEEPEST = 4 /* sets inside of sets */ };

char tern_regex_peek(const tern_regex_reader *r, size_t ahead) {
    return r->in.size - r->at > ahead ? r->in.data[r->at + ahead] : '\0';
}

bool tern_regex_sees(const tern_regex_reader *r, const char *text) {
    const size_t size = strlen(text);
    return r->in.size - r->at >= size && memcmp(r->in.data + r->at, text, size) == 0;
}

bool tern_regex_refuse(tern_regex_reader *r, const char *what) {
    (void)snprintf(r->why, TERN_REGEX_WHY_BYTES, "%s at byte %zu is not supported", what, r->at);
    return false;
}

/* Notes that memory was short. */
static bool sound(tern_regex_reader *r, bool done) {
    r->out_of_memory = r->out_of_memory || !done;
    return done;
}

/* Adds the characters that equal those of the set, where case does not matter. */
static bool fold(tern_regex_reader *r, tern_code_set *set) {
    return !r->folds || sound(r, tern_code_set_fold(set));
}

static bool is_letter_or_digit(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* ---- single characters ------------------------------------------------------------------------
 */

/* The value of a hexadecimal digit; 16: it is not one. */
static uint32_t digit(char c) {
    const char *const digits = "0123456789abcdef";
    const char small = (char)(c >= 'A' && c <= 'F' ? c | 0x20 : c);
    const char *found = small != '\0' ? strchr(digits, small) : NULL;
    return found != NULL ? (uint32_t)(found - digits) : 16;
}

/* Reads a character by its number: \xHH below 0x80, \x{H..}, \uHHHH. */
static bool read_number(tern_regex_reader *r, uint32_t *code) {
    const bool braces = tern_regex_peek(r, 1) == 'x' && tern_regex_peek(r, 2) == '{';
    const bool byte = tern_regex_peek(r, 1) == 'x' && !braces;
    const size_t start = braces ? 3 : 2, most = braces ? 8 : byte ? 2 : 4;
    size_t n = 0;
    *code = 0;
    for (uint32_t d; n < most && (d = digit(tern_regex_peek(r, start + n))) < 16; n++)
        *code = *code << 4 | d;
    if (n == 0 || (braces && tern_regex_peek(r, start + n) != '}') ||
        (!braces && !byte && n != 4) || *code >= TERN_CODE_END)
        return tern_regex_refuse(r, "an invalid character number");
    if (byte && *code >= 0x80)
        return tern_regex_refuse(r, "a byte that is not a character");
    r->at += start + n + braces;
    return true;
}

static bool refuse_escape(tern_regex_reader *r, char c) {
    char what[24];
    if (is_letter_or_digit(c))
        (void)snprintf(what, sizeof what, "the escape \\%c", c);
    else
        (void)snprintf(what, sizeof what, "this escape");
    return tern_regex_refuse(r, what);
}

/* Reads a character, escaped or not. An escape that means a set is refused. */
static bool read_code(tern_regex_reader *r, uint32_t *code) {
    static const char names[] = "rntfaev", values[] = "\r\n\t\f\a\x1b\v";
    if (tern_regex_peek(r, 0) != '\\') {
        const tern_utf8 c = tern_utf8_next(r->in.data + r->at, r->in.size - r->at);
        if (c.kind != TERN_UTF8_VALID)
            return tern_regex_refuse(r, "a byte that is not UTF-8");
        *code = c.code;
        r->at += c.size;
        return true;
    }
    const char c = tern_regex_peek(r, 1);
    if (c == 'x' || c == 'u')
        return read_number(r, code);
    const char *named = c != '\0' ? strchr(names, c) : NULL;
    if (named == NULL && (c == '\0' || (unsigned char)c >= 0x80 || is_letter_or_digit(c)))
        return refuse_escape(r, c);
    *code = (uint32_t)(named != NULL ? values[named - names] : c);
    r->at += 2;
    return true;
}

bool tern_regex_read_character(tern_regex_reader *r, tern_code_set *set) {
    uint32_t code;
    return read_code(r, &code) && sound(r, tern_code_set_add(set, code, code + 1)) && fold(r, set);
}

/* ---- escapes that mean sets -------------------------------------------------------------------
 */

/* Joins the characters of a property to a set, or all others. */
static bool add_property(tern_regex_reader *r, tern_span name, bool others, tern_code_set *set) {
    tern_code_set own = {NULL, 0, 0};
    const tern_status status = tern_code_set_add_property(&own, name);
    const bool known = status != TERN_ERR_NAME;
    bool done = status == TERN_OK && (!others || tern_code_set_invert(&own)) &&
                tern_code_set_join(set, &own);
    tern_code_set_free(&own);
    return known ? sound(r, done) : tern_regex_refuse(r, "this property");
}

/* \p{..}, \P{..} and \p{^..}. */
static bool read_property(tern_regex_reader *r, tern_code_set *set) {
    if (tern_regex_peek(r, 2) != '{')
        return tern_regex_refuse(r, "a property without braces");
    const bool not = tern_regex_peek(r, 3) == '^';
    const size_t begin = 3 + not ;
    size_t n = begin;
    while (is_letter_or_digit(tern_regex_peek(r, n)) || tern_regex_peek(r, n) == '_')
        n++;
    if (n == begin || n - begin > NAME_BYTES || tern_regex_peek(r, n) != '}')
        return tern_regex_refuse(r, "a property that is not a name");
    const tern_span name = {r->in.data + r->at + begin, n - begin};
    if (!add_property(r, name, not != (tern_regex_peek(r, 1) == 'P'), set))
        return false;
    r->at += n + 1;
    return true;
}

/* The name of the property that an escape means; NULL: it means none. */
static const char *class_of(char c) {
    switch (c | 0x20) {
    case 's':
        return "White_Space";
    case 'w':
        return "Word";
    case 'd':
        return "Nd";
    default:
        return NULL;
    }
}

bool tern_regex_read_escape(tern_regex_reader *r, tern_code_set *set) {
    const char c = tern_regex_peek(r, 1);
    if (c == 'p' || c == 'P')
        return read_property(r, set);
    const char *name = is_letter_or_digit(c) ? class_of(c) : NULL;
    if (name == NULL)
        return tern_regex_read_character(r, set);
    r->at += 2;
    return add_property(r, (tern_span){name, strlen(name)}, c <= 'Z', set);
}

/* ---- sets -------------------------------------------------------------------------------------
 */

/* True if the escape at this place means a set. */
static bool at_class(const tern_regex_reader *r) {
    const char c = tern_regex_peek(r, 1);
    return tern_regex_peek(r, 0) == '\\' &&
           (c == 'p' || c == 'P' || (is_letter_or_digit(c) && class_of(c) != NULL));
}

/* A character of a set, or a range of them. A dash beside a class or an end is itself. */
static bool read_range(tern_regex_reader *r, tern_code_set *set) {
    uint32_t first, last;
    if (!read_code(r, &first))
        return false;
    last = first;
    const size_t dash = r->at;
    if (tern_regex_sees(r, "-[")) /* Oniguruma drops what is before it */
        return tern_regex_refuse(r, "a range that ends in a set");
    if (tern_regex_peek(r, 0) == '-' && tern_regex_peek(r, 1) != ']' &&
        !tern_regex_sees(r, "-&&")) {
        r->at++;
        if (at_class(r))
            r->at = dash;
        else if (!read_code(r, &last))
            return false;
    }
    if (last < first)
        return tern_regex_refuse(r, "a range that ends before it begins");
    return sound(r, tern_code_set_add(set, first, last + 1));
}

/* Reads \w or \W of a set, which in Oniguruma differ from those outside of sets: raised digits and
 * fractions of Latin-1 are not characters of words there. */
static bool read_word(tern_regex_reader *r, tern_code_set *set) {
    static const uint32_t left_out[] = {0xB2, 0xB3, 0xB9, 0xBC, 0xBD, 0xBE};
    const char *const name = class_of('w');
    const bool others = tern_regex_peek(r, 1) == 'W';
    tern_code_set own = {NULL, 0, 0}, few = {NULL, 0, 0};
    bool done = tern_code_set_add_property(&own, (tern_span){name, strlen(name)}) == TERN_OK;
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        done = done && tern_code_set_add(&few, left_out[i], left_out[i] + 1);
    done = done && tern_code_set_invert(&few) && tern_code_set_meet(&own, &few) &&
           (!others || tern_code_set_invert(&own)) && tern_code_set_join(set, &own);
    tern_code_set_free(&own);
    tern_code_set_free(&few);
    r->at += 2;
    return sound(r, done);
}

/* Reads an escape of a set that means a set itself. */
static bool read_class(tern_regex_reader *r, tern_code_set *set) {
    const bool word = (tern_regex_peek(r, 1) | 0x20) == 'w';
    return word ? read_word(r, set) : tern_regex_read_escape(r, set);
}

static bool read_set(tern_regex_reader *r, tern_code_set *set, unsigned depth);

/* Adds what stands at this place of a set. */
static bool read_item(tern_regex_reader *r, tern_code_set *set, unsigned depth) {
    if (tern_regex_peek(r, 0) != '[')
        return at_class(r) ? read_class(r, set) : read_range(r, set);
    if (tern_regex_peek(r, 1) == ':' || depth == DEEPEST)
        return tern_regex_refuse(r, "a class inside of a set");
    tern_code_set inner = {NULL, 0, 0};
    const bool done = read_set(r, &inner, depth + 1) && sound(r, tern_code_set_join(set, &inner));
    tern_code_set_free(&inner);
    return done;
}

/* Reads up to the bracket that ends the set, or up to &&. */
static bool read_items(tern_regex_reader *r, tern_code_set *set, unsigned depth) {
    while (r->at < r->in.size && tern_regex_peek(r, 0) != ']' && !tern_regex_sees(r, "&&"))
        if (!read_item(r, set, depth))
            return false;
    return r->at < r->in.size || tern_regex_refuse(r, "a set that does not end");
}

/* Reads the parts between &&, of which a set has what all have. */
static bool read_parts(tern_regex_reader *r, tern_code_set *set, unsigned depth) {
    bool done = read_items(r, set, depth);
    while (done && tern_regex_peek(r, 0) != ']') {
        tern_code_set next = {NULL, 0, 0};
        r->at += strlen("&&");
        done = read_items(r, &next, depth) && sound(r, tern_code_set_meet(set, &next));
        tern_code_set_free(&next);
    }
    return done;
}

static bool read_set(tern_regex_reader *r, tern_code_set *set, unsigned depth) {
    r->at++;
    const bool others = tern_regex_peek(r, 0) == '^';
    r->at += others;
    if (tern_regex_peek(r, 0) == ']')
        return tern_regex_refuse(r, "a set that begins with ]");
    if (!read_parts(r, set, depth) || !fold(r, set))
        return false;
    r->at++;
    return !others || sound(r, tern_code_set_invert(set));
}

bool tern_regex_read_set(tern_regex_reader *r, tern_code_set *set) {
    return read_set(r, set, 0);
}
