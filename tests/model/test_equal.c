/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices with equal bytes share one place in memory, and no bit of an answer changes. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "authoring/synth.h"
#include "runtime/model/model.h"
#include "tern/inspect.h"
#include "tests/support/check.h"
#include "tests/support/sanitized.h"
#include "tests/support/tiny_model.h"

enum { TOKENS = 4, MIB = 1 << 20 };

static tern_model *open_file(const char *path, tern_model *share, bool exact_head) {
    const tern_model_params params = {.threads = 2, .share = share, .exact_head = exact_head};
    tern_error err = {.status = TERN_OK};
    tern_model *model = NULL;
    if (tern_model_open(path, &params, &model, &err) != TERN_OK)
        check_fail("%s", err.message);
    return model;
}

/* Logits of a fixed prompt. The caller frees them. */
static float *logits_of(const tern_model *model) {
    int32_t ids[TOKENS];
    tern_model_info info;
    tern_model_describe(model, &info);
    tiny_prompt(model, 3, ids, TOKENS);
    tern_session *s = tiny_session(model, (tern_session_params){.threads = 2});
    float *copy = tiny_floats(info.n_vocab);
    memcpy(copy, tiny_eval(s, ids, TOKENS), info.n_vocab * sizeof *copy);
    tern_session_free(&s);
    return copy;
}

static uint64_t equal_bytes(const tern_model *model) {
    tern_model_info info;
    tern_model_describe(model, &info);
    return info.equal_bytes;
}

/* Matrix i of a layer, among those that the blocks have. */
static const tern_linear *linear_of(const tern_model *m, uint32_t layer, size_t i) {
    return tern_layer_linear(&m->layers[layer], tern_block_linear_at(m->config.arch, 0, i));
}

static const tern_matrix *matrix_of(const tern_model *m, uint32_t layer, size_t i) {
    return &linear_of(m, layer, i)->matrix;
}

/* Copies the first block's matrices to the second block. */
static void repeat_block(tiny_file *file) {
    for (size_t i = 0; i < file->n; i++) {
        const tiny_tensor *source = &file->tensors[i];
        char to[64];
        if (strncmp(source->name, "blk.0.", 6) != 0 || source->n_dims < 2)
            continue;
        snprintf(to, sizeof to, "blk.1.%s", source->name + 6);
        tiny_tensor *target = tiny_find(file, to);
        assert_int_equal(source->bytes, target->bytes);
        memcpy(target->data, source->data, source->bytes);
    }
}

/* Changes one matrix of the first block: rotates its rows by one. */
static void change_a_matrix(tiny_file *file) {
    tiny_tensor *t = tiny_find(file, "blk.0.attn_output.weight");
    const size_t row = t->bytes / t->ne[1];
    uint8_t *first = malloc(row);
    assert_non_null(first);
    memcpy(first, t->data, row);
    memmove(t->data, t->data + row, (t->ne[1] - 1) * row);
    memcpy(t->data + (t->ne[1] - 1) * row, first, row);
    free(first);
}

/* A matrix of one row is a vector in the file, of which each model and block has its own. */
static bool is_vector(const tern_model *model, size_t i) {
    return matrix_of(model, 0, i)->rows == 1;
}

/* ---- within a model -------------------------------------------------------------------------- */

/* A repeated block shares its matrices with the first one. The original blocks have no equal
 * matrices. */
static void check_repeated(const char *preset) {
    char repeated_path[TINY_PATH_BYTES], single_path[TINY_PATH_BYTES];
    uint64_t bytes = 0;
    check_case("%s", preset);
    tiny_path(repeated_path);
    tiny_path(single_path);
    tiny_file file = tiny_read(preset);
    tiny_write(&file, single_path);
    repeat_block(&file);
    tiny_write(&file, repeated_path);
    tern_model *repeated = open_file(repeated_path, NULL, false);
    tern_model *single = open_file(single_path, NULL, false);
    assert_int_equal(equal_bytes(single), 0);
    for (size_t i = 0; i < tern_block_linears(single->config.arch, 0); i++) {
        const tern_matrix *first = matrix_of(repeated, 0, i), *second = matrix_of(repeated, 1, i);
        if (is_vector(single, i))
            continue;
        assert_ptr_equal(first->data, second->data);
        assert_ptr_not_equal(matrix_of(single, 0, i)->data, matrix_of(single, 1, i)->data);
        const size_t size = (size_t)tern_linear_bytes(linear_of(single, 0, i));
        check_bytes(tern_block_matrix(tern_block_linear_at(single->config.arch, 0, i))->name,
                    matrix_of(single, 0, i)->data, second->data, size);
        bytes += size;
    }
    assert_int_equal(equal_bytes(repeated), bytes);
    tern_model_free(&repeated);
    tern_model_free(&single);
    tiny_file_free(&file);
    unlink(repeated_path);
    unlink(single_path);
}

