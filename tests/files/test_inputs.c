/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs of a session: tokens at a position of the caller's choice, and embeddings instead of
 * tokens. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

enum { CONTEXT = 40, TOKENS = 21 };

typedef struct fixture {
    tern_model *model;
    tern_model_info info;
    tern_session *session;
    int32_t tokens[TOKENS];
} fixture;

static fixture shared;

static tern_session *new_session(void) {
    return tiny_session(
        shared.model,
        (tern_session_params){.n_ctx = CONTEXT, .n_batch = 8, .threads = 2, .kv = TERN_FORMAT_F16});
}

static void open_preset(const char *preset) {
    shared.model = tiny_open(preset, NULL);
    tern_model_describe(shared.model, &shared.info);
    shared.session = new_session();
    tiny_prompt(shared.model, 4, shared.tokens, TOKENS);
}

static void close_all(void) {
    tern_session_free(&shared.session);
    tern_model_free(&shared.model);
}

/* ---- positions ---------------------------------------------------------------------------------
 */

/* From any position on, evaluating the rest of a sequence gives the logits and the cache of the
 * whole. */
static void test_positions(void **state) {
    (void)state;
    open_preset("bitnet-tiny");
    tern_session *whole = new_session();
    const size_t n_vocab = shared.info.n_vocab;
    float *logits = tern_session_logits(shared.session);
    float *want = tiny_floats(n_vocab);
    memcpy(want, tiny_eval(whole, shared.tokens, TOKENS), n_vocab * sizeof *want);
    (void)tiny_eval(shared.session, shared.tokens, TOKENS);
    for (uint32_t at = 0; at < TOKENS; at += 4) {
        const int32_t other[] = {7, 7, 7};
        check_case("evaluation at position %u", at);
        assert_int_equal(
            tern_session_eval_at(shared.session, at, other, 3, TERN_LOGITS_LAST, logits, NULL),
            TERN_OK); /* to be overwritten */
        assert_int_equal(tern_session_position(shared.session), at + 3);
        assert_int_equal(tern_session_eval_at(shared.session, at, shared.tokens + at, TOKENS - at,
                                              TERN_LOGITS_LAST, logits, NULL),
                         TERN_OK);
        assert_int_equal(tern_session_position(shared.session), TOKENS);
        check_floats("logits", want, logits, n_vocab);
        tiny_same_cache(whole, shared.session, TOKENS);
    }
    free(want);
    tern_session_free(&whole);
    close_all();
}

/* Positions after the sequence, and after the context: two different refusals, which change
 * nothing. */
static void test_refused_positions(void **state) {
    (void)state;
    open_preset("bitnet-tiny");
    tern_session *s = shared.session;
    float *logits = tern_session_logits(s);
    const int32_t *tokens = shared.tokens;
    static const struct {
        uint32_t position;
        size_t n;
        tern_status status;
    } cases[] = {
        {6, 1, TERN_ERR_POSITION},
        {CONTEXT - 1, 1, TERN_ERR_POSITION},
        {CONTEXT, 1, TERN_ERR_FULL},
        {UINT32_MAX, 1, TERN_ERR_FULL},
        {0, CONTEXT + 1, TERN_ERR_CONTEXT},
        {5, CONTEXT - 4, TERN_ERR_FULL},
        {5, 0, TERN_ERR_EMPTY},
    };
    (void)tiny_eval(s, tokens, 5);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tern_error err = {0};
        check_case("%zu tokens at position %u", cases[i].n, cases[i].position);
        assert_int_equal(tern_session_eval_at(s, cases[i].position, tokens, cases[i].n,
                                              TERN_LOGITS_LAST, logits, &err),
                         cases[i].status);
        assert_int_equal(err.status, cases[i].status);
        assert_int_equal(tern_session_position(s), 5);
        assert_memory_equal(tern_session_tokens(s), tokens, 5 * sizeof *tokens);
    }
    close_all();
}

/* ---- rows instead of tokens ------------------------------------------------------------------ */

