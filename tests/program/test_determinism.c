/* SPDX-License-Identifier: Apache-2.0 */
/* Records of runs: copied and hashed completely; the first difference is found and named. */

#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

#include "base/sha256.h"
#include "tools/cli/output.h"
#include "tools/commands/determinism.h"

enum { TOKENS = 12 };

/* The results of `bitnet-tiny` for twelve tokens. */
static record record_of(tern_model *model) {
    record r = {0};
    int32_t tokens[TOKENS];
    tern_session *s = tiny_session(
        model, (tern_session_params){.n_ctx = TOKENS, .threads = 1, .kv = TERN_FORMAT_F16});
    assert_true(record_new(model, TERN_FORMAT_F16, TOKENS, &r));
    float *logits = record_logits_buffer(&r);
    tiny_prompt(model, 5, tokens, TOKENS);
    assert_int_equal(tern_session_eval(s, tokens, TOKENS, TERN_LOGITS_ALL, logits, NULL), TERN_OK);
    memcpy(r.logits, logits, (size_t)TOKENS * r.n_vocab * sizeof *logits);
    record_cache(&r, s);
    free(logits);
    tern_session_free(&s);
    return r;
}

static void expect(const record *a, const record *b, record_difference want, const char *words) {
    const record_difference d = record_compare(a, b);
    char text[256], hashes[2][65];
    assert_int_equal(d.part, want.part);
    assert_int_equal(d.layer, want.layer);
    assert_int_equal(d.head, want.head);
    assert_int_equal(d.position, want.position);
    assert_int_equal(d.index, want.index);
    record_describe(a, &d, text, sizeof text);
    if (strstr(text, words) == NULL)
        check_fail("'%s' does not say '%s'", text, words);
    record_hash(a, hashes[0]);
    record_hash(b, hashes[1]);
    assert_int_equal(strcmp(hashes[0], hashes[1]) == 0, want.part == RECORD_SAME);
}

static uint8_t *row(const record *r, size_t layer, size_t value, size_t head, size_t position) {
    return r->cache +
           (((layer * 2 + value) * r->heads + head) * r->positions + position) * r->row_bytes;
}

/* Changes go from the last computed thing to the first, and each is found in turn. */
static void test_first_difference(void **state) {
    (void)state;
    tern_model *model = tiny_open("bitnet-tiny", NULL);
    record a = record_of(model), b = record_of(model);
    expect(&a, &b, (record_difference){.part = RECORD_SAME}, "same");
    b.logits[(size_t)11 * b.n_vocab + 514] += 1.0f;
    expect(&a, &b, (record_difference){.part = RECORD_LOGITS, .position = 11, .index = 514},
           "logit of token 514 at position 11");
    b.logits[3] = -b.logits[3];
    expect(&a, &b, (record_difference){.part = RECORD_LOGITS, .index = 3}, "layer 1 after");
    row(&b, 1, 1, 1, 11)[b.row_bytes - 1] ^= 1;
    expect(&a, &b,
           (record_difference){.part = RECORD_VALUES, .layer = 1, .head = 1, .position = 11},
           "attn_v");
    row(&b, 1, 0, 0, 4)[0] ^= 0x80;
    expect(&a, &b, (record_difference){.part = RECORD_KEYS, .layer = 1, .position = 4},
           "the layer before");
    row(&b, 0, 0, 1, 7)[5] ^= 4;
    expect(&a, &b, (record_difference){.part = RECORD_KEYS, .head = 1, .position = 7},
           "the embedding");
    record_free(&a);
    record_free(&b);
    tern_model_free(&model);
}

/* -0 and 0 compare equal, but are not the same. */
static void test_bits(void **state) {
    (void)state;
    tern_model *model = tiny_open("bitnet-tiny", NULL);
    record a = record_of(model), b = record_of(model);
    a.logits[0] = 0.0f;
    b.logits[0] = -0.0f;
    expect(&a, &b, (record_difference){.part = RECORD_LOGITS}, "token 0 at position 0");
    record_free(&a);
    record_free(&b);
    tern_model_free(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_difference),
        cmocka_unit_test(test_bits),
    };
    return cmocka_run_group_tests_name("records of runs", tests, NULL, NULL);
}
