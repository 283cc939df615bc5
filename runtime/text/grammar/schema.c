/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/grammar/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

enum { MOST_SPACES = 32 };

/* ---- messages -------------------------------------------------------------------------------- */

void tern_schema_refuse(tern_schema_reader *r, const tern_json_value *v, const char *keyword,
                        const char *what) {
    char pointer[TERN_POINTER_BYTES];
    tern_json_pointer(r->json.values, v, pointer);
    tern_exprs_fail(r->x, TERN_ERR_GRAMMAR, "%s: at \"%s\": %.60s: %s", r->name, pointer, keyword,
                    what);
}

bool tern_schema_work(tern_schema_reader *r, size_t n) {
    r->steps += (uint32_t)n + 1;
    if (r->steps > TERN_SCHEMA_MOST_STEPS)
        tern_exprs_fail(r->x, TERN_ERR_GRAMMAR,
                        "%s: too large: its parts can be combined in too many ways", r->name);
    return r->x->status == TERN_OK;
}

/* ---- notes ----------------------------------------------------------------------------------- */

enum { MOST_NOTES = 64, NOTE_BYTES = 512 };

void tern_schema_notes_free(tern_schema_notes *notes) {
    for (size_t i = 0; i < notes->n; i++)
        free(notes->texts[i]);
    free(notes->texts);
    *notes = (tern_schema_notes){0};
}

static void no_memory(tern_schema_reader *r) {
    tern_exprs_fail(r->x, TERN_ERR_NOMEM, "%s: no memory", r->name);
}

void tern_schema_note(tern_schema_reader *r, const tern_json_value *v, const char *keyword,
                      const char *what) {
    char pointer[TERN_POINTER_BYTES], text[NOTE_BYTES];
    tern_json_pointer(r->json.values, v, pointer);
    (void)snprintf(text, sizeof text, "%.120s: at \"%s\": %.60s: %s", r->name, pointer, keyword,
                   what);
    for (size_t i = 0; i < r->notes->n; i++)
        if (strcmp(r->notes->texts[i], text) == 0)
            return;
    if (r->notes->n == MOST_NOTES)
        return;
    char *copy = strdup(text);
    if (copy == NULL || !tern_grow((void **)&r->notes->texts, &r->notes->capacity, r->notes->n,
                                   sizeof *r->notes->texts, MOST_NOTES)) {
        free(copy);
        no_memory(r);
        return;
    }
    r->notes->texts[r->notes->n++] = copy;
}

/* ---- references ------------------------------------------------------------------------------ */

const tern_json_value *tern_schema_target(tern_schema_reader *r, const tern_json_value *v,
                                          const tern_json_value *ref) {
    bool here = false;
    if (ref->type != TERN_JSON_STRING) {
        tern_schema_refuse(r, v, "$ref", "not a string");
        return NULL;
    }
    if (!tern_schema_work(r, r->json.values->size / 8)) /* names are looked for everywhere */
        return NULL;
    const tern_json_value *at = tern_schema_find(r->json.values, ref->text, &here);
    if (!here)
        tern_schema_note(r, v, "$ref", "a schema that is not in this document is not read");
    else if (at == NULL || (at->type != TERN_JSON_OBJECT && at->type != TERN_JSON_TRUE &&
                            at->type != TERN_JSON_FALSE))
        tern_schema_refuse(r, v, "$ref", "there is no schema at its target");
    return here && r->x->status == TERN_OK ? at : NULL;
}

/* ---- sets ------------------------------------------------------------------------------------ */

void tern_schema_add(tern_schema_reader *r, tern_schema_set *s, const tern_json_value *v,
                     tern_schema_part part) {
    if (v->type == (part == TERN_SCHEMA_NOT ? TERN_JSON_FALSE : TERN_JSON_TRUE))
        return;
    const bool is_word = part >= TERN_SCHEMA_DEPENDENCY && v->type == TERN_JSON_STRING;
    for (size_t i = 0; i < s->n; i++)
        if (s->items[i].v == v && s->items[i].part == part)
            return;
    if (v->type != TERN_JSON_OBJECT && v->type != TERN_JSON_FALSE && v->type != TERN_JSON_TRUE &&
        !is_word)
        tern_schema_refuse(r, v, "schema", "neither an object, true nor false");
    else if (s->n == TERN_SCHEMA_MOST_ITEMS)
        tern_schema_refuse(r, v, "schema",
                           "too many parts must hold together, or it refers to itself");
    else
        s->items[s->n++] = (tern_schema_item){v, part};
}

