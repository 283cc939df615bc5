/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_tree/write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/text.h"

typedef struct writer {
    text text;
    json_style style;
} writer;

static void put(writer *w, const char *bytes, size_t size) {
    text_add(&w->text, bytes, size);
}

static void put_text(writer *w, const char *words) {
    put(w, words, strlen(words));
}

/* ---- scalars --------------------------------------------------------------------------------- */

static void put_integer(writer *w, json_int_t x) {
    char digits[32];
    (void)snprintf(digits, sizeof digits, "%lld", x);
    put_text(w, digits);
}

/* Writes it as C does, but without a sign and leading zeros of the exponent, and never like an
 * integer: 1.0, 1e20, 1e-7. */
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

static void put_string(writer *w, const char *bytes, size_t size) {
    if (w->style.ascii)
        text_quote_ascii(&w->text, bytes, size);
    else
        text_quote(&w->text, bytes, size);
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
    for (size_t i = 0; json_object_at(object, i, &key, &value) && !w->text.failed; i++) {
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
    for (size_t i = 0; i < n && !w->text.failed; i++) {
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
        if (json_number_written(value) != NULL)
            put_text(w, json_number_written(value));
        else
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
    writer w = {.style = style};
    size_t size;
    if (value == NULL)
        return NULL;
    put_value(&w, value, 0);
    if (w.text.failed)
        (void)json_remember(true);
    return text_take(&w.text, &size);
}
