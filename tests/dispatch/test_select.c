/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selection for processors other than this machine: which kernel runs where, what TERN_ISA and
 * --isa do, and what the table promises.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/cpu.h"
#include "dispatch/select.h"
#include "kernels/grids.h"
#include "tern/device.h"
#include "tests/support/check.h"

#define M(name) TERN_CPU_MASK(name)
#define HASWELL (M(SSE41) | M(AVX2) | M(F16C) | M(FMA))
#define SKYLAKE_X (HASWELL | M(AVX512F) | M(AVX512BW) | M(AVX512VL) | M(AVX512DQ))
#define ICE_LAKE (SKYLAKE_X | M(AVX512VNNI) | M(AVX512VBMI) | M(GFNI))
#define NEOVERSE_V1 (M(NEON) | M(DOTPROD) | M(I8MM))

/*
 * Processors by the features that tern knows, and the instruction sets of the kernels that they
 * must select: for products of ternary matrices, for block formats, and for everything else,
 * leaving out what tiles do (has_tiles). A set that is not in the table, or not built for this
 * architecture, is replaced as built() says.
 */
typedef struct processor {
    const char *name;
    uint64_t features;
    const char *ternary, *block, *other;
} processor;

static const processor processors[] = {
    {"Core 2 (SSSE3)", 0, "scalar", "scalar", "scalar"},
    {"Nehalem (SSE4.2)", M(SSE41), "sse41", "sse41", "sse41"},
    {"Sandy Bridge (AVX)", M(SSE41), "sse41", "sse41", "sse41"},
    {"Ivy Bridge (AVX, F16C)", M(SSE41) | M(F16C), "sse41", "sse41", "sse41"},
    {"Piledriver (FMA, no AVX2)", M(SSE41) | M(F16C) | M(FMA), "sse41", "sse41", "sse41"},
    {"Haswell", HASWELL, "avx2", "avx2", "avx2"},
    {"Zen 1 to 3", HASWELL, "avx2", "avx2", "avx2"},
    {"Alder Lake", HASWELL | M(AVXVNNI) | M(GFNI), "avxvnni", "avxvnni", "avx2"},
    {"Alder Lake in a virtual machine that hides AVX-VNNI", HASWELL | M(GFNI), "avx2", "avx2",
     "avx2"},
    {"AVX-VNNI without F16C", M(SSE41) | M(AVX2) | M(AVXVNNI), "sse41", "sse41", "sse41"},
    {"Knights Landing", HASWELL | M(AVX512F), "avx2", "avx2", "avx2"},
    {"Skylake-X", SKYLAKE_X, "avx512", "avx512", "avx512"},
    {"Cannon Lake", SKYLAKE_X | M(AVX512VBMI), "avx512", "avx512", "avx512"},
    {"Cascade Lake", SKYLAKE_X | M(AVX512VNNI), "avx512vnni", "avx512vnni", "avx512"},
    {"Ice Lake", ICE_LAKE, "avx512vbmi", "avx512vnni", "avx512"},
    {"Zen 4", ICE_LAKE, "avx512vbmi", "avx512vnni", "avx512"},
    {"Zen 5, Sapphire Rapids without tiles", ICE_LAKE | M(AVXVNNI), "avx512vbmi", "avx512vnni",
     "avx512"},
    {"Sapphire Rapids", ICE_LAKE | M(AVXVNNI) | M(AMXTILE) | M(AMXINT8), "avx512vbmi", "avx512vnni",
     "avx512"},
    {"AVX2 and F16C but no FMA", M(SSE41) | M(AVX2) | M(F16C), "sse41", "sse41", "sse41"},
    {"virtual machine with AVX2 but no F16C", M(SSE41) | M(AVX2) | M(FMA), "sse41", "sse41",
     "sse41"},
    {"virtual machine with VNNI but no BW", HASWELL | M(AVX512F) | M(AVX512VNNI), "avx2", "avx2",
     "avx2"},
    {"Cortex-A53", M(NEON), "neon", "neon", "neon"},
    {"Neoverse N1", M(NEON) | M(DOTPROD), "neondot", "neondot", "neon"},
    {"Apple M1", M(NEON) | M(DOTPROD), "neondot", "neondot", "neon"},
    {"Neoverse V1", NEOVERSE_V1, "neoni8mm", "neoni8mm", "neon"},
};

