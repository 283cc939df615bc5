/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/crossval/reference.h"

#include <stdlib.h>

void reference_free(reference **r) {
    if (r == NULL || *r == NULL)
        return;
    for (size_t i = 0; i < (*r)->n_cases; i++) {
        reference_case *c = &(*r)->cases[i];
        for (size_t k = 0; k < c->n_rows; k++) {
            free(c->rows[k].ids);
            free(c->rows[k].logits);
        }
        char *const texts[] = {c->name, c->text, c->logits, c->keys, c->values};
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            free(texts[k]);
        free(c->rows);
        free(c->tokens);
        free(c->greedy);
        free(c->margins);
    }
    char *const texts[] = {(*r)->folder, (*r)->engine, (*r)->engine_version, (*r)->settings,
                           (*r)->date,   (*r)->model,  (*r)->sha256};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        free(texts[k]);
    free((*r)->cases);
    free(*r);
    *r = NULL;
}

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json_tree/read.h"

/* The parser's position, for messages. */
typedef struct place {
    const char *path;
    const char *name; /* of the case, may be "" */
    char number[16];  /* "case 1", for cases without a name */
    tern_error *err;
} place;

#define REFUSE(p, ...) tern_fail((p)->err, TERN_ERR_ARG, __VA_ARGS__)

static tern_status refuse_key(const place *p, const char *key, const char *expected) {
    return REFUSE(p, "%s: %s%s%s is not %s", p->path, p->name, p->name[0] != '\0' ? ": " : "", key,
                  expected);
}

static tern_status no_memory(const place *p) {
    return tern_fail(p->err, TERN_ERR_NOMEM, "%s: no memory for the reference", p->path);
}

/* ---- single values --------------------------------------------------------------------------- */

/* A copy of object[key]; if it is missing, of fallback, and NULL stays NULL. */
static tern_status read_text(const place *p, const json_t *object, const char *key,
                             const char *fallback, char **out) {
    const json_t *value = json_object_get(object, key);
    if (value != NULL && !json_is_string(value))
        return refuse_key(p, key, "text");
    const char *text = value != NULL ? json_string_value(value) : fallback;
    if (text != NULL && (*out = strdup(text)) == NULL)
        return no_memory(p);
    return TERN_OK;
}

/* The name of a file in the JSON file's folder. */
static tern_status read_file_name(const place *p, const json_t *object, const char *key,
                                  char **out) {
    const tern_status status = read_text(p, object, key, NULL, out);
    if (status == TERN_OK && *out != NULL &&
        ((*out)[0] == '\0' || (*out)[0] == '.' || strchr(*out, '/') != NULL))
        return refuse_key(p, key, "the plain name of a file beside the reference");
    return status;
}

static tern_status read_position(const place *p, const json_t *object, const char *key,
                                 uint32_t fallback, uint32_t *out) {
    const json_t *value = json_object_get(object, key);
    const json_int_t n = json_integer_value(value);
    if (value != NULL && (!json_is_integer(value) || n < 0 || n >= REFERENCE_MAX_TOKENS))
        return refuse_key(p, key, "a position");
    *out = value != NULL ? (uint32_t)n : fallback;
    return TERN_OK;
}

static tern_status read_switch(const place *p, const json_t *object, const char *key, int *out) {
    const json_t *value = json_object_get(object, key);
    if (value != NULL && !json_is_boolean(value))
        return refuse_key(p, key, "true or false");
    *out = json_is_true(value);
    return TERN_OK;
}

/* Refuses members that are not in `known`, a list that NULL ends: a misspelt name would silently
 * omit a comparison. `what` is the object's own name, "" for a case or the file. */
static tern_status check_members(const place *p, const json_t *object, const char *what,
                                 const char *const *known) {
    const char *key;
    json_t *value;
    if (object != NULL && !json_is_object(object))
        return refuse_key(p, what[0] != '\0' ? what : "a case", "an object");
    json_object_foreach(object, key, value) {
        size_t i = 0;
        while (known[i] != NULL && strcmp(key, known[i]) != 0)
            i++;
        if (known[i] == NULL) {
            return REFUSE(p, "%s: %s%s%s%s'%.60s' is not a key of a reference", p->path, p->name,
                          p->name[0] != '\0' ? ": " : "", what, what[0] != '\0' ? ": " : "", key);
        }
    }
    return TERN_OK;
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* The list object[key]; NULL if it is missing and optional. */
static tern_status find_list(const place *p, const json_t *object, const char *key, bool needed,
                             const json_t **out) {
    const json_t *value = json_object_get(object, key);
    *out = value;
    if (value == NULL && !needed)
        return TERN_OK;
    if (!json_is_array(value) || json_array_size(value) > REFERENCE_MAX_TOKENS)
        return refuse_key(p, key, "a list of at most 1048576 values");
    return TERN_OK;
}

static tern_status read_ids(const place *p, const json_t *object, const char *key, bool needed,
                            int32_t **out, size_t *n) {
    const json_t *list;
    const tern_status status = find_list(p, object, key, needed, &list);
    if (status != TERN_OK || list == NULL)
        return status;
    const size_t count = json_array_size(list);
    if (needed && count == 0)
        return refuse_key(p, key, "a list with at least one id");
    if ((*out = calloc(count + 1, sizeof **out)) == NULL)
        return no_memory(p);
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(list, i);
        const json_int_t id = json_integer_value(value);
        if (!json_is_integer(value) || id < 0 || id > INT32_MAX)
            return refuse_key(p, key, "a list of token ids");
        (*out)[i] = (int32_t)id;
    }
    *n = count;
    return TERN_OK;
}