static void test_within_a_model(void **state) {
    (void)state;
    for (size_t i = 0; tiny_presets()[i] != NULL; i++)
        if (!tiny_mixes_layers(tiny_presets()[i])) /* its blocks differ */
            check_repeated(tiny_presets()[i]);
}

/* An output head that equals the embedding. Its weights are checked nevertheless. */
static void test_head(void **state) {
    char path[TINY_PATH_BYTES];
    tern_error err = {.status = TERN_OK};
    tern_model *model = NULL;
    (void)state;
    tiny_path(path);
    tiny_file file = tiny_read("llama-tiny-f16");
    const tiny_tensor *embedding = tiny_find(&file, "token_embd.weight");
    tiny_tensor *head =
        tiny_add(&file, "output.weight", TERN_FORMAT_F16, embedding->ne[0], embedding->ne[1]);
    embedding = tiny_find(&file, "token_embd.weight");
    memcpy(head->data, embedding->data, head->bytes);
    tiny_write(&file, path);
    model = open_file(path, NULL, true);
    assert_ptr_equal(model->own.head.matrix.data, model->own.embedding.data);
    assert_int_equal(equal_bytes(model), head->bytes);
    tern_model_free(&model);
    memcpy(head->data, "\x00\x7c", 2); /* an infinity in both */
    memcpy(embedding->data, "\x00\x7c", 2);
    tiny_write(&file, path);
    assert_int_equal(tern_model_open(path, NULL, &model, &err), TERN_ERR_TENSOR_DATA);
    tiny_file_free(&file);
    unlink(path);
}

/* its memory remains */

static void check_two_models(const char *preset, bool exact_head) {
    char base_path[TINY_PATH_BYTES], tuned_path[TINY_PATH_BYTES];
    check_case("%s", preset);
    tiny_path(base_path);
    tiny_path(tuned_path);
    tiny_file file = tiny_read(preset);
    tiny_write(&file, base_path);
    change_a_matrix(&file);
    tiny_write(&file, tuned_path);
    tiny_file_free(&file);
    tern_model *alone = open_file(tuned_path, NULL, exact_head);
    tern_model *base = open_file(base_path, NULL, exact_head);
    tern_model *tuned = open_file(tuned_path, base, exact_head);
    for (uint32_t n = 0; n < 2; n++)
        for (size_t i = 0; i < tern_block_linears(base->config.arch, 0); i++) {
            const bool is_changed =
                n == 0 && tern_block_linear_at(base->config.arch, 0, i) == 3; /* attn_output */
            const bool is_shared = matrix_of(base, n, i)->data == matrix_of(tuned, n, i)->data;
            assert_int_equal(is_shared, !is_changed && !is_vector(base, i));
        }
    assert_ptr_equal(base->own.head.matrix.data, tuned->own.head.matrix.data);
    assert_ptr_equal(base->image.scan.matrix.data, tuned->image.scan.matrix.data);
    float *other = logits_of(base);
    tern_model_free(&base); /* its memory stays */
    float *expected = logits_of(alone), *got = logits_of(tuned);
    assert_int_not_equal(memcmp(other, expected, sizeof(float) * 16), 0);
    check_floats("logits", expected, got, alone->config.n_vocab);
    free(other);
    free(expected);
    free(got);
    tern_model_free(&tuned);
    tern_model_free(&alone);
    unlink(base_path);
    unlink(tuned_path);
}

static void test_two_models(void **state) {
    (void)state;
    for (size_t i = 0; tiny_presets()[i] != NULL; i++)
        if (!tiny_mixes_layers(tiny_presets()[i])) /* its blocks differ */
            check_two_models(tiny_presets()[i], false);
    check_two_models("llama-tiny-f16", true);
}

/* ---- several models -------------------------------------------------------------------------- */

static tern_sharing sharing(const tern_model *model) {
    tern_sharing s;
    tern_model_sharing(model, &s);
    return s;
}

/*
 * Three models, the last two beside their predecessor: what the first holds is read by all, also
 * when it is gone, and goes with the last reader. Each figure follows from the bytes of the
 * matrices.
 */
