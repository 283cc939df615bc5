/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas: zeroed, aligned pieces that do not overlap; refusals that change nothing; overflow. */
#include <string.h>

#include "base/arena.h"
#include "tern/kernels.h"
#include "tests/support/check.h"

static const size_t ALIGN = TERN_ALIGN;

static tern_arena arena_new(size_t size) {
    tern_arena arena;
    assert_int_equal(tern_arena_new(size, size % 2 == 0, &arena, NULL), TERN_OK);
    assert_int_equal(arena.size, size);
    assert_int_equal(arena.used, 0);
    return arena;
}

static void test_pieces(void **state) {
    static const size_t sizes[] = {1, 63, 64, 65, 0, 128, 7};
    uint8_t *last = NULL;
    tern_arena arena = arena_new(4096);
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *piece = NULL;
        check_case("piece of %zu", sizes[i]);
        assert_int_equal(tern_arena_take(&arena, sizes[i], 1, &piece, NULL), TERN_OK);
        assert_int_equal((uintptr_t)piece % ALIGN, 0);
        assert_true(last == NULL || (uint8_t *)piece >= last);
        for (size_t b = 0; b < sizes[i]; b++)
            assert_int_equal(((uint8_t *)piece)[b], 0);
        memset(piece, 0xff, sizes[i]); /* an overlap would show as a nonzero byte */
        last = (uint8_t *)piece + sizes[i];
    }
    assert_int_equal(arena.used, 64 + 64 + 64 + 128 + 0 + 128 + 64);
    tern_arena_free(&arena);
    assert_null(arena.base);
    assert_int_equal(arena.size, 0);
}

/* The sum from reserve is exactly what take uses. */
static void test_reserve_is_enough(void **state) {
    static const size_t counts[] = {3, 1, 1000, 17, 0};
    size_t total = 0;
    void *piece;
    (void)state;
    for (size_t i = 0; i < 5; i++)
        assert_true(tern_arena_reserve(&total, counts[i], sizeof(double)));
    tern_arena arena = arena_new(total);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(tern_arena_take(&arena, counts[i], sizeof(double), &piece, NULL), TERN_OK);
    assert_int_equal(arena.used, total);
    assert_int_equal(tern_arena_take(&arena, 1, 1, &piece, NULL), TERN_ERR_ARENA);
    tern_arena_free(&arena);
}

static void check_refused(tern_arena *arena, size_t count, size_t size) {
    tern_error err = {0};
    const size_t used = arena->used;
    void *piece = &err;
    check_case("take %zu x %zu of %zu", count, size, arena->size);
    assert_int_equal(tern_arena_take(arena, count, size, &piece, &err), TERN_ERR_ARENA);
    assert_int_equal(err.status, TERN_ERR_ARENA);
    assert_non_null(strstr(err.message, "exhausted"));
    assert_int_equal(arena->used, used);
    assert_ptr_equal(piece, &err);
}

static void test_exhausted(void **state) {
    tern_arena arena = arena_new(192);
    void *piece;
    (void)state;
    assert_int_equal(tern_arena_take(&arena, 1, 1, &piece, NULL), TERN_OK);
    check_refused(&arena, 129, 1);
    check_refused(&arena, 3, 64);
    assert_int_equal(tern_arena_take(&arena, 2, 64, &piece, NULL), TERN_OK); /* the whole rest */
    check_refused(&arena, 1, 1);
    assert_int_equal(tern_arena_take(&arena, 0, 1, &piece, NULL), TERN_OK);
    tern_arena_free(&arena);
}

static void test_overflow(void **state) {
    size_t total = 5;
    tern_arena arena = arena_new(4096);
    (void)state;
    check_refused(&arena, SIZE_MAX, 2);
    check_refused(&arena, SIZE_MAX / 2 + 1, 2);
    check_refused(&arena, SIZE_MAX, 1); /* the product fits, but rounding it up overflows */
    check_refused(&arena, 1, SIZE_MAX - 62);
    tern_arena_free(&arena);

    assert_false(tern_arena_reserve(&total, SIZE_MAX, 2));
    assert_false(tern_arena_reserve(&total, SIZE_MAX - 3, 1));
    assert_int_equal(total, 5);
    total = SIZE_MAX - 100;
    assert_false(tern_arena_reserve(&total, 2, 64));
}

static void test_empty_and_impossible(void **state) {
    tern_error err = {0};
    tern_arena arena = arena_new(0);
    (void)state;
    assert_null(arena.base);
    check_refused(&arena, 1, 1);
    tern_arena_free(&arena);
    tern_arena_free(&arena); /* freeing twice is fine */

    tern_arena untouched = {.used = 7};
    assert_int_equal(tern_arena_new(SIZE_MAX - 4096, false, &untouched, &err), TERN_ERR_NOMEM);
    assert_non_null(strstr(err.message, "18446744073709547519"));
    assert_int_equal(untouched.used, 7);
}

static void test_large(void **state) {
    enum { BYTES = 5 << 20 }; /* large enough to ask for huge pages */
    tern_arena arena = arena_new(BYTES);
    void *piece;
    (void)state;
    assert_int_equal(tern_arena_take(&arena, BYTES, 1, &piece, NULL), TERN_OK);
    memset(piece, 1, BYTES);
    tern_arena_free(&arena);
}

/* Memory is only reserved; pages or huge pages appear when it is written. */
static void test_pages_come_when_written(void **state) {
    enum { BYTES = 64 << 20, HUGE_BYTES = 2 << 20 };
    void *piece;
    (void)state;
    for (int huge = 0; huge <= 1; huge++) {
        tern_arena arena;
        check_case("%s", huge ? "huge pages" : "pages");
        assert_int_equal(tern_arena_new(BYTES, huge, &arena, NULL), TERN_OK);
        assert_int_equal(check_resident(arena.base, BYTES), 0);
        assert_int_equal(tern_arena_take(&arena, BYTES, 1, &piece, NULL), TERN_OK);
        assert_int_equal(check_resident(arena.base, BYTES), 0);
        ((uint8_t *)piece)[BYTES / 2] = 1;
        const size_t resident = check_resident(arena.base, BYTES);
        assert_true(resident > 0 && resident <= HUGE_BYTES);
        tern_arena_free(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_reserve_is_enough),
        cmocka_unit_test(test_exhausted),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_empty_and_impossible),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_pages_come_when_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
