/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: parameters, the edges of the context, refusals that change nothing, rewinding, and
 * threads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "authoring/synth.h"
#include "runtime/engine/session.h"
#include "runtime/model/model.h"
#include "tests/support/check.h"
#include "tests/support/little_memory.h"
#include "tests/support/tiny_model.h"

enum { CONTEXT = 24, TRAINED = 512 /* of the tiny models */ };

typedef struct fixture {
    tern_model *model;
    tern_session *session; /* CONTEXT positions, batches of 8, two threads */
    size_t n_vocab;
    int32_t tokens[CONTEXT + 1];
} fixture;

static fixture shared;

static int models_open(void **state) {
    tern_model_info info;
    shared.model = tiny_open("bitnet-tiny", NULL);
    tern_model_describe(shared.model, &info);
    shared.n_vocab = info.n_vocab;
    tiny_prompt(shared.model, 9, shared.tokens, CONTEXT + 1);
    *state = &shared;
    return 0;
}

static int models_close(void **state) {
    (void)state;
    tern_model_free(&shared.model);
    return shared.model != NULL;
}

static int session_open(void **state) {
    shared.session = tiny_session(
        shared.model,
        (tern_session_params){.n_ctx = CONTEXT, .n_batch = 8, .threads = 2, .kv = TERN_FORMAT_F16});
    *state = &shared;
    return 0;
}

static int session_close(void **state) {
    (void)state;
    tern_session_free(&shared.session);
    return shared.session != NULL;
}

/* Evaluates tokens[first .. first + n) and copies the last token's logits to `out` (may be
 * NULL). */
static void eval(tern_session *s, size_t first, size_t n, float *out) {
    tern_error err = {0};
    float *logits = tern_session_logits(s);
    if (tern_session_eval(s, shared.tokens + first, n, TERN_LOGITS_LAST, logits, &err) != TERN_OK)
        check_fail("tokens %zu to %zu: %s", first, first + n, err.message);
    if (out != NULL)
        memcpy(out, logits, shared.n_vocab * sizeof *out);
}

/* ---- parameters ---------------------------------------------------------------------------------
 */

static void test_defaults(void **state) {
    const fixture *f = *state;
    tern_session *s = NULL;
    const tern_session_params d = tern_session_params_default();
    assert_int_equal(d.kv, TERN_FORMAT_F16);
    assert_int_equal(tern_session_new(f->model, NULL, &s, NULL), TERN_OK);
    assert_int_equal(tern_session_context(s), TRAINED);
    assert_int_equal(tern_session_position(s), 0);
    assert_true(tern_session_threads(s) >= 1);
    tern_model trained = *f->model;
    for (uint32_t n_ctx = 4095; n_ctx <= 4097; n_ctx++) {
        trained.config.n_ctx = n_ctx;
        assert_int_equal(tern_model_default_context(&trained), n_ctx < 4096 ? n_ctx : 4096);
    }
    assert_ptr_equal(tern_session_model(s), f->model);
    assert_int_equal((uintptr_t)tern_session_logits(s) % TERN_ALIGN, 0);
    tern_session_free(&s);
    assert_null(s);
    tern_session_free(&s);
    tern_session_free(NULL);
}

static void check_refused(const fixture *f, tern_session_params params, tern_status expected,
                          const char *text) {
    tern_error err = {0};
    tern_session *s = NULL;
    uint64_t bytes = 5;
    check_case("session with '%s' in its message", text);
    assert_int_equal(tern_session_new(f->model, &params, &s, &err), expected);
    assert_null(s);
    assert_int_equal(err.status, expected);
    if (strstr(err.message, text) == NULL)
        check_fail("message is: %s", err.message);
    assert_int_equal(tern_session_bytes(f->model, &params, &bytes, NULL), expected);
    assert_int_equal(bytes, 5);
}

