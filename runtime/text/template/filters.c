/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of single values; those of lists are in filters_list.c. */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/text/template/characters.h"
#include "runtime/text/template/filters.h"

typedef tern_tpl_value value;
typedef tern_tpl_text text;

static bool int_of(tern_tpl *x, const char *what, const value *v, int64_t fallback, int64_t *out) {
    const bool is = v != NULL && (v->kind == TERN_TPL_INT || v->kind == TERN_TPL_BOOL);
    *out = is ? tern_tpl_as_int(v) : fallback;
    return v == NULL || v->kind == TERN_TPL_NONE || is ||
           tern_tpl_fail(x, TERN_ERR_TEMPLATE, "the filter '%s' wants an integer", what);
}

/* Writes an argument as str() does; without one, the fallback. */
static bool str_of(tern_tpl *x, const value *v, const char *fallback, text *out) {
    *out = (text){.bytes = fallback, .size = strlen(fallback)};
    return v == NULL || tern_tpl_str(x, v, out);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static value *trim(tern_tpl *x, value *subject, value **a) {
    text t;
    if (a[0] != NULL && a[0]->kind != TERN_TPL_TEXT && a[0]->kind != TERN_TPL_NONE) {
        (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "the filter 'trim' wants a text");
        return NULL;
    }
    const value *these = a[0] != NULL && a[0]->kind == TERN_TPL_TEXT ? a[0] : NULL;
    return tern_tpl_str(x, subject, &t)
               ? tern_tpl_text_value(x, tern_tpl_strip(t, these, true, true))
               : NULL;
}

static value *letters(tern_tpl *x, const value *subject, tern_tpl_case how) {
    text t;
    return tern_tpl_str(x, subject, &t) ? tern_tpl_letters(x, t, how) : NULL;
}

static value *upper(tern_tpl *x, value *subject, value **a) {
    (void)a;
    return letters(x, subject, TERN_TPL_UPPER);
}

static value *lower(tern_tpl *x, value *subject, value **a) {
    (void)a;
    return letters(x, subject, TERN_TPL_LOWER);
}

static value *title(tern_tpl *x, value *subject, value **a) {
    (void)a;
    return letters(x, subject, TERN_TPL_HEADLINE);
}

static value *capitalize(tern_tpl *x, value *subject, value **a) {
    (void)a;
    return letters(x, subject, TERN_TPL_CAPITAL);
}

static value *replace(tern_tpl *x, value *subject, value **a) {
    text t, before, after;
    int64_t most;
    if (a[0] == NULL || a[1] == NULL) {
        (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "the filter 'replace' wants two texts");
        return NULL;
    }
    if (!tern_tpl_str(x, subject, &t) || !str_of(x, a[0], "", &before) ||
        !str_of(x, a[1], "", &after) || !int_of(x, "replace", a[2], -1, &most))
        return NULL;
    return tern_tpl_replace(x, t, before, after, most);
}

static value *string(tern_tpl *x, value *subject, value **a) {
    text t;
    (void)a;
    return tern_tpl_str(x, subject, &t) ? tern_tpl_text_value(x, t) : NULL;
}

/* The blanks, or the text, that `indent` puts before a line. */
static bool indent_of(tern_tpl *x, const char *what, const value *width, int64_t fallback,
                      text *out) {
    tern_tpl_buffer b = {.x = x};
    int64_t n;
    if (width != NULL && width->kind == TERN_TPL_TEXT) {
        *out = width->text;
        return true;
    }
    if (!int_of(x, what, width, fallback, &n))
        return false;
    for (int64_t i = 0; i < n; i++)
        if (!tern_tpl_work(x, 1) || !tern_tpl_add_word(&b, " "))
            return false;
    const value *blanks = tern_tpl_buffer_value(&b);
    if (blanks != NULL)
        *out = blanks->text;
    return blanks != NULL;
}

static value *indent(tern_tpl *x, value *subject, value **a) {
    text t, by;
    const bool first = a[1] != NULL && tern_tpl_is_true(a[1]);
    const bool blank = a[2] != NULL && tern_tpl_is_true(a[2]);
    tern_tpl_buffer b = {.x = x}, whole = {.x = x};
    if (!tern_tpl_str(x, subject, &t) || !indent_of(x, "indent", a[0], 4, &by) ||
        !tern_tpl_add(&whole, t) || !tern_tpl_add_word(&whole, "\n"))
        return NULL;
    const value *ended = tern_tpl_buffer_value(&whole);
    const value *lines = ended != NULL ? tern_tpl_lines(x, ended->text, false) : NULL;
    for (size_t i = 0; lines != NULL && i < lines->list.n; i++) {
        const text line = lines->list.items[i]->text;
        const bool moved = i == 0 ? first : blank || line.size > 0;
        if ((i > 0 && !tern_tpl_add_word(&b, "\n")) || (moved && !tern_tpl_add(&b, by)) ||
            !tern_tpl_add(&b, line))
            return NULL;
    }
    return lines != NULL ? tern_tpl_buffer_value(&b) : NULL;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Reads a text as a number, if all of it is one. It may have one sign, and blanks around it. */
static bool parse_number(const value *v, bool whole, double *real, int64_t *integer) {
    char copy[64];
    char *end;
    const tern_span t = tern_tpl_strip_left(tern_tpl_strip_right(tern_tpl_span(v), NULL), NULL);
    if (t.size == 0 || t.size >= sizeof copy || memchr(t.data, '\0', t.size) != NULL)
        return false;
    memcpy(copy, t.data, t.size);
    copy[t.size] = '\0';
    if (strpbrk(copy, "xXpP_") != NULL)
        return false;
    errno = 0;
    if (whole)
        *integer = strtoll(copy, &end, 10);
    else
        *real = strtod(copy, &end);
    return *end == '\0' && (!whole || errno == 0);
}

static value *to_int(tern_tpl *x, value *subject, value **a) {
    int64_t integer = 0;
    double real = 0;
    value *fallback = a[0] != NULL ? a[0] : tern_tpl_int(x, 0);
    if (a[1] != NULL && !(a[1]->kind == TERN_TPL_INT && a[1]->integer == 10)) {
        (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "the filter 'int' supports base 10 only");
        return NULL;
    }
    if (subject->kind == TERN_TPL_TEXT) {
        if (parse_number(subject, true, &real, &integer))
            return tern_tpl_int(x, integer);
        if (!parse_number(subject, false, &real, &integer))
            return fallback;
    } else if (subject->kind == TERN_TPL_FLOAT) {
        real = subject->real;
    } else {
        return tern_tpl_is_number(subject) ? tern_tpl_int(x, tern_tpl_as_int(subject)) : fallback;
    }
    return isfinite(real) && fabs(real) < 9e18 ? tern_tpl_int(x, (int64_t)real) : fallback;
}

static value *to_real(tern_tpl *x, value *subject, value **a) {
    int64_t integer = 0;
    double real = 0;
    if (tern_tpl_is_number(subject))
        return tern_tpl_real(x, tern_tpl_as_real(subject));
    if (subject->kind == TERN_TPL_TEXT && parse_number(subject, false, &real, &integer))
        return tern_tpl_real(x, real);
    return a[0] != NULL ? a[0] : tern_tpl_real(x, 0);
}

static value *absolute(tern_tpl *x, value *subject, value **a) {
    (void)a;
    if (subject->kind == TERN_TPL_FLOAT)
        return tern_tpl_real(x, fabs(subject->real));
    if (tern_tpl_is_number(subject) && tern_tpl_as_int(subject) != INT64_MIN)
        return tern_tpl_int(x, llabs(tern_tpl_as_int(subject)));
    (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "the filter 'abs' wants a number");
    return NULL;
}

static value *round_number(tern_tpl *x, value *subject, value **a) {
    char digits[400];
    int64_t precision;
    const bool up = a[1] != NULL && tern_tpl_is_text(a[1], "ceil");
    const bool down = a[1] != NULL && tern_tpl_is_text(a[1], "floor");
    if (!int_of(x, "round", a[0], 0, &precision))
        return NULL;
    if (!tern_tpl_is_number(subject) || precision < 0 || precision > 30 ||
        (a[1] != NULL && !up && !down && !tern_tpl_is_text(a[1], "common"))) {
        (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "the filter 'round' of these is not supported");
        return NULL;
    }
    const double real = tern_tpl_as_real(subject), scale = pow(10, (double)precision);
    if (up || down)
        return tern_tpl_real(x, (up ? ceil(real * scale) : floor(real * scale)) / scale);
    if (subject->kind != TERN_TPL_FLOAT) /* integers stay what they are */
        return tern_tpl_int(x, tern_tpl_as_int(subject));
    (void)snprintf(digits, sizeof digits, "%.*f", (int)precision, real);
    return tern_tpl_real(x, strtod(digits, NULL));
}

/* ---- anything -------------------------------------------------------------------------------- */

static value *or_default(tern_tpl *x, value *subject, value **a) {
    const bool also_false = a[1] != NULL && tern_tpl_is_true(a[1]);
    if (subject->kind != TERN_TPL_UNDEFINED && (!also_false || tern_tpl_is_true(subject)))
        return subject;
    return a[0] != NULL ? a[0] : tern_tpl_word(x, "");
}

static value *length(tern_tpl *x, value *subject, value **a) {
    (void)a;
    switch (subject->kind) {
    case TERN_TPL_TEXT:
        return tern_tpl_work(x, subject->text.size / 64)
                   ? tern_tpl_int(x, (int64_t)tern_tpl_count(tern_tpl_span(subject)))
                   : NULL;
    case TERN_TPL_DICT:
        return tern_tpl_int(x, (int64_t)subject->dict->n);
    case TERN_TPL_UNDEFINED:
        return tern_tpl_int(x, 0);
    case TERN_TPL_LIST:
        if (!subject->list.lazy)
            return tern_tpl_int(x, (int64_t)subject->list.n);
        break;
    case TERN_TPL_LOOP:
        return tern_tpl_int(x, (int64_t)subject->loop->over.n);
    default:
        break;
    }
    (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "a %s has no length",
                        subject->kind == TERN_TPL_LIST ? "generator" : tern_tpl_kind_name(subject));
    return NULL;
}

static value *pairs(tern_tpl *x, value *subject, value **a) {
    (void)a;
    if (subject->kind == TERN_TPL_UNDEFINED)
        return tern_tpl_list_value(x, NULL, 0);
    if (subject->kind == TERN_TPL_DICT)
        return tern_tpl_pairs(x, subject);
    (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "the filter 'items' wants a dict, not a %s",
                        tern_tpl_kind_name(subject));
    return NULL;
}

/* Marks a text as safe. Output is not escaped, but what + adds to a safe text is, as in Jinja. */
static value *safe(tern_tpl *x, value *subject, value **a) {
    const value *words = string(x, subject, a);
    if (words == NULL)
        return NULL;
    text marked = words->text;
    marked.safe = true;
    return tern_tpl_text_value(x, marked);
}

/* Reads (comma, colon) of json.dumps. */
static bool separators(tern_tpl *x, const value *v, tern_tpl_json *style) {
    if (v == NULL || v->kind == TERN_TPL_NONE)
        return true;
    if (v->kind != TERN_TPL_LIST || v->list.n != 2 || v->list.items[0]->kind != TERN_TPL_TEXT ||
        v->list.items[1]->kind != TERN_TPL_TEXT)
        return tern_tpl_fail(x, TERN_ERR_TEMPLATE, "'separators' are two texts");
    style->comma = v->list.items[0]->text;
    style->colon = v->list.items[1]->text;
    return true;
}

static value *to_json(tern_tpl *x, value *subject, value **a) {
    tern_tpl_buffer b = {.x = x};
    tern_tpl_json style = {.colon = {.bytes = ": ", .size = 2},
                           .comma = {.bytes = ", ", .size = 2}};
    style.ascii = a[0] != NULL && tern_tpl_is_true(a[0]);
    style.lines = a[1] != NULL && a[1]->kind != TERN_TPL_NONE;
    style.sort = a[3] != NULL && tern_tpl_is_true(a[3]);
    if (style.lines) {
        style.comma.size = 1;
        if (!indent_of(x, "tojson", a[1], 0, &style.indent))
            return NULL;
    }
    if (!separators(x, a[2], &style) || !tern_tpl_write_json(&b, subject, &style, 0))
        return NULL;
    return tern_tpl_buffer_value(&b);
}

/* ---- by name --------------------------------------------------------------------------------- */

static const tern_tpl_filter_entry entries[] = {
    {"trim", "chars", trim, NULL},
    {"upper", "", upper, NULL},
    {"lower", "", lower, NULL},
    {"title", "", title, NULL},
    {"capitalize", "", capitalize, NULL},
    {"replace", "old new count", replace, NULL},
    {"string", "", string, NULL},
    {"indent", "width first blank", indent, NULL},
    {"int", "default base", to_int, NULL},
    {"float", "default", to_real, NULL},
    {"abs", "", absolute, NULL},
    {"round", "precision method", round_number, NULL},
    {"default", "default_value boolean", or_default, NULL},
    {"d", "default_value boolean", or_default, NULL},
    {"length", "", length, NULL},
    {"count", "", length, NULL},
    {"items", "", pairs, NULL},
    {"safe", "", safe, NULL},
    {"tojson", "ensure_ascii indent separators sort_keys", to_json, NULL},
    {NULL, NULL, NULL, NULL}};

static const tern_tpl_filter_entry *look_up(const tern_tpl_filter_entry *e, tern_span name) {
    while (e->name != NULL && !tern_tpl_span_is(name, e->name))
        e++;
    return e->name != NULL ? e : NULL;
}

value *tern_tpl_filter(tern_tpl *x, tern_span name, value *subject, const tern_tpl_args *args) {
    value *bound[TERN_TPL_MOST_ARGUMENTS];
    const tern_tpl_filter_entry *e = look_up(entries, name);
    if (e == NULL)
        e = look_up(tern_tpl_list_filters, name);
    if (e == NULL) {
        (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "the filter '%.*s' is not supported",
                            name.size < 40 ? (int)name.size : 40, name.data);
        return NULL;
    }
    if (e->all != NULL)
        return e->all(x, subject, args);
    return tern_tpl_bind(x, e->name, args, e->names, bound) ? e->bound(x, subject, bound) : NULL;
}