static void test_three_models(void **state) {
    char base_path[TINY_PATH_BYTES], tuned_path[TINY_PATH_BYTES];
    (void)state;
    tiny_path(base_path);
    tiny_path(tuned_path);
    tiny_file file = tiny_read("llama-tiny-q4_0");
    tiny_write(&file, base_path);
    change_a_matrix(&file);
    tiny_write(&file, tuned_path);
    tiny_file_free(&file);
    tern_model *base = open_file(base_path, NULL, false);
    assert_int_equal(sharing(base).shared_bytes, 0);
    tern_model *tuned = open_file(tuned_path, base, false);
    const uint64_t common = sharing(base).saved_bytes;
    assert_true(common > 0);
    assert_int_equal(sharing(base).shared_bytes, common);
    assert_int_equal(sharing(tuned).shared_bytes, common);
    tern_model *again = open_file(tuned_path, tuned, false);
    const uint64_t changed = tern_linear_bytes(linear_of(tuned, 0, 3));
    assert_ptr_equal(matrix_of(again, 0, 0)->data, matrix_of(base, 0, 0)->data);
    assert_ptr_equal(matrix_of(again, 0, 3)->data, matrix_of(tuned, 0, 3)->data);
    assert_int_equal(sharing(again).shared_bytes, common + changed);
    assert_int_equal(sharing(base).saved_bytes, 2 * common + changed);
    float *expected = logits_of(tuned);
    tern_model_free(&base);
    assert_int_equal(sharing(again).saved_bytes, common + changed);
    tern_model_free(&tuned);
    assert_int_equal(sharing(again).saved_bytes, 0);
    assert_int_equal(sharing(again).shared_bytes, 0);
    float *got = logits_of(again);
    check_floats("logits", expected, got, again->config.n_vocab);
    tuned = open_file(tuned_path, again, false); /* what those that are gone hold is found */
    assert_int_equal(sharing(again).saved_bytes, common + changed);
    tern_model_free(&again);
    tern_model_free(&tuned);
    free(expected);
    free(got);
    unlink(base_path);
    unlink(tuned_path);
}

/* A model that shares nothing keeps no other in memory, and its bytes are not compared. */
static void test_strangers(void **state) {
    char one_path[TINY_PATH_BYTES], other_path[TINY_PATH_BYTES];
    tern_model_loading loading;
    (void)state;
    tiny_path(one_path);
    tiny_path(other_path);
    tiny_file one = tiny_read("llama-tiny-q4_0"), other = tiny_read("bitnet-tiny");
    tiny_write(&one, one_path);
    tiny_write(&other, other_path);
    tern_model *first = open_file(one_path, NULL, false);
    tern_model *second = open_file(other_path, first, false);
    tern_model_describe_loading(second, &loading);
    assert_int_equal(loading.compared_bytes, 0);
    assert_int_equal(second->n_sources, 0);
    assert_int_equal(first->users, 1);
    assert_int_equal(sharing(first).saved_bytes, 0);
    tern_model_free(&first);
    tern_model_free(&second);
    tiny_file_free(&one);
    tiny_file_free(&other);
    unlink(one_path);
    unlink(other_path);
}

/* Models come and go in several threads, beside one that stays, and compute meanwhile. */
enum { THREADS = 3, ROUNDS = 3 };

typedef struct visitor {
    char path[TINY_PATH_BYTES];
    tern_model *base;
    const float *expected;
    bool differs;
} visitor;

static void *visit(void *user) {
    visitor *v = user;
    for (int i = 0; i < ROUNDS; i++) {
        tern_model *first = open_file(v->path, v->base, false);
        tern_model *second = open_file(v->path, first, false);
        tern_model_free(&first);
        float *got = logits_of(second);
        const size_t size = second->config.n_vocab * sizeof *got;
        v->differs |= memcmp(got, v->expected, size) != 0;
        tern_model_free(&second);
        free(got);
    }
    return NULL;
}