static void test_refused_parameters(void **state) {
    const fixture *f = *state;
    tern_session *s = NULL;
    uint64_t bytes;
    const tern_session_params good = tern_session_params_default();
    const tern_format f16 = TERN_FORMAT_F16;
    check_refused(f, (tern_session_params){.n_ctx = TRAINED + 1, .kv = f16}, TERN_ERR_CONTEXT,
                  "513 positions exceeds the 512");
    check_refused(f, (tern_session_params){.n_ctx = UINT32_MAX, .kv = f16}, TERN_ERR_CONTEXT,
                  "4294967295");
    check_refused(f, (tern_session_params){.kv = TERN_FORMAT_Q4_0}, TERN_ERR_ARG, "f16 or q8_0");
    check_refused(f, (tern_session_params){.kv = TERN_FORMAT_NONE}, TERN_ERR_ARG, "f16 or q8_0");
    check_refused(f, (tern_session_params){.kv = f16, .threads = 100000}, TERN_ERR_ARG, "100000");
    check_refused(f, (tern_session_params){.kv = f16, .n_batch = 1u << 31}, TERN_ERR_ARG,
                  "2147483648");
    assert_int_equal(tern_session_new(NULL, &good, &s, NULL), TERN_ERR_NULL);
    assert_int_equal(tern_session_new(f->model, &good, NULL, NULL), TERN_ERR_NULL);
    assert_int_equal(tern_session_bytes(NULL, &good, &bytes, NULL), TERN_ERR_NULL);
    assert_int_equal(tern_session_bytes(f->model, NULL, &bytes, NULL), TERN_ERR_NULL);
    assert_int_equal(tern_session_bytes(f->model, &good, NULL, NULL), TERN_ERR_NULL);
}

/* True if the session has executed a kernel of this operation. */
static bool executed(const tern_session *s, tern_op op) {
    const tern_kernel_row *kernels[64];
    const size_t n = tern_session_kernels(s, kernels, 64);
    bool found = false;
    assert_true(n <= 64);
    for (size_t i = 0; i < n; i++)
        found = found || kernels[i]->op == op;
    return found;
}

/* No kernel has run before the first token, and no product of several tokens before a batch has
 * several. */
static void test_work(void **state) {
    const fixture *f = *state;
    tern_session *s = tiny_session(
        f->model,
        (tern_session_params){.n_ctx = 16, .n_batch = 4, .threads = 1, .kv = TERN_FORMAT_F16});
    tern_model_info info;
    tern_model_describe(f->model, &info);
    assert_int_equal(tern_session_kernels(s, NULL, 0), 0);
    eval(s, 0, 1, NULL);
    eval(s, 1, 1, NULL);
    assert_true(executed(s, TERN_OP_GEMV) && executed(s, TERN_OP_ATTEND));
    assert_false(executed(s, TERN_OP_GEMM));
    eval(s, 2, 6, NULL); /* batches of 4 and 2 */
    assert_true(executed(s, TERN_OP_GEMM));
    const tern_session_work work = tern_session_work_done(s);
    assert_int_equal(work.passes, 4);
    assert_int_equal(work.tokens, 8);
    assert_int_equal(work.reused, 0 + 1 + 2 + 6);
    assert_int_equal(work.products, 4 * 7 * info.n_layer + 3); /* the batch of 4 had no logits */
    const tern_kernel_row *kernels[64], *all[64];
    const size_t n = tern_session_kernels(s, kernels, 64);
    /* In all there are two more: the head's gemm, and the gemv that scans its image. */
    assert_int_equal(tern_model_kernels(f->model, TERN_FORMAT_F16, all, 64), n + 2);
    tern_session_free(&s);
}

static void test_bytes(void **state) {
    const fixture *f = *state;
    static const tern_format formats[] = {TERN_FORMAT_F32, TERN_FORMAT_F16, TERN_FORMAT_Q8_0};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        uint64_t small = 0, large = 0;
        tern_session_params p = {.n_ctx = 64, .n_batch = 4, .threads = 1, .kv = formats[i]};
        assert_int_equal(tern_session_bytes(f->model, &p, &small, NULL), TERN_OK);
        assert_true(small > tern_model_kv_bytes(f->model, 64, formats[i]));
        p.n_ctx = 512;
        assert_int_equal(tern_session_bytes(f->model, &p, &large, NULL), TERN_OK);
        assert_int_equal(large - small, tern_model_kv_bytes(f->model, 512 - 64, formats[i]) +
                                            (512 - 64) * sizeof(int32_t)); /* the tokens */
        const uint64_t of_one = large - small;
        p.threads = 2; /* they share heads: 7 more chunks have states of 4 heads for 16 tokens */
        assert_int_equal(tern_session_bytes(f->model, &p, &large, NULL), TERN_OK);
        p.n_ctx = 64;
        assert_int_equal(tern_session_bytes(f->model, &p, &small, NULL), TERN_OK);
        assert_int_equal(large - small, of_one + 7 * tern_attend_state_bytes(4 * 16, 64));
    }
    assert_int_equal(tern_model_kv_bytes(f->model, 64, TERN_FORMAT_Q8_0), 2 * 2 * 2 * 64 * 2 * 34);
    assert_int_equal(tern_model_kv_bytes(f->model, 64, TERN_FORMAT_Q4_0), 0);
    assert_int_equal(tern_model_kv_bytes(f->model, 64, TERN_FORMAT_F16), 2 * 2 * 2 * 2 * 64 * 64);
    assert_int_equal(tern_model_kv_bytes(f->model, 64, TERN_FORMAT_F32), 2 * 4 * 2 * 2 * 64 * 64);
}