/* Every operation and format that the runtime may request. */
typedef struct pair {
    tern_op op;
    tern_format format;
} pair;

/* clang-format off */
#define PAIR(op, format) {TERN_OP_##op, TERN_FORMAT_##format}
#define FILE_FORMATS(op)                                                                           \
    PAIR(op, F32), PAIR(op, F16), PAIR(op, BF16), \
    PAIR(op, Q2_K), PAIR(op, Q3_K), PAIR(op, IQ4_XS), PAIR(op, Q4_K), PAIR(op, Q5_K), PAIR(op, Q6_K), PAIR(op, Q1_0), PAIR(op, Q2_0), PAIR(op, PQ2_0), \
    PAIR(op, STQ1_0), PAIR(op, NVFP4)
#define GRIDS(op)                                                                                  \
    PAIR(op, IQ1_S), PAIR(op, IQ1_M), PAIR(op, IQ2_XXS), PAIR(op, IQ2_XS), PAIR(op, IQ2_S), \
    PAIR(op, IQ3_XXS), PAIR(op, IQ3_S)

static const pair pairs[] = {
#define TERN_PLAIN(NAME, name, ...) PAIR(GEMV, NAME), PAIR(GEMM, NAME), PAIR(EMBED, NAME),
#include "gen/plain.inc"
#undef TERN_PLAIN
    FILE_FORMATS(GEMV),
    PAIR(GEMV, I2_S),
    GRIDS(GEMV),
    PAIR(GEMV, INT8),
    PAIR(GEMV, INT4),
    FILE_FORMATS(GEMM),
    PAIR(GEMM, I2_S),
    GRIDS(GEMM),
    PAIR(GEMM, INT8),
    PAIR(GEMM, INT4),
    FILE_FORMATS(EMBED),
    PAIR(EMBED, PTQ1_0),
    PAIR(EMBED, TQ1_0),
    PAIR(EMBED, TQ2_0),
    PAIR(ATTEND, F32),
    PAIR(ATTEND, F16),
    PAIR(ATTEND, Q8_0),
    PAIR(STORE, F32),
    PAIR(STORE, F16),
    PAIR(STORE, Q8_0),
    PAIR(QUANTIZE_TOKEN, NONE),
    PAIR(QUANTIZE_BLOCK, NONE),
    PAIR(RMSNORM, NONE),
    PAIR(LAYERNORM, NONE),
    PAIR(ROPE_NORM, NONE),
    PAIR(ROPE_NEOX, NONE),
    PAIR(SOFTMAX, NONE),
    PAIR(GATE_SILU, NONE),
    PAIR(GATE_RELU2, NONE),
    PAIR(GATE_GELU, NONE),
    PAIR(GATE_QUICK, NONE),
    PAIR(BIAS_RELU, NONE),
    PAIR(BIAS_RELU2, NONE),
    PAIR(BIAS_SILU, NONE),
    PAIR(BIAS_GELU, NONE),
    PAIR(BIAS_TANH, NONE),
    PAIR(TANH, NONE),
    PAIR(ADD, NONE),
    PAIR(GEMV_SPARSE, F32),
    PAIR(HADAMARD, NONE),
    PAIR(ROUND_INT8, NONE),
    PAIR(ROUND_FP8, NONE),
    PAIR(ROUND_FP8_E5M2, NONE),
    PAIR(ROUND_FP16, NONE),
    PAIR(ROUND_BF16, NONE),
};
/* clang-format on */

enum { PROCESSORS = sizeof processors / sizeof *processors, PAIRS = sizeof pairs / sizeof *pairs };

static const tern_isa_info *find_isa(const char *name) {
    size_t count;
    const tern_isa_info *isas = tern_isas(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(isas[i].name, name) == 0)
            return &isas[i];
    return NULL;
}

static bool is_built(const char *name) {
    const tern_isa_info *isa = find_isa(name);
    return isa != NULL && isa->built;
}

/* The set that replaces one that is not built: avx2 for avxvnni where the compiler was too old for
 * it, else scalar. */
static const char *built(const char *name) {
    if (is_built(name))
        return name;
    return strcmp(name, "avxvnni") == 0 && is_built("avx2") ? "avx2" : "scalar";
}

