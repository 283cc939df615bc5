/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Self-defence: instruction sets that fault or lie are not trusted, and rows whose bits differ from
 * the scalar kernel's are replaced and recorded.
 */

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/cpu.h"
#include "dispatch/proof.h"
#include "runtime/model/tune/guard.h"
#include "tests/kernels/matmul_case.h"

/* ---- instruction sets ---------------------------------------------------------------------- */

static bool sound(void) {
    return true;
}

static bool lies(void) {
    return false;
}

static bool faults(void) {
    raise(SIGILL); /* synchronous, as from a bad instruction */
    return true;
}

static uint64_t prove(uint64_t announced, bool (*middle)(void)) {
    const tern_isa_info isas[] = {
        {"scalar", "any", 0, true, sound},      {"weak", "any", 1, true, sound},
        {"middle", "any", 1 | 2, true, middle}, {"strong", "any", 1 | 2 | 4, true, sound},
        {"side", "any", 1 | 8, true, sound},    {"foreign", "other", 16, false, NULL}};
    return tern_prove_features(announced, isas, sizeof isas / sizeof *isas);
}

static void test_sound_sets_are_kept(void **state) {
    (void)state;
    assert_int_equal(prove(1 | 2 | 4 | 8 | 16 | 64, sound), 1 | 2 | 4 | 8 | 16 | 64);
    assert_int_equal(prove(1 | 8, faults), 1 | 8); /* not announced, so not executed */
    assert_int_equal(prove(0, faults), 0);
}

/* The features that a bad set adds are lost, and so is every set that needs them. Others stay. */
static void test_bad_sets_go(void **state) {
    (void)state;
    assert_int_equal(prove(1 | 2 | 4 | 8, faults), 1 | 4 | 8);
    assert_int_equal(prove(1 | 2 | 4 | 8, lies), 1 | 4 | 8);
}

static volatile sig_atomic_t seen;

static void count_signal(int number) {
    (void)number;
    seen = seen + 1;
}

static void test_handler_is_restored(void **state) {
    struct sigaction mine = {.sa_handler = count_signal}, old, now;

    (void)state;
    sigaction(SIGILL, &mine, &old);
    (void)prove(7, faults);
    sigaction(SIGILL, NULL, &now);
    assert_true(now.sa_handler == count_signal);
    seen = 0;
    raise(SIGILL);
    assert_int_equal(seen, 1);
    sigaction(SIGILL, &old, NULL);
}

static void test_this_machine(void **state) {
    const char *names[4];

    (void)state;
    assert_int_equal(tern_cpu_features() & ~tern_cpu_announced(), 0);
    if (tern_cpu_features() == tern_cpu_announced())
        assert_int_equal(tern_cpu_refused(names, 4), 0);
}

/* ---- disabling ----------------------------------------------------------------------------- */

static void test_disable(void **state) {
    uint64_t mask = 99;
    tern_error err = {0};

    (void)state;
    assert_int_equal(tern_disable_isas(5, "", &mask, &err), TERN_OK);
    assert_int_equal(mask, 5);
    const uint64_t avx2 = TERN_CPU_MASK(AVX2), vnni = TERN_CPU_MASK(AVX512VNNI);
    assert_int_equal(tern_disable_isas(UINT64_MAX, "avx2", &mask, &err), TERN_OK);
    assert_int_equal(mask & avx2, 0);
    assert_int_equal(mask & vnni, vnni);
    assert_int_equal(tern_disable_isas(UINT64_MAX, "avx512vnni,avx2", &mask, &err), TERN_OK);
    assert_int_equal(mask & (avx2 | vnni), 0);
    mask = 99;
    assert_int_equal(tern_disable_isas(5, "avx2,sse9", &mask, &err), TERN_ERR_ISA);
    assert_non_null(strstr(err.message, "'sse9'"));
    assert_int_equal(tern_disable_isas(5, "scalar", &mask, &err), TERN_ERR_ISA);
    assert_int_equal(tern_disable_isas(5, "avx51", &mask, &err), TERN_ERR_ISA);
    assert_int_equal(tern_disable_isas(5, ",avx2", &mask, &err), TERN_ERR_ISA);
    assert_int_equal(mask, 99);
}

