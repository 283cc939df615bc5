/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/interfaces/call_literal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/read.h"
#include "base/utf8.h"

/* OUTSIDE: between values. QUOTED: in quotes. ESCAPE: after a backslash. CODE: in \x or \u. RAW:
 * between marks. */
enum { OUTSIDE, QUOTED, ESCAPE, CODE, RAW };

void literal_escape(text *out, char c) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *found = c != '\0' ? strchr(from, c) : NULL;
    if (found != NULL)
        text_print(out, "\\%c", to[found - from]);
    else if ((unsigned char)c < 0x20)
        text_print(out, "\\u%04x", (unsigned)(unsigned char)c);
    else
        text_add(out, &c, 1);
}

static void quote_word(const call_literal *l, size_t n, text *out) {
    text_add(out, "\"", 1);
    for (size_t i = 0; i < n; i++)
        literal_escape(out, l->word[i]);
    text_add(out, "\"", 1);
}

/* True if a word is a JSON value, such as a number. */
static bool is_json(const char *bytes, size_t size) {
    json_t *value = json_read_any(bytes, size, "a value", NULL);
    const bool sound = value != NULL;
    json_decref(value);
    return sound;
}

/* Ends a word without quotes: a name before its value, or a value. */
static void end_word(call_literal *l, bool is_name, text *out) {
    static const char *const words[][2] = {{"True", "true"}, {"False", "false"}, {"None", "null"}};
    size_t n = l->n_word;
    while (n > 0 && (l->word[n - 1] == ' ' || l->word[n - 1] == '\n'))
        n--;
    l->n_word = 0;
    if (n == 0)
        return;
    for (size_t i = 0; i < 3 && !is_name; i++)
        if (strlen(words[i][0]) == n && memcmp(l->word, words[i][0], n) == 0) {
            text_print(out, "%s", words[i][1]);
            return;
        }
    if (!is_name && is_json(l->word, n))
        text_add(out, l->word, n);
    else
        quote_word(l, n, out);
}

static literal_end open_bracket(call_literal *l, char c, text *out) {
    const bool object = c == '{' || (c == '(' && l->depth == 0);
    if (l->depth == LITERAL_MOST_DEPTH || l->n_word > 0)
        return LITERAL_WRONG;
    l->brackets[l->depth++] = object ? '}' : ']';
    text_add(out, object ? "{" : "[", 1);
    l->valued = false;
    return LITERAL_MORE;
}

static literal_end close_bracket(call_literal *l, char c, text *out) {
    const char wanted = l->brackets[l->depth - 1];
    end_word(l, false, out);
    if (c == ']' ? wanted != ']' : c == '}' && wanted != '}')
        return LITERAL_WRONG;
    text_add(out, &wanted, 1);
    l->valued = true;
    return --l->depth == 0 ? LITERAL_ENDED : LITERAL_MORE;
}

static bool is_in_object(const call_literal *l) {
    return l->brackets[l->depth - 1] == '}';
}

static literal_end take_outside(call_literal *l, char c, text *out) {
    if (l->mark != NULL && l->mark[0] != '\0' && c == l->mark[l->matched] &&
        (l->matched > 0 || l->n_word == 0)) {
        if (l->mark[++l->matched] != '\0')
            return LITERAL_MORE;
        l->matched = 0;
        l->state = RAW;
        text_add(out, "\"", 1);
        return LITERAL_MORE;
    }
    if (l->matched > 0)
        return LITERAL_WRONG;
    if (c == '(' || c == '[' || c == '{')
        return open_bracket(l, c, out);
    if (l->depth == 0)
        return LITERAL_WRONG;
    if (c == ')' || c == ']' || c == '}')
        return close_bracket(l, c, out);
    if (c == ',' || ((c == ':' || c == '=') && is_in_object(l))) {
        end_word(l, c != ',', out);
        text_print(out, c == ',' ? ", " : ": ");
        l->valued = false;
        return LITERAL_MORE;
    }
    if ((c == '"' || c == '\'') && l->n_word == 0 && !l->valued) {
        l->state = QUOTED;
        l->quote = c;
        text_add(out, "\"", 1);
        return LITERAL_MORE;
    }
    if (l->n_word == 0 && (c == ' ' || c == '\n' || c == '\r' || c == '\t'))
        return LITERAL_MORE;
    if (l->n_word == LITERAL_WORD_BYTES || l->valued)
        return LITERAL_WRONG;
    l->word[l->n_word++] = c;
    return LITERAL_MORE;
}

