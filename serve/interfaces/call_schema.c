/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/interfaces/call_schema.h"

#include <string.h>

/* Bits of the kinds of values. */
enum { TEXT = 1, OTHER = 2, BOTH = 3, MOST_DEPTH = 16 };

/* The target of a reference into the same document; NULL: there is none. */
static const json_t *target_of(const json_t *root, const char *ref) {
    char step[128];
    const json_t *at = ref[0] == '#' ? root : NULL;
    for (ref += ref[0] == '#'; at != NULL && *ref == '/';) {
        const size_t n = strcspn(++ref, "/");
        if (n >= sizeof step)
            return NULL;
        memcpy(step, ref, n);
        step[n] = '\0';
        at = json_object_get(at, step);
        ref += n;
    }
    return *ref == '\0' ? at : NULL;
}

static unsigned bits_of_type(const json_t *type) {
    const char *word = json_string_value(type);
    unsigned bits = 0;
    for (size_t i = 0; i < json_array_size(type); i++)
        bits |= bits_of_type(json_array_get(type, i));
    return word == NULL ? bits : strcmp(word, "string") == 0 ? TEXT : OTHER;
}

static unsigned bits_of(const json_t *root, const json_t *schema, unsigned depth);

static unsigned bits_of_any(const json_t *root, const json_t *list, unsigned depth) {
    unsigned bits = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        bits |= bits_of(root, json_array_get(list, i), depth + 1);
    return bits;
}

static unsigned bits_of_values(const json_t *list) {
    unsigned bits = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        bits |= json_is_string(json_array_get(list, i)) ? TEXT : OTHER;
    return bits;
}

static unsigned bits_of(const json_t *root, const json_t *schema, unsigned depth) {
    static const char *const choices[] = {"anyOf", "oneOf"};
    const json_t *type = json_object_get(schema, "type");
    const json_t *listed = json_object_get(schema, "enum");
    const json_t *only = json_object_get(schema, "const");
    const json_t *all = json_object_get(schema, "allOf");
    const char *ref = json_string_value(json_object_get(schema, "$ref"));
    unsigned bits = BOTH;
    if (depth == MOST_DEPTH)
        return bits;
    if (type != NULL)
        bits &= bits_of_type(type);
    if (json_is_array(listed))
        bits &= bits_of_values(listed);
    if (only != NULL)
        bits &= json_is_string(only) ? TEXT : OTHER;
    if (ref != NULL)
        bits &= bits_of(root, target_of(root, ref), depth + 1);
    for (size_t i = 0; i < 2; i++)
        if (json_is_array(json_object_get(schema, choices[i])))
            bits &= bits_of_any(root, json_object_get(schema, choices[i]), depth);
    for (size_t i = 0; i < json_array_size(all); i++)
        bits &= bits_of(root, json_array_get(all, i), depth + 1);
    return bits != 0 ? bits : BOTH;
}

call_value call_schema_value(const json_t *root, const json_t *schema) {
    const unsigned bits = bits_of(root, schema, 0);
    return bits == TEXT ? CALL_VALUE_TEXT : bits == OTHER ? CALL_VALUE_JSON : CALL_VALUE_ANY;
}

const json_t *call_schema_property(const json_t *root, const char *name) {
    return json_object_get(json_object_get(root, "properties"), name);
}

bool call_schema_is_open(const json_t *root) {
    const json_t *further = json_object_get(root, "additionalProperties");
    const bool named = json_object_size(json_object_get(root, "properties")) > 0;
    return further != NULL ? json_is_true(further) || json_is_object(further)
                           : root != NULL && !named;
}
