/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the fields of a document and their types. */

#include "receipts/document.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/write.h"
#include "base/word_list.h"
#include "receipts/fields.h"
#include "tern/formats.h"

enum { PATH_BYTES = 160, SHOWN_BYTES = 256 }; /* no field of the table is longer */

/* ---- checking -------------------------------------------------------------------------------- */

/* A check in progress. */
typedef struct check {
    const document_type *type;
    receipt_findings *out;
} check;

/* A place in a document: its path in the table, and as it is shown ("a.b[3]"). */
typedef struct place {
    const receipt_field *field; /* NULL: the document itself */
    char path[PATH_BYTES];
    char shown[SHOWN_BYTES];
} place;

/* Finds the row of a path below `parent`. Rows below a row follow it without a gap. */
static const receipt_field *find(const check *c, const char *path, const receipt_field *parent) {
    const receipt_field *end = c->type->fields + c->type->n;
    const size_t n = parent != NULL ? strlen(parent->path) : 0;
    for (const receipt_field *f = parent != NULL ? parent + 1 : c->type->fields; f < end; f++) {
        if (n > 0 && strncmp(f->path, parent->path, n) != 0)
            return NULL;
        if (strcmp(f->path + n, path + n) == 0 && document_has(c->type, f))
            return f;
    }
    return NULL;
}

/* Finds the field of a member: the one of its name, else the one for any name; NULL: none. */
static const receipt_field *find_member(const check *c, const place *at, const char *key,
                                        place *member) {
    const char *dot = at->path[0] != '\0' ? "." : "";
    const receipt_field *f = NULL;
    if (strlen(at->path) + strlen(key) + 2 > PATH_BYTES)
        return NULL;
    (void)snprintf(member->shown, SHOWN_BYTES, "%.*s%s%.64s", SHOWN_BYTES - 72, at->shown, dot,
                   key);
    if (strpbrk(key, ".*[]") == NULL) { /* these have a meaning in the table */
        (void)snprintf(member->path, PATH_BYTES, "%s%s%s", at->path, dot, key);
        f = find(c, member->path, at->field);
    }
    if (f == NULL) {
        (void)snprintf(member->path, PATH_BYTES, "%s%s*", at->path, dot);
        f = find(c, member->path, at->field);
    }
    member->field = f;
    return f;
}

static bool is_hex(const char *text, size_t low, size_t high) {
    const size_t n = strlen(text);
    return n >= low && n <= high && n % 2 == 0 && strspn(text, "0123456789abcdef") == n;
}

static bool is_word(const char *text, const char *words) {
    char word[WORD_BYTES];
    while (word_next(&words, word))
        if (strcmp(word, text) == 0)
            return true;
    return false;
}

static const char layouts[] = TERN_TERNARY_LAYOUTS " mixed";

static const char *wanted(const receipt_field *f) {
    static const char *const texts[] = {[FIELD_OBJECT] = "an object",
                                        [FIELD_LIST] = "a list",
                                        [FIELD_TEXT] = "a text of 1 to 128 bytes",
                                        [FIELD_ANY_TEXT] = "a text",
                                        [FIELD_HASH] = "64 lower-case hexadecimal digits",
                                        [FIELD_KEY] = "128 lower-case hexadecimal digits",
                                        [FIELD_LAYOUT] = layouts,
                                        [FIELD_COUNT] = "an integer from 0 on",
                                        [FIELD_NUMBER] = "a finite number from 0 on",
                                        [FIELD_SIGNED] = "a finite number",
                                        [FIELD_BOOL] = "true or false"};
    return f->words != NULL ? f->words : texts[f->type];
}

static bool text_fits(const receipt_field *f, const json_t *value) {
    const char *text = json_string_value(value);
    if (text == NULL || strlen(text) != json_string_length(value))
        return false;
    switch (f->type) {
    case FIELD_TEXT:
        return f->words != NULL ? is_word(text, f->words)
                                : text[0] != '\0' && strlen(text) <= FIELD_NAME_BYTES;
    case FIELD_HASH:
        return is_hex(text, 64, 64);
    case FIELD_KEY:
        return is_hex(text, 128, 128);
    case FIELD_LAYOUT:
        return is_word(text, layouts);
    default:
        return true;
    }
}

static bool fits(const receipt_field *f, const json_t *value) {
    switch (f->type) {
    case FIELD_OBJECT:
        return json_is_object(value);
    case FIELD_LIST:
        return json_is_array(value);
    case FIELD_COUNT:
        return json_is_integer(value) && json_integer_value(value) >= 0;
    case FIELD_NUMBER:
        return json_is_number(value) && json_number_value(value) >= 0 &&
               isfinite(json_number_value(value));
    case FIELD_SIGNED:
        return json_is_number(value) && isfinite(json_number_value(value));
    case FIELD_BOOL:
        return json_is_boolean(value);
    default:
        return text_fits(f, value);
    }
}