/* More layers of the same shape take more cache and nothing else, because they share the
 * scratch. */
static void test_layers_share_buffers(void **state) {
    const fixture *f = *state;
    static const tern_format formats[] = {TERN_FORMAT_F32, TERN_FORMAT_F16, TERN_FORMAT_Q8_0};
    for (uint32_t threads = 1; threads <= 2; threads++)
        for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
            const tern_session_params p = {
                .n_ctx = 64, .n_batch = 4, .threads = threads, .kv = formats[i]};
            tern_model deep = *f->model;
            uint64_t few = 0, many = 0;
            deep.config.n_layer *= 5;
            check_case("%u threads, %s", threads, tern_format_describe(formats[i])->name);
            assert_int_equal(tern_session_bytes(f->model, &p, &few, NULL), TERN_OK);
            assert_int_equal(tern_session_bytes(&deep, &p, &many, NULL), TERN_OK);
            assert_int_equal(many - few, 4 * tern_model_kv_bytes(f->model, 64, formats[i]));
        }
}

/* A model without its weights can be planned with, but not run. */
static void test_no_weights(void **state) {
    const tern_model_params params = {.no_weights = true};
    const tern_session_params defaults = tern_session_params_default();
    tern_error err = {0};
    tern_model *model = NULL;
    tern_session *s = NULL;
    uint64_t bytes = 0;
    char path[TINY_PATH_BYTES];
    (void)state;
    tiny_path(path);
    assert_int_equal(tern_synth("llama-tiny-q8_0", path, TERN_OUT_REPLACE, 1, NULL, NULL, NULL),
                     TERN_OK);
    assert_int_equal(tern_model_open(path, &params, &model, NULL), TERN_OK);
    unlink(path);
    assert_int_equal(tern_session_new(model, &defaults, &s, &err), TERN_ERR_STATE);
    assert_non_null(strstr(err.message, "without its weights"));
    assert_int_equal(tern_session_bytes(model, &defaults, &bytes, NULL), TERN_OK);
    assert_true(bytes > tern_model_kv_bytes(model, TRAINED, TERN_FORMAT_F16));
    assert_int_equal(model->weights.size, 0);
    tern_model_free(&model);
}

/* A session of a long context only takes memory for its tokens, not for the whole context. */
static void test_memory_comes_with_tokens(void **state) {
    enum { LONG = 1 << 17 };
    const fixture *f = *state;
    tern_model trained = *f->model; /* pretend a longer one */
    trained.config.n_ctx = LONG;
    tern_session *s = tiny_session(
        &trained, (tern_session_params){.n_ctx = LONG, .threads = 1, .kv = TERN_FORMAT_F32});
    const tern_arena *cache = &s->pool.arena;
    assert_true(cache->size > (size_t)128 << 20);
    assert_int_equal(check_resident(cache->base, cache->size), 0);
    eval(s, 0, CONTEXT, NULL);
    const size_t resident = check_resident(cache->base, cache->size);
    assert_true(resident > 0 && resident <= cache->size / 16);
    tern_session_free(&s);
}

