/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

void text_free(text *t) {
    free(t->bytes);
    *t = (text){0};
}

void text_clear(text *t) {
    t->size = 0;
    t->failed = false;
}

/* Room for size more bytes and a terminator. */
static bool reserve(text *t, size_t size) {
    if (!t->failed && t->size + size + 1 > t->capacity) {
        const size_t capacity = 2 * (t->size + size) + 64;
        char *grown = realloc(t->bytes, capacity);
        t->failed = grown == NULL;
        t->bytes = t->failed ? t->bytes : grown;
        t->capacity = t->failed ? t->capacity : capacity;
    }
    return !t->failed;
}

void text_add(text *t, const char *bytes, size_t size) {
    if (reserve(t, size)) {
        if (size > 0) {
            memcpy(t->bytes + t->size, bytes, size);
        }
        t->size += size;
        t->bytes[t->size] = '\0';
    }
}

void text_print(text *t, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, args);
    if (n >= 0 && reserve(t, (size_t)n)) {
        (void)vsnprintf(t->bytes + t->size, (size_t)n + 1, format, again);
        t->size += (size_t)n;
    }
    va_end(again);
    va_end(args);
}

static void quote_byte(text *t, unsigned char c) {
    static const char escaped[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *at = c != '\0' ? strchr(escaped, c) : NULL;
    if (at != NULL) {
        const char pair[2] = {'\\', letters[at - escaped]};
        text_add(t, pair, 2);
    } else if (c < ' ' || c == 0x7f) {
        text_print(t, "\\u%04x", c);
    } else {
        const char as_is = (char)c;
        text_add(t, &as_is, 1);
    }
}

void text_quote(text *t, const char *bytes, size_t size) {
    text_add(t, "\"", 1);
    for (size_t i = 0; i < size;) {
        const tern_utf8 c = tern_utf8_next(bytes + i, size - i);
        if (c.kind != TERN_UTF8_VALID) {
            text_add(t, tern_utf8_replacement, TERN_UTF8_REPLACEMENT_BYTES);
        } else if (c.size == 1) {
            quote_byte(t, (unsigned char)bytes[i]);
        } else {
            text_add(t, bytes + i, c.size);
        }
        i += c.size;
    }
    text_add(t, "\"", 1);
}

void text_name(text *t, const char *name) {
    const char before = t->size > 0 ? t->bytes[t->size - 1] : '{';
    text_print(t, "%s\"%s\":", before == '{' || before == '[' ? "" : ",", name);
}

void text_string(text *t, const char *name, const char *value) {
    text_name(t, name);
    text_quote(t, value, strlen(value));
}

void text_float(text *t, float value) {
    enum { ENOUGH = 9 };
    const float finite = isfinite(value) ? value : -9999.0F;
    char digits[32];
    for (int n = 1; n <= ENOUGH; n++) {
        (void)snprintf(digits, sizeof digits, "%.*g", n, (double)finite);
        if (strtof(digits, NULL) == finite) {
            break;
        }
    }
    text_add(t, digits, strlen(digits));
}

void text_real(text *t, const char *name, float value) {
    text_name(t, name);
    text_float(t, value);
}

char *text_take(text *t, size_t *size) {
    text_add(t, "", 0);
    char *bytes = t->failed ? NULL : t->bytes;
    *size = t->failed ? 1 : t->size;
    if (t->failed) {
        free(t->bytes);
    }
    *t = (text){0};
    return bytes;
}
