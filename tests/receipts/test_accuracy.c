/* SPDX-License-Identifier: Apache-2.0 */
/* The accuracy that receipts state: of the model's own kernels, with one token and with several. */

#include <string.h>

#include "receipts/accuracy.h"
#include "runtime/model/model.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

/* A product that computes nothing. */
static void leave(const tern_matrix *w, const tern_activations *x, const tern_tile *tile, float *y,
                  size_t y_stride) {
    (void)w;
    (void)x;
    for (size_t t = tile->t0; t < tile->t1; t++)
        memset(y + t * y_stride + tile->r0, 0, (tile->r1 - tile->r0) * sizeof *y);
}

/* True if all formats pass. */
static bool passes(const tern_model *model) {
    accuracy all[ACCURACY_MAX];
    size_t n = 0;
    bool passed = true;
    assert_int_equal(accuracy_measure(model, all, &n, NULL), TERN_OK);
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++)
        passed = passed && all[i].passed;
    return passed;
}

/* In every format, a kernel that does nothing is noticed, whether it is gemv or gemm. */
static void test_both_products(void **state) {
    static const char *const presets[] = {"bitnet-tiny", "llama-tiny-q4_0", "llama-tiny-f16"};
    (void)state;
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        tern_model *model = tiny_open(presets[i], NULL);
        tern_linear *first = &model->layers[0].q;
        const tern_linear sound = *first;
        tern_kernel_row gemv = *sound.gemv, gemm = *sound.gemm;
        gemv.fn.matmul = gemm.fn.matmul = leave;
        check_case("%s", presets[i]);
        assert_true(passes(model));
        first->gemv = &gemv;
        assert_false(passes(model));
        *first = sound;
        first->gemm = &gemm;
        assert_false(passes(model));
        *first = sound;
        tern_model_free(&model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_both_products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
