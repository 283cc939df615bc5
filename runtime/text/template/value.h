/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TEMPLATE_VALUE_H
#define TERN_RUNTIME_TEXT_TEMPLATE_VALUE_H

/* Values of a run. They do not change once they are made, but for namespaces and loops. */

#include "runtime/text/template/run.h"

typedef enum tern_tpl_kind {
    TERN_TPL_UNDEFINED,
    TERN_TPL_NONE,
    TERN_TPL_BOOL,
    TERN_TPL_INT,
    TERN_TPL_FLOAT,
    TERN_TPL_TEXT,
    TERN_TPL_LIST,
    TERN_TPL_DICT,
    TERN_TPL_NAMESPACE,
    TERN_TPL_MACRO,
    TERN_TPL_FUNCTION,
    TERN_TPL_METHOD,
    TERN_TPL_LOOP
} tern_tpl_kind;

/* Valid UTF-8 with a mark for each byte (tern/tokenizer.h). Parts of a text share its memory. */
typedef struct tern_tpl_text {
    const char *bytes;
    const uint8_t *marks; /* [size]; NULL: each is `mark` */
    size_t size;
    uint8_t mark;
    bool safe; /* from the filter `safe`: what + adds to it is escaped for HTML */
} tern_tpl_text;

typedef struct tern_tpl_value tern_tpl_value;

/* Members in the order in which they were set. */
typedef struct tern_tpl_dict {
    tern_tpl_value **keys, **values; /* [n] of [capacity] */
    size_t n, capacity;
} tern_tpl_dict;

typedef struct tern_tpl_list {
    tern_tpl_value **items; /* [n] */
    size_t n;
    bool tuple; /* written with ( ) */
    bool lazy;  /* from a generator: true even if empty, and without length or index */
} tern_tpl_list;

typedef struct tern_tpl_loop {
    tern_tpl_list over;
    size_t at;
    unsigned depth;
    tern_tpl_value *seen; /* arguments of the latest changed() */
} tern_tpl_loop;

typedef struct tern_tpl_args {
    tern_tpl_value **given; /* [n] */
    size_t n;
    tern_span *names; /* [n_named] */
    tern_tpl_value **named;
    size_t n_named;
} tern_tpl_args;

typedef tern_tpl_value *tern_tpl_call(tern_tpl *x, tern_tpl_value *self, const tern_tpl_args *args);

struct tern_tpl_frame;
struct tern_tpl_node;

struct tern_tpl_value {
    tern_tpl_kind kind;
    tern_span written; /* FLOAT: the digits of an integer beyond 64 bits, as it is written; size 0:
                          none */
    union {
        bool truth;
        int64_t integer;
        double real;
        tern_tpl_text text;
        tern_tpl_list list;
        tern_tpl_dict *dict; /* members of DICT and NAMESPACE */
        tern_tpl_loop *loop;
        tern_span why; /* UNDEFINED: says what is missing */
        struct {
            const struct tern_tpl_node *node;
            struct tern_tpl_frame *frame; /* where it was defined */
        } macro;
        struct {
            tern_tpl_call *call;
            tern_tpl_value *self; /* METHOD: the value that it belongs to */
        } function;
    };
};

/* ---- making: NULL after a failure ------------------------------------------------------------ */

tern_tpl_value *tern_tpl_undefined(tern_tpl *x, tern_span why);
tern_tpl_value *tern_tpl_none(tern_tpl *x);
tern_tpl_value *tern_tpl_bool(tern_tpl *x, bool truth);
tern_tpl_value *tern_tpl_int(tern_tpl *x, int64_t integer);
tern_tpl_value *tern_tpl_real(tern_tpl *x, double real);
tern_tpl_value *tern_tpl_text_value(tern_tpl *x, tern_tpl_text text);
tern_tpl_value *tern_tpl_word(tern_tpl *x, const char *text); /* the text must outlive the run */
tern_tpl_value *tern_tpl_list_value(tern_tpl *x, tern_tpl_value **items, size_t n);
tern_tpl_value *tern_tpl_dict_new(tern_tpl *x, tern_tpl_kind kind);
tern_tpl_value *tern_tpl_function(tern_tpl *x, tern_tpl_call *call, tern_tpl_value *self);

/* A copy of args[n] as a list. */
tern_tpl_value **tern_tpl_items(tern_tpl *x, size_t n);

/* Sets a member; false after a failure. */
bool tern_tpl_set(tern_tpl *x, tern_tpl_value *dict, tern_tpl_value *key, tern_tpl_value *value);
bool tern_tpl_set_word(tern_tpl *x, tern_tpl_value *dict, const char *key, tern_tpl_value *value);

/* ---- questions ------------------------------------------------------------------------------- */

/* The member of a DICT or NAMESPACE; NULL when there is none. */
tern_tpl_value *tern_tpl_get(tern_tpl *x, const tern_tpl_value *dict, const tern_tpl_value *key);
tern_tpl_value *tern_tpl_get_name(const tern_tpl_value *dict, tern_span name);

bool tern_tpl_is_true(const tern_tpl_value *v);
bool tern_tpl_is_number(const tern_tpl_value *v); /* truth values too */
bool tern_tpl_is_text(const tern_tpl_value *v, const char *text);
double tern_tpl_as_real(const tern_tpl_value *v);        /* it must be a number */
int64_t tern_tpl_as_int(const tern_tpl_value *v);        /* it must be an INT or BOOL */
const char *tern_tpl_kind_name(const tern_tpl_value *v); /* as Python calls it */
bool tern_tpl_equal(tern_tpl *x, const tern_tpl_value *a, const tern_tpl_value *b);

/* *out is below 0, 0 or above 0; false after a failure, for values without an order. */
bool tern_tpl_compare(tern_tpl *x, const tern_tpl_value *a, const tern_tpl_value *b, int *out);

/* *out: `all` contains v; false after a failure. */
bool tern_tpl_contains(tern_tpl *x, const tern_tpl_value *all, const tern_tpl_value *v, bool *out);

/* Lists what a loop over v goes through; false after a failure. */
bool tern_tpl_iterate(tern_tpl *x, const tern_tpl_value *v, tern_tpl_list *out);

/* ---- arguments ------------------------------------------------------------------------------- */

/* Assigns arguments to the words of `names`, NULL where there is none. False after a failure, whose
 * message names `what`. out holds as many as there are words. */
bool tern_tpl_bind(tern_tpl *x, const char *what, const tern_tpl_args *args, const char *names,
                   tern_tpl_value **out);

tern_span tern_tpl_span(const tern_tpl_value *text); /* it must be a TEXT */
bool tern_tpl_span_is(tern_span a, const char *text);
bool tern_tpl_same(tern_span a, tern_span b);

#endif