#ifdef LITTLE_MEMORY_WORKS
/* There is address space for everything but the session's arena: an error, and nothing leaks. */
static void test_no_memory(void **state) {
    const fixture *f = *state;
    const tern_session_params params = {.n_batch = 128, .threads = 1, .kv = TERN_FORMAT_F32};
    tern_error err = {0};
    uint64_t bytes = 0;
    assert_int_equal(tern_session_bytes(f->model, &params, &bytes, NULL), TERN_OK);
    const tern_status status = opened_within(f->model, &params, bytes / 2, &err);
    assert_int_equal(status, err.status);
    assert_true(status == TERN_ERR_CACHE_MEMORY || status == TERN_ERR_SCRATCH_MEMORY);
    tern_session *s = tiny_session(f->model, params);
    eval(s, 0, 1, NULL);
    tern_session_free(&s);
}
#define NO_MEMORY_TEST cmocka_unit_test_setup_teardown(test_no_memory, session_open, session_close),
#else
#define NO_MEMORY_TEST
#endif

/* ---- the edges of the context
 * --------------------------------------------------------------------- */

/* A whole context is evaluated at once and one by one, up to its last position. One more token is
 * refused. */
static void test_full_context(void **state) {
    const fixture *f = *state;
    tern_session *s = f->session;
    tern_error err = {0};
    float *want = tiny_floats(f->n_vocab);
    float *got = tiny_floats(f->n_vocab);
    check_case("a full context");
    eval(s, 0, CONTEXT, want);
    assert_int_equal(tern_session_position(s), CONTEXT);
    assert_int_equal(tern_session_eval(s, f->tokens, 1, TERN_LOGITS_NONE, NULL, &err),
                     TERN_ERR_FULL);
    assert_non_null(strstr(err.message, "1 tokens at position 24 exceed the context of 24"));
    assert_int_equal(tern_session_position(s), CONTEXT);

    assert_int_equal(tern_session_rewind(s, 0, NULL), TERN_OK);
    eval(s, 0, CONTEXT - 1, NULL);
    eval(s, CONTEXT - 1, 1, got); /* position n_ctx - 1 */
    check_floats("logits", want, got, f->n_vocab);

    assert_int_equal(tern_session_rewind(s, 0, NULL), TERN_OK);
    for (size_t i = 0; i < CONTEXT; i++)
        eval(s, i, 1, got);
    check_floats("logits", want, got, f->n_vocab);
    free(want);
    free(got);
}

/* The full context that the model was trained for can be used up to its last position, but no
 * further. */
static void test_trained_context(void **state) {
    const fixture *f = *state;
    const tern_session_params params = {.n_ctx = TRAINED, .threads = 1, .kv = TERN_FORMAT_F16};
    tern_session *s = tiny_session(f->model, params);
    int32_t tokens[TRAINED];
    tiny_prompt(f->model, 2, tokens, TRAINED);
    float *want = tiny_floats(f->n_vocab);
    check_case("the trained context");
    memcpy(want, tiny_eval(s, tokens, TRAINED), f->n_vocab * sizeof *want);
    assert_int_equal(tern_session_rewind(s, TRAINED - 1, NULL), TERN_OK);
    check_floats("logits", want, tiny_eval(s, tokens + TRAINED - 1, 1), f->n_vocab);
    assert_int_equal(tern_session_eval(s, tokens, 1, TERN_LOGITS_NONE, NULL, NULL), TERN_ERR_FULL);
    tern_session_free(&s);
    free(want);
}

static void test_context_of_one(void **state) {
    const fixture *f = *state;
    float *want = tiny_floats(f->n_vocab);
    float *got = tiny_floats(f->n_vocab);
    tern_session *one = tiny_session(
        f->model, (tern_session_params){.n_ctx = 1, .threads = 1, .kv = TERN_FORMAT_F16});
    check_case("a context of one position");
    assert_int_equal(tern_session_context(one), 1);
    eval(one, 0, 1, got);
    eval(f->session, 0, 1, want);
    check_floats("logits", want, got, f->n_vocab);
    assert_int_equal(tern_session_eval(one, f->tokens, 1, TERN_LOGITS_NONE, NULL, NULL),
                     TERN_ERR_FULL);
    tern_session_free(&one);
    free(want);
    free(got);
}

/* ---- refused calls
 * ---------------------------------------------------------------------------------- */

/* Fails unless eval refuses the call and the session then continues as if nothing had been
 * asked. */
