/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences with different adapters in one engine: each gives what it gives alone, and none finds
 * what was computed with the adapters of another. */

#include <string.h>
#include <unistd.h>

#include "runtime/model/model.h"
#include "tests/engine/engine_case.h"
#include "tests/support/adapter_file.h"
#include "tests/support/check.h"

enum { ADAPTERS = 8, SEQUENCES = 16, LENGTH = 12 };

static char paths[ADAPTERS][TINY_PATH_BYTES];

/* Opens the model with its adapters; the first one is in use where a request names none. */
static void open_model(const char *preset, const char *isa) {
    tern_adapter_file files[ADAPTERS];
    for (size_t i = 0; i < ADAPTERS; i++)
        files[i] = (tern_adapter_file){paths[i], i == 0 ? 0.5F : 0.0F};
    engine_case.model = tiny_open_with(
        preset,
        (tern_model_params){.isa = isa, .threads = 2, .adapters = files, .n_adapters = ADAPTERS});
    tern_model_describe(engine_case.model, &engine_case.info);
    tiny_prompt(engine_case.model, 4, engine_case.prompt, PROMPT);
}

static const char preset[] = "llama-tiny-q8_0";

static int begin(void **state) {
    (void)state;
    for (size_t i = 0; i < ADAPTERS; i++) {
        const adapter_file file = {.seed = i + 1,
                                   .rank = (uint32_t)(1 + 5 * i),
                                   .format = i % 2 ? TERN_FORMAT_F16 : TERN_FORMAT_F32};
        adapter_file_write(preset, &file, paths[i]);
    }
    open_model(preset, NULL);
    return 0;
}

static int end(void **state) {
    for (size_t i = 0; i < ADAPTERS; i++)
        unlink(paths[i]);
    return engine_case_end(state);
}

/* The adapters of sequence i: none, one, or two in either order. */
static size_t uses_of(size_t i, tern_adapter_use uses[2]) {
    const uint32_t id = (uint32_t)(i % ADAPTERS);
    uses[0] = (tern_adapter_use){id, 1.05F - 0.1F * (float)i};
    uses[1] = (tern_adapter_use){(id + 3) % ADAPTERS, 0.7F};
    return i % 3;
}

static tern_request request_of(size_t i, tern_adapter_use uses[2]) {
    tern_request r = engine_case_request(LENGTH);
    r.n_adapters = uses_of(i, uses);
    r.adapters = uses;
    return r;
}

static const tern_engine_params shared = {
    .pool_bytes = 1 << 23, .n_batch = 50, .n_sequences = SEQUENCES, .threads = 2};

static void run_alone(char digests[SEQUENCES][65], tern_engine_params params) {
    for (size_t i = 0; i < SEQUENCES; i++) {
        tern_adapter_use uses[2];
        const tern_request r = request_of(i, uses);
        engine_case_open(params);
        const answer *a = engine_case_run(&r);
        assert_int_equal(a->end, TERN_END_LENGTH);
        memcpy(digests[i], a->digest, sizeof digests[i]);
    }
}

static void test_together(void **state) {
    (void)state;
    char alone[SEQUENCES][65];
    uint64_t ids[SEQUENCES];
    run_alone(alone, (tern_engine_params){.threads = 1, .n_batch = 200});
    engine_case_open(shared);
    for (size_t i = 0; i < SEQUENCES; i++) {
        tern_adapter_use uses[2];
        const tern_request r = request_of(i, uses);
        ids[i] = engine_case_submit(&r);
    }
    engine_case_finish();
    for (size_t i = 0; i < SEQUENCES; i++) {
        check_case("sequence %zu", i);
        assert_string_equal(engine_case_answer(ids[i], 0)->digest, alone[i]);
    }
    for (size_t i = 1; i < SEQUENCES; i++) /* they do make a difference */
        assert_string_not_equal(alone[i], alone[i - 1]);
}

/* The same on the scalar kernels. */
static void test_scalar(void **state) {
    (void)state;
    char best[SEQUENCES][65], scalar[SEQUENCES][65];
    run_alone(best, shared);
    check_freed(tern_engine_free, engine_case.engine);
    check_freed(tern_model_free, engine_case.model);
    open_model(preset, "scalar");
    run_alone(scalar, shared);
    for (size_t i = 0; i < SEQUENCES; i++)
        assert_string_equal(best[i], scalar[i]);
    check_freed(tern_engine_free, engine_case.engine);
    check_freed(tern_model_free, engine_case.model);
    open_model(preset, NULL);
}

