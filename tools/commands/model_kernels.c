/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/commands/model_kernels.h"

#include <stdio.h>
#include <string.h>

#include "tern/inspect.h"
#include "tools/cli/json_line.h"
#include "tools/cli/output.h"
#include "tools/load/loader.h"
#include "tools/load/model_hint.h"

/* Matrices that are alike: same shape and format, multiplied by the same kernels. */
typedef struct matrix_kind {
    tern_linear_info one;
    size_t n;
    char tensors[160]; /* names without the layer's number, separated by spaces */
} matrix_kind;

enum { MAX_KINDS = 64 };

typedef struct survey {
    const options *o;
    loaded l;
    uint32_t threads;
    bool tunes; /* measurements may choose the kernels */
    matrix_kind kinds[MAX_KINDS];
    size_t n;
} survey;

/* "attn_q" of "blk.12.attn_q.weight". */
static tern_span short_name(tern_span name) {
    if (name.size > 4 && memcmp(name.data, "blk.", 4) == 0) {
        const char *dot = memchr(name.data + 4, '.', name.size - 4);
        const size_t skip = dot != NULL ? (size_t)(dot + 1 - name.data) : 0;
        name = (tern_span){.data = name.data + skip, .size = name.size - skip};
    }
    const char *dot = memchr(name.data, '.', name.size);
    name.size = dot != NULL ? (size_t)(dot - name.data) : name.size;
    return name;
}

/* Appends the name if it is missing and there is room. */
static void add_name(matrix_kind *kind, tern_span name) {
    const char *list = kind->tensors;
    const size_t used = strlen(list);
    for (const char *word = list; used > 0;) {
        const size_t n = strcspn(word, " ");
        if (n == name.size && memcmp(word, name.data, n) == 0)
            return;
        if (word[n] == '\0')
            break;
        word += n + 1;
    }
    if (used + 1 + name.size < sizeof kind->tensors) {
        (void)snprintf(kind->tensors + used, sizeof kind->tensors - used, "%s%.*s",
                       used > 0 ? " " : "", (int)name.size, name.data);
    }
}

/* The head's int8 image is multiplied by one token at a time, never by several. */
static bool is_scan(const tern_linear_info *matrix) {
    return matrix->stage == TERN_STAGE_SCAN;
}

static bool is_alike(const tern_linear_info *x, const tern_linear_info *y) {
    const tern_matrix *a = &x->matrix;
    const tern_matrix *b = &y->matrix;
    return is_scan(x) == is_scan(y) && a->format == b->format && a->layout == b->layout &&
           a->rows == b->rows && a->cols == b->cols && x->gemv == y->gemv && x->gemm == y->gemm;
}

static void find_kinds(survey *s) {
    const tern_model *m = s->l.model;
    const tern_linear *linear;
    for (size_t i = 0; (linear = tern_model_linear(m, i)) != NULL; i++) {
        tern_linear_info matrix;
        tern_linear_describe(m, linear, &matrix);
        size_t k = 0;
        while (k < s->n && !is_alike(&s->kinds[k].one, &matrix))
            k++;
        if (k == MAX_KINDS)
            continue; /* full: models have four to eight kinds */
        if (k == s->n)
            s->kinds[s->n++] = (matrix_kind){.one = matrix};
        s->kinds[k].n++;
        add_name(&s->kinds[k], short_name(matrix.tensor));
    }
}

static bool is_product(const tern_kernel_row *kernel) {
    return kernel->op == TERN_OP_GEMV || kernel->op == TERN_OP_GEMM;
}