static void end_text(call_literal *l, text *out) {
    text_add(out, "\"", 1);
    l->state = OUTSIDE;
    l->valued = true;
}

static void take_quoted(call_literal *l, char c, text *out) {
    if (c == l->quote)
        end_text(l, out);
    else if (c == '\\')
        l->state = ESCAPE;
    else
        literal_escape(out, c);
}

static void take_escape(call_literal *l, char c, text *out) {
    static const char names[] = "nrtbfav0", values[] = "\n\r\t\b\f\a\v";
    const char *found = c != '\0' ? strchr(names, c) : NULL;
    l->state = QUOTED;
    if (c == 'x' || c == 'u' || c == 'U') {
        l->state = CODE;
        l->n_code = 0;
        l->most_code = c == 'x' ? 2 : c == 'u' ? 4 : 8;
    } else if (found != NULL) {
        literal_escape(out, values[found - names]);
    } else {
        if (strchr("\\'\"/\n", c) == NULL)
            literal_escape(out, '\\');
        if (c != '\n')
            literal_escape(out, c);
    }
}

/* Ends the digits of an escape. Halves of pairs stay as they are: JSON has them, too. */
static void end_code(call_literal *l, text *out) {
    l->code[l->n_code] = '\0';
    const unsigned long code = strtoul(l->code, NULL, 16);
    l->state = QUOTED;
    if (code >= 0x10000 && code <= 0x10ffff)
        text_print(out, "\\u%04lx\\u%04lx", 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
    else
        text_print(out, "\\u%04lx", code & 0xffff);
}

static literal_end take_code(call_literal *l, char c, text *out) {
    if (!isxdigit((unsigned char)c))
        return LITERAL_WRONG;
    l->code[l->n_code++] = c;
    if (l->n_code == l->most_code)
        end_code(l, out);
    return LITERAL_MORE;
}

static void take_raw(call_literal *l, char c, text *out) {
    if (c == l->mark[l->matched]) {
        if (l->mark[++l->matched] == '\0') {
            l->matched = 0;
            end_text(l, out);
        }
        return;
    }
    for (size_t i = 0; i < l->matched; i++)
        literal_escape(out, l->mark[i]);
    l->matched = c == l->mark[0];
    if (l->matched == 0)
        literal_escape(out, c);
}

literal_end literal_take(call_literal *l, char c, text *out) {
    switch (l->state) {
    case QUOTED:
        take_quoted(l, c, out);
        return LITERAL_MORE;
    case ESCAPE:
        take_escape(l, c, out);
        return LITERAL_MORE;
    case CODE:
        return take_code(l, c, out);
    case RAW:
        take_raw(l, c, out);
        return LITERAL_MORE;
    default:
        return take_outside(l, c, out);
    }
}

/* Reads the value as the only one of a list. */
bool literal_value(const char *bytes, size_t size, text *out) {
    call_literal l = {0};
    text list = {0};
    literal_end end = literal_take(&l, '[', &list);
    for (size_t i = 0; i < size && end == LITERAL_MORE; i++)
        end = literal_take(&l, bytes[i], &list);
    end = end == LITERAL_MORE ? literal_take(&l, ']', &list) : LITERAL_WRONG;
    json_t *read = end == LITERAL_ENDED && !list.failed
                       ? json_read_any(list.bytes, list.size, "a value", NULL)
                       : NULL;
    const bool sound = json_array_size(read) == 1;
    if (sound)
        text_add(out, list.bytes + 1, list.size - 2);
    json_decref(read);
    text_free(&list);
    return sound;
}
