/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of the kernels that a receipt names: allowed names, required names, and what follows from
 * them. */

#include "receipts/rules.h"

#include <stdlib.h>
#include <string.h>

#include "receipts/facts.h"
#include "tern/tern.h"

static const char *const families[] = {"i2s_gemv", "tl1_matmul", "tl2_matmul", "rope_apply",
                                       "attention_real"};

enum { FAMILIES = sizeof families / sizeof *families, FIRST_NEEDED = 3 /* rope_apply */ };

static bool is_family(const char *name) {
    for (size_t i = 0; i < FAMILIES; i++)
        if (strcmp(families[i], name) == 0)
            return true;
    return false;
}

/* True if one of the first n texts of the list is this text. */
static bool list_before(const json_t *list, size_t n, const char *text) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(json_string_value(json_array_get(list, i)), text) == 0)
            return true;
    return false;
}

/* The names in a receipt, each with its kernel; NULL for families and unknown names. */
typedef struct named {
    const json_t *list;
    const tern_kernel_row **kernels; /* [n], owned */
    size_t n;
} named;

static const char *name_at(const named *k, size_t i) {
    return json_string_value(json_array_get(k->list, i));
}

static bool names_op(const named *k, tern_op op) {
    for (size_t i = 0; i < k->n; i++)
        if (k->kernels[i] != NULL && k->kernels[i]->op == op)
            return true;
    return false;
}

/* True if a kernel of the family is named. */
static bool names_family(const named *k, const char *family) {
    for (size_t i = 0; i < k->n; i++) {
        const char *of = k->kernels[i] != NULL ? facts_family(k->kernels[i]) : NULL;
        if (of != NULL && strcmp(of, family) == 0)
            return true;
    }
    return false;
}

/* Checks one name: not a mock, known to this tern, of an instruction set that the machine has, and
 * listed once. */
static void check_name(const json_t *r, const named *k, size_t at, receipt_findings *f) {
    const char *name = name_at(k, at);
    const tern_kernel_row *kernel = k->kernels[at];
    if (strcasestr(name, "mock") != NULL) {
        receipt_find(f, "kernels[%zu]: \"%.60s\" is a mock", at, name);
    } else if (kernel == NULL && !is_family(name)) {
        receipt_find(f, "kernels[%zu]: \"%.60s\" is not a kernel of tern %s", at, name,
                     tern_version());
    } else if (kernel != NULL &&
               !rule_list_has(receipt_at(r, "machine.instruction_sets"), kernel->isa)) {
        receipt_find(f, "kernels[%zu]: \"%s\" needs %s, which machine.instruction_sets lacks", at,
                     name, kernel->isa);
    }
    if (list_before(k->list, at, name))
        receipt_find(f, "kernels[%zu]: \"%.60s\" is there twice", at, name);
}

/* Checks that the kernels that every forward pass needs are named. */
static void check_complete(const json_t *r, const named *k, receipt_findings *f) {
    static const tern_op always[] = {TERN_OP_EMBED, TERN_OP_RMSNORM, TERN_OP_STORE, TERN_OP_ATTEND,
                                     TERN_OP_ADD};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) {
        const bool other = always[i] == TERN_OP_RMSNORM && names_op(k, TERN_OP_LAYERNORM);
        if (!other && !names_op(k, always[i])) {
            receipt_find(f, "kernels: none for %s, without which nothing runs",
                         tern_op_name(always[i]));
        }
    }
    if (!names_op(k, TERN_OP_GATE_SILU) && !names_op(k, TERN_OP_GATE_RELU2) &&
        !names_op(k, TERN_OP_GATE_GELU) && !names_op(k, TERN_OP_GATE_QUICK))
        receipt_find(f, "kernels: none for the gate, without which nothing runs");
    const bool several = rule_count(r, "prompt.tokens") > 1 && rule_count(r, "run.batch") > 1;
    if (several != names_op(k, TERN_OP_GEMM)) {
        receipt_find(f, "kernels: gemm %s, with a prompt of %lld tokens in batches of %lld",
                     several ? "is missing" : "cannot have run",
                     (long long)rule_count(r, "prompt.tokens"),
                     (long long)rule_count(r, "run.batch"));
    }
    if (!names_op(k, TERN_OP_GEMV)) /* the head multiplies one token at a time */
        receipt_find(f, "kernels: none for gemv, without which nothing is generated");
}

/* Checks that ternary products run on kernels of the layout that the weights have. */
static void check_layout(const json_t *r, const named *k, receipt_findings *f) {
    const char *layout = rule_text(r, "run.layout");
    for (size_t i = 0; strcmp(layout, "mixed") != 0 && i < k->n; i++) {
        const tern_kernel_row *kernel = k->kernels[i];
        if (kernel != NULL && tern_layout_input(kernel->layout) == TERN_INPUT_TOKEN &&
            strcmp(tern_layout_name(kernel->layout), layout) != 0) {
            receipt_find(f, "run.layout: is %s, but \"%s\" multiplies in %s", layout, kernel->name,
                         tern_layout_name(kernel->layout));
        }
    }
}

