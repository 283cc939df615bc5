/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/template/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/text/template/characters.h"

typedef tern_tpl_value value;
typedef tern_tpl_text text;
typedef tern_tpl_buffer buffer;

static bool reserve(buffer *b, size_t more) {
    const size_t most = b->x->limits.output;
    if (more > most || b->size > most - more)
        return tern_tpl_fail(b->x, TERN_ERR_TEMPLATE, "a text of more than %zu MiB is written",
                             most >> 20);
    if (more <= b->capacity - b->size)
        return true;
    const size_t capacity = b->size + more + (b->size + more < 64 ? 64 : b->size + more);
    char *bytes = tern_tpl_take(b->x, capacity, 2);
    if (bytes == NULL)
        return false;
    uint8_t *marks = (uint8_t *)bytes + capacity;
    if (b->size > 0) {
        memcpy(bytes, b->bytes, b->size);
        memcpy(marks, b->marks, b->size);
    }
    b->bytes = bytes;
    b->marks = marks;
    b->capacity = capacity;
    return true;
}

bool tern_tpl_add(buffer *b, text t) {
    if (t.size == 0)
        return !b->x->failed;
    if (!tern_tpl_work(b->x, t.size / 64) || !reserve(b, t.size))
        return false;
    memcpy(b->bytes + b->size, t.bytes, t.size);
    if (t.marks != NULL)
        memcpy(b->marks + b->size, t.marks, t.size);
    else
        memset(b->marks + b->size, t.mark, t.size);
    b->size += t.size;
    b->marked = b->marked || t.marks != NULL || t.mark != 0;
    return true;
}

bool tern_tpl_add_bytes(buffer *b, const char *bytes, size_t size, uint8_t mark) {
    return tern_tpl_add(b, (text){.bytes = bytes, .size = size, .mark = mark});
}

bool tern_tpl_add_word(buffer *b, const char *word) {
    return tern_tpl_add_bytes(b, word, strlen(word), 0);
}

value *tern_tpl_buffer_value(const buffer *b) {
    const text whole = {.bytes = b->bytes != NULL ? b->bytes : "",
                        .marks = b->marked ? b->marks : NULL,
                        .size = b->size};
    return tern_tpl_text_value(b->x, whole);
}

text tern_tpl_part(text t, size_t from, size_t to) {
    t.bytes += from;
    t.marks = t.marks != NULL ? t.marks + from : NULL;
    t.size = to > from ? to - from : 0;
    return t;
}

