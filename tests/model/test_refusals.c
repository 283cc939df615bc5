/* SPDX-License-Identifier: Apache-2.0 */
/* Each refusal that the requirements list (M88 to M100) returns its own code and no other's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "tests/support/check.h"
#include "tests/support/little_memory.h"
#include "tests/support/tiny_model.h"

enum { CONTEXT = 24, MAX_FILE = 8 << 20 };

/* ---- models ---------------------------------------------------------------------------------- */

/* Overwrites a number in the metadata of a model in memory. */
static void set_number(uint8_t *bytes, size_t size, const char *key, uint32_t value) {
    const size_t length = strlen(key);
    for (size_t at = 8; at + length + 8 <= size; at++)
        if (memcmp(bytes + at, key, length) == 0) { /* after the key: its type, then the value */
            memcpy(bytes + at + length + 4, &value, sizeof value);
            return;
        }
    check_fail("no key %s", key);
}

/* The status of opening bitnet-tiny if the key has this value. */
static tern_status opened_with(const char *key, uint32_t value) {
    char path[TINY_PATH_BYTES];
    const tern_model_params params = {.no_weights = true};
    tern_error err = {0};
    tern_model *model = NULL;
    tiny_file file = tiny_read("bitnet-tiny");
    uint8_t *bytes = malloc(MAX_FILE);
    assert_non_null(bytes);
    tiny_path(path);
    tiny_write(&file, path);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    const size_t size = fread(bytes, 1, MAX_FILE, f);
    set_number(bytes, size, key, value);
    rewind(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
    const tern_status status = tern_model_open(path, &params, &model, &err);
    assert_int_equal(status, err.status);
    unlink(path);
    free(bytes);
    tiny_file_free(&file);
    tern_model_free(&model);
    return status;
}

static void test_models(void **state) {
    static const struct {
        const char *key;
        uint32_t value;
        tern_status status;
    } cases[] = {
        {"attention.head_count_kv", 0, TERN_ERR_NO_KV_HEADS}, /* M95 */
        {"attention.head_count_kv", 3, TERN_ERR_HEADS},       /* M96 */
        {"block_count", 0, TERN_ERR_NO_SIZE},                 /* M97 */
        {"embedding_length", 0, TERN_ERR_NO_SIZE},
        {"feed_forward_length", 0, TERN_ERR_NO_SIZE},
        {"attention.head_count", 0, TERN_ERR_NO_SIZE},
        {"block_count", 1u << 31, TERN_ERR_KEY_RANGE},
        {"context_length", 0, TERN_ERR_KEY_RANGE},
        {"rope.dimension_count", 65, TERN_ERR_CONFIG},
        {"context_length", 512, TERN_OK}, /* its own value: the file is otherwise sound */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char key[128];
        snprintf(key, sizeof key, "bitnet-b1.58.%s", cases[i].key);
        check_case("%s is %u", key, cases[i].value);
        assert_int_equal(opened_with(key, cases[i].value), cases[i].status);
    }
}

/* ---- sessions -------------------------------------------------------------------------------- */

static tern_status evaluated(tern_session *s, const int32_t *tokens, size_t n, float *logits) {
    tern_error err = {0};
    const tern_status status = tern_session_eval(s, tokens, n, TERN_LOGITS_LAST, logits, &err);
    assert_int_equal(status, err.status);
    return status;
}

static void test_evaluation(void **state) {
    (void)state;
    tern_model *model = tiny_open("bitnet-tiny", NULL);
    tern_session *s = tiny_session(
        model, (tern_session_params){.n_ctx = CONTEXT, .threads = 1, .kv = TERN_FORMAT_F16});
    float *logits = tern_session_logits(s);
    int32_t tokens[CONTEXT + 1] = {0};
    const int32_t outside[] = {515};
    const float *last;
    check_case("evaluation");
    assert_int_equal(tern_session_last_logits(s, &last, NULL), TERN_ERR_STATE);
    assert_int_equal(evaluated(NULL, tokens, 1, logits), TERN_ERR_NULL); /* M90 */
    assert_int_equal(evaluated(s, NULL, 1, logits), TERN_ERR_NULL);
    assert_int_equal(evaluated(s, tokens, 1, NULL), TERN_ERR_NULL);
    assert_int_equal(evaluated(s, tokens, 0, logits), TERN_ERR_EMPTY);             /* M91 */
    assert_int_equal(evaluated(s, tokens, CONTEXT + 1, logits), TERN_ERR_CONTEXT); /* M93 */
    assert_int_equal(evaluated(s, outside, 1, logits), TERN_ERR_TOKEN_RANGE);      /* M94 */
    assert_int_equal(evaluated(s, tokens, 1, logits + 1), TERN_ERR_UNALIGNED);     /* M100 */
    assert_int_equal(evaluated(s, tokens, CONTEXT, logits), TERN_OK);
    assert_int_equal(evaluated(s, tokens, 1, logits), TERN_ERR_FULL); /* M92 */
    assert_int_equal(tern_session_rewind(s, CONTEXT + 1, NULL), TERN_ERR_POSITION);
    assert_int_equal(tern_session_rewind(s, CONTEXT - 2, NULL), TERN_OK);
    assert_int_equal(evaluated(s, tokens, 3, logits), TERN_ERR_FULL);
    tern_session_free(&s);
    tern_model_free(&model);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void test_arena(void **state) { /* M88 */
    tern_arena arena;
    void *piece;
    (void)state;
    assert_int_equal(tern_arena_new(64, false, &arena, NULL), TERN_OK);
    assert_int_equal(tern_arena_take(&arena, 65, 1, &piece, NULL), TERN_ERR_ARENA);
    tern_arena_free(&arena);
}

#ifdef LITTLE_MEMORY_WORKS
static void test_memory(void **state) {
    (void)state;
    const tern_session_params params = {.n_batch = 512, .threads = 1, .kv = TERN_FORMAT_F32};
    tern_model *model = tiny_open("bitnet-tiny", NULL);
    uint64_t bytes = 0;
    check_case("memory");
    assert_int_equal(tern_session_bytes(model, &params, &bytes, NULL), TERN_OK);
    const uint64_t cache = tern_model_kv_bytes(model, 512, TERN_FORMAT_F32);
    const uint64_t scratch = bytes - cache;
    assert_int_equal(opened_within(model, &params, cache / 2, NULL),
                     TERN_ERR_CACHE_MEMORY); /* M98 */
    assert_int_equal(opened_within(model, &params, cache + scratch / 2, NULL),
                     TERN_ERR_SCRATCH_MEMORY); /* M99 */
    assert_int_equal(opened_within(model, &params, bytes + (1 << 20), NULL), TERN_OK);
    tern_model_free(&model);
}
#define MEMORY_TEST cmocka_unit_test(test_memory),
#else
#define MEMORY_TEST
#endif

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_models),
                                       cmocka_unit_test(test_evaluation),
                                       cmocka_unit_test(test_arena), MEMORY_TEST};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