/* object[key] as `count` finite numbers; if it is missing and optional *out stays NULL. */
static tern_status read_numbers(const place *p, const json_t *object, const char *key, bool needed,
                                size_t count, double **out) {
    const json_t *list;
    const tern_status status = find_list(p, object, key, needed, &list);
    if (status != TERN_OK || list == NULL)
        return status;
    if (json_array_size(list) != count) {
        return REFUSE(p, "%s: %s: %s has %zu numbers for %zu tokens", p->path, p->name, key,
                      json_array_size(list), count);
    }
    if ((*out = calloc(count + 1, sizeof **out)) == NULL)
        return no_memory(p);
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(list, i);
        if (!json_is_number(value)) /* JSON has no infinity and no NaN */
            return refuse_key(p, key, "a list of numbers");
        (*out)[i] = json_number_value(value);
    }
    return TERN_OK;
}

/* ---- rows of some logits --------------------------------------------------------------------- */

static tern_status read_row(const place *p, const json_t *object, reference_row *row) {
    static const char *const known[] = {"position", "ids", "logits", NULL};
    double *numbers = NULL;
    tern_status status = check_members(p, object, "some", known);
    if (status == TERN_OK)
        status = read_position(p, object, "position", UINT32_MAX, &row->position);
    if (status == TERN_OK && row->position == UINT32_MAX)
        status = refuse_key(p, "position", "there in every row of some");
    if (status == TERN_OK)
        status = read_ids(p, object, "ids", true, &row->ids, &row->n);
    if (status == TERN_OK)
        status = read_numbers(p, object, "logits", true, row->n, &numbers);
    if (status == TERN_OK && (row->logits = calloc(row->n, sizeof *row->logits)) == NULL)
        status = no_memory(p);
    for (size_t i = 0; status == TERN_OK && i < row->n; i++) {
        row->logits[i] = (float)numbers[i];
        if (!isfinite(row->logits[i]))
            status = refuse_key(p, "logits", "a list of numbers in the range of float");
    }
    free(numbers);
    return status;
}

static tern_status read_rows(const place *p, const json_t *object, reference_case *c) {
    const json_t *list;
    tern_status status = find_list(p, object, "some", false, &list);
    if (status != TERN_OK || list == NULL)
        return status;
    const size_t count = json_array_size(list);
    if ((c->rows = calloc(count + 1, sizeof *c->rows)) == NULL)
        return no_memory(p);
    for (size_t i = 0; status == TERN_OK && i < count; i++) {
        c->n_rows = i + 1; /* rows to free */
        status = read_row(p, json_array_get(list, i), &c->rows[i]);
        if (status == TERN_OK && i > 0 && c->rows[i].position <= c->rows[i - 1].position)
            status = refuse_key(p, "some", "ordered by position");
    }
    return status;
}

/* ---- cases and the file ---------------------------------------------------------------------- */

static tern_status read_sequences(const place *p, const json_t *object, reference_case *c) {
    tern_status status = read_ids(p, object, "tokens", true, &c->tokens, &c->n_tokens);
    if (status == TERN_OK)
        status = read_ids(p, object, "greedy", false, &c->greedy, &c->n_greedy);
    if (status == TERN_OK)
        status = read_numbers(p, object, "margins", false, c->n_greedy, &c->margins);
    return status == TERN_OK ? read_rows(p, object, c) : status;
}

static tern_status read_files(const place *p, const json_t *object, reference_case *c) {
    tern_status status = read_file_name(p, object, "logits", &c->logits);
    if (status == TERN_OK)
        status = read_position(p, object, "first", 0, &c->first);
    if (status == TERN_OK)
        status = read_file_name(p, object, "keys", &c->keys);
    return status == TERN_OK ? read_file_name(p, object, "values", &c->values) : status;
}

