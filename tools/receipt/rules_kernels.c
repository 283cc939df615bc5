/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels a receipt may name, must name, and what follows from them. */

#include "tools/receipt/rules.h"

#ifdef TERN_HAVE_JANSSON

#include <string.h>

#include "dispatch/select.h"
#include "tools/receipt/facts.h"

static const char *const families[] = {"i2s_gemv", "tl1_matmul", "tl2_matmul", "rope_apply",
                                       "attention_real"};

enum { FAMILIES = sizeof families / sizeof *families, MOST_KERNELS = 10000 };

static bool is_family(const char *name) {
    for (size_t i = 0; i < FAMILIES; i++) {
        if (strcmp(families[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static bool list_has(const json_t *list, const char *text) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (strcmp(json_string_value(json_array_get(list, i)), text) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether a row for the operation, or of the family, is named. */
static bool names_op(const json_t *kernels, tern_op op) {
    for (size_t i = 0; i < json_array_size(kernels); i++) {
        const tern_kernel_row *row =
            tern_kernel_find(json_string_value(json_array_get(kernels, i)));
        if (row != NULL && row->op == op) {
            return true;
        }
    }
    return false;
}

static bool names_family(const json_t *kernels, const char *family) {
    for (size_t i = 0; i < json_array_size(kernels); i++) {
        const tern_kernel_row *row =
            tern_kernel_find(json_string_value(json_array_get(kernels, i)));
        const char *of = row != NULL ? facts_family(row) : NULL;
        if (of != NULL && strcmp(of, family) == 0) {
            return true;
        }
    }
    return false;
}

/* One name: no mock, known to this tern, of an instruction set that the machine has. */
static void check_name(const json_t *r, const char *name, const char *where, receipt_findings *f) {
    const tern_kernel_row *row = tern_kernel_find(name);
    if (strcasestr(name, "mock") != NULL) {
        receipt_find(f, "%s: \"%.60s\" is a mock", where, name);
    } else if (row == NULL && !is_family(name)) {
        receipt_find(f, "%s: \"%.60s\" is no kernel of tern %s", where, name, tern_version());
    } else if (row != NULL && !list_has(receipt_at(r, "machine.instruction_sets"), row->isa)) {
        receipt_find(f, "%s: \"%s\" needs %s, which machine.instruction_sets lacks", where, name,
                     row->isa);
    }
}

static void check_list(const json_t *r, const json_t *kernels, receipt_findings *f) {
    const size_t n = json_array_size(kernels);
    if (n < 1 || n > MOST_KERNELS) {
        receipt_find(f, "kernels: %zu names, must be 1 to %d", n, MOST_KERNELS);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        char where[32];
        const char *name = json_string_value(json_array_get(kernels, i));
        (void)snprintf(where, sizeof where, "kernels[%zu]", i);
        check_name(r, name, where, f);
        for (size_t j = 0; j < i && n <= 256; j++) {
            if (strcmp(name, json_string_value(json_array_get(kernels, j))) == 0) {
                receipt_find(f, "%s: \"%.60s\" is there twice", where, name);
            }
        }
    }
}

/* A forward pass cannot do without these. */
static void check_complete(const json_t *r, const json_t *kernels, receipt_findings *f) {
    static const tern_op always[] = {TERN_OP_EMBED, TERN_OP_RMSNORM, TERN_OP_STORE, TERN_OP_ATTEND,
                                     TERN_OP_ADD};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) {
        if (!names_op(kernels, always[i])) {
            receipt_find(f, "kernels: none for %s, without which nothing runs",
                         tern_op_name(always[i]));
        }
    }
    if (!names_op(kernels, TERN_OP_GATE_SILU) && !names_op(kernels, TERN_OP_GATE_RELU2)) {
        receipt_find(f, "kernels: none for the gate, without which nothing runs");
    }
    const bool several = rule_count(r, "prompt.tokens") > 1 && rule_count(r, "run.batch") > 1;
    if (several != names_op(kernels, TERN_OP_GEMM)) {
        receipt_find(f, "kernels: gemm %s, with a prompt of %lld tokens in batches of %lld",
                     several ? "is missing" : "cannot have run",
                     (long long)rule_count(r, "prompt.tokens"),
                     (long long)rule_count(r, "run.batch"));
    }
    if (!names_op(kernels, TERN_OP_GEMV)) { /* the head multiplies one token at a time */
        receipt_find(f, "kernels: none for gemv, without which nothing is generated");
    }
}

/* A family stands there when one of its rows does, and those that a model needs stand there. */
static void check_families(const json_t *r, const json_t *kernels, receipt_findings *f) {
    static const char *const by_layout[][2] = {{"t2r16", "i2s_gemv"},
                                               {"t5r16", "i2s_gemv"},
                                               {"tl1r16", "tl1_matmul"},
                                               {"tl2r16", "tl2_matmul"}};
    for (size_t i = 0; i < FAMILIES; i++) {
        const bool named = list_has(kernels, families[i]);
        if (named != names_family(kernels, families[i])) {
            receipt_find(f, "kernels: \"%s\" is %s, but %s row of that family is", families[i],
                         named ? "there" : "missing", named ? "no" : "a");
        }
        if (i >= 3 && !named) {
            receipt_find(f, "kernels: \"%s\" is missing, which every run needs", families[i]);
        }
    }
    if (strcmp(rule_text(r, "model_info.quantization_type"), "I2_S") != 0) {
        return;
    }
    for (size_t i = 0; i < 4; i++) {
        if (strcmp(by_layout[i][0], rule_text(r, "run.layout")) == 0 &&
            !list_has(kernels, by_layout[i][1])) {
            receipt_find(f, "kernels: \"%s\" is missing, which i2_s weights in layout %s need",
                         by_layout[i][1], by_layout[i][0]);
        }
    }
}

static void check_machine(const json_t *r, receipt_findings *f) {
    const json_t *sets = receipt_at(r, "machine.instruction_sets");
    size_t count;
    const tern_isa_info *isas = tern_isas(&count);
    for (size_t i = 0; i < json_array_size(sets); i++) {
        const char *name = json_string_value(json_array_get(sets, i));
        bool known = false;
        for (size_t k = 0; k < count; k++) {
            known = known || strcmp(isas[k].name, name) == 0;
        }
        if (!known) {
            receipt_find(f, "machine.instruction_sets[%zu]: tern %s knows no \"%.40s\"", i,
                         tern_version(), name);
        }
    }
    if (!list_has(sets, rule_text(r, "run.isa"))) {
        receipt_find(f, "run.isa: \"%.40s\" is none of machine.instruction_sets",
                     rule_text(r, "run.isa"));
    }
    const bool arm = list_has(sets, "neon");
    const bool intel = list_has(sets, "sse41");
    const char *architecture = rule_text(r, "machine.architecture");
    if ((arm && strcmp(architecture, "aarch64") != 0) ||
        (intel && strcmp(architecture, "x86_64") != 0)) {
        receipt_find(f, "machine.architecture: \"%s\" does not have machine.instruction_sets",
                     architecture);
    }
}

void rules_kernels(const json_t *r, receipt_findings *f) {
    const json_t *kernels = receipt_at(r, "kernels");
    check_list(r, kernels, f);
    check_complete(r, kernels, f);
    check_families(r, kernels, f);
    check_machine(r, f);
}

#endif