static bool is_product(tern_op op) {
    return op == TERN_OP_GEMV || op == TERN_OP_GEMM;
}

/* tern_<op>[_<format or layout>][_<rows>x<tokens>]_<isa>, built from the kernel's own facts. */
static void expected_name(const tern_kernel_row *kernel, char *name, size_t size) {
    char format[32] = "";
    char tile[32] = "";
    if (is_product(kernel->op) && kernel->layout == TERN_LAYOUT_ROWS &&
        tern_format_layout(kernel->format) != TERN_LAYOUT_ROWS)
        snprintf(format, sizeof format, "_%s_rows", tern_format_describe(kernel->format)->name);
    else if (is_product(kernel->op) && kernel->layout != tern_format_layout(kernel->format))
        snprintf(format, sizeof format, "_%s", tern_layout_name(kernel->layout));
    else if (kernel->format != TERN_FORMAT_NONE)
        snprintf(format, sizeof format, "_%s", tern_format_describe(kernel->format)->name);
    if (is_product(kernel->op))
        snprintf(tile, sizeof tile, "_%ux%u", kernel->rows_tile, kernel->tokens_tile);
    snprintf(name, size, "tern_%s%s%s_%s", tern_op_name(kernel->op), format, tile, kernel->isa);
}

/* neoni8mm has kernels for gemm only, and not for all formats. */
static const char *for_pair(const char *isa, const pair *wanted) {
    const bool has_pairs =
        wanted->op == TERN_OP_GEMM && wanted->format != TERN_FORMAT_IQ2_S &&
        wanted->format != TERN_FORMAT_IQ2_XS && wanted->format != TERN_FORMAT_IQ1_M &&
        wanted->format != TERN_FORMAT_Q2_K && wanted->format != TERN_FORMAT_Q3_K &&
        wanted->format != TERN_FORMAT_Q6_K && wanted->format != TERN_FORMAT_STQ1_0 &&
        wanted->format != TERN_FORMAT_INT8 && wanted->format != TERN_FORMAT_INT4 &&
        wanted->format != TERN_FORMAT_NVFP4;
    return !has_pairs && strcmp(isa, "neoni8mm") == 0 ? "neondot" : isa;
}

/* Attention over codes multiplies pairs of 16-bit numbers, which VNNI can do and NEON cannot. */
static bool pairs_of_codes(const processor *p, const pair *wanted) {
    return wanted->op == TERN_OP_ATTEND && wanted->format == TERN_FORMAT_Q8_0 &&
           strstr(p->block, "vnni") != NULL;
}

/* Tiles are for integer products of many tokens, except for codes of one or two bits. */
static bool has_tiles(const processor *p, const pair *wanted) {
    const bool group = wanted->format >= TERN_FORMAT_Q1_0 && wanted->format <= TERN_FORMAT_STQ1_0;
    return !group && wanted->format != TERN_FORMAT_Q2_K && is_built("amx") &&
           (p->features & M(AMXINT8)) != 0 && wanted->op == TERN_OP_GEMM &&
           wanted->format > TERN_FORMAT_BF16;
}

/* Bits of codes are unpacked by GFNI and patterns are looked up by VBMI, as in the set of ternary
 * products. */
static bool takes_bits_apart(const pair *wanted) {
    return wanted->op == TERN_OP_GEMV &&
           (wanted->format == TERN_FORMAT_Q1_0 || wanted->format == TERN_FORMAT_STQ1_0);
}

static void check_chosen(const processor *p, const pair *wanted) {
    const bool ternary = is_product(wanted->op) && wanted->format == TERN_FORMAT_I2_S;
    const bool block = pairs_of_codes(p, wanted) ||
                       (is_product(wanted->op) && wanted->format > TERN_FORMAT_BF16 && !ternary);
    const bool strongest = ternary || takes_bits_apart(wanted);
    const char *without = built(for_pair(strongest ? p->ternary
                                         : block   ? p->block
                                                   : p->other,
                                         wanted));
    const char *isa = has_tiles(p, wanted) ? "amx" : without;
    const tern_kernel_row *kernel = tern_kernel_select(p->features, wanted->op, wanted->format);
    char name[128];
    check_case("%s: %s, format %d", p->name, tern_op_name(wanted->op), (int)wanted->format);
    if (kernel == NULL)
        check_fail("no kernel");
    expected_name(kernel, name, sizeof name);
    if (strcmp(kernel->isa, isa) != 0 || strcmp(kernel->name, name) != 0)
        check_fail("chose %s, must be %s for %s", kernel->name, name, isa);
    assert_int_equal(kernel->op, wanted->op);
    assert_int_equal(kernel->format, wanted->format);
    assert_true((kernel->needs & ~p->features) == 0);
    assert_true(kernel->fn.any != NULL);
    assert_ptr_equal(kernel, tern_kernel_select(p->features, wanted->op, wanted->format));
}