/* Adds all schemas of a list. */
static void add_each(tern_schema_reader *r, tern_schema_set *s, const tern_json_value *v,
                     const char *keyword, const tern_json_value *list) {
    if (list->type != TERN_JSON_ARRAY || list->count == 0) {
        tern_schema_refuse(r, v, keyword, "not a list of schemas");
        return;
    }
    const tern_json_value *child = list + 1;
    for (uint32_t i = 0; i < list->count && tern_schema_work(r, s->n); i++, child += child->size)
        tern_schema_add(r, s, child, TERN_SCHEMA_ALL);
}

/* Adds the dependencies of an object: each says what holds for objects that have a name. */
static void add_dependencies(tern_schema_reader *r, tern_schema_set *s, const tern_json_value *v) {
    static const char *const words[] = {"dependentRequired", "dependentSchemas", "dependencies"};
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        const tern_json_value *list = tern_json_get(v, words[w]);
        const tern_json_value *key = list != NULL ? list + 1 : NULL;
        if (list != NULL && list->type != TERN_JSON_OBJECT)
            tern_schema_refuse(r, v, words[w], "not an object");
        for (uint32_t i = 0; list != NULL && i < list->count && tern_schema_work(r, s->n); i++) {
            const tern_json_value *value = tern_schema_member(list, key->text.data, key->text.size);
            if (value->type == TERN_JSON_STRING)
                tern_schema_note(r, v, words[w], "neither a list of names nor a schema");
            else
                tern_schema_add(r, s, value - 1, TERN_SCHEMA_DEPENDENCY);
            key += 1 + key[1].size;
        }
    }
}

static void add_references(tern_schema_reader *r, tern_schema_set *s, const tern_json_value *v) {
    static const char *const words[] = {"$ref", "$dynamicRef", "$recursiveRef"};
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        const tern_json_value *ref = tern_json_get(v, words[w]);
        const tern_json_value *target = ref != NULL ? tern_schema_target(r, v, ref) : NULL;
        if (target != NULL)
            tern_schema_add(r, s, target, TERN_SCHEMA_ALL);
    }
}

/* Replaces the part ALL of a value by its single parts. */
static void take_apart(tern_schema_reader *r, tern_schema_set *s, size_t i) {
    const tern_json_value *v = s->items[i].v;
    const tern_json_value *all = tern_json_get(v, "allOf");
    s->items[i].part = TERN_SCHEMA_OWN;
    add_references(r, s, v);
    if (all != NULL)
        add_each(r, s, v, "allOf", all);
    if (tern_json_get(v, "anyOf") != NULL)
        tern_schema_add(r, s, v, TERN_SCHEMA_ANY_OF);
    if (tern_json_get(v, "oneOf") != NULL)
        tern_schema_add(r, s, v, TERN_SCHEMA_ONE_OF);
    const tern_json_value *not_that = tern_json_get(v, "not");
    if (not_that != NULL)
        tern_schema_add(r, s, not_that, TERN_SCHEMA_NOT);
    if (tern_json_get(v, "if") != NULL &&
        (tern_json_get(v, "then") != NULL || tern_json_get(v, "else") != NULL))
        tern_schema_add(r, s, v, TERN_SCHEMA_IF);
    add_dependencies(r, s, v);
}

static int by_item(const void *a, const void *b) {
    const tern_schema_item *p = a;
    const tern_schema_item *q = b;
    if (p->v != q->v)
        return p->v < q->v ? -1 : 1;
    return (p->part > q->part) - (p->part < q->part);
}

bool tern_schema_settle(tern_schema_reader *r, tern_schema_set *s) {
    for (size_t i = 0; i < s->n && tern_schema_work(r, s->n); i++) {
        const tern_json_type type = s->items[i].v->type;
        if (type == TERN_JSON_FALSE || type == TERN_JSON_TRUE) /* `not` of true */
            return false;
        if (s->items[i].part == TERN_SCHEMA_ALL)
            take_apart(r, s, i);
    }
    if (s->n > 0)
        qsort(s->items, s->n, sizeof *s->items, by_item);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (i == 0 || by_item(&s->items[i], &s->items[n - 1]) != 0)
            s->items[n++] = s->items[i];
    s->n = n;
    return r->x->status == TERN_OK;
}