/* Checks several layouts of ternary weights, chosen by the tuner: there must be kernels of two or
 * more. */
static void check_mixed(const json_t *r, const named *k, receipt_findings *f) {
    const tern_kernel_row *first = NULL;
    bool several = false;
    for (size_t i = 0; i < k->n; i++) {
        const tern_kernel_row *kernel = k->kernels[i];
        if (kernel == NULL || tern_layout_input(kernel->layout) != TERN_INPUT_TOKEN)
            continue;
        first = first != NULL ? first : kernel;
        several = several || kernel->layout != first->layout;
    }
    if (!several)
        receipt_find(f, "kernels: of one layout of ternary weights, run.layout says mixed");
    if (strcmp(rule_text(r, "run.choice"), "tuned") != 0)
        receipt_find(f, "run.choice: \"%s\" mixes no layouts", rule_text(r, "run.choice"));
}

/* Checks that a family is named if and only if one of its kernels is, and that the families that a
 * model needs are named. */
static void check_families(const json_t *r, const named *k, receipt_findings *f) {
    for (size_t i = 0; i < FAMILIES; i++) {
        const bool there = rule_list_has(k->list, families[i]);
        if (there != names_family(k, families[i])) {
            receipt_find(f, "kernels: \"%s\" is %s, but %s row of that family is", families[i],
                         there ? "there" : "missing", there ? "no" : "a");
        }
        if (i >= FIRST_NEEDED && !there)
            receipt_find(f, "kernels: \"%s\" is missing, which every run needs", families[i]);
    }
    if (strcmp(rule_text(r, "model_info.quantization_type"), "I2_S") != 0)
        return;
    const char *layout = rule_text(r, "run.layout");
    if (strcmp(layout, "mixed") == 0)
        check_mixed(r, k, f);
    for (int i = 0; i < TERN_LAYOUT_COUNT; i++) {
        const char *family = facts_layout_family((tern_layout)i);
        const char *name = tern_layout_name((tern_layout)i);
        if (family != NULL && strcmp(name, layout) == 0 && !rule_list_has(k->list, family)) {
            receipt_find(f, "kernels: \"%s\" is missing, which i2_s weights in layout %s need",
                         family, name);
        }
    }
}

/* Returns the number of the instruction set of that name, or how many there are. */
static size_t find_set(const char *name) {
    size_t i = 0;
    while (tern_isa_name(i) != NULL && strcmp(tern_isa_name(i), name) != 0)
        i++;
    return i;
}

void rules_machine(const json_t *r, receipt_findings *f) {
    const json_t *sets = receipt_at(r, "machine.instruction_sets");
    const char *architecture = rule_text(r, "machine.architecture");
    for (size_t i = 0; i < json_array_size(sets); i++) {
        const char *name = json_string_value(json_array_get(sets, i));
        const char *of = tern_isa_architecture(find_set(name));
        if (of == NULL) {
            receipt_find(f, "machine.instruction_sets[%zu]: tern %s knows no \"%.40s\"", i,
                         tern_version(), name);
        } else if (strcmp(of, "any") != 0 && strcmp(of, architecture) != 0) {
            receipt_find(f, "machine.architecture: \"%s\" does not have \"%s\"", architecture,
                         name);
        }
        if (list_before(sets, i, name))
            receipt_find(f, "machine.instruction_sets[%zu]: \"%.40s\" is there twice", i, name);
    }
    const size_t n = json_array_size(sets);
    if (n == 0 ||
        strcmp(rule_text(r, "run.isa"), json_string_value(json_array_get(sets, n - 1))) != 0) {
        receipt_find(f, "run.isa: \"%.40s\" is not the last of machine.instruction_sets",
                     rule_text(r, "run.isa"));
    }
}

/* Looks the names up; the caller frees k->kernels. False after a finding. */
static bool open_names(const json_t *r, named *k, receipt_findings *f) {
    size_t most;
    (void)tern_kernel_rows(&most);
    *k = (named){.list = receipt_at(r, "kernels")};
    k->n = json_array_size(k->list);
    if (k->n < 1 || k->n > most + FAMILIES) {
        receipt_find(f, "kernels: %zu names, must be 1 to %zu", k->n, most + FAMILIES);
        return false;
    }
    k->kernels = calloc(k->n, sizeof *k->kernels);
    if (k->kernels == NULL) {
        f->out_of_memory = true;
        return false;
    }
    for (size_t i = 0; i < k->n; i++)
        k->kernels[i] = tern_kernel_find(name_at(k, i));
    return true;
}

static void check_names(const json_t *r, const named *k, receipt_findings *f) {
    for (size_t i = 0; i < k->n; i++)
        check_name(r, k, i, f);
    check_layout(r, k, f);
}

void rules_kernels(const json_t *r, receipt_findings *f) {
    named k;
    if (open_names(r, &k, f)) {
        check_names(r, &k, f);
        check_complete(r, &k, f);
        check_families(r, &k, f);
        free(k.kernels);
    }
}