static void test_disable_by_environment(void **state) {
    uint64_t mask;
    tern_error err = {0};

    (void)state;
    setenv("TERN_DISABLE", "avx2,neon", 1);
    assert_int_equal(tern_cpu_mask(NULL, NULL, &mask, &err), TERN_OK);
    assert_int_equal(mask & (TERN_CPU_MASK(AVX2) | TERN_CPU_MASK(NEON)), 0);
    assert_int_equal(tern_cpu_mask("avx2", NULL, &mask, &err), TERN_ERR_ISA);
    assert_int_equal(tern_cpu_mask("scalar", NULL, &mask, &err), TERN_OK);
    assert_int_equal(tern_cpu_mask(NULL, "", &mask, &err), TERN_OK); /* an argument wins */
    assert_true(mask == tern_cpu_features());
    unsetenv("TERN_DISABLE");
}

/* ---- rows ---------------------------------------------------------------------------------- */

static const tern_kernel_row *scalar_gemv;
static unsigned calls;

/* A wrong last bit in one output, as from a miscompiled tail. */
static void nearly_right(const tern_matrix *w, const tern_activations *x, const tern_tile *tile,
                         float *y, size_t y_stride) {
    uint32_t bits;

    scalar_gemv->fn.matmul(w, x, tile, y, y_stride);
    memcpy(&bits, y + tile->r1 - 1, sizeof bits);
    bits ^= 1;
    memcpy(y + tile->r1 - 1, &bits, sizeof bits);
    calls++;
}

static void right(const tern_matrix *w, const tern_activations *x, const tern_tile *tile, float *y,
                  size_t y_stride) {
    scalar_gemv->fn.matmul(w, x, tile, y, y_stride);
    calls++;
}

static void unused_add(float *x, const float *y, size_t n) {
    for (size_t i = 0; i < n; i++)
        x[i] += i == n - 1 ? 0.0f : y[i]; /* forgets the tail */
}

static tern_kernel_row row_like(const tern_kernel_row *scalar, const char *name) {
    tern_kernel_row kernel = *scalar;
    kernel.name = name;
    kernel.needs = 1;
    return kernel;
}

static void test_wrong_product(void **state) {
    check_rng rng = {3};
    (void)state;
    for (int f = 0; f < TERN_FORMAT_COUNT; f++) {
        const tern_format format = (tern_format)f;
        if (tern_format_layout(format) == TERN_LAYOUT_NONE)
            continue;
        matmul_case c = case_new(format, 24, 256, 1, CASE_RANDOM, CHECK_END, &rng);
        scalar_gemv = tern_kernel_select(0, TERN_OP_GEMV, format);
        tern_kernel_row table[] = {row_like(scalar_gemv, "wrong"), row_like(scalar_gemv, "right"),
                                   *scalar_gemv};
        table[0].fn.matmul = nearly_right;
        table[1].fn.matmul = right;
        tern_guard guard = {.table = table, .count = 3, .mask = 1};
        calls = 0;
        for (int again = 0; again < 3; again++) /* found out once, then remembered */
            assert_ptr_equal(
                tern_guard_product(&guard, TERN_OP_GEMV, &c.matrix, NULL, "blk.0.attn_q"),
                &table[1]);
        assert_int_equal(calls, 2);
        assert_int_equal(guard.n_refused, 1);
        assert_ptr_equal(guard.refused[0].row, &table[0]);
        assert_string_equal(guard.refused[0].where, "blk.0.attn_q");
        const tern_kernel_use use = {TERN_OP_GEMV, format, c.matrix.layout};
        assert_ptr_equal(tern_guard_select(&guard, use), &table[1]);
        case_free(&c);
    }
}

static void test_wrong_operation(void **state) {
    const tern_kernel_row *scalar = tern_kernel_select(0, TERN_OP_ADD, TERN_FORMAT_NONE);
    tern_kernel_row table[] = {row_like(scalar, "wrong"), *scalar};
    (void)state;
    table[0].fn.add = unused_add;
    tern_guard guard = {.table = table, .count = 2, .mask = 1};
    assert_ptr_equal(tern_guard_operation(&guard, TERN_OP_ADD, TERN_FORMAT_NONE, NULL, 0),
                     &table[1]);
    assert_int_equal(guard.n_refused, 1);
    assert_string_equal(guard.refused[0].where, "add");
    guard.mask = 0;
    assert_null(tern_guard_operation(&guard, TERN_OP_SOFTMAX, TERN_FORMAT_NONE, NULL, 0));
}

