/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/cpu.h"
#include "dispatch/processors.h"
#include "dispatch/select.h"
#include "gen/kernels.h"
#include "tern/kernels.h"

/* The table as the generator wrote it. Rows of other architectures keep their place, without code.
 */
static const tern_kernel_row kernels[] = {
#define TERN_ROW_FACTS(op_, format_, layout_, isa_, needs_, rows_, tokens_, name_)                 \
    .name = #name_, .isa = #isa_, .op = TERN_OP_##op_, .format = TERN_FORMAT_##format_,            \
    .layout = TERN_LAYOUT_##layout_, .needs = (needs_), .rows_tile = (rows_),                      \
    .tokens_tile = (tokens_)
#define TERN_TABLE_KERNEL(op_, format_, layout_, isa_, needs_, rows_, tokens_, name_, function_)   \
    {TERN_ROW_FACTS(op_, format_, layout_, isa_, needs_, rows_, tokens_, name_),                   \
     .fn = {.any = (void (*)(void))(function_)}},
#define TERN_ATTEND_KERNEL(op_, format_, layout_, isa_, needs_, rows_, tokens_, name_, chunks_,    \
                           merge_, finish_)                                                        \
    {TERN_ROW_FACTS(op_, format_, layout_, isa_, needs_, rows_, tokens_, name_),                   \
     .fn = {.attend = {chunks_, merge_, finish_}}},
#include "gen/table.inc"
#undef TERN_ATTEND_KERNEL
#undef TERN_TABLE_KERNEL
#undef TERN_ROW_FACTS
};

static const tern_isa_info isas[] = {
#define TERN_ISA(name_, arch_, needs_, built_, proof_)                                             \
    {.name = #name_, .arch = #arch_, .needs = (needs_), .built = (built_), .proof = (proof_)},
#include "gen/isas.inc"
#undef TERN_ISA
};

const char *tern_op_test(tern_op op) {
    static const char *const tests[TERN_OP_COUNT] = {
#define TERN_OP_TEST(op_, test_) [TERN_OP_##op_] = (test_),
#include "gen/ops.inc"
#undef TERN_OP_TEST
    };
    return op >= 0 && op < TERN_OP_COUNT ? tests[op] : NULL;
}

const tern_kernel_row *tern_kernel_rows(size_t *count) {
    *count = sizeof kernels / sizeof *kernels;
    return kernels;
}

const tern_isa_info *tern_isas(size_t *count) {
    *count = sizeof isas / sizeof *isas;
    return isas;
}

const char *tern_isa_name(size_t i) {
    return i < sizeof isas / sizeof *isas ? isas[i].name : NULL;
}

const char *tern_isa_architecture(size_t i) {
    return i < sizeof isas / sizeof *isas ? isas[i].arch : NULL;
}

bool tern_isa_runs(size_t i, uint64_t features) {
    return i < sizeof isas / sizeof *isas && isas[i].built && (isas[i].needs & ~features) == 0;
}

const tern_kernel_row *tern_kernel_find(const char *name) {
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (strcmp(kernels[i].name, name) == 0)
            return &kernels[i];
    return NULL;
}

static bool serves(const tern_kernel_row *kernel, tern_kernel_use use) {
    const bool packed = use.layout != TERN_LAYOUT_ROWS && use.layout != TERN_LAYOUT_NONE;
    return kernel->op == use.op && kernel->layout == use.layout &&
           (packed || kernel->format == use.format);
}

const tern_kernel_row *tern_select_kernel(const tern_kernel_row *table, size_t count, uint64_t mask,
                                          tern_kernel_use use) {
    for (size_t i = 0; i < count; i++)
        if (serves(&table[i], use) && table[i].fn.any != NULL && (table[i].needs & ~mask) == 0)
            return &table[i];
    return NULL;
}

/* Operations on rows read the file's own layout; those without a format have none. */
static tern_layout default_layout(tern_op op, tern_format format) {
    if (op == TERN_OP_GEMV || op == TERN_OP_GEMM)
        return tern_format_layout(format);
    return format == TERN_FORMAT_NONE ? TERN_LAYOUT_NONE : TERN_LAYOUT_ROWS;
}

const tern_kernel_row *tern_kernel_select_layout(uint64_t mask, tern_op op, tern_format format,
                                                 tern_layout layout) {
    const tern_kernel_use use = {op, format, layout};
    return tern_select_kernel(kernels, sizeof kernels / sizeof *kernels, mask, use);
}

const tern_kernel_row *tern_kernel_select(uint64_t mask, tern_op op, tern_format format) {
    return tern_kernel_select_layout(mask, op, format, default_layout(op, format));
}

bool tern_kernel_is_native(uint64_t mask, const tern_kernel_row *kernel) {
    return strcmp(kernel->isa, "scalar") != 0 || strcmp(tern_isa_of_mask(mask), "scalar") == 0;
}

bool tern_has_native_kernel(uint64_t mask, tern_op op, tern_format format) {
    const tern_kernel_row *kernel =
        (unsigned)op < TERN_OP_COUNT ? tern_kernel_select(mask, op, format) : NULL;
    return kernel != NULL && tern_kernel_is_native(mask, kernel);
}

const char *tern_isa_of_mask(uint64_t mask) {
    const char *name = "scalar";
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++)
        if (isas[i].built && (isas[i].needs & ~mask) == 0)
            name = isas[i].name;
    return name;
}