static void test_processors(void **state) {
    (void)state;
    for (size_t i = 0; i < PROCESSORS; i++)
        for (size_t k = 0; k < PAIRS; k++)
            check_chosen(&processors[i], &pairs[k]);
}

#define MASK_OF(name, bit, said, asked) | TERN_CPU_MASK(name)
#define EVERY_FEATURE (UINT64_C(0) TERN_CPU_LIST(MASK_OF))

/* Features that no kernel needs change nothing, and this machine's features are never assumed. */
static void test_foreign_features(void **state) {
    (void)state;
    for (size_t k = 0; k < PAIRS; k++) {
        const pair *p = &pairs[k];
        assert_ptr_equal(tern_kernel_select(UINT64_C(1) << 63, p->op, p->format),
                         tern_kernel_select(0, p->op, p->format));
        assert_ptr_equal(tern_kernel_select(EVERY_FEATURE, p->op, p->format),
                         tern_kernel_select(UINT64_MAX, p->op, p->format));
    }
    assert_null(tern_kernel_select(UINT64_MAX, TERN_OP_EMBED, TERN_FORMAT_I2_S));
    for (int op = TERN_OP_GEMV; op <= TERN_OP_GEMM; op++) /* formats share their layout's kernels */
        assert_ptr_equal(tern_kernel_select(UINT64_MAX, (tern_op)op, TERN_FORMAT_TQ1_0),
                         tern_kernel_select(UINT64_MAX, (tern_op)op, TERN_FORMAT_I2_S));
    for (int op = TERN_OP_GEMV; op <= TERN_OP_GEMM; op++)
        assert_ptr_equal(tern_kernel_select(UINT64_MAX, (tern_op)op, TERN_FORMAT_PTQ1_0),
                         tern_kernel_select(UINT64_MAX, (tern_op)op, TERN_FORMAT_PQ2_0));
    assert_null(tern_kernel_select(UINT64_MAX, TERN_OP_ADD, TERN_FORMAT_F32));
    assert_null(tern_kernel_select(UINT64_MAX, TERN_OP_GEMV, TERN_FORMAT_NONE));
    assert_null(tern_kernel_select(UINT64_MAX, TERN_OP_COUNT, TERN_FORMAT_F32));
}

/* ---- the table ---------------------------------------------------------------------------------
 */

static void test_every_row(void **state) {
    size_t count;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);
    (void)state;
    for (size_t i = 0; i < count; i++) {
        const tern_isa_info *isa = find_isa(kernels[i].isa);
        /* PTQ1_0 is packed as PQ2_0 and uses its kernels. Embeddings of grids are read by scalar C
         * on every processor. The last operations exist on devices only. */
        bool known =
            (kernels[i].op == TERN_OP_EMBED && tern_grid_of(kernels[i].format) != NULL) ||
            (kernels[i].layout == TERN_LAYOUT_ROWS && kernels[i].format == TERN_FORMAT_PTQ1_0) ||
            (kernels[i].op >= TERN_OP_WATCH && tern_device_of_row(&kernels[i]) != TERN_DEVICE_CPU);
        char name[128];
        check_case("%s", kernels[i].name);
        expected_name(&kernels[i], name, sizeof name);
        assert_string_equal(kernels[i].name, name);
        if (tern_device_of_row(&kernels[i]) == TERN_DEVICE_CPU) {
            assert_non_null(isa);
            assert_true(kernels[i].needs == isa->needs);
            assert_int_equal(kernels[i].fn.any != NULL, isa->built);
        } else { /* its code is in the device's module */
            assert_null(isa);
            assert_null(kernels[i].fn.any);
        }
        assert_ptr_equal(tern_kernel_find(kernels[i].name), &kernels[i]); /* names are unique */
        assert_non_null(tern_layout_name(kernels[i].layout));
        for (size_t k = 0; k < PAIRS; k++)
            known = known || (pairs[k].op == kernels[i].op && pairs[k].format == kernels[i].format);
        assert_true(known);
    }
    assert_null(tern_kernel_find("tern_gemv"));
    assert_null(tern_kernel_find(""));
}