/* The embeddings of tokens, in one piece or in three, give the same results as the tokens. */
static void check_rows(const char *preset) {
    open_preset(preset);
    tern_session *by_tokens = new_session();
    const size_t width = shared.info.n_embd, n_vocab = shared.info.n_vocab;
    float *rows = tiny_floats(TOKENS * width);
    float *logits = tern_session_logits(shared.session);
    const float *want = tiny_eval(by_tokens, shared.tokens, TOKENS);
    for (size_t i = 0; i < TOKENS; i++)
        assert_int_equal(tern_model_embed(shared.model, shared.tokens[i], rows + i * width, NULL),
                         TERN_OK);
    for (size_t piece = TOKENS; piece > 0; piece = piece == TOKENS ? 9 : piece == 9 ? 1 : 0) {
        check_case("%s, embeddings in pieces of %zu", preset, piece);
        assert_int_equal(tern_session_rewind(shared.session, 0, NULL), TERN_OK);
        for (size_t at = 0; at < TOKENS; at += piece)
            assert_int_equal(tern_session_eval_rows(shared.session, rows + at * width,
                                                    TOKENS - at < piece ? TOKENS - at : piece,
                                                    TERN_LOGITS_LAST, logits, NULL),
                             TERN_OK);
        check_floats("logits", want, logits, n_vocab);
        tiny_same_cache(by_tokens, shared.session, TOKENS);
        assert_int_equal(tern_session_tokens(shared.session)[TOKENS - 1], TERN_NO_TOKEN);
        assert_int_equal(tern_session_common_prefix(shared.session, shared.tokens, TOKENS), 0);
    }
    rows[width] += 1.0f; /* the second row must matter */
    assert_int_equal(tern_session_rewind(shared.session, 0, NULL), TERN_OK);
    assert_int_equal(
        tern_session_eval_rows(shared.session, rows, TOKENS, TERN_LOGITS_LAST, logits, NULL),
        TERN_OK);
    assert_true(memcmp(want, logits, n_vocab * sizeof *want) != 0);
    free(rows);
    tern_session_free(&by_tokens);
    close_all();
}

static void test_rows(void **state) {
    (void)state;
    check_rows("bitnet-tiny");
    check_rows("llama-tiny-q4_0");
}

static void test_refused_rows(void **state) {
    (void)state;
    open_preset("bitnet-tiny");
    tern_session *s = shared.session;
    const size_t width = shared.info.n_embd;
    float *rows = tiny_floats((CONTEXT + 1) * width);
    float *logits = tern_session_logits(s);
    tern_error err = {0};
    char path[TINY_PATH_BYTES];
    const tern_logits_mode last = TERN_LOGITS_LAST;
    memset(rows, 0, (CONTEXT + 1) * width * sizeof *rows);
    assert_int_equal(tern_session_eval_rows(s, NULL, 1, last, logits, NULL), TERN_ERR_NULL);
    assert_int_equal(tern_session_eval_rows(NULL, rows, 1, last, logits, NULL), TERN_ERR_NULL);
    assert_int_equal(tern_session_eval_rows(s, rows, 0, last, logits, NULL), TERN_ERR_EMPTY);
    assert_int_equal(tern_session_eval_rows(s, rows, CONTEXT + 1, last, logits, NULL),
                     TERN_ERR_CONTEXT);
    rows[2 * width + 3] = NAN;
    assert_int_equal(tern_session_eval_rows(s, rows, 3, last, logits, &err), TERN_ERR_NONFINITE);
    assert_non_null(strstr(err.message, "element 3 of row 2"));
    assert_int_equal(tern_session_position(s), 0);
    assert_int_equal(tern_model_embed(shared.model, 515, rows, NULL), TERN_ERR_TOKEN_RANGE);
    assert_int_equal(tern_model_embed(shared.model, -1, rows, NULL), TERN_ERR_TOKEN_RANGE);
    assert_int_equal(tern_model_embed(NULL, 1, rows, NULL), TERN_ERR_NULL);
    rows[2 * width + 3] = 0.0f;
    (void)tiny_eval(s, shared.tokens, 2);
    assert_int_equal(tern_session_eval_rows(s, rows, 1, TERN_LOGITS_NONE, NULL, NULL), TERN_OK);
    tiny_path(path);
    assert_int_equal(tern_session_save(s, path, &err), TERN_ERR_STATE);
    assert_non_null(strstr(err.message, "position 2"));
    unlink(path);
    free(rows);
    close_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_refused_positions),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_refused_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