static bool is_job(const tern_schema_reader *r, const tern_schema_job *job,
                   const tern_schema_set *s) {
    bool same = job->n == s->n;
    for (size_t i = 0; i < s->n && same; i++)
        same = by_item(&r->kept[job->first + i], &s->items[i]) == 0;
    return same;
}

uint32_t tern_schema_use(tern_schema_reader *r, tern_schema_set *s) {
    if (!tern_schema_settle(r, s))
        return TERN_EXPR_NEVER;
    for (size_t i = 0; i < r->n_jobs; i++)
        if (is_job(r, &r->jobs[i], s))
            return tern_expr_rule_use(r->x, r->jobs[i].rule);
    if (!tern_schema_work(r, r->n_jobs))
        return TERN_EXPR_NEVER;
    char pointer[TERN_POINTER_BYTES] = "any value";
    if (s->n > 0)
        tern_json_pointer(r->json.values, s->items[0].v, pointer);
    const tern_schema_job job = {
        .first = r->n_kept, .n = s->n, .rule = tern_expr_rule_new(r->x, pointer, strlen(pointer))};
    if (!tern_grow((void **)&r->jobs, &r->jobs_capacity, r->n_jobs, sizeof job, SIZE_MAX / 64) ||
        !tern_grow((void **)&r->kept, &r->kept_capacity, r->n_kept + s->n, sizeof *r->kept,
                   SIZE_MAX / 64))
        no_memory(r);
    if (r->x->status != TERN_OK)
        return TERN_EXPR_NEVER;
    for (size_t i = 0; i < s->n; i++)
        r->kept[r->n_kept++] = s->items[i];
    r->jobs[r->n_jobs++] = job;
    return tern_expr_rule_use(r->x, job.rule);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* A choice among the alternatives of an anyOf or a oneOf, each together with `rest`. */
static uint32_t choose_alternative(tern_schema_reader *r, const tern_schema_set *rest,
                                   tern_schema_item item) {
    const bool one = item.part == TERN_SCHEMA_ONE_OF;
    const char *keyword = one ? "oneOf" : "anyOf";
    const tern_json_value *list = tern_json_get(item.v, keyword);
    tern_expr_list choice = {.x = r->x};
    if (list->type != TERN_JSON_ARRAY || list->count == 0) {
        tern_schema_refuse(r, item.v, keyword, "not a list of schemas");
        return TERN_EXPR_NEVER;
    }
    const tern_json_value *child = list + 1;
    for (uint32_t k = 0; k < list->count && tern_schema_work(r, rest->n); k++) {
        tern_schema_set with = *rest;
        tern_schema_add(r, &with, child, TERN_SCHEMA_ALL);
        if (one)
            tern_schema_add_others(r, &with, item.v, k, child);
        if (r->x->status == TERN_OK)
            tern_expr_add(&choice, tern_schema_use(r, &with));
        child += child->size;
    }
    return tern_expr_end_choice(&choice);
}

static bool is_choice(tern_schema_part part) {
    return part > TERN_SCHEMA_OWN && part <= TERN_SCHEMA_DEPENDENCY;
}

bool tern_schema_has_choice(const tern_schema_set *s) {
    for (size_t i = 0; i < s->n; i++)
        if (is_choice(s->items[i].part))
            return true;
    return false;
}

/* A choice among what item i may be, each together with all other items. */
static uint32_t choose(tern_schema_reader *r, const tern_schema_set *s, size_t i) {
    const tern_schema_item item = s->items[i];
    tern_schema_set rest = *s;
    rest.items[i] = rest.items[--rest.n];
    if (item.part == TERN_SCHEMA_NOT)
        return tern_schema_denied(r, &rest, item.v);
    if (item.part == TERN_SCHEMA_IF)
        return tern_schema_condition(r, &rest, item.v);
    if (item.part == TERN_SCHEMA_DEPENDENCY)
        return tern_schema_dependency(r, &rest, item.v);
    return choose_alternative(r, &rest, item);
}

static uint32_t among_values(tern_schema_reader *r, const tern_schema_set *s,
                             const tern_schema_facts *f) {
    tern_expr_list choice = {.x = r->x};
    const tern_json_value *v = f->lists[0].first;
    for (uint32_t i = 0; i < f->lists[0].n && tern_schema_work(r, v->size); i++, v += v->size)
        if (tern_schema_may_be(r, s, f, v))
            tern_expr_add(&choice, tern_schema_value(r, v));
    return tern_expr_end_choice(&choice);
}

static uint32_t by_type(tern_schema_reader *r, const tern_schema_set *s,
                        const tern_schema_facts *f) {
    tern_expr_list choice = {.x = r->x};
    if (f->types & TERN_TYPE_OBJECT)
        tern_expr_add(&choice, tern_schema_object(r, s, f));
    if (f->types & TERN_TYPE_ARRAY)
        tern_expr_add(&choice, tern_schema_array(r, s, f));
    if (f->types & TERN_TYPE_STRING)
        tern_expr_add(&choice, tern_schema_string(r, s, f));
    if (f->types & TERN_TYPE_INTEGER)
        tern_expr_add(&choice, tern_schema_number(r, f));
    if (f->types & TERN_TYPE_BOOLEAN) {
        if (!f->no_true)
            tern_expr_add(&choice, tern_expr_word(r->x, "true"));
        if (!f->no_false)
            tern_expr_add(&choice, tern_expr_word(r->x, "false"));
    }
    if (f->types & TERN_TYPE_NULL)
        tern_expr_add(&choice, tern_expr_word(r->x, "null"));
    return tern_expr_end_choice(&choice);
}

static uint32_t expression_of(tern_schema_reader *r, const tern_schema_set *s) {
    for (size_t i = 0; i < s->n; i++)
        if (is_choice(s->items[i].part))
            return choose(r, s, i);
    tern_schema_facts f;
    tern_schema_facts_of(r, s, &f);
    if (r->x->status != TERN_OK)
        return TERN_EXPR_NEVER;
    return f.n_lists > 0 ? among_values(r, s, &f) : by_type(r, s, &f);
}

static void run_jobs(tern_schema_reader *r) {
    while (r->done < r->n_jobs && r->x->status == TERN_OK) {
        const tern_schema_job job = r->jobs[r->done++];
        tern_schema_set s = {.n = job.n};
        for (size_t i = 0; i < job.n; i++)
            s.items[i] = r->kept[job.first + i];
        tern_expr_rule_define(r->x, job.rule, expression_of(r, &s));
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* White space is a rule, so that it is written once. */
static uint32_t white_space(tern_exprs *x, bool compact) {
    if (compact)
        return TERN_EXPR_EMPTY;
    const uint32_t spaces = tern_expr_repeat(x, tern_expr_word(x, " "), 0, MOST_SPACES);
    const uint32_t line = tern_expr_pair(x, tern_expr_word(x, "\n"), spaces);
    const uint32_t some = tern_expr_either(x, tern_expr_word(x, " "), line);
    const uint32_t rule = tern_expr_rule_new(x, "white space", strlen("white space"));
    tern_expr_rule_define(x, rule, tern_expr_optional(x, some));
    return tern_expr_rule_use(x, rule);
}

/* Parses the schema; false after a failure. */
static bool parse(tern_schema_reader *r, const char *text, size_t size) {
    tern_exprs *x = r->x;
    char *copy = malloc(size + 1);
    if (copy == NULL)
        no_memory(r);
    if (x->status != TERN_OK) {
        free(copy);
        return false;
    }
    memcpy(copy, text, size);
    x->status = tern_json_parse(copy, size, r->name, &r->json, x->err);
    return x->status == TERN_OK;
}

/* Reads the whole schema. */
static uint32_t read_whole(tern_schema_reader *r) {
    uint32_t all = TERN_EXPR_NEVER;
    tern_schema_set s = {.n = 0};
    r->space = white_space(r->x, r->params.compact);
    r->character = tern_schema_any_character(r->x);
    tern_schema_add(r, &s, r->json.values, TERN_SCHEMA_ALL);
    if (r->x->status == TERN_OK)
        all = tern_schema_use(r, &s);
    run_jobs(r);
    free(r->kept);
    free(r->jobs);
    return all;
}

uint32_t tern_schema_read(tern_exprs *x, const char *text, size_t size, const char *name,
                          const tern_schema_params *params, bool narrow, tern_schema_notes *notes) {
    tern_schema_reader r = {.x = x, .name = name, .notes = notes, .narrow = narrow};
    r.params = params != NULL ? *params : (tern_schema_params){0};
    if (!parse(&r, text, size))
        return TERN_EXPR_NEVER;
    const uint32_t all = read_whole(&r);
    tern_json_free(&r.json);
    return all;
}