static void check_eval_refused(const fixture *f, const int32_t *tokens, size_t n,
                               tern_logits_mode mode, float *logits, tern_status expected,
                               const char *text) {
    tern_error err = {0};
    float *want = tiny_floats(f->n_vocab);
    float *got = tiny_floats(f->n_vocab);
    check_case("eval refused with '%s'", text);
    assert_int_equal(tern_session_rewind(f->session, 0, NULL), TERN_OK);
    eval(f->session, 0, 6, want);
    assert_int_equal(tern_session_rewind(f->session, 5, NULL), TERN_OK);
    assert_int_equal(tern_session_eval(f->session, tokens, n, mode, logits, &err), expected);
    if (strstr(err.message, text) == NULL)
        check_fail("message is: %s", err.message);
    assert_int_equal(err.status, expected);
    assert_int_equal(tern_session_position(f->session), 5);
    eval(f->session, 5, 1, got);
    check_floats("logits", want, got, f->n_vocab);
    free(want);
    free(got);
}

static void test_refused_eval(void **state) {
    const fixture *f = *state;
    const int32_t vocabulary = (int32_t)f->n_vocab;
    float *logits = tern_session_logits(f->session);
    int32_t tokens[CONTEXT] = {1, 2, 3};
    const tern_logits_mode last = TERN_LOGITS_LAST;
    check_eval_refused(f, NULL, 1, last, logits, TERN_ERR_NULL, "needs a session");
    check_eval_refused(f, tokens, 1, last, NULL, TERN_ERR_NULL, "needs a session");
    check_eval_refused(f, tokens, 1, TERN_LOGITS_ALL, NULL, TERN_ERR_NULL, "needs a session");
    check_eval_refused(f, tokens, 0, last, logits, TERN_ERR_EMPTY, "empty");
    check_eval_refused(f, tokens, 1, last, logits + 1, TERN_ERR_UNALIGNED, "64 bytes");
    check_eval_refused(f, tokens, CONTEXT - 4, last, logits, TERN_ERR_FULL,
                       "20 tokens at position 5 exceed the context of 24");
    check_eval_refused(f, tokens, SIZE_MAX, last, logits, TERN_ERR_CONTEXT, "context of 24");
    tokens[2] = -1;
    check_eval_refused(f, tokens, 3, last, logits, TERN_ERR_TOKEN_RANGE,
                       "token -1 at index 2 is outside the vocabulary of 515");
    tokens[2] = vocabulary;
    check_eval_refused(f, tokens, 3, last, logits, TERN_ERR_TOKEN_RANGE, "token 515 at index 2");
    tokens[2] = INT32_MAX;
    check_eval_refused(f, tokens, 3, last, logits, TERN_ERR_TOKEN_RANGE, "2147483647");
    tokens[2] = INT32_MIN;
    check_eval_refused(f, tokens, 3, last, logits, TERN_ERR_TOKEN_RANGE, "-2147483648");
    tokens[2] = vocabulary - 1; /* the last token is valid */
    assert_int_equal(tern_session_eval(f->session, tokens, 3, last, logits, NULL), TERN_OK);
    assert_int_equal(tern_session_eval(NULL, tokens, 3, last, logits, NULL), TERN_ERR_NULL);
}

/* ---- rewinding and the cache
 * ------------------------------------------------------------------------ */

static void test_rewind(void **state) {
    const fixture *f = *state;
    tern_error err = {0};
    tern_session *s = f->session;
    float *want = tiny_floats(f->n_vocab);
    float *got = tiny_floats(f->n_vocab);
    check_case("rewind");
    eval(s, 0, 12, want);
    for (uint32_t keep = 0; keep < 12; keep++) {
        assert_int_equal(tern_session_rewind(s, keep, NULL), TERN_OK);
        assert_int_equal(tern_session_position(s), keep);
        eval(s, 12, 5, NULL); /* other tokens, to be forgotten */
        assert_int_equal(tern_session_rewind(s, keep, NULL), TERN_OK);
        eval(s, keep, 12 - keep, got);
        check_floats("logits", want, got, f->n_vocab);
    }
    assert_int_equal(tern_session_rewind(s, 12, NULL), TERN_OK); /* to the current position */
    assert_int_equal(tern_session_rewind(s, 13, &err), TERN_ERR_POSITION);
    assert_non_null(strstr(err.message, "13"));
    assert_int_equal(tern_session_position(s), 12);
    assert_int_equal(tern_session_rewind(NULL, 0, NULL), TERN_ERR_NULL);
    free(want);
    free(got);
}

