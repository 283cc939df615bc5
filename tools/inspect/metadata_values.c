/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/inspect/metadata_values.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tern/status.h"

enum { FIRST = 6, TEXT_BYTES = 60 }; /* elements and bytes of a text that are shown */

typedef enum scalar_kind { SCALAR_SIGNED, SCALAR_UNSIGNED, SCALAR_REAL, SCALAR_TEXT } scalar_kind;

typedef struct scalar {
    scalar_kind kind;
    int64_t i;
    uint64_t u;
    double d;
    tern_span text;
} scalar;

static uint64_t load(const uint8_t **cursor, size_t bytes) {
    uint64_t u = 0;
    for (size_t i = 0; i < bytes; i++)
        u |= (uint64_t)(*cursor)[i] << (8 * i);
    *cursor += bytes;
    return u;
}

static scalar load_unsigned(const uint8_t **cursor, size_t bytes) {
    return (scalar){.kind = SCALAR_UNSIGNED, .u = load(cursor, bytes)};
}

static scalar load_signed(const uint8_t **cursor, size_t bytes) {
    const uint64_t u = load(cursor, bytes);
    const unsigned shift = (unsigned)(64 - 8 * bytes);
    return (scalar){.kind = SCALAR_SIGNED, .i = (int64_t)(u << shift) >> shift};
}

static scalar load_real(const uint8_t **cursor, size_t bytes) {
    const uint64_t u = load(cursor, bytes);
    scalar s = {.kind = SCALAR_REAL};
    if (bytes == sizeof(float)) {
        const uint32_t bits = (uint32_t)u;
        float f;
        memcpy(&f, &bits, sizeof f);
        s.d = (double)f;
    } else {
        memcpy(&s.d, &u, sizeof s.d);
    }
    return s;
}

/* Reads one value of a type other than array, and advances the cursor. */
static scalar next_scalar(tern_gguf_type type, const uint8_t **cursor) {
    switch (type) {
    case TERN_GGUF_U8:
    case TERN_GGUF_BOOL:
        return load_unsigned(cursor, 1);
    case TERN_GGUF_U16:
        return load_unsigned(cursor, 2);
    case TERN_GGUF_U32:
        return load_unsigned(cursor, 4);
    case TERN_GGUF_U64:
        return load_unsigned(cursor, 8);
    case TERN_GGUF_I8:
        return load_signed(cursor, 1);
    case TERN_GGUF_I16:
        return load_signed(cursor, 2);
    case TERN_GGUF_I32:
        return load_signed(cursor, 4);
    case TERN_GGUF_I64:
        return load_signed(cursor, 8);
    case TERN_GGUF_F32:
        return load_real(cursor, 4);
    case TERN_GGUF_F64:
        return load_real(cursor, 8);
    case TERN_GGUF_STRING:
        return (scalar){.kind = SCALAR_TEXT, .text = tern_gguf_next_string(cursor)};
    case TERN_GGUF_ARRAY:
    case TERN_GGUF_TYPE_COUNT:
        break;
    }
    return (scalar){.kind = SCALAR_TEXT, .text = {"", 0}};
}

static uint64_t shown(const tern_gguf_value *value) {
    if (value->element == TERN_GGUF_ARRAY)
        return 0; /* for arrays of arrays only the number is shown */
    return value->count < FIRST ? value->count : FIRST;
}

/* ---- for people ------------------------------------------------------------------------------ */

typedef struct line {
    char *text;
    size_t size, used;
} line;

TERN_PRINTF(2, 3) static void append(line *l, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(l->text + l->used, l->size - l->used, format, args);
    va_end(args);
    const size_t room = l->size - 1 - l->used;
    l->used += n > 0 ? ((size_t)n < room ? (size_t)n : room) : 0;
}

static void append_text(line *l, tern_span text) {
    append(l, "\"");
    size_t n = text.size < TEXT_BYTES ? text.size : TEXT_BYTES;
    while (n < text.size && n > 0 && ((unsigned char)text.data[n] & 0xc0) == 0x80)
        n--; /* not inside a UTF-8 character */
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text.data[i];
        append(l, "%c", c < ' ' || c == 0x7f ? '?' : c);
    }
    append(l, n < text.size ? "...\"" : "\"");
}

static void append_scalar(line *l, tern_gguf_type type, const scalar *s) {
    if (type == TERN_GGUF_BOOL)
        append(l, "%s", s->u != 0 ? "true" : "false");
    else if (s->kind == SCALAR_TEXT)
        append_text(l, s->text);
    else if (s->kind == SCALAR_REAL)
        append(l, "%.9g", s->d);
    else if (s->kind == SCALAR_SIGNED)
        append(l, "%" PRId64, s->i);
    else
        append(l, "%" PRIu64, s->u);
}

void value_text(const tern_gguf_value *value, char *text, size_t size) {
    line l = {.text = text, .size = size};
    text[0] = '\0';
    const uint8_t *cursor = value->data;
    if (value->type != TERN_GGUF_ARRAY) {
        const scalar s = next_scalar(value->type, &cursor);
        append_scalar(&l, value->type, &s);
        return;
    }
    append(&l, "%" PRIu64 " x %s [", value->count, tern_gguf_value_type_name(value->element));
    const uint64_t n = shown(value);
    for (uint64_t i = 0; i < n; i++) {
        const scalar s = next_scalar(value->element, &cursor);
        append(&l, "%s", i > 0 ? ", " : "");
        append_scalar(&l, value->element, &s);
    }
    append(&l, n == value->count ? "]" : n > 0 ? ", ...]" : "...]");
}

/* ---- for programs ---------------------------------------------------------------------------- */

static json_t *scalar_json(tern_gguf_type type, const scalar *s) {
    if (type == TERN_GGUF_BOOL)
        return json_boolean(s->u != 0);
    switch (s->kind) {
    case SCALAR_TEXT:
        return json_text(s->text.data, s->text.size);
    case SCALAR_REAL:
        return json_number(s->d);
    case SCALAR_SIGNED:
        return json_integer(s->i);
    case SCALAR_UNSIGNED:
        break;
    }
    return json_integer((json_int_t)s->u);
}

json_t *value_json(const tern_gguf_value *value) {
    const uint8_t *cursor = value->data;
    if (value->type != TERN_GGUF_ARRAY) {
        const scalar s = next_scalar(value->type, &cursor);
        return scalar_json(value->type, &s);
    }
    json_t *first = json_array();
    for (uint64_t i = 0; i < shown(value); i++) {
        const scalar s = next_scalar(value->element, &cursor);
        json_array_append_new(first, scalar_json(value->element, &s));
    }
    return json_pack("{s:s, s:I, s:o}", "array", tern_gguf_value_type_name(value->element), "count",
                     (json_int_t)value->count, "first", first);
}
