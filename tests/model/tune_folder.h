/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_MODEL_TUNE_FOLDER_H
#define TERN_TESTS_MODEL_TUNE_FOLDER_H

/* Small models, and a folder for their choices. */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash64.h"
#include "runtime/model/model.h"
#include "runtime/model/tune/file.h"
#include "runtime/model/tune_model.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

enum { TOKENS = 5 };

static char folder_path[64];

static inline int make_folder(void **state) {
    (void)state;
    snprintf(folder_path, sizeof folder_path, "/tmp/tern-tune-XXXXXX");
    return mkdtemp(folder_path) == NULL;
}

/* Removes every file. Returns how many of them held choices. */
static inline size_t empty_folder(void) {
    DIR *d = opendir(folder_path);
    size_t n = 0;
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.') {
            assert_int_equal(unlinkat(dirfd(d), e->d_name, 0), 0);
            n += strncmp(e->d_name, "tuning-", 7) == 0;
        }
    closedir(d);
    return n;
}

static inline int remove_folder(void **state) {
    (void)state;
    (void)empty_folder();
    return rmdir(folder_path);
}

static inline void file_of(const tern_guard *guard, char *path, size_t size) {
    const tern_tune_machine machine = tern_tune_this_machine(guard);
    char name[TERN_TUNE_NAME_BYTES];
    tern_tune_name(&machine, name);
    snprintf(path, size, "%s/%s", folder_path, name);
}

static inline char *model_path(const char *preset) {
    static char path[TINY_PATH_BYTES];
    tiny_file file = tiny_read(preset);
    tiny_path(path);
    tiny_write(&file, path);
    tiny_file_free(&file);
    return path;
}

/* A hash of the logits of a prompt, and of one more token. */
static inline uint64_t answer(const tern_model *model, uint32_t threads) {
    int32_t tokens[TOKENS];
    tern_model_info info;
    tern_hash64 h;
    tern_session *s = tiny_session(
        model, (tern_session_params){.n_ctx = 16, .threads = threads, .kv = TERN_FORMAT_F16});
    tern_model_describe(model, &info);
    tiny_prompt(model, 3, tokens, TOKENS);
    float *logits = tiny_floats((size_t)TOKENS * info.n_vocab);
    tern_hash64_start(&h);
    assert_int_equal(tern_session_eval(s, tokens, TOKENS, TERN_LOGITS_ALL, logits, NULL), TERN_OK);
    tern_hash64_add(&h, logits, (size_t)TOKENS * info.n_vocab * sizeof *logits);
    assert_int_equal(tern_session_eval(s, tokens, 1, TERN_LOGITS_LAST, logits, NULL), TERN_OK);
    tern_hash64_add(&h, logits, info.n_vocab * sizeof *logits);
    free(logits);
    tern_session_free(&s);
    return tern_hash64_value(&h);
}

static inline uint64_t untuned_answer(const char *path) {
    tern_model *model = NULL;
    assert_int_equal(tern_model_open(path, NULL, &model, NULL), TERN_OK);
    assert_string_equal(tern_model_choice(model), "table");
    const uint64_t hash = answer(model, 1);
    tern_model_free(&model);
    return hash;
}

/* Stores candidate i (modulo their number) of each operation as the choice for every key of the
 * model, with gemm in gemv's layout. Returns false if i is beyond all of them. */
static inline bool force(const char *path, uint32_t threads, size_t i) {
    tern_tune_key keys[TERN_TUNE_KEYS];
    tern_cache_folder *folder = NULL;
    tern_model_params params = tern_model_params_default();
    tern_model *model = NULL;
    tern_tuning forced = {.n = 0};
    bool any = false;
    params.no_weights = true;
    assert_int_equal(tern_model_open(path, &params, &model, NULL), TERN_OK);
    const size_t n = tern_tune_keys(model, threads, keys);
    for (size_t k = 0; k < n; k++) {
        const tern_kernel_row *gemv[TERN_TUNE_CANDIDATES], *gemm[TERN_TUNE_CANDIDATES];
        const size_t n_gemv =
            tern_tune_candidates(&model->guard, TERN_OP_GEMV, keys[k].format, gemv);
        const size_t n_gemm =
            tern_tune_candidates(&model->guard, TERN_OP_GEMM, keys[k].format, gemm);
        tern_tune_choice choice = {.key = keys[k], .gemv = gemv[i % n_gemv]};
        choice.layout = choice.gemv->layout;
        for (size_t m = 0; m < n_gemm; m++) /* for odd i, the last one of the layout */
            if (gemm[m]->layout == choice.layout && (choice.gemm == NULL || i % 2))
                choice.gemm = gemm[m];
        any = any || i < n_gemv || i < n_gemm;
        assert_int_equal(tern_tuning_set(&forced, &choice, NULL), TERN_OK);
    }
    assert_int_equal(tern_cache_folder_open(folder_path, &folder, NULL), TERN_OK);
    assert_int_equal(tern_tune_save(folder, &model->guard, &forced, NULL), TERN_OK);
    tern_cache_folder_close(&folder);
    tern_tuning_free(&forced);
    tern_model_free(&model);
    return any;
}

#endif
