/* SPDX-License-Identifier: Apache-2.0 */
/* JSON Schemas of receipts, generated from the tables of their fields. */

#include <stdarg.h>
#include <string.h>

#include "receipts/document.h"
#include "receipts/fields.h"
#include "tools/cli/near_word.h"
#include "tools/manual/manual.h"

/* The state while a schema is written. */
typedef struct schema {
    FILE *out;
    const document_type *type;
    int depth;
} schema;

static void line(const schema *s, const char *format, ...) TERN_PRINTF(2, 3);

/* Starts a new line at the current depth. */
static void line(const schema *s, const char *format, ...) {
    va_list args;
    fprintf(s->out, "\n%*s", 2 * s->depth, "");
    va_start(args, format);
    (void)vfprintf(s->out, format, args);
    va_end(args);
}

/* The name of a member ("*" for any) of the object at path `object`; NULL if the field is not a
 * member of it. */
static const char *member_of(const schema *s, const receipt_field *f, const char *object) {
    const char *path = f->path;
    const size_t n = strlen(object);
    if (!document_has(s->type, f) || strncmp(path, object, n) != 0 || (n > 0 && path[n] != '.'))
        return NULL;
    const char *key = path + n + (n > 0);
    return key[0] != '\0' && strpbrk(key, ".[") == NULL ? key : NULL;
}

static const receipt_field *find(const schema *s, const char *path, const char *suffix) {
    const size_t n = strlen(path);
    for (size_t i = 0; i < s->type->n; i++) {
        const char *other = s->type->fields[i].path;
        if (strncmp(other, path, n) == 0 && strcmp(other + n, suffix) == 0)
            return &s->type->fields[i];
    }
    return NULL;
}

static const char *name_of_type(field_type type) {
    static const char *const names[] = {
        [FIELD_OBJECT] = "object",   [FIELD_LIST] = "array",    [FIELD_TEXT] = "string",
        [FIELD_ANY_TEXT] = "string", [FIELD_HASH] = "string",   [FIELD_KEY] = "string",
        [FIELD_COUNT] = "integer",   [FIELD_NUMBER] = "number", [FIELD_SIGNED] = "number",
        [FIELD_BOOL] = "boolean",    [FIELD_LAYOUT] = "string"};
    return names[type];
}

static void print_words(const schema *s, const char *words) {
    char word[WORD_BYTES];
    fputs("\"enum\": [", s->out);
    for (bool first = true; word_next(&words, word); first = false)
        fprintf(s->out, "%s\"%s\"", first ? "" : ", ", word);
    fputs("]", s->out);
}

static void print_field(schema *s, const receipt_field *f);

static void print_properties(schema *s, const char *object) {
    const char *comma = "";
    s->depth++;
    for (size_t i = 0; i < s->type->n; i++) {
        const char *key = member_of(s, &s->type->fields[i], object);
        if (key != NULL && strcmp(key, "*") != 0) {
            fputs(comma, s->out);
            line(s, "\"%s\": ", key);
            print_field(s, &s->type->fields[i]);
            comma = ",";
        }
    }
    s->depth--;
}

static void print_required(const schema *s, const char *object) {
    const char *comma = "";
    for (size_t i = 0; i < s->type->n; i++) {
        const char *key = member_of(s, &s->type->fields[i], object);
        if (key != NULL && strcmp(key, "*") != 0 && !s->type->fields[i].optional) {
            fprintf(s->out, "%s\"%s\"", comma, key);
            comma = ", ";
        }
    }
}

/*
 * Prints members by name, and whether others are allowed: only if the table has a row for any name.
 */
static void print_object(schema *s, const char *path) {
    const receipt_field *any = find(s, path, ".*");
    line(s, "\"properties\": {");
    print_properties(s, path);
    line(s, "},");
    line(s, "\"required\": [");
    print_required(s, path);
    fputs("],", s->out);
    line(s, "\"additionalProperties\": ");
    if (any != NULL)
        print_field(s, any);
    else
        fputs("false", s->out);
}

static void print_limits(schema *s, const receipt_field *f) {
    const receipt_field *element = find(s, f->path, "[]");
    switch (f->type) {
    case FIELD_OBJECT:
        fputs(",", s->out);
        print_object(s, f->path);
        break;
    case FIELD_LIST:
        fputs(",", s->out);
        line(s, "\"items\": ");
        print_field(s, element); /* the tables have a row for the elements of every list */
        break;
    case FIELD_TEXT:
        fputs(", ", s->out);
        if (f->words != NULL)
            print_words(s, f->words);
        else
            fprintf(s->out, "\"minLength\": 1, \"maxLength\": %d", FIELD_NAME_BYTES);
        break;
    case FIELD_HASH:
    case FIELD_KEY:
        fprintf(s->out, ", \"pattern\": \"^[0-9a-f]{%d}$\"", f->type == FIELD_HASH ? 64 : 128);
        break;
    case FIELD_LAYOUT: /* a list of the layouts would change with the table */
        fputs(", \"pattern\": \"^(t[a-z0-9]+r16|mixed)$\"", s->out);
        break;
    case FIELD_COUNT:
    case FIELD_NUMBER:
        fputs(", \"minimum\": 0", s->out);
        break;
    default:
        break;
    }
}

/* Prints what one field may be. */
static void print_field(schema *s, const receipt_field *f) {
    const bool nested = f->type == FIELD_OBJECT || f->type == FIELD_LIST;
    if (strcmp(f->path, "$schema") == 0) {
        fprintf(s->out, "{\"const\": \"%s\"}", s->type->schema);
        return;
    }
    if (strcmp(f->path, "schema_version") == 0) {
        fprintf(s->out, "{\"const\": \"%s\"}", RECEIPT_VERSION);
        return;
    }
    fputs("{", s->out);
    s->depth++;
    if (nested)
        line(s, "%s", "");
    fprintf(s->out, "\"type\": \"%s\"", name_of_type(f->type));
    print_limits(s, f);
    s->depth--;
    if (nested)
        line(s, "%s", "");
    fputs("}", s->out);
}

bool page_print_schema(FILE *out, const char *name) {
    for (int kind = 0; kind < DOCUMENT_KINDS; kind++) {
        schema s = {out, document_describe((document_kind)kind), 1};
        const size_t n = strlen(s.type->name);
        if (strncmp(name, s.type->name, n) == 0 && strcmp(name + n, ".schema.json") == 0) {
            fputs("{", out);
            line(&s, "\"$schema\": \"https://json-schema.org/draft/2020-12/schema\",");
            line(&s, "\"$id\": \"%s\",", s.type->schema);
            line(&s, "\"title\": \"%s\",", s.type->title);
            line(&s, "\"type\": \"object\",");
            print_object(&s, "");
            fputs("\n}\n", out);
            return true;
        }
    }
    return false;
}
