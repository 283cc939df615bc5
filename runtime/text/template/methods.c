/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of texts, dicts and lists. */

#include <string.h>

#include "base/word_list.h"
#include "runtime/text/template/characters.h"
#include "runtime/text/template/eval.h"
#include "runtime/text/template/words.h"

typedef tern_tpl_value value;
typedef tern_tpl_args args;
typedef tern_tpl_text text;

static value *wants_text(tern_tpl *x, const char *what) {
    (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "'%s' wants a text", what);
    return NULL;
}

/* A text argument, or NULL in *out where there is none or None; false after a failure. */
static bool text_of(tern_tpl *x, const char *what, const value *v, const value **out) {
    *out = v == NULL || v->kind == TERN_TPL_NONE ? NULL : v;
    return *out == NULL || v->kind == TERN_TPL_TEXT || wants_text(x, what) != NULL;
}

/* An integer argument, or `fallback`; false after a failure. */
static bool int_of(tern_tpl *x, const char *what, const value *v, int64_t fallback, int64_t *out) {
    *out = v != NULL && v->kind == TERN_TPL_INT ? v->integer : fallback;
    return v == NULL || v->kind == TERN_TPL_INT ||
           tern_tpl_fail(x, TERN_ERR_TEMPLATE, "'%s' wants an integer", what);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static value *strip_both(tern_tpl *x, value *self, const args *a) {
    value *v[1];
    const value *these;
    if (!tern_tpl_bind(x, "strip", a, "chars", v) || !text_of(x, "strip", v[0], &these))
        return NULL;
    return tern_tpl_text_value(x, tern_tpl_strip(self->text, these, true, true));
}

static value *strip_left(tern_tpl *x, value *self, const args *a) {
    value *v[1];
    const value *these;
    if (!tern_tpl_bind(x, "lstrip", a, "chars", v) || !text_of(x, "lstrip", v[0], &these))
        return NULL;
    return tern_tpl_text_value(x, tern_tpl_strip(self->text, these, true, false));
}

static value *strip_right(tern_tpl *x, value *self, const args *a) {
    value *v[1];
    const value *these;
    if (!tern_tpl_bind(x, "rstrip", a, "chars", v) || !text_of(x, "rstrip", v[0], &these))
        return NULL;
    return tern_tpl_text_value(x, tern_tpl_strip(self->text, these, false, true));
}

static value *split(tern_tpl *x, value *self, const args *a, bool right) {
    value *v[2];
    const value *separator;
    int64_t most;
    if (!tern_tpl_bind(x, "split", a, "sep maxsplit", v) ||
        !text_of(x, "split", v[0], &separator) || !int_of(x, "split", v[1], -1, &most))
        return NULL;
    if (separator != NULL && separator->text.size == 0) {
        (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "'split' by an empty text");
        return NULL;
    }
    return tern_tpl_split(x, self->text, separator, most, right);
}

static value *split_left(tern_tpl *x, value *self, const args *a) {
    return split(x, self, a, false);
}

static value *split_right(tern_tpl *x, value *self, const args *a) {
    return split(x, self, a, true);
}

static value *split_lines(tern_tpl *x, value *self, const args *a) {
    value *v[1];
    if (!tern_tpl_bind(x, "splitlines", a, "keepends", v))
        return NULL;
    return tern_tpl_lines(x, self->text, v[0] != NULL && tern_tpl_is_true(v[0]));
}

/* Both are texts. */
static bool has_end(const value *self, const value *end, bool front) {
    const size_t n = end->text.size, size = self->text.size;
    return n <= size &&
           (n == 0 || memcmp(self->text.bytes + (front ? 0 : size - n), end->text.bytes, n) == 0);
}

static value *has_an_end(tern_tpl *x, value *self, const args *a, bool front) {
    const char *what = front ? "startswith" : "endswith";
    value *v[1];
    if (!tern_tpl_bind(x, what, a, "prefix", v))
        return NULL;
    if (v[0] == NULL ||
        (v[0]->kind != TERN_TPL_TEXT && !(v[0]->kind == TERN_TPL_LIST && v[0]->list.tuple)))
        return wants_text(x, what);
    bool has = v[0]->kind == TERN_TPL_TEXT && has_end(self, v[0], front);
    for (size_t i = 0; v[0]->kind == TERN_TPL_LIST && i < v[0]->list.n; i++) {
        if (v[0]->list.items[i]->kind != TERN_TPL_TEXT)
            return wants_text(x, what);
        has = has || has_end(self, v[0]->list.items[i], front);
    }
    return tern_tpl_bool(x, has);
}

static value *starts_with(tern_tpl *x, value *self, const args *a) {
    return has_an_end(x, self, a, true);
}

static value *ends_with(tern_tpl *x, value *self, const args *a) {
    return has_an_end(x, self, a, false);
}

static value *remove_end(tern_tpl *x, value *self, const args *a, bool front) {
    value *v[1];
    if (!tern_tpl_bind(x, "removeprefix", a, "prefix", v))
        return NULL;
    if (v[0] == NULL || v[0]->kind != TERN_TPL_TEXT)
        return wants_text(x, front ? "removeprefix" : "removesuffix");
    const size_t n = has_end(self, v[0], front) ? v[0]->text.size : 0;
    return tern_tpl_text_value(
        x, tern_tpl_part(self->text, front ? n : 0, self->text.size - (front ? 0 : n)));
}

static value *remove_prefix(tern_tpl *x, value *self, const args *a) {
    return remove_end(x, self, a, true);
}

static value *remove_suffix(tern_tpl *x, value *self, const args *a) {
    return remove_end(x, self, a, false);
}

static value *replace(tern_tpl *x, value *self, const args *a) {
    value *v[3];
    int64_t most;
    if (!tern_tpl_bind(x, "replace", a, "old new count", v) ||
        !int_of(x, "replace", v[2], -1, &most))
        return NULL;
    if (v[0] == NULL || v[0]->kind != TERN_TPL_TEXT || v[1] == NULL || v[1]->kind != TERN_TPL_TEXT)
        return wants_text(x, "replace");
    return tern_tpl_replace(x, self->text, v[0]->text, v[1]->text, most);
}

static value *find(tern_tpl *x, value *self, const args *a, bool last) {
    value *v[1];
    if (!tern_tpl_bind(x, "find", a, "sub", v))
        return NULL;
    if (v[0] == NULL || v[0]->kind != TERN_TPL_TEXT)
        return wants_text(x, "find");
    const tern_span all = tern_tpl_span(self), part = tern_tpl_span(v[0]);
    size_t at = last && part.size <= all.size ? all.size - part.size : 0;
    const size_t steps = part.size <= all.size ? all.size - part.size + 1 : 0;
    for (size_t i = 0; i < steps; i++, at = last ? at - 1 : at + 1)
        if (part.size == 0 || memcmp(all.data + at, part.data, part.size) == 0)
            return tern_tpl_work(x, i / 16)
                       ? tern_tpl_int(x, (int64_t)tern_tpl_count((tern_span){all.data, at}))
                       : NULL;
    return tern_tpl_work(x, steps / 16) ? tern_tpl_int(x, -1) : NULL;
}

static value *find_first(tern_tpl *x, value *self, const args *a) {
    return find(x, self, a, false);
}

static value *find_last(tern_tpl *x, value *self, const args *a) {
    return find(x, self, a, true);
}

static value *count_text(tern_tpl *x, value *self, const args *a) {
    value *v[1];
    if (!tern_tpl_bind(x, "count", a, "sub", v))
        return NULL;
    if (v[0] == NULL || v[0]->kind != TERN_TPL_TEXT)
        return wants_text(x, "count");
    if (v[0]->text.size == 0)
        return tern_tpl_int(x, (int64_t)tern_tpl_count(tern_tpl_span(self)) + 1);
    int64_t n = -1;
    for (const char *at = self->text.bytes, *end = at + self->text.size; at != NULL; n++) {
        at = memmem(at, (size_t)(end - at), v[0]->text.bytes, v[0]->text.size);
        at = at != NULL ? at + v[0]->text.size : NULL;
    }
    return tern_tpl_work(x, self->text.size / 16) ? tern_tpl_int(x, n) : NULL;
}

static value *join(tern_tpl *x, value *self, const args *a) {
    value *v[1];
    tern_tpl_list list;
    tern_tpl_buffer b = {.x = x};
    if (!tern_tpl_bind(x, "join", a, "iterable", v))
        return NULL;
    if (v[0] == NULL || !tern_tpl_iterate(x, v[0], &list))
        return v[0] == NULL ? wants_text(x, "join") : NULL;
    for (size_t i = 0; i < list.n; i++) {
        if (list.items[i]->kind != TERN_TPL_TEXT)
            return wants_text(x, "join");
        if ((i > 0 && !tern_tpl_add(&b, self->text)) || !tern_tpl_add(&b, list.items[i]->text))
            return NULL;
    }
    return tern_tpl_buffer_value(&b);
}

/* A method without arguments that changes letters. */
static value *change(tern_tpl *x, value *self, const args *a, tern_tpl_case how) {
    return tern_tpl_bind(x, "letters", a, "", NULL) ? tern_tpl_letters(x, self->text, how) : NULL;
}

static value *upper(tern_tpl *x, value *self, const args *a) {
    return change(x, self, a, TERN_TPL_UPPER);
}

static value *lower(tern_tpl *x, value *self, const args *a) {
    return change(x, self, a, TERN_TPL_LOWER);
}

static value *title(tern_tpl *x, value *self, const args *a) {
    return change(x, self, a, TERN_TPL_TITLE);
}

static value *capitalize(tern_tpl *x, value *self, const args *a) {
    return change(x, self, a, TERN_TPL_CAPITAL);
}

/* True if all characters are of a kind, and there is one. */
static value *all_are(tern_tpl *x, const value *self, const args *a, bool (*is)(uint32_t)) {
    bool all = self->text.size > 0;
    if (!tern_tpl_bind(x, "isdigit", a, "", NULL))
        return NULL;
    for (size_t at = 0, size; at < self->text.size && all; at += size)
        all = is(tern_tpl_code((tern_span){self->text.bytes + at, self->text.size - at}, &size));
    return tern_tpl_work(x, self->text.size / 16) ? tern_tpl_bool(x, all) : NULL;
}

static value *is_digit(tern_tpl *x, value *self, const args *a) {
    return all_are(x, self, a, tern_tpl_is_digit);
}

static value *is_alpha(tern_tpl *x, value *self, const args *a) {
    return all_are(x, self, a, tern_tpl_is_alpha);
}

static value *is_space(tern_tpl *x, value *self, const args *a) {
    return all_are(x, self, a, tern_tpl_is_space);
}

/* ---- dicts and lists ------------------------------------------------------------------------- */

static value *get(tern_tpl *x, value *self, const args *a) {
    value *v[2];
    if (!tern_tpl_bind(x, "get", a, "key default", v))
        return NULL;
    if (v[0] == NULL)
        return wants_text(x, "get");
    value *found = tern_tpl_get(x, self, v[0]);
    return found != NULL ? found : v[1] != NULL ? v[1] : tern_tpl_none(x);
}

static value *keys(tern_tpl *x, value *self, const args *a) {
    return tern_tpl_bind(x, "keys", a, "", NULL)
               ? tern_tpl_list_value(x, self->dict->keys, self->dict->n)
               : NULL;
}

static value *values(tern_tpl *x, value *self, const args *a) {
    return tern_tpl_bind(x, "values", a, "", NULL)
               ? tern_tpl_list_value(x, self->dict->values, self->dict->n)
               : NULL;
}

static value *items(tern_tpl *x, value *self, const args *a) {
    return tern_tpl_bind(x, "items", a, "", NULL) ? tern_tpl_pairs(x, self) : NULL;
}

static value *copy(tern_tpl *x, value *self, const args *a) {
    return tern_tpl_bind(x, "copy", a, "", NULL) ? self : NULL; /* values do not change */
}

static value *index_of(tern_tpl *x, value *self, const args *a) {
    value *v[1];
    if (!tern_tpl_bind(x, "index", a, "value", v))
        return NULL;
    for (size_t i = 0; v[0] != NULL && i < self->list.n; i++)
        if (tern_tpl_equal(x, self->list.items[i], v[0]))
            return tern_tpl_int(x, (int64_t)i);
    (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "'index': the list has no such value");
    return NULL;
}

static value *count_items(tern_tpl *x, value *self, const args *a) {
    value *v[1];
    int64_t n = 0;
    if (!tern_tpl_bind(x, "count", a, "value", v))
        return NULL;
    for (size_t i = 0; v[0] != NULL && i < self->list.n; i++)
        n += tern_tpl_equal(x, self->list.items[i], v[0]);
    return tern_tpl_int(x, n);
}

/* ---- format ---------------------------------------------------------------------------------- */

/* A text with fields, while they are filled. */
typedef struct fields {
    tern_tpl_buffer *out;
    const args *a;
    size_t next;            /* number of the next field without a name */
    bool counted, numbered; /* there were fields without a name; with a number */
} fields;

/* The value of the field name[size]; NULL after a failure. */
static value *field_value(fields *f, const char *name, size_t size) {
    tern_tpl *x = f->out->x;
    size_t i = size == 0 ? f->next++ : 0;
    const bool number = size > 0 && size < 4 && strspn(name, "0123456789") >= size;
    f->counted = f->counted || size == 0;
    f->numbered = f->numbered || number;
    for (size_t k = 0; k < size && number; k++)
        i = 10 * i + (size_t)(name[k] - '0');
    if ((size == 0 || number) && i < f->a->n && !(f->counted && f->numbered))
        return f->a->given[i];
    for (size_t k = 0; k < f->a->n_named && size > 0 && !number; k++)
        if (tern_tpl_same(f->a->names[k], (tern_span){name, size}))
            return f->a->named[k];
    (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "'format' has no value for the field '{%.*s}'",
                        (int)(size < 40 ? size : 40), name);
    return NULL;
}

/* Writes one field, or a brace that is written twice. Returns what follows it; NULL after a
 * failure. */
static const char *fill_field(fields *f, const char *at, const char *end, const text *whole) {
    const bool twice = at + 1 < end && at[1] == at[0];
    const char *close = *at == '{' && !twice ? memchr(at, '}', (size_t)(end - at)) : NULL;
    if (twice)
        return tern_tpl_add_bytes(f->out, at, 1, tern_tpl_mark(whole, (size_t)(at - whole->bytes)))
                   ? at + 2
                   : NULL;
    if (close == NULL || memchr(at + 1, '{', (size_t)(close - at - 1)) != NULL) {
        (void)tern_tpl_fail(f->out->x, TERN_ERR_TEMPLATE, "'format' of a text with a lone brace");
        return NULL;
    }
    const value *v = field_value(f, at + 1, (size_t)(close - at - 1));
    return v != NULL && tern_tpl_write(f->out, v) ? close + 1 : NULL;
}

/* Fields are {}, {0} and {name}. Format specs, attributes and conversions are not supported. */
static value *format(tern_tpl *x, value *self, const args *a) {
    tern_tpl_buffer out = {.x = x};
    fields f = {.out = &out, .a = a};
    const text *whole = &self->text;
    const char *at = whole->bytes, *end = at + whole->size;
    while (at < end) {
        const char *from = at;
        while (at < end && *at != '{' && *at != '}')
            at++;
        const text plain =
            tern_tpl_part(*whole, (size_t)(from - whole->bytes), (size_t)(at - whole->bytes));
        if (!tern_tpl_work(x, 1) || !tern_tpl_add(&out, plain))
            return NULL;
        if (at < end && (at = fill_field(&f, at, end, whole)) == NULL)
            return NULL;
    }
    return tern_tpl_buffer_value(&out);
}

/* ---- by name --------------------------------------------------------------------------------- */

typedef struct entry {
    const char *name;
    tern_tpl_call *call;
} entry;

static const entry of_text[] = {{"strip", strip_both},
                                {"lstrip", strip_left},
                                {"rstrip", strip_right},
                                {"split", split_left},
                                {"rsplit", split_right},
                                {"splitlines", split_lines},
                                {"startswith", starts_with},
                                {"endswith", ends_with},
                                {"removeprefix", remove_prefix},
                                {"removesuffix", remove_suffix},
                                {"replace", replace},
                                {"find", find_first},
                                {"rfind", find_last},
                                {"count", count_text},
                                {"format", format},
                                {"join", join},
                                {"upper", upper},
                                {"lower", lower},
                                {"title", title},
                                {"capitalize", capitalize},
                                {"isdigit", is_digit},
                                {"isalpha", is_alpha},
                                {"isspace", is_space},
                                {NULL, NULL}};
static const entry of_dict[] = {{"get", get},     {"keys", keys}, {"values", values},
                                {"items", items}, {"copy", copy}, {NULL, NULL}};
static const entry of_list[] = {
    {"index", index_of}, {"count", count_items}, {"copy", copy}, {NULL, NULL}};

static tern_tpl_call *look_up(const entry *entries, tern_span name) {
    for (; entries->name != NULL; entries++)
        if (tern_tpl_span_is(name, entries->name))
            return entries->call;
    return NULL;
}

tern_tpl_call *tern_tpl_text_method(tern_span name) {
    return look_up(of_text, name);
}

tern_tpl_call *tern_tpl_dict_method(tern_span name) {
    return look_up(of_dict, name);
}

tern_tpl_call *tern_tpl_list_method(tern_span name) {
    return look_up(of_list, name);
}

bool tern_tpl_other_method(tern_tpl_kind kind, tern_span name) {
    const char *list =
        kind == TERN_TPL_TEXT
            ? "casefold center encode expandtabs format_map index isalnum isascii isdecimal "
              "isidentifier islower isnumeric isprintable istitle isupper ljust maketrans "
              "partition "
              "rindex rjust rpartition swapcase translate zfill"
        : kind == TERN_TPL_DICT ? "clear fromkeys pop popitem setdefault update"
        : kind == TERN_TPL_LIST ? "append clear extend insert pop remove reverse sort"
                                : NULL;
    char word[WORD_BYTES];
    while (word_next(&list, word))
        if (tern_tpl_span_is(name, word))
            return true;
    return false;
}
