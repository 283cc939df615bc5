/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/inspect/planned_weights.h"

#include <inttypes.h>
#include <string.h>

#include "tern/inspect.h"
#include "tools/cli/output.h"

uint64_t planned_in_file(const tern_model *model) {
    tern_planned_tensor t;
    uint64_t bytes = 0;
    for (size_t i = 0; tern_model_planned(model, i, &t); i++)
        bytes += t.file_bytes;
    return bytes;
}

/* ---- text ------------------------------------------------------------------------------------ */

static bool is_alike(const tern_planned_tensor *a, const tern_planned_tensor *b) {
    return strcmp(a->type, b->type) == 0 && strcmp(a->what, b->what) == 0 &&
           strcmp(a->place, b->place) == 0 && a->layout == b->layout && a->gemv == b->gemv &&
           a->gemm == b->gemm;
}

/* True if an entry before entry i becomes the same. */
static bool was_shown(const tern_model *model, size_t i, const tern_planned_tensor *t) {
    tern_planned_tensor before;
    for (size_t k = 0; k < i && tern_model_planned(model, k, &before); k++)
        if (is_alike(&before, t))
            return true;
    return false;
}

/* Prints one line for all entries that become the same as entry i. */
static void print_group(const tern_model *model, size_t i, const tern_planned_tensor *t) {
    tern_planned_tensor one;
    uint64_t bytes = 0;
    unsigned n = 0;
    for (size_t k = i; tern_model_planned(model, k, &one); k++)
        if (is_alike(&one, t)) {
            bytes += one.bytes + one.file_bytes;
            n++;
        }
    out_print("  %5u %-10s %-8s %-6s %-9s %8.1f MiB%s%s%s%s\n", n, t->what, t->type, t->place,
              t->layout != TERN_LAYOUT_NONE ? tern_layout_name(t->layout) : "",
              (double)bytes / 1048576.0, t->gemv != NULL ? "  " : "",
              t->gemv != NULL ? t->gemv->name : "", t->gemm != NULL ? ", " : "",
              t->gemm != NULL ? t->gemm->name : "");
}

void planned_print(const tern_model *model) {
    tern_planned_tensor t;
    out_print("\nweights      (what each tensor becomes, and from where it is read)\n");
    for (size_t i = 0; tern_model_planned(model, i, &t); i++)
        if (!was_shown(model, i, &t))
            print_group(model, i, &t);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *name_or_null(const tern_kernel_row *kernel) {
    return kernel != NULL ? json_string(kernel->name) : json_null();
}

json_t *planned_json(const tern_model *model) {
    json_t *list = json_array();
    tern_planned_tensor t;
    for (size_t i = 0; tern_model_planned(model, i, &t); i++)
        json_array_append_new(
            list, json_pack("{s:o, s:s, s:s, s:s, s:o, s:I, s:I, s:o, s:o, s:I, s:I, s:I}",
                            "tensor", json_text(t.tensor.data, t.tensor.size), "type", t.type,
                            "what", t.what, "place", t.place, "layout",
                            t.layout != TERN_LAYOUT_NONE ? json_string(tern_layout_name(t.layout))
                                                         : json_null(),
                            "rows", (json_int_t)t.rows, "cols", (json_int_t)t.cols, "gemv",
                            name_or_null(t.gemv), "gemm", name_or_null(t.gemm), "file_bytes",
                            (json_int_t)t.file_bytes, "offset", (json_int_t)t.offset, "bytes",
                            (json_int_t)t.bytes));
    return list;
}
