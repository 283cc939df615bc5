/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_tree/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
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

void text_base64(text *t, const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    for (size_t n; size > 0; at += n, size -= n) {
        char quad[4];
        n = size < 3 ? size : 3;
        tern_base64_quad(at, n, quad);
        text_add(t, quad, sizeof quad);
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

static void add_unit(text *t, uint32_t unit) {
    text_print(t, "\\u%04X", (unsigned)unit);
}

static void add_code(text *t, uint32_t code) {
    if (code < 0x10000) {
        add_unit(t, code);
        return;
    }
    add_unit(t, 0xD800 + ((code - 0x10000) >> 10));
    add_unit(t, 0xDC00 + ((code - 0x10000) & 0x3FF));
}

static void quote(text *t, const char *bytes, size_t size, bool ascii) {
    static const char special[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
    text_add(t, "\"", 1);
    for (size_t i = 0; i < size && !t->failed;) {
        const tern_utf8 u = tern_utf8_next(bytes + i, size - i);
        const bool valid = u.kind == TERN_UTF8_VALID;
        const uint32_t code = valid ? u.code : 0xFFFD;
        const char *found = code > 0 && code < 0x80 ? strchr(special, (int)code) : NULL;
        if (found != NULL) {
            const char pair[2] = {'\\', names[found - special]};
            text_add(t, pair, 2);
        } else if (code < 0x20 || (ascii && code >= 0x80)) {
            add_code(t, code);
        } else if (valid) {
            text_add(t, bytes + i, u.size);
        } else {
            text_add(t, tern_utf8_replacement, TERN_UTF8_REPLACEMENT_BYTES);
        }
        i += u.size;
    }
    text_add(t, "\"", 1);
}

void text_quote(text *t, const char *bytes, size_t size) {
    quote(t, bytes, size, false);
}

void text_quote_ascii(text *t, const char *bytes, size_t size) {
    quote(t, bytes, size, true);
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
