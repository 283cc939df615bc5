/* SPDX-License-Identifier: Apache-2.0 */
/* When the meaning of I2_S codes is doubted: counts, thresholds from both sides, random errors. */

#include <math.h>
#include <string.h>

#include "runtime/files/gguf/code_shares.h"
#include "tests/support/check.h"
#include "tests/support/gguf_bytes.h"

static void expect(uint64_t n0, uint64_t n1, uint64_t n2, const char *looks_like) {
    const tern_code_shares s = {{n0, n1, n2, 0}};
    char text[TERN_DOUBT_BYTES] = "";
    check_case("%llu, %llu, %llu", (unsigned long long)n0, (unsigned long long)n1,
               (unsigned long long)n2);
    assert_int_equal(tern_code_shares_doubt(&s, text), looks_like != NULL);
    if (looks_like != NULL && strstr(text, looks_like) == NULL)
        check_fail("says: %s", text);
}

static void test_thresholds(void **state) {
    const uint64_t m = 1000000;
    (void)state;
    expect(34 * m, 31 * m, 34 * m, NULL);
    expect(20 * m, 60 * m, 20 * m, NULL);
    expect(31 * m, 34 * m, 34 * m, "--i2s-map 0,1,-1 (or with the signs turned, 0,-1,1)");
    expect(60 * m, 20 * m, 20 * m, "--i2s-map 0,1,-1 ");
    expect(34 * m, 34 * m, 31 * m, "--i2s-map 1,-1,0 (or with the signs turned, -1,1,0)");
    expect(33 * m, 33 * m, 33 * m, NULL);
    expect(0, 0, 0, NULL);
    expect(0, 100 * m, 0, NULL);
    /* Code 2: just below and just above 2 % between codes 0 and 2. */
    expect(10199 * m / 100, 100 * m - m, 9801 * m / 100, NULL);
    expect(10201 * m / 100, 9799 * m / 100, 9799 * m / 100, "0,1,-1");
    /* Code 3: counts of the signs that differ by 0.1, with zeros in the middle or near one of
     * them. */
    expect(110 * m, 100 * m, 90 * m, NULL);
    expect(110 * m, 94 * m, 90 * m, "0,1,-1");
    expect(110 * m, 95 * m, 90 * m, NULL);
    /* Code 1: too few codes. */
    expect(98303, 32768, 32768, NULL);
    expect(98304, 32768, 32768, "0,1,-1");
}

/* Small tensors are counted whole. Large ones are counted in four pages, which include their
 * beginning and end. */
static void test_counting(void **state) {
    const uint64_t cols = 256, rows[] = {8, 4096}, codes = cols * (rows[0] + rows[1]);
    (void)state;
    gguf_bytes b = {NULL, 0};
    tern_gguf *file = NULL;
    gguf_add_header(&b, 3, 3, 0);
    gguf_add_tensor(&b, "small", 36, cols, rows[0], 0);
    gguf_add_tensor(&b, "large", 36, cols, rows[1], 544);
    gguf_add_tensor(&b, "other", 24, 64, 1, 544 + 262176);
    gguf_align(&b, 32);
    const size_t data = b.size;
    gguf_add_zeros(&b, codes / 4 + 64 + 64);
    memset(b.data + data, 0xe4, 512);          /* 3 2 1 0 */
    memset(b.data + data + 544, 0x55, 262144); /* 1 */
    b.data[data + 544] = 0xaa;                 /* 2 */
    b.data[data + 544 + 262143] = 0xaa;
    memset(b.data + data + 544 + 262176, 0xff, 64);
    assert_int_equal(tern_gguf_parse(b.data, b.size, "t", &file, NULL), TERN_OK);
    const tern_code_shares s = tern_code_shares_count(file);
    assert_int_equal(s.n[0], 512);
    assert_int_equal(s.n[1], 512 + 65536 - 8);
    assert_int_equal(s.n[2], 512 + 8);
    assert_int_equal(s.n[3], 512);
    check_freed(tern_gguf_close, file);
    gguf_bytes_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_thresholds),
                                       cmocka_unit_test(test_counting)};
    return cmocka_run_group_tests_name("shares of I2_S codes", tests, NULL, NULL);
}