/* If the guard cannot test an operation, it trusts no kernel but the scalar one. */
static void test_unknown_operation(void **state) {
    tern_kernel_row scalar = *tern_kernel_select(0, TERN_OP_ADD, TERN_FORMAT_NONE);
    scalar.op = TERN_OP_COUNT;
    tern_kernel_row table[] = {row_like(&scalar, "untried"), scalar};
    (void)state;
    tern_guard guard = {.table = table, .count = 2, .mask = 1};
    assert_ptr_equal(tern_guard_operation(&guard, TERN_OP_COUNT, TERN_FORMAT_NONE, NULL, 0),
                     &table[1]);
    assert_int_equal(guard.n_refused, 1);
}

static tern_attend_functions scalar_attend;

/* Leaves out the last position. */
static void short_chunks(const tern_attend_args *args, size_t first, size_t last, void *states,
                         size_t stride) {
    tern_attend_args fewer = *args;
    fewer.heads.positions--;
    scalar_attend.chunks(&fewer, first, last, states, stride);
}

/* Reads each chunk where it would be without a table of pages. */
static void pageless_chunks(const tern_attend_args *args, size_t first, size_t last, void *states,
                            size_t stride) {
    tern_attend_args pageless = *args;
    pageless.pages = NULL;
    scalar_attend.chunks(&pageless, first, last, states, stride);
}

/* Leaves out the last chunk. */
static void short_merge(const tern_attend_heads *heads, size_t first, size_t last,
                        const void *states, size_t stride, void *total) {
    scalar_attend.merge(heads, first, last - 1, states, stride, total);
}

/* Leaves out the last head. */
static void short_finish(const tern_attend_heads *heads, const void *total, float *out,
                         size_t out_stride) {
    tern_attend_heads fewer = *heads;
    fewer.group--;
    scalar_attend.finish(&fewer, total, out, out_stride);
}

static const tern_format caches[] = {TERN_FORMAT_F32, TERN_FORMAT_F16, TERN_FORMAT_Q8_0};
enum { CACHES = sizeof caches / sizeof *caches };

/* The guard notices a missing position of 67, a wrong page, and a wrong function of the three. */
static void test_wrong_attend(void **state) {
    (void)state;
    for (size_t i = 0; i < CACHES; i++) {
        const tern_kernel_row *scalar = tern_kernel_select(0, TERN_OP_ATTEND, caches[i]);
        const tern_attend_functions right = scalar->fn.attend;
        const tern_attend_functions wrong[] = {{short_chunks, right.merge, right.finish},
                                               {pageless_chunks, right.merge, right.finish},
                                               {right.chunks, short_merge, right.finish},
                                               {right.chunks, right.merge, short_finish}};
        scalar_attend = right;
        for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
            tern_kernel_row table[] = {row_like(scalar, "wrong"), *scalar};
            table[0].fn.attend = wrong[w];
            tern_guard guard = {.table = table, .count = 2, .mask = 1};
            assert_ptr_equal(tern_guard_operation(&guard, TERN_OP_ATTEND, caches[i], NULL, 0),
                             &table[1]);
            assert_int_equal(guard.n_refused, 1);
        }
    }
}

/* No row is accepted if there are more wrong rows than the record can hold. */
static void test_record_full(void **state) {
    const tern_kernel_row *scalar = tern_kernel_select(0, TERN_OP_ADD, TERN_FORMAT_NONE);
    tern_kernel_row table[TERN_GUARD_REFUSALS + 2];
    (void)state;
    for (size_t i = 0; i < TERN_GUARD_REFUSALS + 1; i++) {
        table[i] = row_like(scalar, "wrong");
        table[i].fn.add = unused_add;
    }
    table[TERN_GUARD_REFUSALS + 1] = *scalar;
    tern_guard guard = {.table = table, .count = TERN_GUARD_REFUSALS + 2, .mask = 1};
    assert_null(tern_guard_operation(&guard, TERN_OP_ADD, TERN_FORMAT_NONE, NULL, 0));
    assert_int_equal(guard.n_refused, TERN_GUARD_REFUSALS);
}