static void test_scalar_rows(void **state) {
    (void)state;
    for (size_t k = 0; k < PAIRS; k++) {
        const tern_kernel_row *kernel = tern_kernel_select(0, pairs[k].op, pairs[k].format);
        check_case("%s, format %d", tern_op_name(pairs[k].op), (int)pairs[k].format);
        assert_non_null(kernel);
        assert_string_equal(kernel->isa, "scalar");
        assert_true(kernel->needs == 0);
    }
}

/* No kernel is hidden by one for the same weights that needs fewer features. */
static void test_preference_order(void **state) {
    size_t count, compared = 0;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);
    (void)state;
    for (size_t i = 0; i < count; i++)
        for (size_t later = i + 1; later < count; later++) {
            if (kernels[later].op != kernels[i].op || kernels[later].format != kernels[i].format ||
                kernels[later].layout != kernels[i].layout)
                continue;
            check_case("%s before %s", kernels[i].name, kernels[later].name);
            if ((kernels[i].needs & ~kernels[later].needs) == 0 &&
                kernels[i].needs != kernels[later].needs)
                check_fail("the second one can never be chosen");
            compared++;
        }
    assert_true(compared > 0);
}

static void no_code(void) {}

static void test_order_decides(void **state) {
    const tern_kernel_row table[] = {
        {.name = "not built", .op = TERN_OP_ADD, .format = TERN_FORMAT_NONE},
        {.name = "needs two",
         .op = TERN_OP_ADD,
         .format = TERN_FORMAT_NONE,
         .needs = 3,
         .fn = {.any = no_code}},
        {.name = "needs one",
         .op = TERN_OP_ADD,
         .format = TERN_FORMAT_NONE,
         .needs = 1,
         .fn = {.any = no_code}},
        {.name = "first", .op = TERN_OP_ADD, .format = TERN_FORMAT_NONE, .fn = {.any = no_code}},
        {.name = "second", .op = TERN_OP_ADD, .format = TERN_FORMAT_NONE, .fn = {.any = no_code}},
    };
    const tern_kernel_use add = {TERN_OP_ADD, TERN_FORMAT_NONE, TERN_LAYOUT_NONE};
    const tern_kernel_use softmax = {TERN_OP_SOFTMAX, TERN_FORMAT_NONE, TERN_LAYOUT_NONE};
    (void)state;
    static const struct {
        uint64_t mask;
        size_t row;
    } cases[] = {{0, 3}, {1, 2}, {2, 3}, {3, 1}, {7, 1}, {UINT64_MAX, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_ptr_equal(tern_select_kernel(table, 5, cases[i].mask, add), &table[cases[i].row]);
    assert_null(tern_select_kernel(table, 3, 0, add));
    assert_null(tern_select_kernel(table, 5, 0, softmax));
    assert_null(tern_select_kernel(NULL, 0, 0, add));
}

/* ---- instruction sets by name ------------------------------------------------------------------
 */

static void test_isa_of_mask(void **state) {
    size_t count;
    const tern_isa_info *isas = tern_isas(&count);
    (void)state;
    assert_string_equal(isas[0].name, "scalar");
    assert_true(isas[0].built && isas[0].needs == 0);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(tern_isa_of_mask(isas[i].needs),
                            isas[i].built ? isas[i].name : "scalar");
    for (size_t i = 0; i < PROCESSORS; i++) {
        check_case("%s", processors[i].name);
        const bool tiles = (processors[i].features & M(AMXINT8)) != 0 && is_built("amx");
        assert_string_equal(tern_isa_of_mask(processors[i].features),
                            tiles ? "amx" : built(processors[i].ternary));
    }
}

static void test_restrict(void **state) {
    size_t count;
    const tern_isa_info *isas = tern_isas(&count);
    (void)state;
    for (size_t i = 0; i < count; i++) {
        uint64_t mask = 99;
        tern_error err = {0};
        const tern_status status = tern_restrict_mask(ICE_LAKE, isas[i].name, &mask, &err);
        check_case("%s on Ice Lake", isas[i].name);
        if (isas[i].built && (isas[i].needs & ~ICE_LAKE) == 0) {
            assert_int_equal(status, TERN_OK);
            assert_true(mask == isas[i].needs);
        } else {
            assert_int_equal(status, TERN_ERR_ISA);
            assert_true(mask == 99);
        }
    }
}

/* Checks that an instruction set is refused with a message that contains all of the texts. */
static void check_refused(uint64_t features, const char *isa, const char *why, const char *valid) {
    uint64_t mask = 99;
    tern_error err = {0};
    check_case("%s on %#llx", isa, (unsigned long long)features);
    assert_int_equal(tern_restrict_mask(features, isa, &mask, &err), TERN_ERR_ISA);
    assert_int_equal(err.status, TERN_ERR_ISA);
    assert_true(mask == 99);
    if (strstr(err.message, isa) == NULL || strstr(err.message, why) == NULL ||
        strstr(err.message, valid) == NULL)
        check_fail("message is: %s", err.message);
}

static void test_restrict_refuses(void **state) {
    const bool x86 = find_isa("avx512vnni")->built;
    const char *absent = x86 ? "cannot be used on this processor" : "not in this build";
    (void)state;
    check_refused(0, "avx2", absent, "(valid: scalar)");
    check_refused(HASWELL, "avx512", absent, x86 ? "(valid: scalar, sse41, avx2)" : "scalar");
    check_refused(SKYLAKE_X, "avx512vnni", absent,
                  x86 ? "(valid: scalar, sse41, avx2, avx512)" : "scalar");
    check_refused(HASWELL, "sse9", "unknown", x86 ? "(valid: scalar, sse41, avx2)" : "scalar");
    check_refused(HASWELL, "AVX2", "unknown", "scalar");
    check_refused(HASWELL, "avx51", "unknown", "scalar"); /* a prefix is not a name */
    check_refused(0, "", "unknown", "(valid: scalar)");
}

static void test_environment(void **state) {
    const uint64_t features = tern_cpu_features();
    uint64_t mask = 99;
    tern_error err = {0};
    (void)state;
    unsetenv("TERN_ISA");
    assert_int_equal(tern_cpu_mask(NULL, NULL, &mask, NULL), TERN_OK);
    assert_true(mask == features);
    setenv("TERN_ISA", "", 1);
    assert_int_equal(tern_cpu_mask(NULL, NULL, &mask, NULL), TERN_OK);
    assert_true(mask == features);

    setenv("TERN_ISA", "scalar", 1);
    assert_int_equal(tern_cpu_mask(NULL, NULL, &mask, NULL), TERN_OK);
    assert_true(mask == 0);
    const char *best = tern_isa_of_mask(features);
    assert_int_equal(tern_cpu_mask(best, NULL, &mask, NULL), TERN_OK); /* the given name wins */
    assert_true(mask == find_isa(best)->needs);

    mask = 99;
    setenv("TERN_ISA", "mmx", 1);
    assert_int_equal(tern_cpu_mask(NULL, NULL, &mask, &err), TERN_ERR_ISA);
    assert_true(mask == 99);
    assert_non_null(strstr(err.message, "mmx"));
    assert_non_null(strstr(err.message, "scalar"));
    assert_int_equal(tern_cpu_mask("scalar", NULL, &mask, NULL), TERN_OK);
    assert_true(mask == 0);
    unsetenv("TERN_ISA");
}

static void test_this_machine(void **state) {
    (void)state;
    assert_true(tern_cpu_features() == tern_cpu_features());
    assert_true(strlen(tern_cpu_name()) > 0);
    assert_true(find_isa(tern_isa_of_mask(tern_cpu_features()))->built);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processors),       cmocka_unit_test(test_foreign_features),
        cmocka_unit_test(test_every_row),        cmocka_unit_test(test_scalar_rows),
        cmocka_unit_test(test_preference_order), cmocka_unit_test(test_order_decides),
        cmocka_unit_test(test_isa_of_mask),      cmocka_unit_test(test_restrict),
        cmocka_unit_test(test_restrict_refuses), cmocka_unit_test(test_environment),
        cmocka_unit_test(test_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