/* Refuses members that mean nothing without another one, and cases that compare nothing. */
static tern_status check_whole(const place *p, const json_t *object, const reference_case *c) {
    static const struct {
        const char *key, *needed;
    } pairs[] = {{"special", "text"},
                 {"margins", "greedy"},
                 {"first", "logits"},
                 {"keys", "values"},
                 {"values", "keys"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (json_object_get(object, pairs[i].key) != NULL &&
            json_object_get(object, pairs[i].needed) == NULL) {
            return REFUSE(p, "%s: %s: %s without %s compares nothing", p->path, p->name,
                          pairs[i].key, pairs[i].needed);
        }
    }
    if (c->text == NULL && c->n_greedy == 0 && c->logits == NULL && c->n_rows == 0 &&
        c->keys == NULL) {
        return REFUSE(p, "%s: %s: nothing to compare: no text, greedy, logits, some, keys", p->path,
                      p->name);
    }
    return TERN_OK;
}

static tern_status read_case(place *p, const json_t *object, reference_case *c) {
    static const char *const known[] = {"name",   "text",  "special", "tokens", "greedy", "margins",
                                        "logits", "first", "some",    "keys",   "values", NULL};
    tern_status status = read_text(p, object, "name", "", &c->name);
    if (status != TERN_OK)
        return status;
    p->name = c->name[0] != '\0' ? c->name : p->number;
    status = check_members(p, object, "", known);
    if (status == TERN_OK)
        status = read_switch(p, object, "special", &c->special);
    if (status == TERN_OK)
        status = read_text(p, object, "text", NULL, &c->text);
    if (status == TERN_OK)
        status = read_sequences(p, object, c);
    if (status == TERN_OK)
        status = read_files(p, object, c);
    return status == TERN_OK ? check_whole(p, object, c) : status;
}

static tern_status read_cases(place *p, const json_t *root, reference *r) {
    const json_t *list = json_object_get(root, "cases");
    const size_t n = json_array_size(list);
    if (n == 0 || n > REFERENCE_MAX_CASES)
        return refuse_key(p, "cases", "a list of 1 to 4096 cases");
    if ((r->cases = calloc(n, sizeof *r->cases)) == NULL)
        return no_memory(p);
    tern_status status = TERN_OK;
    for (size_t i = 0; status == TERN_OK && i < n; i++) {
        r->n_cases = i + 1; /* cases to free */
        (void)snprintf(p->number, sizeof p->number, "case %zu", i + 1);
        p->name = p->number;
        status = read_case(p, json_array_get(list, i), &r->cases[i]);
    }
    return status;
}

static tern_status check_head(const place *p, const json_t *root) {
    static const char *const of_file[] = {"tern_reference", "engine", "date",
                                          "model",          "cases",  NULL};
    static const char *const of_engine[] = {"name", "version", "settings", NULL};
    static const char *const of_model[] = {"file", "sha256", NULL};
    tern_status status = check_members(p, root, "", of_file);
    if (status == TERN_OK)
        status = check_members(p, json_object_get(root, "engine"), "engine", of_engine);
    return status == TERN_OK ? check_members(p, json_object_get(root, "model"), "model", of_model)
                             : status;
}

static tern_status read_head(const place *p, const json_t *root, reference *r) {
    const json_t *engine = json_object_get(root, "engine");
    const json_t *model = json_object_get(root, "model");
    const struct {
        const json_t *object;
        const char *key;
        char **out;
    } texts[] = {{engine, "name", &r->engine},       {engine, "version", &r->engine_version},
                 {engine, "settings", &r->settings}, {root, "date", &r->date},
                 {model, "file", &r->model},         {model, "sha256", &r->sha256}};
    const json_int_t version = json_integer_value(json_object_get(root, "tern_reference"));
    if (version != REFERENCE_VERSION) {
        return REFUSE(p, "%s: tern_reference is %lld, not %d: no reference of this version",
                      p->path, (long long)version, REFERENCE_VERSION);
    }
    tern_status status = check_head(p, root);
    for (size_t i = 0; status == TERN_OK && i < sizeof texts / sizeof *texts; i++)
        status = read_text(p, texts[i].object, texts[i].key, "", texts[i].out);
    const char *slash = strrchr(p->path, '/');
    r->folder = slash != NULL ? strndup(p->path, (size_t)(slash - p->path)) : strdup(".");
    return status == TERN_OK && r->folder == NULL ? no_memory(p) : status;
}

tern_status reference_parse(const char *path, const char *json, size_t size, reference **out,
                            tern_error *err) {
    place p = {.path = path, .name = "", .err = err};
    tern_error own = {0};
    json_t *root = json_read(json, size, path, &own);
    if (root == NULL)
        return tern_fail(err, own.status, "%s", own.message);
    reference *r = calloc(1, sizeof *r);
    tern_status status = r != NULL ? read_head(&p, root, r) : no_memory(&p);
    if (status == TERN_OK)
        status = read_cases(&p, root, r);
    json_decref(root);
    if (status != TERN_OK) {
        reference_free(&r);
        return status;
    }
    *out = r;
    return TERN_OK;
}
