/* SPDX-License-Identifier: Apache-2.0 */
/* The table of architectures: each is found by its name alone, and its form with norms of inputs,
 * whose keys begin with the name, is the same otherwise. */
#include <string.h>

#include "runtime/files/arch/arch.h"
#include "tests/support/check.h"

static void check_normed(const tern_arch *arch) {
    const tern_arch *normed = arch->normed;
    if (normed == NULL)
        return;
    assert_string_equal(normed->name, arch->name);
    assert_null(normed->normed);
    assert_int_equal(normed->has, arch->has | TERN_HAS_INPUT_NORMS);
    assert_int_equal(normed->gate, arch->gate);
    assert_int_equal(normed->rope, arch->rope);
    assert_int_equal(normed->embedding_head, arch->embedding_head);
    assert_int_equal(normed->scaled_embedding, arch->scaled_embedding);
    assert_int_equal(normed->may_window, arch->may_window);
    assert_true(normed->defaults == arch->defaults && normed->second == arch->second);
}

static void test_names(void **state) {
    size_t n, n_normed = 0;
    const tern_arch *archs = tern_archs(&n);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        const char *name = archs[i].name;
        check_case("%s", name);
        assert_ptr_equal(tern_arch_find((tern_span){name, strlen(name)}), &archs[i]);
        const tern_arch *shorter = tern_arch_find((tern_span){name, strlen(name) - 1});
        assert_true(shorter == NULL || strlen(shorter->name) == strlen(name) - 1); /* of qwen35 */
        check_normed(&archs[i]);
        n_normed += archs[i].normed != NULL;
    }
    assert_in_range(n_normed, 2, n);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