static void test_threads(void **state) {
    char base_path[TINY_PATH_BYTES];
    pthread_t threads[THREADS];
    visitor v = {.differs = false}, all[THREADS];
    (void)state;
    tiny_path(base_path);
    tiny_path(v.path);
    tiny_file file = tiny_read("llama-tiny-q4_0");
    tiny_write(&file, base_path);
    change_a_matrix(&file);
    tiny_write(&file, v.path);
    tiny_file_free(&file);
    tern_model *alone = open_file(v.path, NULL, false);
    float *expected = logits_of(alone);
    tern_model_free(&alone);
    v.base = open_file(base_path, NULL, false);
    v.expected = expected;
    for (size_t i = 0; i < THREADS; i++) {
        all[i] = v;
        assert_int_equal(pthread_create(&threads[i], NULL, visit, &all[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_false(all[i].differs);
    }
    assert_int_equal(v.base->users, 1);
    assert_int_equal(sharing(v.base).saved_bytes, 0);
    tern_model_free(&v.base);
    free(expected);
    unlink(base_path);
    unlink(v.path);
}

/* The same bytes with another order of codes are other weights. */
static void test_other_reading(void **state) {
    char path[TINY_PATH_BYTES];
    tern_model_params params = {.threads = 1};
    tern_model *same = NULL, *other = NULL;
    (void)state;
    tiny_path(path);
    tiny_file file = tiny_read("bitnet-tiny");
    tiny_write(&file, path);
    tern_model *base = open_file(path, NULL, false);
    params.share = base;
    assert_int_equal(tern_model_open(path, &params, &same, NULL), TERN_OK);
    params.i2s_order = (tern_i2s_order)(TERN_I2S_UNITS_128 + 1);
    assert_int_equal(tern_model_open(path, &params, &other, NULL), TERN_OK);
    assert_ptr_equal(matrix_of(base, 0, 0)->data, matrix_of(same, 0, 0)->data);
    assert_ptr_not_equal(matrix_of(base, 0, 0)->data, matrix_of(other, 0, 0)->data);
    assert_int_equal(equal_bytes(other), 0);
    tern_model_free(&base);
    tern_model_free(&other);
    tern_model_free(&same);
    tiny_file_free(&file);
    unlink(path);
}

/* ---- memory ---------------------------------------------------------------------------------- */

#ifndef SANITIZED
/* Resident memory of this process, as the system counts it. */
static int64_t resident(void) {
    long long pages = 0, all = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lld %lld", &all, &pages), 2);
    fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

/* Changes a code in every row of the matrices of the last six of 30 blocks. */
static void fine_tune(const char *path) {
    struct stat info;
    tern_gguf *file;
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &info), 0);
    const size_t size = (size_t)info.st_size;
    uint8_t *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(bytes != MAP_FAILED);
    assert_int_equal(tern_gguf_parse(bytes, size, path, &file, NULL), TERN_OK);
    for (size_t i = 0; i < tern_gguf_tensor_count(file); i++) {
        const tern_gguf_tensor *t = tern_gguf_tensor_at(file, i);
        int block = -1;
        (void)sscanf(t->name.data, "blk.%d.", &block);
        uint8_t *data = bytes + (t->data - bytes);
        for (uint64_t r = 0; block >= 24 && t->ne[1] > 1 && r < t->ne[1]; r++)
            data[(r + 1) * (t->bytes / t->ne[1]) - 1] ^= 0x11;
    }
    tern_gguf_close(&file);
    munmap(bytes, size);
    close(fd);
}

/* Memory that opening the model takes, in bytes. */
static int64_t cost_of(const char *path, tern_model *share, tern_model_info *info) {
    const int64_t before = resident();
    tern_model *model = open_file(path, share, false);
    const int64_t cost = resident() - before;
    tern_model_describe(model, info);
    tern_model_free(&model);
    return cost;
}

/* A fine-tune that differs from its base in the last 6 of 30 blocks, beside its base. */
static void test_memory(void **state) {
    char base_path[TINY_PATH_BYTES], tuned_path[TINY_PATH_BYTES];
    tern_error err = {.status = TERN_OK};
    tern_model_info alone, beside;
    (void)state;
    tiny_path(base_path);
    tiny_path(tuned_path);
    for (int i = 0; i < 2; i++)
        if (tern_synth("smollm2-135m", i ? tuned_path : base_path, TERN_OUT_REPLACE, 1, NULL, NULL,
                       &err) != TERN_OK)
            check_fail("%s", err.message);
    fine_tune(tuned_path);
    tern_model *base = open_file(base_path, NULL, false);
    const int64_t shared = cost_of(tuned_path, base, &beside);
    const int64_t whole = cost_of(tuned_path, NULL, &alone);
    print_message("alone %lld MiB, beside its base %lld MiB, equal matrices %llu MiB\n",
                  (long long)whole / MIB, (long long)shared / MIB,
                  (unsigned long long)beside.equal_bytes / MIB);
    assert_int_equal(alone.equal_bytes, 0);
    assert_true(beside.equal_bytes > alone.packed_bytes / 4 * 3);
    assert_true(whole - shared >= (int64_t)beside.equal_bytes - 6 * MIB); /* pages of 2 MiB */

    /* The base goes first, and keeps only what the other one reads; that goes with it. */
    const int64_t with_base = resident();
    tern_model *tuned = open_file(tuned_path, base, false);
    const int64_t both = resident();
    tern_model_free(&base);
    const int64_t left = both - resident();
    tern_model_free(&tuned);
    const int64_t all = with_base - resident();
    print_message("the base gives %lld MiB back at once, %lld MiB in the end\n",
                  (long long)left / MIB, (long long)all / MIB);
    assert_true(left >= (int64_t)(alone.packed_bytes - beside.equal_bytes) - 6 * MIB);
    assert_true(all >= (int64_t)alone.packed_bytes - 6 * MIB);
    unlink(base_path);
    unlink(tuned_path);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_within_a_model), cmocka_unit_test(test_head),
        cmocka_unit_test(test_two_models),     cmocka_unit_test(test_other_reading),
        cmocka_unit_test(test_three_models),   cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_threads),
#ifndef SANITIZED
        cmocka_unit_test(test_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
