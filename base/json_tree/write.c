/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_tree/write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

typedef struct writer {
    char *text;
    size_t n, capacity;
    json_style style;
    bool failed;
} writer;

/* Room for `size` bytes more, and a terminator. */
static bool reserve(writer *w, size_t size) {
    if (w->failed || w->capacity - w->n > size)
        return !w->failed;
    const size_t capacity = 2 * w->capacity + size + 256;
    char *grown = json_reserve(capacity);
    if (grown != NULL && w->n > 0)
        memcpy(grown, w->text, w->n);
    free(w->text);
    w->text = grown;
    w->capacity = capacity;
    w->failed = grown == NULL;
    return !w->failed;
}

static void put(writer *w, const char *bytes, size_t size) {
    if (reserve(w, size)) {
        memcpy(w->text + w->n, bytes, size);
        w->n += size;
    }
}

static void put_text(writer *w, const char *text) {
    put(w, text, strlen(text));
}

/* ---- scalars --------------------------------------------------------------------------------- */

static void put_integer(writer *w, json_int_t x) {
    char digits[32];
    (void)snprintf(digits, sizeof digits, "%lld", x);
    put_text(w, digits);
}

/* As C writes it, but without a sign and leading zeros of the exponent, and never like an integer:
 * 1.0, 1e20, 1e-7. */
static void put_real(writer *w, double x) {
    char digits[40];
    (void)snprintf(digits, sizeof digits, "%.17g", x);
    char *exponent = strchr(digits, 'e');
    if (exponent == NULL) {
        put_text(w, digits);
        put_text(w, strchr(digits, '.') != NULL ? "" : ".0");
        return;
    }
    const char *power = exponent + 1;
    put(w, digits, (size_t)(power - digits));
    put(w, "-", *power == '-');
    power += strspn(power, "+-0");
    put_text(w, *power != '\0' ? power : "0");
}

static void put_unit(writer *w, uint32_t unit) {
    char escape[16];
    (void)snprintf(escape, sizeof escape, "\\u%04X", unit);
    put_text(w, escape);
}

static void put_code(writer *w, uint32_t code) {
    if (code < 0x10000) {
        put_unit(w, code);
        return;
    }
    put_unit(w, 0xD800 + ((code - 0x10000) >> 10));
    put_unit(w, 0xDC00 + ((code - 0x10000) & 0x3FF));
}

/* Texts are valid UTF-8: nothing else becomes a value. */
static void put_string(writer *w, const char *text, size_t size) {
    static const char special[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
    put(w, "\"", 1);
    for (size_t i = 0; i < size && !w->failed;) {
        const tern_utf8 u = tern_utf8_next(text + i, size - i);
        const char *found = u.code > 0 && u.code < 0x80 ? strchr(special, (int)u.code) : NULL;
        if (found != NULL) {
            put(w, "\\", 1);
            put(w, &names[found - special], 1);
        } else if (u.code < 0x20 || (w->style.ascii && u.code >= 0x80)) {
            put_code(w, u.code);
        } else {
            put(w, text + i, u.size);
        }
        i += u.size;
    }
    put(w, "\"", 1);
}

/* ---- trees ----------------------------------------------------------------------------------- */

static void put_line(writer *w, unsigned depth) {
    if (w->style.indent == 0)
        return;
    put(w, "\n", 1);
    for (unsigned i = 0; i < depth * w->style.indent; i++)
        put(w, " ", 1);
}

static void put_value(writer *w, const json_t *value, unsigned depth);

static void put_object(writer *w, const json_t *object, unsigned depth) {
    const char *key, *colon = w->style.indent > 0 ? ": " : ":";
    json_t *value;
    put(w, "{", 1);
    for (size_t i = 0; json_object_at(object, i, &key, &value) && !w->failed; i++) {
        put(w, ",", i > 0);
        put_line(w, depth + 1);
        put_string(w, key, strlen(key));
        put_text(w, colon);
        put_value(w, value, depth + 1);
    }
    if (json_object_size(object) > 0)
        put_line(w, depth);
    put(w, "}", 1);
}

static void put_array(writer *w, const json_t *array, unsigned depth) {
    const size_t n = json_array_size(array);
    put(w, "[", 1);
    for (size_t i = 0; i < n && !w->failed; i++) {
        put(w, ",", i > 0);
        put_line(w, depth + 1);
        put_value(w, json_array_get(array, i), depth + 1);
    }
    if (n > 0)
        put_line(w, depth);
    put(w, "]", 1);
}

static void put_value(writer *w, const json_t *value, unsigned depth) {
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        put_object(w, value, depth);
        break;
    case JSON_ARRAY:
        put_array(w, value, depth);
        break;
    case JSON_STRING:
        put_string(w, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
        put_integer(w, json_integer_value(value));
        break;
    case JSON_REAL:
        put_real(w, json_number_value(value));
        break;
    case JSON_TRUE:
        put_text(w, "true");
        break;
    case JSON_FALSE:
        put_text(w, "false");
        break;
    case JSON_NULL:
        put_text(w, "null");
        break;
    }
}

char *json_dump(const json_t *value, json_style style) {
    writer w = {.style = style, .failed = value == NULL};
    if (value != NULL)
        put_value(&w, value, 0);
    if (w.failed) {
        free(w.text);
        return NULL;
    }
    w.text[w.n] = '\0'; /* reserve kept room */
    return w.text;
}
