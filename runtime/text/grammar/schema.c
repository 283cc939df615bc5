/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/grammar/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hex.h"

enum { MOST_SPACES = 32, POINTER_BYTES = 200 };

/* ---- messages -------------------------------------------------------------------------------- */

/* Appends one step of a JSON pointer; what does not fit is left out. */
static size_t add_step(char *pointer, size_t at, const tern_json_value *key, size_t index) {
    const int n = key != NULL
                      ? snprintf(pointer + at, POINTER_BYTES - at, "/%.*s",
                                 (int)(key->text.size < 60 ? key->text.size : 60), key->text.data)
                      : snprintf(pointer + at, POINTER_BYTES - at, "/%zu", index);
    const size_t after = at + (size_t)(n > 0 ? n : 0);
    return after < POINTER_BYTES ? after : POINTER_BYTES - 1;
}

/* Writes the JSON pointer of v: its place in memory tells the way down from the whole. A key has
 * the pointer of its value. */
static void find_pointer(const tern_json_value *whole, const tern_json_value *v, char *pointer) {
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

void tern_schema_refuse(tern_schema_reader *r, const tern_json_value *v, const char *keyword,
                        const char *what) {
    char pointer[POINTER_BYTES];
    find_pointer(r->json.values, v, pointer);
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

/* ---- references ------------------------------------------------------------------------------ */

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
    rest->data += i;
    rest->size -= i;
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

const tern_json_value *tern_schema_target(tern_schema_reader *r, const tern_json_value *v,
                                          const tern_json_value *ref) {
    char step[256];
    size_t size;
    const tern_json_value *at = r->json.values;
    if (ref->type != TERN_JSON_STRING || ref->text.size == 0 || ref->text.data[0] != '#' ||
        (ref->text.size > 1 && ref->text.data[1] != '/')) {
        tern_schema_refuse(r, v, "$ref", "only references into the same schema, \"#/...\"");
        return NULL;
    }
    tern_span rest = {ref->text.data + 1, ref->text.size - 1};
    while (at != NULL && rest.size > 0 && tern_schema_work(r, at->count)) {
        rest.data++;
        rest.size--;
        const char *slash = memchr(rest.data, '/', rest.size);
        const size_t length = slash != NULL ? (size_t)(slash - rest.data) : rest.size;
        if (length >= sizeof step || !read_step(&rest, step, &size))
            at = NULL;
        else {
            step[size] = '\0';
            at = child_of(at, step, size);
        }
    }
    if (at == NULL || (at->type != TERN_JSON_OBJECT && at->type != TERN_JSON_TRUE &&
                       at->type != TERN_JSON_FALSE)) {
        tern_schema_refuse(r, v, "$ref", "there is no schema at its target");
        return NULL;
    }
    return at;
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
                tern_schema_refuse(r, v, words[w], "neither a list of names nor a schema");
            tern_schema_add(r, s, value - 1, TERN_SCHEMA_DEPENDENCY);
            key += 1 + key[1].size;
        }
    }
}

/* Replaces the part ALL of a value by its single parts. */
static void take_apart(tern_schema_reader *r, tern_schema_set *s, size_t i) {
    const tern_json_value *v = s->items[i].v;
    const tern_json_value *ref = tern_json_get(v, "$ref");
    const tern_json_value *all = tern_json_get(v, "allOf");
    s->items[i].part = TERN_SCHEMA_OWN;
    if (ref != NULL) {
        const tern_json_value *target = tern_schema_target(r, v, ref);
        if (target != NULL)
            tern_schema_add(r, s, target, TERN_SCHEMA_ALL);
    }
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

static void no_memory(tern_schema_reader *r) {
    tern_exprs_fail(r->x, TERN_ERR_NOMEM, "%s: no memory", r->name);
}

uint32_t tern_schema_use(tern_schema_reader *r, tern_schema_set *s) {
    if (!tern_schema_settle(r, s))
        return TERN_EXPR_NEVER;
    for (size_t i = 0; i < r->n_jobs; i++)
        if (is_job(r, &r->jobs[i], s))
            return tern_expr_rule_use(r->x, r->jobs[i].rule);
    if (!tern_schema_work(r, r->n_jobs))
        return TERN_EXPR_NEVER;
    char pointer[POINTER_BYTES] = "any value";
    if (s->n > 0)
        find_pointer(r->json.values, s->items[0].v, pointer);
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

uint32_t tern_schema_read(tern_exprs *x, const char *text, size_t size, const char *name,
                          const tern_schema_params *params) {
    tern_schema_reader r = {.x = x, .name = name};
    uint32_t all = TERN_EXPR_NEVER;
    r.params = params != NULL ? *params : (tern_schema_params){0};
    char *copy = malloc(size + 1);
    if (copy == NULL)
        no_memory(&r);
    if (x->status != TERN_OK) {
        free(copy);
        return all;
    }
    memcpy(copy, text, size);
    x->status = tern_json_parse(copy, size, name, &r.json, x->err);
    if (x->status != TERN_OK)
        return all;
    r.space = white_space(x, r.params.compact);
    r.character = tern_schema_any_character(x);
    tern_schema_set s = {.n = 0};
    tern_schema_add(&r, &s, r.json.values, TERN_SCHEMA_ALL);
    if (x->status == TERN_OK)
        all = tern_schema_use(&r, &s);
    run_jobs(&r);
    tern_json_free(&r.json);
    free(r.kept);
    free(r.jobs);
    return all;
}
