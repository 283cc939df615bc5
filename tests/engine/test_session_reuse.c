/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a sequence that a session holds is kept, the rest is computed, and the bits are the
 * same. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

enum { CONTEXT = 40, ROUNDS = 60 };

typedef struct fixture {
    tern_model *model;
    size_t n_vocab;
    tern_session *session, *fresh;
} fixture;

static fixture shared;

static int open_models(void **state) {
    tern_model_info info;
    shared.model = tiny_open("qwen3-tiny", NULL);
    tern_model_describe(shared.model, &info);
    shared.n_vocab = info.n_vocab;
    const tern_session_params params = {
        .n_ctx = CONTEXT, .n_batch = 7, .threads = 2, .kv = TERN_FORMAT_F16};
    shared.session = tiny_session(shared.model, params);
    shared.fresh = tiny_session(shared.model, params);
    *state = &shared;
    return 0;
}

static int close_models(void **state) {
    (void)state;
    tern_session_free(&shared.session);
    tern_session_free(&shared.fresh);
    tern_model_free(&shared.model);
    return 0;
}

/* sync must keep `expected` tokens, and leave logits and cache as if everything had been
 * computed. */
static void check_sync(const fixture *f, const int32_t *tokens, size_t n, size_t expected) {
    tern_error err = {0};
    size_t reused = SIZE_MAX;
    float *logits = tern_session_logits(f->session);
    if (tern_session_sync(f->session, tokens, n, logits, &reused, &err) != TERN_OK)
        check_fail("%s", err.message);
    assert_int_equal(reused, expected);
    assert_int_equal(tern_session_position(f->session), n);
    check_bytes("tokens", tokens, tern_session_tokens(f->session), n * sizeof *tokens);
    assert_int_equal(tern_session_rewind(f->fresh, 0, NULL), TERN_OK);
    check_floats("logits", tiny_eval(f->fresh, tokens, n), logits, f->n_vocab);
    tiny_same_cache(f->fresh, f->session, (uint32_t)n);
}

static void test_sync(void **state) {
    const fixture *f = *state;
    int32_t a[CONTEXT], b[CONTEXT];
    tiny_prompt(f->model, 1, a, CONTEXT);
    memcpy(b, a, sizeof a);
    b[9] = a[9] == 3 ? 4 : 3;
    assert_int_equal(tern_session_rewind(f->session, 0, NULL), TERN_OK);
    check_case("sequences that share nine tokens");
    check_sync(f, a, 20, 0);
    check_sync(f, a, 25, 20);
    check_sync(f, a, 25, 24); /* the last token is always computed, because its logits are wanted */
    check_sync(f, b, 25, 9);
    check_sync(f, b, CONTEXT, 25);
    check_sync(f, a, 10, 9);
    check_sync(f, a, 1, 0);
    check_sync(f, a, CONTEXT, 1);
    assert_int_equal(tern_session_sync(f->session, b, 12, NULL, NULL, NULL), TERN_OK);
    assert_int_equal(tern_session_position(f->session), 12);
    tiny_same_cache(f->fresh, f->session, 9); /* fresh still holds all of a */
}

/* Sequences that are cut and changed anywhere. */
static void test_random_edits(void **state) {
    const fixture *f = *state;
    int32_t tokens[CONTEXT];
    check_rng rng = {8};
    tiny_prompt(f->model, 2, tokens, CONTEXT);
    for (int round = 0; round < ROUNDS; round++) {
        const size_t n = 1 + check_below(&rng, CONTEXT);
        const size_t at = check_below(&rng, CONTEXT);
        tokens[at] = (int32_t)check_below(&rng, (uint32_t)f->n_vocab);
        const size_t same = tern_session_common_prefix(f->session, tokens, n);
        check_case("round %d: %zu tokens, %zu of them known", round, n, same);
        for (size_t i = 0; i < same; i++)
            assert_int_equal(tokens[i], tern_session_tokens(f->session)[i]);
        if (same < n && same < tern_session_position(f->session))
            assert_int_not_equal(tokens[same], tern_session_tokens(f->session)[same]);
        check_sync(f, tokens, n, same < n ? same : n - 1);
    }
}

