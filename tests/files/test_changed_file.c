/* SPDX-License-Identifier: Apache-2.0 */
/* A model's file that is changed or loses its name between two answers. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "authoring/synth.h"
#include "tern/gguf.h"
#include "tern/inspect.h"
#include "tern/tern.h"
#include "tests/support/check.h"

static char folder[] = "/tmp/tern-test-changed-XXXXXX";
static char path[sizeof folder + 16];
static tern_model *model;

static int open_model(void **state) {
    tern_error err = {0};
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    (void)snprintf(path, sizeof path, "%s/m.gguf", folder);
    if (tern_synth("bitnet-tiny", path, TERN_OUT_NEW, 1, NULL, NULL, &err) != TERN_OK ||
        tern_model_open(path, NULL, &model, &err) != TERN_OK) {
        print_error("%s\n", err.message);
        return -1;
    }
    return 0;
}

static int close_model(void **state) {
    (void)state;
    tern_model_free(&model);
    return unlink(path) == 0 && rmdir(folder) == 0 ? 0 : -1;
}

static tern_status generate(tern_error *err) {
    const tern_generate_params params = {.max_tokens = 2, .ignore_end = true};
    const tern_sampler_params sampling = tern_sampler_params_default();
    const int32_t prompt[] = {5, 77, 12};
    tern_session_params size = tern_session_params_default();
    tern_session *session = NULL;
    tern_sampler *sampler = NULL;
    tern_model_info info;
    tern_model_describe(model, &info);
    size.n_ctx = 16;
    assert_int_equal(tern_session_new(model, &size, &session, NULL), TERN_OK);
    assert_int_equal(tern_sampler_new(&sampling, info.n_vocab, &sampler, NULL), TERN_OK);
    const tern_status status =
        tern_generate(session, sampler, prompt, 3, &params, NULL, NULL, NULL, err);
    tern_sampler_free(&sampler);
    tern_session_free(&session);
    return status;
}

static void set_times(const struct timespec times[2]) {
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* An answer is valid while the file is unchanged, and so is a digest of the file. */
static void test_written_to(void **state) {
    const tern_gguf *file = tern_model_file(model);
    char hex[65];
    struct stat was;
    tern_error err = {0};
    (void)state;
    assert_int_equal(generate(NULL), TERN_OK);
    assert_int_equal(stat(path, &was), 0);
    set_times((const struct timespec[]){{.tv_sec = 1}, {.tv_sec = 1}});
    assert_int_equal(generate(&err), TERN_ERR_CHANGED);
    assert_memory_equal(err.message, path, strlen(path));
    assert_int_equal(tern_gguf_part_sha256(file, 0, hex, NULL), TERN_ERR_CHANGED);
    set_times((const struct timespec[]){was.st_atim, was.st_mtim});
    assert_int_equal(generate(NULL), TERN_OK);
}

/* Another file that takes over the model's name changes nothing. Its digest is not used either. */
static void test_other_of_its_name(void **state) {
    const tern_gguf *file = tern_model_file(model);
    char hex[65], now[65], kept[sizeof path + 8];
    (void)state;
    assert_int_equal(tern_gguf_part_sha256(file, 0, hex, NULL), TERN_OK);
    (void)snprintf(kept, sizeof kept, "%s.kept", path);
    assert_int_equal(rename(path, kept), 0);
    assert_int_equal(tern_synth("bitnet-tiny", path, TERN_OUT_NEW, 2, NULL, NULL, NULL), TERN_OK);
    assert_int_equal(generate(NULL), TERN_OK);
    assert_int_equal(tern_gguf_part_sha256(file, 0, now, NULL), TERN_OK);
    assert_string_equal(now, hex);
    assert_int_equal(rename(kept, path), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written_to),
        cmocka_unit_test(test_other_of_its_name),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
