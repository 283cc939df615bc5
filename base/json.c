/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/grow.h"
#include "base/in_file.h"
#include "base/utf8.h"

typedef struct tern_json_parser {
    char *bytes;
    size_t size, at;
    tern_json_value *values;
    size_t n, capacity;
    uint32_t open[TERN_JSON_MAX_DEPTH]; /* numbers of the arrays and objects around */
    size_t depth;
    uint32_t line; /* that `at` is in; texts have none in them, and are written over */
    bool repairs;  /* lone surrogates become U+FFFD */
    const char *name;
    tern_error *err;
} tern_json_parser;

static tern_status fail(const tern_json_parser *p, const char *what) {
    return tern_fail(p->err, TERN_ERR_JSON, "%s: line %u, byte %zu: %s", p->name, p->line, p->at,
                     what);
}

/* Adds a value; NULL when memory is short. Pointers to earlier values become invalid. */
static tern_json_value *add(tern_json_parser *p, tern_json_type type, tern_span text) {
    if (!tern_grow((void **)&p->values, &p->capacity, p->n, sizeof *p->values,
                   SIZE_MAX / sizeof *p->values))
        return NULL;
    p->values[p->n] = (tern_json_value){type, 0, 1, p->line, text};
    return &p->values[p->n++];
}

static void skip_space(tern_json_parser *p) {
    while (p->at < p->size && (p->bytes[p->at] == ' ' || p->bytes[p->at] == '\n' ||
                               p->bytes[p->at] == '\r' || p->bytes[p->at] == '\t'))
        p->line += p->bytes[p->at++] == '\n';
}

static char peek(const tern_json_parser *p) {
    return p->at < p->size ? p->bytes[p->at] : '\0';
}

/* ---- strings --------------------------------------------------------------------------------- */

/* Four hexadecimal digits at `at`, which is not beyond the end, or -1. */
static int32_t hex4(const tern_json_parser *p, size_t at) {
    if (p->size - at < 4)
        return -1;
    int32_t code = 0;
    for (size_t i = at; i < at + 4; i++) {
        const char c = p->bytes[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0)
            return -1;
        code = code << 4 | digit;
    }
    return code;
}

/* The second half of a surrogate pair, written as \uXXXX at `at`; -1: there is none. */
static int32_t second_half(const tern_json_parser *p, size_t at) {
    if (p->size - at < 6 || p->bytes[at] != '\\' || p->bytes[at + 1] != 'u')
        return -1;
    const int32_t second = hex4(p, at + 2);
    return second >= 0xDC00 && second < 0xE000 ? second : -1;
}

/* \uXXXX or a pair of them, at the u; the characters are never longer than what names them. */
static bool read_code(tern_json_parser *p, char *out, size_t *n) {
    enum { REPLACEMENT = 0xFFFD };
    const int32_t first = hex4(p, p->at + 1);
    if (first < 0)
        return false;
    p->at += 5;
    uint32_t code = (uint32_t)first;
    if (first >= 0xD800 && first < 0xE000) {
        const int32_t second = first < 0xDC00 ? second_half(p, p->at) : -1;
        if (second < 0 && !p->repairs)
            return false;
        p->at += second < 0 ? 0 : 6;
        code = second < 0 ? REPLACEMENT
                          : 0x10000 + ((code - 0xD800) << 10) + (uint32_t)(second - 0xDC00);
    }
    *n += tern_utf8_put(code, out + *n);
    return true;
}

/* An escape, at the backslash. */
static bool read_escape(tern_json_parser *p, char *out, size_t *n) {
    static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    p->at++;
    if (peek(p) == 'u')
        return read_code(p, out, n);
    const char *found = peek(p) != '\0' ? strchr(names, peek(p)) : NULL;
    if (found == NULL)
        return false;
    out[(*n)++] = meant[found - names];
    p->at++;
    return true;
}

/* A string, at its quotation mark; written over itself without escapes. */
static tern_status read_string(tern_json_parser *p, tern_span *text) {
    char *out = p->bytes + ++p->at;
    size_t n = 0;
    while (peek(p) != '"') {
        if (p->at >= p->size)
            return fail(p, "a string does not end");
        const unsigned char c = (unsigned char)p->bytes[p->at];
        if (c == '\\') {
            if (!read_escape(p, out, &n))
                return fail(p, "a string has an unknown escape");
        } else if (c < 0x20) {
            return fail(p, "a string has a control character in it");
        } else if (c < 0x80) {
            out[n++] = (char)c;
            p->at++;
        } else {
            const tern_utf8 u = tern_utf8_next(p->bytes + p->at, p->size - p->at);
            if (u.kind != TERN_UTF8_VALID)
                return fail(p, "a string is not UTF-8");
            memmove(out + n, p->bytes + p->at, u.size);
            n += u.size;
            p->at += u.size;
        }
    }
    p->at++;
    *text = (tern_span){out, n};
    return TERN_OK;
}

