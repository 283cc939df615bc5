/* SPDX-License-Identifier: Apache-2.0 */
/* Which fields a receipt has, and their types. */

#include "tools/receipt/receipt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/json/write.h"
#include "tools/receipt/fields.h"
#include "tools/words.h"

enum { PATH_BYTES = 160, SHOWN_BYTES = 256 }; /* of fields in the table; more deeply nothing goes */

/* ---- checking -------------------------------------------------------------------------------- */

/* A place in a document: as the table names it, and as a reader does ("a.b[3]"). */
typedef struct place {
    const receipt_field *field; /* NULL: the document itself */
    char path[PATH_BYTES];
    char shown[SHOWN_BYTES];
} place;

/* The row of a path below `parent`. What lies below a row stands behind it, without a gap. */
static const receipt_field *find(const char *path, const receipt_field *parent) {
    size_t count;
    const receipt_field *fields = receipt_fields(&count);
    const receipt_field *end = fields + count;
    const size_t n = parent != NULL ? strlen(parent->path) : 0;
    for (const receipt_field *f = parent != NULL ? parent + 1 : fields; f < end; f++) {
        if (n > 0 && strncmp(f->path, parent->path, n) != 0) {
            return NULL;
        }
        if (strcmp(f->path + n, path + n) == 0) {
            return f;
        }
    }
    return NULL;
}

/* The field of a member: of its name, else of any name. NULL: the table has none. */
static const receipt_field *find_member(const place *at, const char *key, place *member) {
    const char *dot = at->path[0] != '\0' ? "." : "";
    const receipt_field *f = NULL;
    if (strlen(at->path) + strlen(key) + 2 > PATH_BYTES) {
        return NULL;
    }
    (void)snprintf(member->shown, SHOWN_BYTES, "%.*s%s%.64s", SHOWN_BYTES - 72, at->shown, dot,
                   key);
    if (strpbrk(key, ".*[]") == NULL) { /* these have a meaning in the table */
        (void)snprintf(member->path, PATH_BYTES, "%s%s%s", at->path, dot, key);
        f = find(member->path, at->field);
    }
    if (f == NULL) {
        (void)snprintf(member->path, PATH_BYTES, "%s%s*", at->path, dot);
        f = find(member->path, at->field);
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
    while (word_next(&words, word)) {
        if (strcmp(word, text) == 0) {
            return true;
        }
    }
    return false;
}

static const char *wanted(const receipt_field *f) {
    static const char *const texts[] = {[FIELD_OBJECT] = "an object",
                                        [FIELD_LIST] = "a list",
                                        [FIELD_TEXT] = "a text of 1 to 128 bytes",
                                        [FIELD_ANY_TEXT] = "a text",
                                        [FIELD_HASH] = "64 lower-case hexadecimal digits",
                                        [FIELD_KEY] = "128 lower-case hexadecimal digits",
                                        [FIELD_COUNT] = "an integer from 0 on",
                                        [FIELD_NUMBER] = "a finite number from 0 on",
                                        [FIELD_SIGNED] = "a finite number",
                                        [FIELD_BOOL] = "true or false"};
    return f->words != NULL ? f->words : texts[f->type];
}

static bool text_fits(const receipt_field *f, const json_t *value) {
    const char *text = json_string_value(value);
    if (text == NULL || strlen(text) != json_string_length(value)) {
        return false;
    }
    switch (f->type) {
    case FIELD_TEXT:
        return f->words != NULL ? is_word(text, f->words)
                                : text[0] != '\0' && strlen(text) <= FIELD_NAME_BYTES;
    case FIELD_HASH:
        return is_hex(text, 64, 64);
    case FIELD_KEY:
        return is_hex(text, 128, 128);
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

/* A value as a line shows it: short, and without control characters. */
static void show(const json_t *value, char *text, size_t size) {
    char *dump = json_dump(value, (json_style){.ascii = true});
    (void)snprintf(text, size, "%s", dump != NULL ? dump : "?");
    if (dump != NULL && strlen(dump) >= size) {
        memcpy(text + size - 4, "...", 4);
    }
    free(dump);
}

static void check_value(const json_t *value, const receipt_field *f, const place *at,
                        receipt_findings *out);

/* Fields of an object that are not there. */
static void check_missing(const json_t *object, const place *at, receipt_findings *out) {
    const size_t n = strlen(at->path);
    size_t count;
    const receipt_field *fields = receipt_fields(&count);
    for (size_t i = 0; i < count; i++) {
        const char *path = fields[i].path;
        if (n > 0 && (strncmp(path, at->path, n) != 0 || path[n] != '.')) {
            continue;
        }
        const char *key = path + n + (n > 0);
        const bool direct = strpbrk(key, ".*[") == NULL;
        if (direct && !fields[i].optional && json_object_get(object, key) == NULL) {
            receipt_find(out, "%s%s%s: is missing", at->shown, n > 0 ? "." : "", key);
        }
    }
}

static void check_members(const json_t *object, const place *at, receipt_findings *out) {
    const char *key;
    json_t *member;
    json_object_foreach((json_t *)(uintptr_t)object, key, member) {
        place inner;
        const receipt_field *f = find_member(at, key, &inner);
        if (f == NULL) {
            receipt_find(out, "%s%s%.64s: is no field of a receipt", at->shown,
                         at->path[0] != '\0' ? "." : "", key);
        } else {
            check_value(member, f, &inner, out);
        }
    }
    check_missing(object, at, out);
}

static void check_value(const json_t *value, const receipt_field *f, const place *at,
                        receipt_findings *out) {
    if (!fits(f, value)) {
        char text[64];
        show(value, text, sizeof text);
        receipt_find(out, "%s: is %s, must be %s%s", at->shown, text,
                     f->words != NULL && strchr(f->words, ' ') != NULL ? "one of: " : "",
                     wanted(f));
        return;
    }
    if (f->type == FIELD_OBJECT) {
        check_members(value, at, out);
    }
    for (size_t i = 0; f->type == FIELD_LIST && i < json_array_size(value); i++) {
        place inner;
        (void)snprintf(inner.path, PATH_BYTES, "%.*s[]", PATH_BYTES - 3, at->path);
        (void)snprintf(inner.shown, SHOWN_BYTES, "%.*s[%zu]", SHOWN_BYTES - 24, at->shown, i);
        const receipt_field *element = inner.field = find(inner.path, f);
        if (element != NULL) {
            check_value(json_array_get(value, i), element, &inner, out);
        }
    }
}

bool receipt_check_fields(const json_t *receipt, receipt_findings *f) {
    const place root = {NULL, "", ""};
    const size_t before = f->n;
    check_members(receipt, &root, f);
    return f->n == before && !f->out_of_memory;
}

json_t *receipt_at(const json_t *root, const char *path) {
    char key[PATH_BYTES];
    const json_t *value = root;
    while (value != NULL && *path != '\0') {
        const size_t n = strcspn(path, ".");
        if (n >= sizeof key) {
            return NULL;
        }
        memcpy(key, path, n);
        key[n] = '\0';
        value = json_object_get(value, key);
        path += n + (path[n] == '.');
    }
    return (json_t *)(uintptr_t)value;
}