static void check_refused(const fixture *f, const int32_t *tokens, size_t n, tern_status expected) {
    size_t reused = 99;
    const uint32_t before = tern_session_position(f->session);
    assert_int_equal(tern_session_reuse(f->session, tokens, n, &reused, NULL), expected);
    assert_int_equal(tern_session_sync(f->session, tokens, n, NULL, &reused, NULL), expected);
    assert_int_equal(reused, 99);
    assert_int_equal(tern_session_position(f->session), before);
}

static void test_refused(void **state) {
    const fixture *f = *state;
    int32_t tokens[CONTEXT + 1];
    size_t reused = 99;
    tiny_prompt(f->model, 3, tokens, CONTEXT + 1);
    check_case("what eval would refuse");
    check_sync(f, tokens, 6, tern_session_common_prefix(f->session, tokens, 6));
    check_refused(f, tokens, 0, TERN_ERR_EMPTY);
    check_refused(f, tokens, CONTEXT + 1, TERN_ERR_CONTEXT);
    check_refused(f, NULL, 1, TERN_ERR_NULL);
    tokens[8] = -1;
    check_refused(f, tokens, 9, TERN_ERR_TOKEN_RANGE);
    assert_int_equal(tern_session_reuse(NULL, tokens, 3, &reused, NULL), TERN_ERR_NULL);
    assert_int_equal(tern_session_reuse(f->session, tokens, 3, NULL, NULL), TERN_ERR_NULL);
    assert_int_equal(tern_session_sync(NULL, tokens, 3, NULL, NULL, NULL), TERN_ERR_NULL);
    /* an unaligned buffer is only noticed when the rest is evaluated: the known part stays */
    assert_int_equal(tern_session_sync(f->session, tokens, 8, tern_session_logits(f->session) + 1,
                                       &reused, NULL),
                     TERN_ERR_UNALIGNED);
    assert_int_equal(tern_session_position(f->session), 6);
}

/* ---- the cache as numbers ----------------------------------------------------------------------
 */

/* tern_dequantize_row, which knows the same formats for weights, must read the same numbers. */
static void test_floats(void **state) {
    static const tern_format formats[] = {TERN_FORMAT_F16, TERN_FORMAT_F32, TERN_FORMAT_Q8_0};
    const fixture *f = *state;
    tern_model_info info;
    int32_t tokens[3];
    float want[256], got[256];
    tern_model_describe(f->model, &info);
    assert_true(info.head_dim <= 256 && info.head_dim % 32 == 0);
    tiny_prompt(f->model, 4, tokens, 3);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        tern_session *s = tiny_session(
            f->model, (tern_session_params){.n_ctx = 4, .threads = 1, .kv = formats[i]});
        check_case("cache %s", tern_format_describe(formats[i])->name);
        assert_int_equal(tern_session_cache(s), formats[i]);
        tiny_eval(s, tokens, 3);
        for (uint32_t k = 0; k < 2 * info.n_layer * info.n_head_kv * 3; k++) {
            const uint32_t layer = k / 6 / info.n_head_kv, head = k / 6 % info.n_head_kv;
            const void *row = tern_session_kv(s, k % 2, layer, head, k / 2 % 3);
            tern_dequantize_row(formats[i], row, info.head_dim, 0, 1.0f, want);
            assert_true(tern_session_kv_floats(s, k % 2, layer, head, k / 2 % 3, got));
            check_floats("row", want, got, info.head_dim);
        }
        assert_false(tern_session_kv_floats(s, false, 0, 0, 3, got));
        assert_false(tern_session_kv_floats(s, false, info.n_layer, 0, 0, got));
        tern_session_free(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sync),
        cmocka_unit_test(test_random_edits),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_floats),
    };
    return cmocka_run_group_tests(tests, open_models, close_models);
}