/* Pages are found by the same adapters and scales only. */
static void test_pages(void **state) {
    (void)state;
    const tern_adapter_use uses[][2] = {
        {{1, 1.0F}, {2, 1.0F}}, {{2, 1.0F}, {1, 1.0F}}, {{1, 1.0F}, {2, 0.5F}},
        {{1, 1.0F}, {2, 0.0F}}, {{1, 1.0F}, {3, 0.0F}}, {{0, 0.5F}, {4, 0.0F}},
    };
    const bool known[] = {false, true, false, false, true, false};
    engine_case_open(shared);
    for (size_t i = 0; i < sizeof known; i++) {
        tern_request r = engine_case_request(1);
        r.adapters = uses[i];
        r.n_adapters = 2;
        check_case("set %zu", i);
        assert_int_equal(engine_case_run(&r)->figures.n_shared, known[i] ? 128 : 0);
    }
    const tern_request usual = engine_case_request(1); /* the last set is what the model has */
    assert_int_equal(engine_case_run(&usual)->figures.n_shared, 128);
    tern_request none = engine_case_request(1);
    none.adapters = uses[0];
    assert_int_equal(engine_case_run(&none)->figures.n_shared, 0);
}

static void refuse(const tern_request *r, const char *message) {
    tern_error err = {0};
    uint64_t id;
    assert_int_equal(tern_engine_submit(engine_case.engine, r, &id, &err), TERN_ERR_ARG);
    if (strstr(err.message, message) == NULL)
        check_fail("%s", err.message);
}

static void test_refused(void **state) {
    (void)state;
    const tern_adapter_use missing = {ADAPTERS, 1.0F}, large = {1, 3e38F},
                           nan = {0, __builtin_nanf("")};
    const tern_adapter_use twice[] = {{3, 1.0F}, {3, 0.0F}};
    tern_request r = engine_case_request(1);
    engine_case_open(shared);
    r.n_adapters = 1;
    r.adapters = &missing;
    refuse(&r, "there is no adapter 8, the model has 8");
    r.adapters = &large;
    refuse(&r, ": a scale of 3e+38, and alpha 16, are too large");
    r.adapters = &nan;
    refuse(&r, ": a scale of nan, and alpha 16, are too large");
    r.n_adapters = 2;
    r.adapters = twice;
    refuse(&r, "adapter 3 is named twice");
}

/* A session has the model's own adapters, and a request cannot change them. */
static void test_session(void **state) {
    (void)state;
    tern_session *s = tiny_session(engine_case.model, tern_session_params_default());
    const tern_adapter_use use = {1, 1.0F};
    tern_request r = engine_case_request(1);
    tern_error err = {0};
    uint64_t id;
    r.adapters = &use;
    r.n_adapters = 1;
    assert_int_equal(tern_engine_submit(tern_session_engine(s), &r, &id, &err), TERN_ERR_ARG);
    tern_session_free(&s);
}

/* The identity of a model tells which adapters are in use, and their scales. */
static void test_identity(void **state) {
    (void)state;
    const tern_adapter_file files[] = {{paths[0], 0.5F}, {paths[0], 0.25F}, {paths[1], 0.5F}};
    uint64_t seen[4];
    for (size_t i = 0; i < 4; i++) {
        tern_model *m = tiny_open_with(
            preset, (tern_model_params){.adapters = &files[i % 3], .n_adapters = i < 3});
        seen[i] = tern_model_identity(m);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(seen[k], seen[i]);
        tern_model_free(&m);
    }
    assert_int_equal(seen[0], tern_model_identity(engine_case.model));
}

/* Figures of open adapters. */
static void test_infos(void **state) {
    (void)state;
    const tern_adapter_info *infos;
    assert_int_equal(tern_model_adapters(engine_case.model, &infos), ADAPTERS);
    for (size_t i = 0; i < ADAPTERS; i++) {
        assert_string_equal(infos[i].path, paths[i]);
        assert_int_equal(infos[i].rank, 1 + 5 * i);
        assert_int_equal(infos[i].matrices, 7 * engine_case.info.n_layer);
        assert_true(infos[i].alpha == 16.0F && infos[i].bytes > 0 && infos[i].name[0] == '\0');
        assert_int_equal(strlen(infos[i].digest), 64);
    }
    assert_true(infos[0].scale == 0.5F && infos[1].scale == 0.0F);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_together), cmocka_unit_test(test_scalar),
        cmocka_unit_test(test_pages),    cmocka_unit_test(test_refused),
        cmocka_unit_test(test_session),  cmocka_unit_test(test_identity),
        cmocka_unit_test(test_infos),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
