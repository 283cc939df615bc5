/* SPDX-License-Identifier: Apache-2.0 */
/* The GGUF writer: round trips through the reader, and refusals. No half-written file stays. */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "authoring/gguf_writer.h"
#include "tests/support/check.h"

/* A new empty folder, and a path in it. */
typedef struct folder {
    char path[64];
    char file[80];
} folder;

static int folder_new(void **state) {
    folder *f = calloc(1, sizeof *f);
    assert_non_null(f);
    strcpy(f->path, "/tmp/tern-writer-XXXXXX");
    assert_non_null(mkdtemp(f->path));
    snprintf(f->file, sizeof f->file, "%s/model.gguf", f->path);
    *state = f;
    return 0;
}

static int folder_free(void **state) {
    folder *f = *state;
    chmod(f->path, 0700);
    unlink(f->file);
    int status = rmdir(f->path); /* fails the test if anything else is left */
    free(f);
    return status;
}

static int count_entries(const char *path) {
    DIR *dir = opendir(path);
    assert_non_null(dir);
    int n = -2; /* . and .. */
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

static tern_gguf_writer *writer_new(const folder *f) {
    tern_gguf_writer *w = NULL;
    tern_error err = {0};
    assert_int_equal(tern_gguf_writer_new(f->file, TERN_OUT_REPLACE, &w, &err), TERN_OK);
    return w;
}

static void put_metadata(tern_gguf_writer *w) {
    static const float scores[] = {0.5f, -1.25f};
    static const int32_t types[] = {1, -3, 6};
    static const tern_span tokens[] = {{"a", 1}, {"", 0}, {"b\0\xff", 3}};
    tern_gguf_put_string(w, "general.architecture", "llama");
    tern_gguf_put_u32(w, "llama.block_count", 2);
    tern_gguf_put_f32(w, "llama.eps", 1e-5f);
    tern_gguf_put_bool(w, "add_bos", true);
    tern_gguf_put_strings(w, "tokens", tokens, 3);
    tern_gguf_put_f32s(w, "scores", scores, 2);
    tern_gguf_put_i32s(w, "types", types, 3);
    tern_gguf_put_i32s(w, "empty", NULL, 0);
}

static void check_strings(const tern_gguf *file) {
    const tern_gguf_value *tokens = NULL;
    assert_int_equal(tern_gguf_array(file, "tokens", TERN_GGUF_STRING, &tokens, NULL), TERN_OK);
    assert_int_equal(tokens->count, 3);
    const uint8_t *cursor = tokens->data;
    tern_span s = tern_gguf_next_string(&cursor);
    assert_int_equal(s.size, 1);
    assert_memory_equal(s.data, "a", 1);
    s = tern_gguf_next_string(&cursor);
    assert_int_equal(s.size, 0);
    s = tern_gguf_next_string(&cursor);
    assert_int_equal(s.size, 3);
    assert_memory_equal(s.data, "b\0\xff", 3);
}

static void check_metadata(const tern_gguf *file) {
    uint32_t u = 0;
    float f = 0;
    bool b = false;
    tern_span s = {NULL, 0};
    const tern_gguf_value *array = NULL;
    assert_int_equal(tern_gguf_value_count(file), 8);
    assert_int_equal(tern_gguf_string(file, "general.architecture", &s, NULL), TERN_OK);
    assert_int_equal(s.size, 5);
    assert_memory_equal(s.data, "llama", 5);
    assert_int_equal(tern_gguf_u32(file, "llama.block_count", &u, NULL), TERN_OK);
    assert_int_equal(u, 2);
    assert_int_equal(tern_gguf_f32(file, "llama.eps", &f, NULL), TERN_OK);
    assert_true(f == 1e-5f);
    assert_int_equal(tern_gguf_bool(file, "add_bos", &b, NULL), TERN_OK);
    assert_true(b);
    check_strings(file);
    assert_int_equal(tern_gguf_array(file, "scores", TERN_GGUF_F32, &array, NULL), TERN_OK);
    assert_int_equal(array->count, 2);
    assert_memory_equal(array->data, "\0\0\0\x3f\0\0\xa0\xbf", 8);
    assert_int_equal(tern_gguf_array(file, "types", TERN_GGUF_I32, &array, NULL), TERN_OK);
    assert_int_equal(array->count, 3);
    assert_memory_equal(array->data, "\1\0\0\0\xfd\xff\xff\xff\6\0\0\0", 12);
    assert_int_equal(tern_gguf_array(file, "empty", TERN_GGUF_I32, &array, NULL), TERN_OK);
    assert_int_equal(array->count, 0);
}

/* Three tensors, of which the middle one exceeds the writer's buffer, written in uneven pieces. */
static void put_tensors(tern_gguf_writer *w, const uint8_t *data, size_t middle) {
    tern_gguf_put_tensor(w, "first", 8, 2, (const uint64_t[]){32, 3}, 102);
    tern_gguf_put_tensor(w, "middle", 24, 1, (const uint64_t[]){middle}, middle);
    tern_gguf_put_tensor(w, "last", 0, 3, (const uint64_t[]){1, 2, 1}, 8);
    assert_int_equal(tern_gguf_writer_begin(w, NULL), TERN_OK);
    assert_int_equal(tern_gguf_writer_data(w, data, 1, NULL), TERN_OK);
    assert_int_equal(tern_gguf_writer_data(w, data, 0, NULL), TERN_OK);
    assert_int_equal(tern_gguf_writer_data(w, data + 1, 101, NULL), TERN_OK);
    assert_int_equal(tern_gguf_writer_data(w, data, 7, NULL), TERN_OK);
    assert_int_equal(tern_gguf_writer_data(w, data + 7, middle - 7, NULL), TERN_OK);
    assert_int_equal(tern_gguf_writer_data(w, data, 8, NULL), TERN_OK);
}

static void check_tensor(const tern_gguf *file, const char *name, const uint8_t *data,
                         uint64_t bytes) {
    const tern_gguf_tensor *t = tern_gguf_find_tensor(file, name);
    assert_non_null(t);
    assert_int_equal(t->bytes, bytes);
    assert_memory_equal(t->data, data, bytes);
}

static void test_round_trip(void **state) {
    const folder *f = *state;
    const size_t middle = (3 << 20) + 5;
    uint8_t *data = malloc(middle);
    assert_non_null(data);
    for (size_t i = 0; i < middle; i++)
        data[i] = (uint8_t)(i * 7 + i / 256);
    tern_gguf_writer *w = writer_new(f);
    put_metadata(w);
    put_tensors(w, data, middle);
    tern_error err = {0};
    assert_int_equal(tern_gguf_writer_finish(&w, &err), TERN_OK);
    assert_null(w);

    tern_gguf *file = NULL;
    assert_int_equal(tern_gguf_open(f->file, &file, &err), TERN_OK);
    check_metadata(file);
    assert_int_equal(tern_gguf_tensor_count(file), 3);
    check_tensor(file, "first", data, 102);
    check_tensor(file, "middle", data, middle);
    check_tensor(file, "last", data, 8);
    assert_int_equal(tern_gguf_find_tensor(file, "last")->ne[1], 2);
    assert_int_equal(tern_gguf_find_tensor(file, "last")->extent, 32); /* padded like the others */
    tern_gguf_close(&file);
    free(data);
}

static void test_copies_values(void **state) {
    const folder *f = *state;
    tern_error err = {0};
    tern_gguf_writer *w = writer_new(f);
    put_metadata(w);
    assert_int_equal(tern_gguf_writer_begin(w, &err), TERN_OK);
    assert_int_equal(tern_gguf_writer_finish(&w, &err), TERN_OK);
    tern_gguf *first = NULL, *second = NULL;
    assert_int_equal(tern_gguf_open(f->file, &first, &err), TERN_OK);

    char copy[300];
    snprintf(copy, sizeof copy, "%s.copy", f->file);
    assert_int_equal(tern_gguf_writer_new(copy, TERN_OUT_NEW, &w, &err), TERN_OK);
    for (size_t i = 0; i < tern_gguf_value_count(first); i++)
        tern_gguf_put_value(w, tern_gguf_value_at(first, i));
    assert_int_equal(tern_gguf_writer_begin(w, &err), TERN_OK);
    assert_int_equal(tern_gguf_writer_finish(&w, &err), TERN_OK);
    assert_int_equal(tern_gguf_open(copy, &second, &err), TERN_OK);
    check_metadata(second);
    assert_int_equal(tern_gguf_file_bytes(first), tern_gguf_file_bytes(second));
    tern_gguf_close(&first);
    tern_gguf_close(&second);
    assert_int_equal(unlink(copy), 0);
}

static void test_alignment(void **state) {
    const folder *f = *state;
    static const uint32_t alignments[] = {1, 64, 4096};
    static const uint8_t data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (size_t i = 0; i < 3; i++) {
        tern_error err = {0};
        tern_gguf_writer *w = writer_new(f);
        tern_gguf_put_u32(w, "general.alignment", alignments[i]);
        tern_gguf_put_tensor(w, "a", 24, 1, (const uint64_t[]){3}, 3);
        tern_gguf_put_tensor(w, "b", 24, 1, (const uint64_t[]){5}, 5);
        assert_int_equal(tern_gguf_writer_begin(w, &err), TERN_OK);
        assert_int_equal(tern_gguf_writer_data(w, data, 3, &err), TERN_OK);
        assert_int_equal(tern_gguf_writer_data(w, data, 5, &err), TERN_OK);
        assert_int_equal(tern_gguf_writer_finish(&w, &err), TERN_OK);
        tern_gguf *file = NULL;
        assert_int_equal(tern_gguf_open(f->file, &file, &err), TERN_OK);
        check_tensor(file, "a", data, 3);
        check_tensor(file, "b", data, 5);
        const uint8_t *a = tern_gguf_find_tensor(file, "a")->data;
        assert_int_equal(tern_gguf_find_tensor(file, "b")->data - a,
                         alignments[i] == 1 ? 3 : alignments[i]);
        assert_int_equal((uintptr_t)a % alignments[i], 0);
        tern_gguf_close(&file);
    }
}

static void test_abort_leaves_nothing(void **state) {
    const folder *f = *state;
    tern_gguf_writer *w = writer_new(f);
    put_metadata(w);
    tern_gguf_put_tensor(w, "a", 0, 1, (const uint64_t[]){1}, 4);
    assert_int_equal(tern_gguf_writer_begin(w, NULL), TERN_OK);
    tern_gguf_writer_abort(&w);
    assert_null(w);
    assert_int_equal(count_entries(f->path), 0);
    tern_gguf_writer_abort(&w);
    tern_gguf_writer_abort(NULL);
}

static void test_two_writers_and_leftovers(void **state) {
    const folder *f = *state;
    tern_gguf_writer *one = writer_new(f), *two = writer_new(f);
    assert_int_equal(tern_gguf_writer_begin(two, NULL), TERN_OK);
    assert_int_equal(tern_gguf_writer_finish(&two, NULL), TERN_OK);
    tern_gguf_writer_abort(&one);
    assert_int_equal(count_entries(f->path), 1);
}

static void test_missing_data(void **state) {
    const folder *f = *state;
    tern_error err = {0};
    tern_gguf_writer *w = writer_new(f);
    tern_gguf_put_tensor(w, "a", 0, 1, (const uint64_t[]){2}, 8);
    assert_int_equal(tern_gguf_writer_begin(w, &err), TERN_OK);
    assert_int_equal(tern_gguf_writer_data(w, "1234", 4, &err), TERN_OK);
    assert_int_equal(tern_gguf_writer_finish(&w, &err), TERN_ERR_TRUNCATED);
    assert_null(w);
    assert_non_null(strstr(err.message, f->file));
    assert_int_equal(count_entries(f->path), 0);

    w = writer_new(f); /* data before begin */
    assert_int_equal(tern_gguf_writer_finish(&w, &err), TERN_ERR_TRUNCATED);
    assert_int_equal(count_entries(f->path), 0);
}

static void test_too_much_data(void **state) {
    tern_error err = {0};
    tern_gguf_writer *w = writer_new(*state);
    assert_int_equal(tern_gguf_writer_data(w, "1234", 4, &err), TERN_ERR_ARG); /* not begun */
    tern_gguf_writer_abort(&w);
    w = writer_new(*state);
    tern_gguf_put_tensor(w, "a", 0, 1, (const uint64_t[]){1}, 4);
    assert_int_equal(tern_gguf_writer_begin(w, &err), TERN_OK);
    err = (tern_error){0};
    assert_int_equal(tern_gguf_writer_data(w, "12345", 5, &err), TERN_ERR_ARG);
    assert_non_null(strstr(err.message, "5 bytes of data, tensor 0 of 1 takes 4 more"));
    assert_int_equal(tern_gguf_writer_data(w, "1234", 4, &err), TERN_ERR_ARG); /* stays */
    assert_int_equal(tern_gguf_writer_finish(&w, &err), TERN_ERR_ARG);
}

/* Each description is refused by begin with the given status. */
static void test_bad_descriptions(void **state) {
    static const struct {
        const char *name;
        uint32_t type, n_dims;
        uint64_t ne[2], bytes;
        tern_status status;
    } cases[] = {
        {"", 0, 1, {1, 1}, 4, TERN_ERR_ARG},
        {"no bytes", 0, 1, {1, 1}, 0, TERN_ERR_ARG},
        {"no dims", 0, 0, {1, 1}, 4, TERN_ERR_TENSOR_SHAPE},
        {"five dims", 0, 5, {1, 1}, 4, TERN_ERR_TENSOR_SHAPE},
        {"zero", 0, 2, {4, 0}, 16, TERN_ERR_TENSOR_SHAPE},
        {"wrap", 0, 2, {UINT64_C(1) << 33, UINT64_C(1) << 33}, 16, TERN_ERR_TENSOR_SHAPE},
        {"size", 0, 1, {4, 1}, 12, TERN_ERR_TENSOR_SHAPE},
        {"block", 2, 1, {33, 1}, 18, TERN_ERR_TENSOR_SHAPE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tern_error err = {0};
        tern_gguf_writer *w = writer_new(*state);
        tern_gguf_put_tensor(w, cases[i].name, cases[i].type, cases[i].n_dims, cases[i].ne,
                             cases[i].bytes);
        tern_gguf_put_u32(w, "later", 1); /* does not hide the error */
        assert_int_equal(tern_gguf_writer_begin(w, &err), cases[i].status);
        assert_int_equal(err.status, cases[i].status);
        assert_non_null(strstr(err.message, ((const folder *)*state)->file));
        tern_gguf_writer_abort(&w);
    }
}

static void test_bad_metadata(void **state) {
    tern_error err = {0};
    tern_gguf_writer *w = writer_new(*state);
    tern_gguf_put_u32(w, "", 1);
    assert_int_equal(tern_gguf_writer_begin(w, &err), TERN_ERR_ARG);
    tern_gguf_writer_abort(&w);
    w = writer_new(*state);
    tern_gguf_put_u32(w, "general.alignment", 48);
    assert_int_equal(tern_gguf_writer_begin(w, &err), TERN_ERR_ALIGNMENT);
    tern_gguf_writer_abort(&w);
    w = writer_new(*state);
    assert_int_equal(tern_gguf_writer_begin(w, &err), TERN_OK);
    tern_gguf_put_u32(w, "late", 1);
    assert_int_equal(tern_gguf_writer_finish(&w, &err), TERN_ERR_ARG);
    w = writer_new(*state);
    assert_int_equal(tern_gguf_writer_begin(w, &err), TERN_OK);
    assert_int_equal(tern_gguf_writer_begin(w, &err), TERN_ERR_STATE);
    tern_gguf_writer_abort(&w);
}

static void test_bad_paths(void **state) {
    const folder *f = *state;
    tern_error err = {0};
    tern_gguf_writer *w = NULL;
    assert_int_equal(tern_gguf_writer_new(NULL, TERN_OUT_REPLACE, &w, &err), TERN_ERR_NULL);
    assert_int_equal(tern_gguf_writer_new(f->file, TERN_OUT_REPLACE, NULL, &err), TERN_ERR_NULL);
    assert_int_equal(tern_gguf_writer_new(f->path, TERN_OUT_REPLACE, &w, &err),
                     TERN_ERR_IO); /* the path is a folder */
    assert_int_equal(tern_gguf_writer_new("/dev/full", TERN_OUT_REPLACE, &w, &err), TERN_ERR_IO);
    assert_non_null(strstr(err.message, "/dev/full"));
    assert_int_equal(tern_gguf_writer_new("/nonexistent/x.gguf", TERN_OUT_REPLACE, &w, &err),
                     TERN_ERR_IO);
    assert_non_null(strstr(err.message, "No such file"));
    assert_null(w);
}

static void test_read_only_folder(void **state) {
    const folder *f = *state;
    if (geteuid() == 0)
        check_skip("permissions do not bind root");
    tern_error err = {0};
    tern_gguf_writer *w = NULL;
    chmod(f->path, 0500);
    assert_int_equal(tern_gguf_writer_new(f->file, TERN_OUT_REPLACE, &w, &err), TERN_ERR_IO);
    assert_non_null(strstr(err.message, f->file));
}

/* A limit on the file size stands for a full disk: write(2) fails halfway. */
static void test_write_error(void **state) {
    const folder *f = *state;
    static const uint8_t piece[1 << 16];
    const size_t n = 64; /* pieces: 4 MiB, above the limit of 2 MiB */
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 2 << 20;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);

    tern_error err = {0};
    tern_status status = TERN_OK;
    tern_gguf_writer *w = writer_new(f);
    tern_gguf_put_tensor(w, "a", 24, 1, (const uint64_t[]){n * sizeof piece}, n * sizeof piece);
    assert_int_equal(tern_gguf_writer_begin(w, &err), TERN_OK);
    for (size_t i = 0; i < n && status == TERN_OK; i++)
        status = tern_gguf_writer_data(w, piece, sizeof piece, &err);
    const tern_status finished = tern_gguf_writer_finish(&w, NULL);

    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, TERN_ERR_IO);
    assert_int_equal(finished, TERN_ERR_IO);
    assert_non_null(strstr(err.message, f->file));
    assert_non_null(strstr(err.message, "File too large"));
    assert_int_equal(count_entries(f->path), 0);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_new, folder_free)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_round_trip),
        IN_FOLDER(test_copies_values),
        IN_FOLDER(test_alignment),
        IN_FOLDER(test_abort_leaves_nothing),
        IN_FOLDER(test_two_writers_and_leftovers),
        IN_FOLDER(test_missing_data),
        IN_FOLDER(test_too_much_data),
        IN_FOLDER(test_bad_descriptions),
        IN_FOLDER(test_bad_metadata),
        IN_FOLDER(test_bad_paths),
        IN_FOLDER(test_read_only_folder),
        IN_FOLDER(test_write_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