/* True if a matrix has the table's kernels only because it has not been measured yet. */
static bool lacks_measurement(const survey *s) {
    bool lacks = false;
    for (size_t i = 0; s->tunes && i < s->n; i++)
        lacks = lacks || strcmp(s->kinds[i].one.choice, "table") == 0;
    return lacks;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_row(const char *use, const tern_kernel_row *kernel,
                      const tern_kernel_row *table) {
    out_print("  %-15s %s%s%s\n", use, kernel->name, kernel != table ? ", the table has " : "",
              kernel != table && table != NULL ? table->name : "");
}

static void print_kind(const matrix_kind *kind) {
    const tern_matrix *m = &kind->one.matrix;
    out_print("\n%s %zu x %zu, %s: %s\n  %zu matri%s: %s%s\n",
              tern_format_describe(m->format)->name, m->rows, m->cols, tern_layout_name(m->layout),
              kind->one.choice, kind->n, kind->n == 1 ? "x" : "ces", kind->tensors,
              is_scan(&kind->one) ? ", scanned before its exact rows are read" : "");
    print_row("one token", kind->one.gemv, kind->one.table[0]);
    if (!is_scan(&kind->one))
        print_row("several tokens", kind->one.gemm, kind->one.table[1]);
}

static int print_text(const survey *s) {
    out_print("%s: %s, %u thread%s\n", s->l.info.path, tern_model_isa(s->l.model), s->threads,
              s->threads == 1 ? "" : "s");
    for (size_t i = 0; i < s->n; i++)
        print_kind(&s->kinds[i]);
    out_print("\nother operations: table\n");
    for (size_t i = 0; i < s->l.n_kernels; i++) {
        const tern_kernel_row *kernel = s->l.kernels[i];
        if (!is_product(kernel))
            out_print("  %-15s %s\n", tern_op_name(kernel->op), kernel->name);
    }
    if (lacks_measurement(s)) {
        out_print(
            "\nWhat the table chose has not been measured with %u thread%s: the first run does "
            "it, or tern tune.\n",
            s->threads, s->threads == 1 ? "" : "s");
    }
    return EXIT_DONE;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *names_json(const char *list) {
    json_t *names = json_array();
    while (*list != '\0') {
        const size_t n = strcspn(list, " ");
        json_array_append_new(names, json_text(list, n));
        list += n + (list[n] == ' ');
    }
    return names;
}

static const char *name_of(const tern_kernel_row *kernel) {
    return kernel != NULL ? kernel->name : "";
}

static json_t *kind_json(const matrix_kind *kind) {
    const tern_matrix *m = &kind->one.matrix;
    json_t *object =
        json_pack("{s:s, s:I, s:I, s:s, s:s, s:I, s:o, s:b, s:s, s:s}", "format",
                  tern_format_describe(m->format)->name, "rows", (json_int_t)m->rows, "cols",
                  (json_int_t)m->cols, "layout", tern_layout_name(m->layout), "choice",
                  kind->one.choice, "matrices", (json_int_t)kind->n, "tensors",
                  names_json(kind->tensors), "scan", is_scan(&kind->one), "gemv",
                  kind->one.gemv->name, "table_gemv", name_of(kind->one.table[0]));
    if (!is_scan(&kind->one)) {
        json_object_set_new(object, "gemm", json_string(kind->one.gemm->name));
        json_object_set_new(object, "table_gemm", json_string(name_of(kind->one.table[1])));
    }
    return object;
}

static int print_json(const survey *s) {
    json_t *kinds = json_array();
    json_t *others = json_array();
    for (size_t i = 0; i < s->n; i++)
        json_array_append_new(kinds, kind_json(&s->kinds[i]));
    for (size_t i = 0; i < s->l.n_kernels; i++) {
        const tern_kernel_row *kernel = s->l.kernels[i];
        if (!is_product(kernel)) {
            json_array_append_new(others, json_pack("{s:s, s:s}", "op", tern_op_name(kernel->op),
                                                    "kernel", kernel->name));
        }
    }
    return json_print(json_pack("{s:o, s:s, s:s, s:I, s:o, s:o}", "model",
                                json_text(s->l.info.path, strlen(s->l.info.path)), "isa",
                                tern_model_isa(s->l.model), "choice", tern_model_choice(s->l.model),
                                "threads", (json_int_t)s->threads, "matrices", kinds, "operations",
                                others));
}

int model_kernels(const options *o) {
    survey s = {.o = o, .tunes = params_tune(o)};
    const char *path = loader_model_path(o, false);
    if (path == NULL)
        return EXIT_USAGE;
    char cache[PATH_MAX];
    tern_model_params params;
    tern_error err = {0};
    if (params_read(o, cache, &params, &err) != TERN_OK) {
        (void)complain_error(&err);
        return EXIT_USAGE;
    }
    params.no_weights = true;
    if (tern_model_open(path, &params, &s.l.model, &err) != TERN_OK)
        return complain_of_model(path, o->model_may_be_prompt, &err);
    loader_describe(o, &s.l);
    s.threads = tern_model_threads(s.l.model, params.threads);
    find_kinds(&s);
    const int status = options_switch(o, OPT_JSON) ? print_json(&s) : print_text(&s);
    loader_close(&s.l);
    return status;
}
