/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/interfaces/json_shape.h"

#include <string.h>

/* Returns the end of the term that begins at p. */
static const char *skip(const char *p) {
    unsigned depth = 0;
    do {
        depth += *p == '[' || *p == '{';
        depth -= *p == ']' || *p == '}';
        p++;
    } while (*p != '\0' && (depth > 0 || strchr("|,]}", *p) == NULL));
    return p;
}

static const char *write_any(const char *p, text *out);

/* Writes the members of an object, beginning with the name at p. Returns the end of the last one.
 */
static const char *write_properties(const char *p, text *out) {
    text_print(out, "\"type\":\"object\",\"properties\":{");
    while (*p != '}') {
        const size_t n = strcspn(p, "?:");
        text_quote(out, p, n);
        text_add(out, ":", 1);
        p = write_any(p + n + 1 + (p[n] == '?'), out);
        text_add(out, ",", *p == ',');
        p += *p == ',';
    }
    text_add(out, "}", 1);
    return p;
}

/* Writes the names of the members that must be there. */
static void write_required(const char *p, text *out) {
    size_t written = 0;
    text_print(out, ",\"required\":[");
    while (*p != '}') {
        const size_t n = strcspn(p, "?:");
        if (p[n] == ':') {
            text_add(out, ",", written++ > 0);
            text_quote(out, p, n);
        }
        p = skip(p + n + 1 + (p[n] == '?'));
        while (*p == '|')
            p = skip(p + 1);
        p += *p == ',';
    }
    text_add(out, "]", 1);
}

static const char *write_object(const char *p, text *out) {
    if (p[1] == '*') {
        text_print(out, "\"type\":\"object\",\"additionalProperties\":");
        return write_any(p + 3, out) + 1;
    }
    const char *end = write_properties(p + 1, out);
    write_required(p + 1, out);
    return end + 1;
}

static const char *write_scalar(const char *p, text *out) {
    static const char letters[] = "sinb~";
    static const char *const types[] = {"string", "integer", "number", "boolean", "null"};
    const char *at = strchr(letters, *p);
    if (at != NULL)
        text_print(out, "\"type\":\"%s\"", types[at - letters]);
    return p + 1;
}

static const char *write_term(const char *p, text *out) {
    const char *end = skip(p);
    text_add(out, "{", 1);
    if (*p == '{') {
        (void)write_object(p, out);
    } else if (*p == '[') {
        text_print(out, "\"type\":\"array\",\"items\":");
        (void)write_any(p + 1, out);
    } else if (*p == '"') {
        text_print(out, "\"const\":%.*s", (int)(end - p), p);
    } else if (*p == '@') {
        text_print(out, "\"$ref\":\"#/components/schemas/%.*s\"", (int)(end - p - 1), p + 1);
    } else {
        (void)write_scalar(p, out);
    }
    text_add(out, "}", 1);
    return end;
}

/* Writes one term, or alternatives separated by '|'. Returns their end. */
static const char *write_any(const char *p, text *out) {
    if (*skip(p) != '|')
        return write_term(p, out);
    text_print(out, "{\"anyOf\":[");
    for (p = write_term(p, out); *p == '|';) {
        text_add(out, ",", 1);
        p = write_term(p + 1, out);
    }
    text_print(out, "]}");
    return p;
}

void shape_write(const char *shape, text *out) {
    (void)write_any(shape, out);
}