uint8_t tern_tpl_mark(const text *t, size_t at) {
    return t->marks != NULL ? t->marks[at] : t->mark;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Finds the shortest digits that give the number again, without sign and point, and its
 * exponent. */
static int shortest(double real, char digits[20], int *exponent) {
    char out[40];
    int n = 0;
    for (int precision = 0; precision <= 16; precision++) {
        (void)snprintf(out, sizeof out, "%.*e", precision, real);
        if (precision == 16 || !(strtod(out, NULL) < real || strtod(out, NULL) > real))
            break;
    }
    const char *e = strchr(out, 'e');
    *exponent = e != NULL ? atoi(e + 1) : 0;
    for (const char *at = out; at < e && n < 19; at++)
        if (*at >= '0' && *at <= '9')
            digits[n++] = *at;
    digits[n] = '\0';
    return n;
}

size_t tern_tpl_format_real(double real, char out[40]) {
    char digits[20];
    int exponent;
    size_t at = 0;
    if (!isfinite(real))
        return (size_t)snprintf(out, 40, "%s", isnan(real) ? "nan" : real < 0 ? "-inf" : "inf");
    const int n = shortest(fabs(real), digits, &exponent);
    if (signbit(real))
        out[at++] = '-';
    if (exponent < -4 || exponent >= 16)
        return at + (size_t)snprintf(out + at, 40 - at, "%c%s%se%c%02d", digits[0],
                                     n > 1 ? "." : "", digits + 1, exponent < 0 ? '-' : '+',
                                     abs(exponent));
    if (exponent < 0) {
        at += (size_t)snprintf(out + at, 40 - at, "0.%.*s%s", -exponent - 1, "000", digits);
        return at;
    }
    for (int i = 0; i <= exponent; i++)
        out[at++] = i < n ? digits[i] : '0';
    out[at++] = '.';
    return at + (size_t)snprintf(out + at, 40 - at, "%s",
                                 n > exponent + 1 ? digits + exponent + 1 : "0");
}

static bool write_number(buffer *b, const value *v) {
    char out[40];
    if (v->kind == TERN_TPL_FLOAT && v->written.size > 0)
        return tern_tpl_add_bytes(b, v->written.data, v->written.size, 0);
    const size_t n = v->kind == TERN_TPL_FLOAT
                         ? tern_tpl_format_real(v->real, out)
                         : (size_t)snprintf(out, sizeof out, "%lld", (long long)v->integer);
    return tern_tpl_add_bytes(b, out, n, 0);
}

/* ---- str() and repr() ------------------------------------------------------------------------ */

/* Writes a character as an escape if it needs one; returns the bytes of the escape. */
static size_t escape_of(uint32_t code, char quote, char out[16]) {
    static const char codes[] = "\n\r\t\\", names[] = "nrt\\";
    const char *named = code < 0x80 && code != 0 ? memchr(codes, (int)code, 4) : NULL;
    if (named != NULL || code == (uint32_t)quote)
        return (size_t)snprintf(out, 16, "\\%c", named != NULL ? names[named - codes] : quote);
    if (tern_tpl_is_printable(code))
        return 0;
    return (size_t)snprintf(out, 16,
                            code < 0x100     ? "\\x%02x"
                            : code < 0x10000 ? "\\u%04x"
                                             : "\\U%08x",
                            code);
}

static bool write_text_repr(buffer *b, const text *t) {
    const bool single = memchr(t->bytes, '\'', t->size) != NULL;
    const char quote = single && memchr(t->bytes, '"', t->size) == NULL ? '"' : '\'';
    bool written = tern_tpl_add_bytes(b, &quote, 1, 0);
    for (size_t at = 0, size; at < t->size && written; at += size) {
        char escape[16];
        const uint32_t code = tern_tpl_code((tern_span){t->bytes + at, t->size - at}, &size);
        const size_t n = escape_of(code, quote, escape);
        written = n > 0 ? tern_tpl_add_bytes(b, escape, n, tern_tpl_mark(t, at))
                        : tern_tpl_add(b, tern_tpl_part(*t, at, at + size));
    }
    return tern_tpl_work(b->x, t->size / 8) && written && tern_tpl_add_bytes(b, &quote, 1, 0);
}

static bool write_list(buffer *b, const tern_tpl_list *list) {
    bool written = tern_tpl_add_word(b, list->tuple ? "(" : "[");
    for (size_t i = 0; i < list->n && written; i++)
        written = (i == 0 || tern_tpl_add_word(b, ", ")) && tern_tpl_write_repr(b, list->items[i]);
    return written && tern_tpl_add_word(b, list->tuple ? (list->n == 1 ? ",)" : ")") : "]");
}

static bool write_dict(buffer *b, const tern_tpl_dict *dict) {
    bool written = tern_tpl_add_word(b, "{");
    for (size_t i = 0; i < dict->n && written; i++) {
        written = (i == 0 || tern_tpl_add_word(b, ", ")) && tern_tpl_write_repr(b, dict->keys[i]) &&
                  tern_tpl_add_word(b, ": ") && tern_tpl_write_repr(b, dict->values[i]);
    }
    return written && tern_tpl_add_word(b, "}");
}

static bool write_repr(buffer *b, const value *v) {
    switch (v->kind) {
    case TERN_TPL_UNDEFINED:
        return tern_tpl_add_word(b, "Undefined");
    case TERN_TPL_NONE:
        return tern_tpl_add_word(b, "None");
    case TERN_TPL_BOOL:
        return tern_tpl_add_word(b, v->truth ? "True" : "False");
    case TERN_TPL_INT:
    case TERN_TPL_FLOAT:
        return write_number(b, v);
    case TERN_TPL_TEXT:
        return write_text_repr(b, &v->text);
    case TERN_TPL_LIST:
        if (!v->list.lazy)
            return write_list(b, &v->list);
        break;
    case TERN_TPL_DICT:
        return write_dict(b, v->dict);
    default:
        break;
    }
    return tern_tpl_fail(b->x, TERN_ERR_TEMPLATE, "a %s has no text",
                         v->kind == TERN_TPL_LIST ? "generator" : tern_tpl_kind_name(v));
}

bool tern_tpl_write_repr(buffer *b, const value *v) {
    const bool written = tern_tpl_enter(b->x) && write_repr(b, v);
    tern_tpl_leave(b->x);
    return written;
}

bool tern_tpl_write(buffer *b, const value *v) {
    if (v->kind == TERN_TPL_TEXT)
        return tern_tpl_add(b, v->text);
    return v->kind == TERN_TPL_UNDEFINED ? !b->x->failed : tern_tpl_write_repr(b, v);
}

bool tern_tpl_str(tern_tpl *x, const value *v, text *out) {
    buffer b = {.x = x};
    if (v->kind == TERN_TPL_TEXT) {
        *out = v->text;
        return !x->failed;
    }
    const value *whole = tern_tpl_write(&b, v) ? tern_tpl_buffer_value(&b) : NULL;
    if (whole != NULL)
        *out = whole->text;
    return whole != NULL;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static size_t json_escape(uint32_t code, bool ascii, char out[16]) {
    static const char codes[] = "\"\\\n\r\t\f\b", names[] = "\"\\nrtfb";
    const char *named = code != 0 && code < 0x80 ? memchr(codes, (int)code, 7) : NULL;
    if (named != NULL)
        return (size_t)snprintf(out, 16, "\\%c", names[named - codes]);
    if (code >= 0x20 && (code < 0x7F || !ascii))
        return 0;
    if (code < 0x10000)
        return (size_t)snprintf(out, 16, "\\u%04x", code);
    return (size_t)snprintf(out, 16, "\\u%04x\\u%04x", 0xD800 + ((code - 0x10000) >> 10),
                            0xDC00 + ((code - 0x10000) & 0x3FF));
}

static bool write_json_text(buffer *b, const text *t, bool ascii) {
    bool written = tern_tpl_add_word(b, "\"") && tern_tpl_work(b->x, t->size / 8);
    for (size_t at = 0, size; at < t->size && written; at += size) {
        char escape[16];
        const uint32_t code = tern_tpl_code((tern_span){t->bytes + at, t->size - at}, &size);
        const size_t n = json_escape(code, ascii, escape);
        written = n > 0 ? tern_tpl_add_bytes(b, escape, n, tern_tpl_mark(t, at))
                        : tern_tpl_add(b, tern_tpl_part(*t, at, at + size));
    }
    return written && tern_tpl_add_word(b, "\"");
}

static bool new_line(buffer *b, const tern_tpl_json *style, unsigned level) {
    bool written = !style->lines || tern_tpl_add_word(b, "\n");
    for (unsigned i = 0; i < level && written && style->lines; i++)
        written = tern_tpl_add(b, style->indent);
    return written;
}

static bool write_json_list(buffer *b, const tern_tpl_list *list, const tern_tpl_json *style,
                            unsigned level) {
    if (list->n == 0)
        return tern_tpl_add_word(b, "[]");
    bool written = tern_tpl_add_word(b, "[");
    for (size_t i = 0; i < list->n && written; i++)
        written = (i == 0 || tern_tpl_add(b, style->comma)) && new_line(b, style, level + 1) &&
                  tern_tpl_write_json(b, list->items[i], style, level + 1);
    return written && new_line(b, style, level) && tern_tpl_add_word(b, "]");
}

/* Names in JSON are texts, so numbers and the like become texts. */
static bool write_json_key(buffer *b, const value *key, const tern_tpl_json *style) {
    if (key->kind == TERN_TPL_TEXT)
        return write_json_text(b, &key->text, style->ascii);
    return tern_tpl_add_word(b, "\"") && tern_tpl_write_json(b, key, style, 0) &&
           tern_tpl_add_word(b, "\"");
}

/* The order of the members: as they stand, or sorted by name. */
static size_t *member_order(tern_tpl *x, const tern_tpl_dict *dict, bool sort) {
    size_t *order = tern_tpl_take(x, dict->n + 1, sizeof *order);
    for (size_t i = 0; order != NULL && i < dict->n; i++) {
        size_t at = i;
        int c = 1;
        for (; sort && at > 0; at--) {
            if (!tern_tpl_work(x, 1) ||
                !tern_tpl_compare(x, dict->keys[order[at - 1]], dict->keys[i], &c))
                return NULL;
            if (c <= 0)
                break;
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
    return order;
}

static bool write_json_dict(buffer *b, const tern_tpl_dict *dict, const tern_tpl_json *style,
                            unsigned level) {
    const size_t *order = member_order(b->x, dict, style->sort);
    if (dict->n == 0 || order == NULL)
        return order != NULL && tern_tpl_add_word(b, "{}");
    bool written = tern_tpl_add_word(b, "{");
    for (size_t i = 0; i < dict->n && written; i++) {
        written = (i == 0 || tern_tpl_add(b, style->comma)) && new_line(b, style, level + 1) &&
                  write_json_key(b, dict->keys[order[i]], style) && tern_tpl_add(b, style->colon) &&
                  tern_tpl_write_json(b, dict->values[order[i]], style, level + 1);
    }
    return written && new_line(b, style, level) && tern_tpl_add_word(b, "}");
}

static bool write_json(buffer *b, const value *v, const tern_tpl_json *style, unsigned level) {
    switch (v->kind) {
    case TERN_TPL_NONE:
        return tern_tpl_add_word(b, "null");
    case TERN_TPL_BOOL:
        return tern_tpl_add_word(b, v->truth ? "true" : "false");
    case TERN_TPL_INT:
        return write_number(b, v);
    case TERN_TPL_FLOAT:
        return isfinite(v->real) || v->written.size > 0
                   ? write_number(b, v)
                   : tern_tpl_add_word(b, isnan(v->real) ? "NaN"
                                          : v->real < 0  ? "-Infinity"
                                                         : "Infinity");
    case TERN_TPL_TEXT:
        return write_json_text(b, &v->text, style->ascii);
    case TERN_TPL_LIST:
        if (!v->list.lazy)
            return write_json_list(b, &v->list, style, level);
        break;
    case TERN_TPL_DICT:
        return write_json_dict(b, v->dict, style, level);
    default:
        break;
    }
    return tern_tpl_fail(b->x, TERN_ERR_TEMPLATE, "a %s cannot be written as JSON",
                         v->kind == TERN_TPL_LIST ? "generator" : tern_tpl_kind_name(v));
}

bool tern_tpl_write_json(buffer *b, const value *v, const tern_tpl_json *style, unsigned level) {
    const bool written = tern_tpl_enter(b->x) && write_json(b, v, style, level);
    tern_tpl_leave(b->x);
    return written;
}