static void test_cache_range(void **state) {
    const fixture *f = *state;
    const tern_session *s = f->session;
    assert_null(tern_session_kv(s, false, 0, 0, 0)); /* no tokens yet */
    eval(f->session, 0, 3, NULL);
    for (int value = 0; value < 2; value++) {
        assert_non_null(tern_session_kv(s, value, 1, 1, 2));
        assert_null(tern_session_kv(s, value, 2, 1, 2));
        assert_null(tern_session_kv(s, value, 1, 2, 2));
        assert_null(tern_session_kv(s, value, 1, 1, 3));
    }
    assert_ptr_not_equal(tern_session_kv(s, false, 0, 0, 0), tern_session_kv(s, true, 0, 0, 0));
    assert_ptr_equal((const uint8_t *)tern_session_kv(s, false, 1, 1, 0) + 2 * 64 * 2,
                     tern_session_kv(s, false, 1, 1, 2)); /* positions of 64 halves */
    const uint8_t *first = tern_session_kv(s, false, 0, 0, 0);
    const size_t page = TERN_ATTEND_CHUNK * 64 * 2; /* of a head; positions fill whole pages */
    assert_ptr_equal(first + page, tern_session_kv(s, false, 0, 1, 0));     /* heads */
    assert_ptr_equal(first + 2 * page, tern_session_kv(s, false, 1, 0, 0)); /* layers */
}

/* ---- two sessions at once
 * ------------------------------------------------------------------------- */

typedef struct user {
    tern_session *session;
    size_t n; /* tokens */
    float *logits;
    tern_status status;
} user;

static void *evaluate(void *argument) {
    user *u = argument;
    for (int round = 0; round < 5 && u->status == TERN_OK; round++) {
        u->status = tern_session_rewind(u->session, 0, NULL);
        for (size_t i = 0; i < u->n && u->status == TERN_OK; i += 4)
            u->status = tern_session_eval(u->session, shared.tokens + i, 4, TERN_LOGITS_LAST,
                                          u->logits, NULL);
    }
    return NULL;
}

static void test_two_sessions(void **state) {
    enum { USERS = 3 };
    const fixture *f = *state;
    user users[USERS];
    pthread_t threads[USERS];
    for (uint32_t i = 0; i < USERS; i++) {
        users[i] =
            (user){.session = tiny_session(f->model, (tern_session_params){.n_ctx = CONTEXT,
                                                                           .threads = 1 + i % 2,
                                                                           .kv = TERN_FORMAT_F16}),
                   .n = 8 + 4 * i,
                   .logits = tiny_floats(f->n_vocab)};
        assert_int_equal(pthread_create(&threads[i], NULL, evaluate, &users[i]), 0);
    }
    float *want = tiny_floats(f->n_vocab);
    for (uint32_t i = 0; i < USERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        check_case("session %u of several at once", i);
        assert_int_equal(users[i].status, TERN_OK);
        assert_int_equal(tern_session_rewind(f->session, 0, NULL), TERN_OK);
        eval(f->session, 0, users[i].n, want);
        check_floats("logits", want, users[i].logits, f->n_vocab);
        tern_session_free(&users[i].session);
        free(users[i].logits);
    }
    free(want);
}

#define WITH_SESSION(test) cmocka_unit_test_setup_teardown(test, session_open, session_close)

int main(void) {
    const struct CMUnitTest tests[] = {
        NO_MEMORY_TEST WITH_SESSION(test_defaults),
        WITH_SESSION(test_refused_parameters),
        WITH_SESSION(test_work),
        WITH_SESSION(test_bytes),
        WITH_SESSION(test_layers_share_buffers),
        cmocka_unit_test(test_no_weights),
        WITH_SESSION(test_memory_comes_with_tokens),
        WITH_SESSION(test_full_context),
        WITH_SESSION(test_trained_context),
        WITH_SESSION(test_context_of_one),
        WITH_SESSION(test_refused_eval),
        WITH_SESSION(test_rewind),
        WITH_SESSION(test_cache_range),
        WITH_SESSION(test_two_sessions),
    };
    return cmocka_run_group_tests(tests, models_open, models_close);
}