/* ---- the other values ------------------------------------------------------------------------ */

static size_t digits(tern_json_parser *p) {
    const size_t start = p->at;
    while (peek(p) >= '0' && peek(p) <= '9')
        p->at++;
    return p->at - start;
}

static bool read_number(tern_json_parser *p, tern_span *text) {
    const size_t start = p->at;
    p->at += peek(p) == '-';
    if (peek(p) == '0')
        p->at++;
    else if (digits(p) == 0)
        return false;
    if (peek(p) == '.') {
        p->at++;
        if (digits(p) == 0)
            return false;
    }
    if (peek(p) == 'e' || peek(p) == 'E') {
        p->at++;
        p->at += peek(p) == '+' || peek(p) == '-';
        if (digits(p) == 0)
            return false;
    }
    *text = (tern_span){p->bytes + start, p->at - start};
    return true;
}

static bool read_word(tern_json_parser *p, const char *word) {
    const size_t size = strlen(word);
    if (p->size - p->at < size || memcmp(p->bytes + p->at, word, size) != 0)
        return false;
    p->at += size;
    return true;
}

/* A value that contains no others. */
static tern_status read_scalar(tern_json_parser *p) {
    tern_json_type type = TERN_JSON_NUMBER;
    tern_span text = {"", 0};
    if (peek(p) == '"') {
        type = TERN_JSON_STRING;
        const tern_status status = read_string(p, &text);
        if (status != TERN_OK)
            return status;
    } else if (read_word(p, "true")) {
        type = TERN_JSON_TRUE;
    } else if (read_word(p, "false")) {
        type = TERN_JSON_FALSE;
    } else if (read_word(p, "null")) {
        type = TERN_JSON_NULL;
    } else if (!read_number(p, &text)) {
        return fail(p, "this is not a JSON value");
    }
    return add(p, type, text) != NULL ? TERN_OK
                                      : tern_fail(p->err, TERN_ERR_NOMEM, "%s: no memory", p->name);
}

static tern_status read_key(tern_json_parser *p) {
    skip_space(p);
    if (peek(p) != '"')
        return fail(p, "a member of an object has no name");
    const tern_status status = read_scalar(p);
    if (status != TERN_OK)
        return status;
    skip_space(p);
    if (peek(p) != ':')
        return fail(p, "a colon is missing");
    p->at++;
    return TERN_OK;
}

/* At the bracket; what is inside is read by the caller's loop. */
static tern_status open_container(tern_json_parser *p) {
    if (p->depth == TERN_JSON_MAX_DEPTH)
        return fail(p, "nested too deeply");
    p->open[p->depth++] = (uint32_t)p->n;
    const tern_json_type type = peek(p) == '[' ? TERN_JSON_ARRAY : TERN_JSON_OBJECT;
    p->at++;
    return add(p, type, (tern_span){"", 0}) != NULL
               ? TERN_OK
               : tern_fail(p->err, TERN_ERR_NOMEM, "%s: no memory", p->name);
}

/*
 * After a value (or an opening bracket, `first`): closes what ends here, and goes to where the
 * next value begins. *done: the whole has ended.
 */
static tern_status next_value(tern_json_parser *p, bool first, bool *done) {
    for (;; first = false) {
        *done = p->depth == 0;
        if (*done)
            return TERN_OK;
        tern_json_value *around = &p->values[p->open[p->depth - 1]];
        const bool object = around->type == TERN_JSON_OBJECT;
        around->count += first ? 0 : 1;
        skip_space(p);
        if (peek(p) == (object ? '}' : ']')) {
            p->at++;
            around->size = (uint32_t)(p->n - p->open[--p->depth]);
            continue;
        }
        if (!first) {
            if (peek(p) != ',')
                return fail(p, object ? "a comma or } is missing" : "a comma or ] is missing");
            p->at++;
        }
        return object ? read_key(p) : TERN_OK;
    }
}

static tern_status parse(tern_json_parser *p) {
    for (bool done = false; !done;) {
        skip_space(p);
        const bool container = peek(p) == '[' || peek(p) == '{';
        tern_status status = container ? open_container(p) : read_scalar(p);
        if (status == TERN_OK)
            status = next_value(p, container, &done);
        if (status != TERN_OK)
            return status;
    }
    skip_space(p);
    return p->at == p->size ? TERN_OK : fail(p, "something follows the value");
}