/* "scalar, avx2": the instruction sets that this build and this machine can run. */
static void list_runnable(uint64_t features, char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        if (!isas[i].built || (isas[i].needs & ~features) != 0)
            continue;
        const size_t length = strlen(isas[i].name);
        if (used + length + 3 > size)
            return;
        used += (size_t)(stpcpy(stpcpy(text + used, used ? ", " : ""), isas[i].name) - text) - used;
    }
}

tern_status tern_restrict_mask(uint64_t features, const char *isa, uint64_t *mask,
                               tern_error *err) {
    char valid[256];
    list_runnable(features, valid, sizeof valid);
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        if (strcmp(isas[i].name, isa) != 0)
            continue;
        if (!isas[i].built)
            return tern_fail(err, TERN_ERR_ISA,
                             "instruction set %s is not in this build (valid: %s)", isa, valid);
        if ((isas[i].needs & ~features) != 0)
            return tern_fail(err, TERN_ERR_ISA,
                             "instruction set %s cannot be used on this processor (valid: %s)", isa,
                             valid);
        *mask = isas[i].needs;
        return TERN_OK;
    }
    return tern_fail(err, TERN_ERR_ISA, "unknown instruction set '%s' (valid: %s)", isa, valid);
}

/* The features that a set adds to those of the sets that it includes. */
static uint64_t added_features(const tern_isa_info *isa) {
    uint64_t inherited = 0;
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++)
        if (isas[i].needs != isa->needs && (isas[i].needs & ~isa->needs) == 0)
            inherited |= isas[i].needs;
    return isa->needs & ~inherited;
}

static const tern_isa_info *isa_named(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++)
        if (strlen(isas[i].name) == length && memcmp(isas[i].name, name, length) == 0)
            return &isas[i];
    return NULL;
}

tern_status tern_disable_isas(uint64_t features, const char *list, uint64_t *mask,
                              tern_error *err) {
    char valid[256];
    list_runnable(UINT64_MAX, valid, sizeof valid);
    for (const char *name = list; *name != '\0';) {
        const size_t length = strcspn(name, ",");
        const tern_isa_info *isa = isa_named(name, length);
        if (isa == NULL || isa->needs == 0)
            return tern_fail(err, TERN_ERR_ISA, "cannot disable instruction set '%.*s' (valid: %s)",
                             (int)(length < 64 ? length : 64), name, valid);
        features &= ~added_features(isa);
        name += length + (name[length] == ',');
    }
    *mask = features;
    return TERN_OK;
}

/* The argument, else the environment; NULL when there is neither or it is empty. */
static const char *given(const char *argument, const char *variable) {
    const char *text = argument != NULL ? argument : getenv(variable);
    return text != NULL && *text != '\0' ? text : NULL;
}

static tern_status check_processor(tern_error *err) {
    char valid[512] = "";
    size_t count, used = 0;
    bool known;
    const tern_known_processor *processors = tern_known_processors(&count);
    (void)tern_believed_features(&known);
    for (size_t i = 0; !known && i < count; i++)
        used += (size_t)snprintf(valid + used, sizeof valid - used, "%s%s", used > 0 ? ", " : "",
                                 processors[i].name);
    return known ? TERN_OK
                 : tern_fail(err, TERN_ERR_ISA,
                             "TERN_PROCESSOR: unknown processor '%.64s' (valid: %s)",
                             getenv("TERN_PROCESSOR"), valid);
}

tern_status tern_cpu_mask(const char *isa, const char *disable, uint64_t *mask, tern_error *err) {
    const char *wanted = given(isa, "TERN_ISA");
    const char *unwanted = given(disable, "TERN_DISABLE");
    uint64_t features = tern_cpu_features();

    if (check_processor(err) != TERN_OK)
        return TERN_ERR_ISA;
    if (unwanted != NULL && tern_disable_isas(features, unwanted, &features, err) != TERN_OK)
        return TERN_ERR_ISA;
    if (wanted != NULL)
        return tern_restrict_mask(features, wanted, mask, err);
    *mask = features;
    return TERN_OK;
}
