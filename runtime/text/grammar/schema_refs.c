/* SPDX-License-Identifier: Apache-2.0 */

/*
 * References of schemas: JSON pointers, names that $anchor, $dynamicAnchor or an old `id` gives,
 * and the $id of a part of the document. Parts of the document with an $id of their own are found
 * by it, or by the part after its last '/', so that a relative reference finds them, too.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "runtime/text/grammar/schema_check.h"

static bool is_text(tern_span a, tern_span b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static tern_span rest_of(tern_span s, size_t from) {
    return (tern_span){s.data + from, s.size - from};
}

/* Decodes one step of a pointer in a fragment, up to '/' or the end; false: an escape is wrong. */
static bool read_step(tern_span *rest, char *step, size_t *size) {
    size_t i = 0;
    *size = 0;
    for (; i < rest->size && rest->data[i] != '/'; i++) {
        unsigned c = (unsigned char)rest->data[i];
        if (c == '%') {
            if (i + 2 >= rest->size)
                return false;
            const int high = hex_digit((unsigned char)rest->data[i + 1]);
            const int low = hex_digit((unsigned char)rest->data[i + 2]);
            if (high < 0 || low < 0)
                return false;
            c = (unsigned)(high << 4 | low);
            i += 2;
        } else if (c == '~') {
            if (i + 1 >= rest->size || (rest->data[i + 1] != '0' && rest->data[i + 1] != '1'))
                return false;
            c = rest->data[++i] == '0' ? '~' : '/';
        }
        step[(*size)++] = (char)c;
    }
    *rest = rest_of(*rest, i);
    return true;
}

static const tern_json_value *child_of(const tern_json_value *v, const char *step, size_t size) {
    const tern_json_value *child = v + 1;
    const tern_json_value *found = NULL;
    char *end = NULL;
    const unsigned long index =
        v->type == TERN_JSON_ARRAY && size > 0 ? strtoul(step, &end, 10) : 0;
    if (v->type == TERN_JSON_ARRAY && (size == 0 || *end != '\0' || index >= v->count))
        return NULL;
    for (uint32_t i = 0; i < v->count && v->type == TERN_JSON_ARRAY && i < index; i++)
        child += child->size;
    if (v->type == TERN_JSON_ARRAY)
        return child;
    for (uint32_t i = 0; i < v->count && v->type == TERN_JSON_OBJECT; i++) {
        const tern_json_value *value = child + 1;
        if (child->text.size == size && memcmp(child->text.data, step, size) == 0)
            found = value;
        child = value + value->size;
    }
    return found;
}

/* Follows a JSON pointer, which is empty or begins with '/'. */
static const tern_json_value *follow_pointer(const tern_json_value *at, tern_span rest) {
    char step[256];
    size_t size;
    while (at != NULL && rest.size > 0) {
        rest = rest_of(rest, 1);
        const char *slash = memchr(rest.data, '/', rest.size);
        const size_t length = slash != NULL ? (size_t)(slash - rest.data) : rest.size;
        if (length >= sizeof step || !read_step(&rest, step, &size))
            return NULL;
        step[size] = '\0';
        at = child_of(at, step, size);
    }
    return at;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Without '#' and what follows, and without what stands before the last '/'. */
static tern_span last_part(tern_span id) {
    const char *mark = id.size > 0 ? memchr(id.data, '#', id.size) : NULL;
    const size_t size = mark != NULL ? (size_t)(mark - id.data) : id.size;
    size_t from = size;
    while (from > 0 && id.data[from - 1] != '/')
        from--;
    return (tern_span){id.data + from, size - from};
}

static bool has_name(const tern_json_value *schema, tern_span name) {
    static const char *const words[] = {"$anchor", "$dynamicAnchor"};
    static const char *const ids[] = {"id", "$id"};
    for (size_t i = 0; i < 2; i++) {
        const tern_json_value *anchor = tern_json_get(schema, words[i]);
        const tern_json_value *id = tern_json_get(schema, ids[i]);
        if (anchor != NULL && anchor->type == TERN_JSON_STRING && is_text(anchor->text, name))
            return true;
        if (id != NULL && id->type == TERN_JSON_STRING && id->text.size > 1 &&
            id->text.data[0] == '#' && is_text(rest_of(id->text, 1), name))
            return true;
    }
    return false;
}

static bool has_id(const tern_json_value *schema, tern_span base) {
    static const char *const ids[] = {"$id", "id"};
    for (size_t i = 0; i < 2; i++) {
        const tern_json_value *id = tern_json_get(schema, ids[i]);
        if (id != NULL && id->type == TERN_JSON_STRING && last_part(id->text).size > 0 &&
            is_text(last_part(id->text), last_part(base)))
            return true;
    }
    return false;
}

/* The first part of `within` that `is` finds to have the name. */
static const tern_json_value *search(const tern_json_value *within, tern_span name,
                                     bool (*is)(const tern_json_value *, tern_span)) {
    for (uint32_t i = 0; i < within->size; i++)
        if (within[i].type == TERN_JSON_OBJECT && is(&within[i], name))
            return &within[i];
    return NULL;
}

const tern_json_value *tern_schema_find(const tern_json_value *root, tern_span ref, bool *here) {
    const char *mark = ref.size > 0 ? memchr(ref.data, '#', ref.size) : NULL;
    const size_t base = mark != NULL ? (size_t)(mark - ref.data) : ref.size;
    const tern_json_value *at = root;
    if (base > 0)
        at = search(root, (tern_span){ref.data, base}, has_id);
    *here = at != NULL;
    if (at == NULL || mark == NULL)
        return at;
    const tern_span fragment = rest_of(ref, base + 1);
    if (fragment.size == 0 || fragment.data[0] == '/')
        return follow_pointer(at, fragment);
    return search(at, fragment, has_name);
}

/* ---- pointers -------------------------------------------------------------------------------- */

/* Appends one step of a JSON pointer; what does not fit is left out. */
static size_t add_step(char *pointer, size_t at, const tern_json_value *key, size_t index) {
    const int n = key != NULL
                      ? snprintf(pointer + at, TERN_POINTER_BYTES - at, "/%.*s",
                                 (int)(key->text.size < 60 ? key->text.size : 60), key->text.data)
                      : snprintf(pointer + at, TERN_POINTER_BYTES - at, "/%zu", index);
    const size_t after = at + (size_t)(n > 0 ? n : 0);
    return after < TERN_POINTER_BYTES ? after : TERN_POINTER_BYTES - 1;
}

/* The place of v in memory tells the way down from the whole. */
void tern_json_pointer(const tern_json_value *whole, const tern_json_value *v, char *pointer) {
    size_t at = 0;
    pointer[0] = '\0';
    while (whole != v) {
        const tern_json_value *child = whole + 1;
        const bool object = whole->type == TERN_JSON_OBJECT;
        const tern_json_value *key = object ? child++ : NULL;
        size_t index = 0;
        for (; v >= child + child->size; index++) {
            child += child->size;
            key = object ? child++ : NULL;
        }
        at = add_step(pointer, at, key, index);
        whole = v < child ? v : child;
    }
}