static tern_status parse_all(char *bytes, size_t size, const char *name, uint32_t line,
                             bool repairs, tern_json *out, tern_error *err) {
    tern_json_parser p = {
        .bytes = bytes, .size = size, .line = line, .repairs = repairs, .name = name, .err = err};
    /* A value takes a byte at least, so their numbers fit too. */
    const tern_status status =
        size <= INT32_MAX ? parse(&p) : tern_fail(err, TERN_ERR_JSON, "%s: too large", name);
    if (status != TERN_OK) {
        free(bytes);
        free(p.values);
        return status;
    }
    *out = (tern_json){bytes, p.values};
    return TERN_OK;
}

tern_status tern_json_parse_lines(char *bytes, size_t size, const char *name, uint32_t line,
                                  tern_json *out, tern_error *err) {
    return parse_all(bytes, size, name, line, false, out, err);
}

tern_status tern_json_parse_repaired(char *bytes, size_t size, const char *name, uint32_t line,
                                     tern_json *out, tern_error *err) {
    return parse_all(bytes, size, name, line, true, out, err);
}

tern_status tern_json_parse(char *bytes, size_t size, const char *name, tern_json *out,
                            tern_error *err) {
    return tern_json_parse_lines(bytes, size, name, 1, out, err);
}

/* ---- files ----------------------------------------------------------------------------------- */

static tern_status read_bytes(FILE *file, const char *path, size_t limit, char **bytes,
                              size_t *size, tern_error *err) {
    struct stat info;
    if (fstat(fileno(file), &info) != 0)
        return tern_fail(err, TERN_ERR_IO, "%s: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return tern_fail(err, TERN_ERR_IO, "%s: is a directory", path);
    if (info.st_size < 0 || (uintmax_t)info.st_size > limit)
        return tern_fail(err, TERN_ERR_JSON, "%s: larger than %zu bytes", path, limit);
    /* Room for one byte more, so that the end is seen; a pipe says 0 and grows. */
    size_t capacity = (size_t)info.st_size + 1, n = 0;
    char *buffer = malloc(capacity);
    while (buffer != NULL) {
        n += fread(buffer + n, 1, capacity - n, file);
        if (n < capacity || n > limit)
            break;
        capacity *= 2;
        char *grown = realloc(buffer, capacity);
        if (grown == NULL)
            free(buffer);
        buffer = grown;
    }
    if (buffer != NULL && !ferror(file) && n <= limit) {
        *bytes = buffer;
        *size = n;
        return TERN_OK;
    }
    const bool broken = buffer != NULL && ferror(file);
    const bool memory = buffer == NULL;
    free(buffer);
    if (memory)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to read it", path);
    return broken ? tern_fail(err, TERN_ERR_IO, "%s: %s", path, strerror(errno))
                  : tern_fail(err, TERN_ERR_JSON, "%s: larger than %zu bytes", path, limit);
}

tern_status tern_json_read(const char *path, size_t limit, tern_json *out, tern_error *err) {
    FILE *file = NULL;
    tern_status status = tern_in_file_open(path, TERN_IN_FILE, &file, err);
    if (status != TERN_OK)
        return status;
    char *bytes = NULL;
    size_t size = 0;
    status = read_bytes(file, path, limit, &bytes, &size, err);
    (void)fclose(file);
    return status == TERN_OK ? tern_json_parse(bytes, size, path, out, err) : status;
}

void tern_json_free(tern_json *json) {
    free(json->bytes);
    free(json->values);
    *json = (tern_json){NULL, NULL};
}

/* ---- access ---------------------------------------------------------------------------------- */

bool tern_json_is_string(const tern_json_value *v, const char *text) {
    return v != NULL && v->type == TERN_JSON_STRING && v->text.size == strlen(text) &&
           memcmp(v->text.data, text, v->text.size) == 0;
}

const tern_json_value *tern_json_get(const tern_json_value *v, const char *key) {
    if (v == NULL || v->type != TERN_JSON_OBJECT)
        return NULL;
    const tern_json_value *found = NULL, *at = v + 1;
    for (uint32_t i = 0; i < v->count; i++) {
        if (tern_json_is_string(at, key))
            found = at + 1;
        at += 1 + (at + 1)->size;
    }
    return found != NULL && found->type != TERN_JSON_NULL ? found : NULL;
}

bool tern_json_is_true(const tern_json_value *v) {
    return v != NULL && v->type == TERN_JSON_TRUE;
}

bool tern_json_integer(const tern_json_value *v, int64_t *out) {
    if (v == NULL || v->type != TERN_JSON_NUMBER)
        return false;
    const bool negative = v->text.data[0] == '-';
    int64_t value = 0;
    for (size_t i = negative ? 1 : 0; i < v->text.size; i++) {
        const int digit = v->text.data[i] - '0';
        if (digit < 0 || digit > 9 || value < (INT64_MIN + digit) / 10)
            return false;
        value = 10 * value - digit; /* below 0, where there is one number more */
    }
    if (!negative && value == INT64_MIN)
        return false;
    *out = negative ? value : -value;
    return true;
}
