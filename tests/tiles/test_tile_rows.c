/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiles: who may use them, from how many tokens on every AMX kernel uses them
 * (kernels/tile_tokens.h), and that no thread keeps them open. kernels_matmul_amx compares the
 * results.
 */
#include <stdlib.h>
#include <string.h>

#include "dispatch/cpu.h"
#include "dispatch/permission.h"
#include "dispatch/select.h"
#include "kernels/tile_tokens.h"
#include "tests/kernels/matmul_case.h"
#include "tests/kernels/table.h"
#include "tests/tiles/emulator.h"

#define M(name) TERN_CPU_MASK(name)
#define AMX (M(AMXTILE) | M(AMXINT8))

enum { TILE_TOKENS = 16 }; /* a tile has a row per token */

static void permission_is_asked_for(void **state) {
    const uint64_t others = M(SSE41) | M(AVX2) | M(AVX512F);
    const uint64_t before = tile_requests();

    (void)state;
    assert_true(tern_permitted_features(others) == others);
    assert_int_equal(tile_requests(), before); /* no request without AMX */
    assert_true(tern_permitted_features(others | AMX) == (others | AMX));
    assert_int_equal(tile_requests(), before + 1);
    assert_int_equal(tern_refused_features(), 0);
}

static void permission_may_be_refused(void **state) {
    const uint64_t others = M(SSE41) | M(AVX2) | M(AVX512F);

    (void)state;
    setenv("PRETEND_TILES", "refused", 1);
    assert_true(tern_permitted_features(others | AMX) == others);
    assert_true(tern_permitted_features(others | M(AMXTILE)) == others);
    assert_true(tern_permitted_features(others) == others);
    assert_true(tern_refused_features() == AMX);
    unsetenv("PRETEND_TILES");
}

static bool is_amx(const tern_kernel_row *kernel) {
    return strcmp(kernel->isa, "amx") == 0;
}

/* Number of tile multiplications of a kernel with so many tokens. */
static uint64_t tiles_of(const tern_kernel_row *kernel, size_t rows, size_t tokens) {
    const case_shape shape = {rows, 512, tokens};
    check_rng rng = {tokens};
    matmul_case c =
        case_new_layout(kernel->format, kernel->layout, &shape, CASE_RANDOM, CHECK_END, &rng);
    const uint64_t before = tile_multiplications();

    check_case("%s, %zu x 512, %zu tokens", kernel->name, rows, tokens);
    case_check_tile(&c, kernel->fn.matmul, (tern_tile){0, tokens, 0, rows}, CHECK_END);
    assert_false(tile_open());
    case_free(&c);
    return tile_multiplications() - before;
}

/* True if each half of a block has a scale of its own, and so is multiplied separately. */
static bool has_halves(const tern_kernel_row *kernel) {
    return kernel->format == TERN_FORMAT_Q6_K || kernel->format == TERN_FORMAT_Q3_K ||
           kernel->format == TERN_FORMAT_IQ2_S || kernel->format == TERN_FORMAT_IQ2_XS ||
           kernel->format == TERN_FORMAT_IQ1_M || kernel->format == TERN_FORMAT_NVFP4;
}

/* 512 columns are 8 tiles of ternary codes, or 16 blocks, or 32 halves of blocks. */
static size_t steps_of(const tern_kernel_row *kernel) {
    if (kernel->format == TERN_FORMAT_I2_S)
        return 8;
    return has_halves(kernel) ? 32 : 16;
}

static size_t least_tokens(const tern_kernel_row *kernel) {
    if (kernel->format == TERN_FORMAT_I2_S)
        return TERN_TILE_TOKENS_TERNARY;
    return has_halves(kernel) ? TERN_TILE_TOKENS_HALVES : TERN_TILE_TOKENS_BLOCK;
}

/*
 * The expected number of tile multiplications. Ternary kernels go by pairs of groups, and use tiles
 * for all tokens when there are enough of them. Other kernels use tiles for the last tokens only if
 * these fill enough of a tile.
 */
static size_t expected_tiles(const tern_kernel_row *kernel, size_t rows, size_t tokens) {
    const size_t least = least_tokens(kernel), whole = tokens / TILE_TOKENS,
                 rest = tokens % TILE_TOKENS;

    if (kernel->format == TERN_FORMAT_I2_S)
        return tokens < least ? 0 : (whole + (rest > 0)) * (rows / 32 * 2) * steps_of(kernel);
    return (whole + (rest >= least)) * (rows / 16) * steps_of(kernel);
}

/* True if this processor has all that kernels of the set need, tiles among it, real or emulated. */
static bool has_set_of_tiles(void) {
    size_t count;
    const tern_isa_info *isas = tern_isas(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(isas[i].name, "amx") == 0)
            return (isas[i].needs & ~tern_cpu_features()) == 0;
    return false;
}

static void rows_use_tiles(void **state) {
    size_t count, found = 0;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);

    (void)state;
    if (!has_set_of_tiles())
        check_skip("this processor has neither AMX nor AVX-512 VBMI");
    if (!tile_emulated())
        check_skip("this processor has tiles: nothing counts them");
    for (size_t i = 0; i < count; i++) {
        if (!is_amx(&kernels[i]))
            continue;
        const size_t least = least_tokens(&kernels[i]);
        const size_t tokens[] = {1, least - 1, least, 16, 16 + least - 1, 16 + least, 33, 48};
        found++;
        for (size_t t = 0; t < sizeof tokens / sizeof *tokens; t++)
            for (size_t r = 16; r <= 48; r += 16)
                assert_int_equal(tiles_of(&kernels[i], r, tokens[t]),
                                 expected_tiles(&kernels[i], r, tokens[t]));
    }
    assert_true(found > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(permission_is_asked_for),
                                       cmocka_unit_test(permission_may_be_refused),
                                       cmocka_unit_test(rows_use_tiles)};
    return cmocka_run_group_tests_name("tiles", tests, NULL, NULL);
}