/* When the guard cannot remember more kernels, it checks each one again, and uses it. */
static void test_no_room_to_remember(void **state) {
    check_rng rng = {6};
    (void)state;
    tern_guard guard = tern_guard_new(tern_cpu_features());
    guard.n_sound = TERN_GUARD_ROWS;
    matmul_case c = case_new(TERN_FORMAT_Q8_0, 40, 512, 1, CASE_RANDOM, CHECK_END, &rng);
    assert_non_null(tern_guard_product(&guard, TERN_OP_GEMV, &c.matrix, NULL, "w"));
    case_free(&c);
    assert_non_null(tern_guard_operation(&guard, TERN_OP_ADD, TERN_FORMAT_NONE, NULL, 0));
    assert_int_equal(guard.n_sound, TERN_GUARD_ROWS);
    assert_int_equal(guard.n_refused, 0);
}

/* A kernel that passed is remembered, be it the first or a later one: its next uses check nothing. */
static void test_remembered(void **state) {
    static const tern_op ops[] = {TERN_OP_ADD, TERN_OP_RMSNORM, TERN_OP_ROPE_NORM};
    tern_guard guard = tern_guard_new(tern_cpu_features());
    (void)state;
    size_t tested = 0; /* those of the scalar set are what others are compared with */
    for (size_t use = 0; use < 2; use++)
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
            const tern_kernel_row *row =
                tern_guard_operation(&guard, ops[i], TERN_FORMAT_NONE, NULL, 0);
            assert_non_null(row);
            tested += use == 0 && strcmp(row->isa, "scalar") != 0;
        }
    assert_int_equal(guard.n_sound, tested);
}

/* Every row that runs here passes, on weights of every format. */
static void test_real_rows(void **state) {
    check_rng rng = {4};
    (void)state;
    tern_guard guard = tern_guard_new(tern_cpu_features());
    for (int f = 0; f < TERN_FORMAT_COUNT; f++) {
        const tern_format format = (tern_format)f;
        if (tern_format_layout(format) == TERN_LAYOUT_NONE)
            continue;
        matmul_case c = case_new(format, 40, 512, 1, CASE_RANDOM, CHECK_END, &rng);
        assert_non_null(tern_guard_product(&guard, TERN_OP_GEMV, &c.matrix, NULL, "w"));
        assert_non_null(tern_guard_product(&guard, TERN_OP_GEMM, &c.matrix, NULL, "w"));
        case_free(&c);
    }
    for (int op = TERN_OP_GEMM + 1; op < TERN_OP_COUNT; op++)
        if (op != TERN_OP_EMBED)
            (void)tern_guard_operation(&guard, (tern_op)op, TERN_FORMAT_NONE, NULL, 0);
    for (size_t i = 0; i < CACHES; i++) {
        assert_non_null(tern_guard_operation(&guard, TERN_OP_STORE, caches[i], NULL, 0));
        assert_non_null(tern_guard_operation(&guard, TERN_OP_ATTEND, caches[i], NULL, 0));
    }
    assert_non_null(tern_guard_operation(&guard, TERN_OP_GEMV_SPARSE, TERN_FORMAT_F32, NULL, 0));
    assert_int_equal(guard.n_refused, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound_sets_are_kept),
        cmocka_unit_test(test_bad_sets_go),
        cmocka_unit_test(test_handler_is_restored),
        cmocka_unit_test(test_this_machine),
        cmocka_unit_test(test_disable),
        cmocka_unit_test(test_disable_by_environment),
        cmocka_unit_test(test_wrong_product),
        cmocka_unit_test(test_wrong_operation),
        cmocka_unit_test(test_unknown_operation),
        cmocka_unit_test(test_wrong_attend),
        cmocka_unit_test(test_record_full),
        cmocka_unit_test(test_real_rows),
        cmocka_unit_test(test_no_room_to_remember),
        cmocka_unit_test(test_remembered),
    };
    return cmocka_run_group_tests_name("self-defence", tests, NULL, NULL);
}