/* Formats a value for a finding: short, and without control characters. */
static void show(const json_t *value, char *text, size_t size) {
    char *dump = json_dump(value, (json_style){.ascii = true});
    (void)snprintf(text, size, "%s", dump != NULL ? dump : "?");
    if (dump != NULL && strlen(dump) >= size)
        memcpy(text + size - 4, "...", 4);
    free(dump);
}

static void check_value(const check *c, const json_t *value, const place *at);

/* Reports fields that an object lacks. */
static void check_missing(const check *c, const json_t *object, const place *at) {
    const size_t n = strlen(at->path);
    for (size_t i = 0; i < c->type->n; i++) {
        const receipt_field *f = &c->type->fields[i];
        if (!document_has(c->type, f) ||
            (n > 0 && (strncmp(f->path, at->path, n) != 0 || f->path[n] != '.')))
            continue;
        const char *key = f->path + n + (n > 0);
        const bool direct = strpbrk(key, ".*[") == NULL;
        if (direct && !f->optional && json_object_get(object, key) == NULL)
            receipt_find(c->out, "%s%s%s: is missing", at->shown, n > 0 ? "." : "", key);
    }
}

static void check_members(const check *c, const json_t *object, const place *at) {
    const char *key;
    json_t *member;
    json_object_foreach((json_t *)(uintptr_t)object, key, member) {
        place inner;
        if (find_member(c, at, key, &inner) == NULL) {
            receipt_find(c->out, "%s%s%.64s: is not a field of a %s", at->shown,
                         at->path[0] != '\0' ? "." : "", key, c->type->name);
        } else {
            check_value(c, member, &inner);
        }
    }
    check_missing(c, object, at);
}

static void check_elements(const check *c, const json_t *list, const place *at) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        place inner;
        (void)snprintf(inner.path, PATH_BYTES, "%.*s[]", PATH_BYTES - 3, at->path);
        (void)snprintf(inner.shown, SHOWN_BYTES, "%.*s[%zu]", SHOWN_BYTES - 24, at->shown, i);
        inner.field = find(c, inner.path, at->field);
        if (inner.field != NULL)
            check_value(c, json_array_get(list, i), &inner);
    }
}

static void check_value(const check *c, const json_t *value, const place *at) {
    const receipt_field *f = at->field;
    if (!fits(f, value)) {
        char text[64];
        show(value, text, sizeof text);
        receipt_find(c->out, "%s: is %s, must be %s%s", at->shown, text,
                     f->words != NULL && strchr(f->words, ' ') != NULL ? "one of: " : "",
                     wanted(f));
        return;
    }
    if (f->type == FIELD_OBJECT)
        check_members(c, value, at);
    else if (f->type == FIELD_LIST)
        check_elements(c, value, at);
}

bool receipt_check_fields(const json_t *receipt, const document_type *type, receipt_findings *f) {
    const place root = {NULL, "", ""};
    const size_t before = f->n;
    const check c = {.type = type, .out = f};
    check_members(&c, receipt, &root);
    return f->n == before && !f->out_of_memory;
}

bool receipt_is_of_figures(const json_t *document) {
    static const char *const schemas[] = {BENCHMARK_SCHEMA, COMPARISON_SCHEMA, PERPLEXITY_SCHEMA};
    const char *schema = json_string_value(json_object_get(document, "$schema"));
    for (size_t i = 0; schema != NULL && i < sizeof schemas / sizeof *schemas; i++)
        if (strcmp(schema, schemas[i]) == 0)
            return true;
    return false;
}

const document_type *receipt_type(const json_t *receipt, receipt_findings *f) {
    const json_t *schema = json_object_get(receipt, "$schema");
    for (int kind = 0; kind < DOCUMENT_KINDS; kind++) {
        const document_type *type = document_describe((document_kind)kind);
        if (schema == NULL ||
            (json_is_string(schema) && strcmp(json_string_value(schema), type->schema) == 0))
            return type;
    }
    const char *text = json_string_value(schema);
    if (receipt_is_of_figures(receipt)) {
        receipt_find(
            f,
            "$schema: \"%s\" is a document of figures: lab/verify-figures FILE, which comes with "
            "tern's source, checks it",
            text);
        return NULL;
    }
    receipt_find(f, "$schema: is \"%.60s\", which tern %s does not know", text != NULL ? text : "",
                 tern_version());
    return NULL;
}

json_t *receipt_at(const json_t *root, const char *path) {
    return json_object_follow(root, path, '.');
}
