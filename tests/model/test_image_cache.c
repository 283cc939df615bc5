/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed weights from the cache folder give the same logits, to the bit, as freshly packed ones. If
 * anything is wrong with an image, its folder or the model's file, the weights are packed again and
 * the image is made again.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "authoring/synth.h"
#include "runtime/model/image/file_content.h"
#include "runtime/model/image/image.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

enum { TOKENS = 5 };

static char root[] = "/tmp/tern-images-XXXXXX";
static char cache[64], path[64];

static int make_root(void **state) {
    (void)state;
    if (mkdtemp(root) == NULL)
        return 1;
    snprintf(cache, sizeof cache, "%s/cache", root);
    snprintf(path, sizeof path, "%s/model.gguf", root);
    return 0;
}

static int remove_root(void **state) {
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "chmod -R u+w %s && rm -rf %s", root, root);
    return system(command);
}

static int remove_cache(void **state) {
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", cache);
    return system(command);
}

/* Writes the model of a preset to `path`. */
static void write_model(const char *preset, uint64_t seed) {
    tern_error err = {.status = TERN_OK};
    if (tern_synth(preset, path, TERN_OUT_REPLACE, seed, NULL, NULL, &err) != TERN_OK)
        check_fail("%s", err.message);
}

static tern_model_params cached(void) {
    return (tern_model_params){.threads = 2, .cache = cache, .images = TERN_IMAGES_ALL};
}

/* Opens the model; tells if its weights came from the cache. Closing it writes the image. */
static tern_model *open_model(tern_model_params params, tern_model_loading *loading) {
    tern_error err = {.status = TERN_OK};
    tern_model *model = NULL;
    if (tern_model_open(path, &params, &model, &err) != TERN_OK)
        check_fail("%s", err.message);
    tern_model_describe_loading(model, loading);
    return model;
}

static bool load(tern_model_params params) {
    tern_model_loading loading;
    tern_model *model = open_model(params, &loading);
    tern_model_free(&model);
    return loading.mapped;
}

/* Logits of a fixed prompt. The caller frees them. */
static float *logits_of(tern_model_params params, bool *mapped, size_t *n) {
    int32_t ids[TOKENS];
    tern_model_loading loading;
    tern_model_info info;
    tern_model *model = open_model(params, &loading);
    tern_model_describe(model, &info);
    tiny_prompt(model, 7, ids, TOKENS);
    tern_session *s = tiny_session(model, (tern_session_params){.threads = 2});
    float *copy = tiny_floats(info.n_vocab);
    memcpy(copy, tiny_eval(s, ids, TOKENS), info.n_vocab * sizeof *copy);
    tern_session_free(&s);
    tern_model_free(&model);
    *mapped = loading.mapped;
    *n = info.n_vocab;
    return copy;
}

/* Copies the name of the only file of a kind in the cache folder. Returns false without one. */
static bool find_file(const char *kind, char name[400]) {
    DIR *folder = opendir(cache);
    size_t n = 0;
    for (const struct dirent *d; folder != NULL && (d = readdir(folder)) != NULL;)
        if (strncmp(d->d_name, kind, strlen(kind)) == 0) {
            snprintf(name, 400, "%s/%s", cache, d->d_name);
            n++;
        }
    if (folder != NULL)
        closedir(folder);
    assert_true(n <= 1);
    return n == 1;
}

static size_t count_files(const char *kind) {
    DIR *folder = opendir(cache);
    size_t n = 0;
    for (const struct dirent *d; folder != NULL && (d = readdir(folder)) != NULL;)
        n += strncmp(d->d_name, kind, strlen(kind)) == 0;
    if (folder != NULL)
        closedir(folder);
    return n;
}

static uint8_t *read_file(const char *name, size_t *size) {
    struct stat info;
    FILE *f = fopen(name, "rb");
    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &info), 0);
    *size = (size_t)info.st_size;
    uint8_t *bytes = malloc(*size);
    assert_int_equal(fread(bytes, 1, *size, f), *size);
    fclose(f);
    return bytes;
}

static void flip(const char *name, size_t at) {
    uint8_t byte;
    const int fd = open(name, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    close(fd);
}

/* ---- the same answer ------------------------------------------------------------------------- */

static void check_round_trip(const char *preset, tern_model_params params) {
    bool mapped;
    size_t n;
    tern_model_params plain = params;
    plain.cache = NULL;
    check_case("%s, layout %s", preset, params.layout != NULL ? params.layout : "usual");
    float *expected = logits_of(plain, &mapped, &n);
    assert_false(mapped);
    for (int start = 0; start < 3; start++) {
        float *got = logits_of(params, &mapped, &n);
        if (mapped != (start > 0))
            check_fail("start %d: mapped is %d", start, mapped);
        check_floats("logits", expected, got, n);
        free(got);
    }
    free(expected);
}

static void test_same_logits(void **state) {
    static const char *const layouts[] = {
#define LAYOUT(name, text, ...) text,
        TERN_TERNARY_LAYOUT_LIST(LAYOUT)
#undef LAYOUT
    };
    enum { LAYOUTS = sizeof layouts / sizeof *layouts };
    size_t n = 0;
    (void)state;
    for (; tiny_presets()[n] != NULL; n++) {
        write_model(tiny_presets()[n], 1 + n); /* equal matrices would share an image */
        check_round_trip(tiny_presets()[n], cached());
    }
    write_model("bitnet-tiny-odd", 1);
    for (size_t i = 1; i < LAYOUTS; i++) { /* the first is the default, which has one */
        tern_model_params params = cached();
        params.layout = layouts[i];
        check_round_trip("bitnet-tiny-odd", params);
    }
    assert_int_equal(count_files("image-"), n + LAYOUTS - 1);
}

/* Which parameters change the image, and which do not. */
static void test_key(void **state) {
    tern_model_params params = cached();
    (void)state;
    write_model("bitnet-tiny", 1);
    assert_false(load(params));
    params.layout = "t5r16";
    assert_false(load(params)); /* another layout, another image */
    assert_true(load(params));
    params = cached();
    params.exact_head = true;
    assert_false(load(params)); /* without an image of the head, so another arena */
    params = cached();
    params.i2s_order = (tern_i2s_order)(TERN_I2S_UNITS_128 + 1);
    assert_false(load(params)); /* the same bytes with other meanings */
    assert_true(load(params));
    params = cached();
    params.threads = 1;
    params.isa = "scalar";
    assert_true(load(params)); /* the same for all sets and thread counts */
    params.strict = true;
    params.isa = NULL;
    assert_true(load(params)); /* a cache is not a fallback */
}

static void test_use(void **state) {
    tern_model_params params = cached();
    (void)state;
    write_model("bitnet-tiny", 1);
    params.images = TERN_IMAGES_LARGE;
    assert_false(load(params));
    params.images = TERN_IMAGES_NONE;
    assert_false(load(params));
    assert_int_equal(count_files(""), 0); /* not even a folder */
    params.images = TERN_IMAGES_ALL;
    assert_false(load(params));
    assert_true(load(params));
    params.images = TERN_IMAGES_LARGE;
    assert_false(load(params)); /* neither written nor read */
    params.images = TERN_IMAGES_NONE;
    assert_false(load(params));
    params.no_weights = true;
    params.images = TERN_IMAGES_ALL;
    assert_false(load(params));
}

/* ---- images that are wrong ------------------------------------------------------------------- */

/* A damaged image is not used: the weights are packed, the reason is told, a new image is made. */
static void check_rebuilt(const char *reason) {
    bool mapped;
    size_t n;
    tern_model_loading loading;
    tern_model_params plain = cached();
    plain.cache = NULL;
    tern_model *model = open_model(cached(), &loading);
    tern_model_free(&model);
    if (loading.mapped || strstr(loading.problem.message, reason) == NULL)
        check_fail("mapped %d, '%s' does not say '%s'", loading.mapped, loading.problem.message,
                   reason);
    float *expected = logits_of(plain, &mapped, &n);
    float *got = logits_of(cached(), &mapped, &n);
    assert_true(mapped);
    check_floats("logits", expected, got, n);
    free(expected);
    free(got);
}

static void test_damaged(void **state) {
    char image[400];
    struct stat info;
    (void)state;
    write_model("bitnet-tiny", 1);
    assert_false(load(cached()));
    assert_true(find_file("image-", image));
    assert_int_equal(stat(image, &info), 0);
    const size_t size = (size_t)info.st_size;
    const struct {
        size_t at;
        const char *reason;
    } places[] = {
        {0, "is not a packed image of this machine"}, /* magic */
        {8, "another version of tern"},               /* packing version */
        {12, "another version of tern"},              /* bytes of a piece */
        {16, "another version of tern"},              /* version of the library */
        {48, "of other weights"},                     /* plan */
        {56, "of other weights"},                     /* content */
        {64, "of other weights"},                     /* bytes */
        {72, "damaged (header)"},                     /* zeros */
        {TERN_IMAGE_HEADER_BYTES - 1, "damaged (header)"},
        {TERN_IMAGE_HEADER_BYTES, "damaged (piece 0 of 1)"},
        {(TERN_IMAGE_HEADER_BYTES + size) / 2, "damaged (piece 0 of 1)"},
        {size - 17, "damaged (piece 0 of 1)"}, /* the last byte of the arena */
        {size - 16, "damaged (header)"},       /* the hash of its piece */
        {size - 1, "damaged (header)"},        /* the hash of both */
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        check_case("byte %zu of %zu", places[i].at, size);
        flip(image, places[i].at);
        check_rebuilt(places[i].reason);
    }
    const size_t lengths[] = {size - 1, size - 9, TERN_IMAGE_HEADER_BYTES, 100, 1, size + 1};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        check_case("%zu bytes of %zu", lengths[i], size);
        assert_int_equal(truncate(image, (off_t)lengths[i]), 0);
        check_rebuilt(lengths[i] < TERN_IMAGE_HEADER_BYTES ? "is too short" : "not what it says");
    }
    assert_int_equal(count_files("image-"), 1);
}

/* Damages every byte of the header, the arena and the hashes. */
static void test_every_byte(void **state) {
    enum { ARENA = 3 * TERN_ALIGN };
    const tern_image_key key = {.plan = 1, .content = 2, .bytes = ARENA};
    uint8_t arena[ARENA];
    char name[TERN_IMAGE_NAME_BYTES], file[300];
    size_t size;
    tern_cache_folder *folder;
    tern_team *team;
    (void)state;
    memset(arena, 7, sizeof arena);
    assert_int_equal(tern_team_new(2, &team, NULL), TERN_OK);
    assert_int_equal(tern_cache_folder_open(cache, &folder, NULL), TERN_OK);
    assert_int_equal(tern_image_write(folder, &key, arena, UINT64_MAX, NULL), TERN_OK);
    tern_image_name(&key, name);
    snprintf(file, sizeof file, "%s/%s", cache, name);
    uint8_t *bytes = read_file(file, &size);
    assert_int_equal(tern_image_check(bytes, size, &key, name, NULL), TERN_OK);
    assert_int_equal(tern_image_verify(bytes, &key, team, name, NULL), TERN_OK);
    for (size_t i = 0; i < size; i = i == 80 ? TERN_IMAGE_HEADER_BYTES : i + 1) {
        bytes[i] ^= 1;
        if (tern_image_check(bytes, size, &key, name, NULL) == TERN_OK &&
            tern_image_verify(bytes, &key, team, name, NULL) == TERN_OK)
            check_fail("a change of byte %zu was not noticed", i);
        bytes[i] ^= 1;
    }
    free(bytes);
    tern_cache_folder_close(&folder);
    tern_team_free(&team);
}

/* ---- the model's file ------------------------------------------------------------------------ */

static void set_times(time_t seconds) {
    const struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* The content hash of a file that did not just change is kept, until the file changes. */
static void test_content(void **state) {
    tern_gguf *file;
    tern_team *team;
    tern_cache_folder *folder;
    uint64_t content, again;
    char record[400];
    (void)state;
    const time_t written = time(NULL);
    write_model("bitnet-tiny", 1);
    assert_int_equal(tern_cache_folder_open(cache, &folder, NULL), TERN_OK);
    assert_int_equal(tern_team_new(3, &team, NULL), TERN_OK);
    assert_int_equal(tern_gguf_open(path, &file, NULL), TERN_OK);
    content = tern_content_read(file, team);
    tern_content_remember(folder, file, content);
    const size_t at_once = count_files("source-");
    assert_true(at_once == 0 || time(NULL) - written > 2); /* another write could have its time */
    for (; count_files("source-") == 0; usleep(50000)) /* until it was written long enough ago */
        tern_content_remember(folder, file, content);
    assert_true(tern_content_recall(folder, file, &again));
    assert_true(content == again);
    assert_true(find_file("source-", record));
    for (size_t i = 0; i < 40; i++) {
        flip(record, i);
        if (tern_content_recall(folder, file, &again))
            check_fail("a change of byte %zu was not noticed", i);
        flip(record, i);
    }
    assert_int_equal(truncate(record, 39), 0);
    assert_false(tern_content_recall(folder, file, &again));
    tern_content_remember(folder, file, content);
    set_times(1000000000); /* this changes the time of change, too */
    assert_false(tern_content_recall(folder, file, &again));
    tern_content_remember(folder, file, content); /* no longer the file that was opened */
    assert_int_equal(count_files("source-"), 1);
    tern_gguf_close(&file);
    tern_team_free(&team);
    tern_cache_folder_close(&folder);
}

/* One changed bit anywhere in the tensors changes the content hash. The file's path does not. */
static void test_changed_weights(void **state) {
    tern_gguf *file;
    uint64_t offset[3];
    char copy[300];
    (void)state;
    write_model("bitnet-tiny", 1);
    assert_false(load(cached()));
    assert_int_equal(tern_gguf_open(path, &file, NULL), TERN_OK);
    const tern_gguf_tensor *last = tern_gguf_tensor_at(file, tern_gguf_tensor_count(file) - 1);
    const uint64_t begin = tern_gguf_file_bytes(file) - last->extent;
    tern_gguf_close(&file);
    offset[0] = begin;
    offset[1] = begin + 37;
    offset[2] = begin + 1001;
    for (size_t i = 0; i < 3; i++) {
        check_case("byte %zu of the last tensor", (size_t)(offset[i] - begin));
        flip(path, (size_t)offset[i]);
        assert_false(load(cached())); /* the same shapes, length and name, but other weights */
        assert_true(load(cached()));
        flip(path, (size_t)offset[i]);
        assert_true(load(cached())); /* the old weights again */
    }
    snprintf(copy, sizeof copy, "%s/other.gguf", root);
    assert_int_equal(rename(path, copy), 0);
    write_model("bitnet-tiny", 1); /* another file with the same content */
    assert_true(load(cached()));
    write_model("bitnet-tiny", 2);
    assert_false(load(cached()));
}

/* ---- the folder ------------------------------------------------------------------------------ */

static void test_folders(void **state) {
    tern_model_loading loading;
    tern_model_params params = cached();
    (void)state;
    write_model("bitnet-tiny", 1);
    params.strict = true;
    params.cache = path; /* not a folder */
    tern_model *model = open_model(params, &loading);
    assert_false(loading.mapped);
    assert_non_null(strstr(loading.problem.message, "is not a folder"));
    tern_model_free(&model);
    params.cache = "/proc/tern/cache";
    model = open_model(params, &loading);
    assert_false(loading.mapped);
    assert_int_equal(loading.problem.status, TERN_ERR_IO);
    tern_model_free(&model);
    if (geteuid() == 0)
        return; /* root may write anywhere */
    assert_false(load(cached()));
    assert_int_equal(chmod(cache, 0500), 0);
    assert_true(load(cached())); /* a read-only folder can be used */
    params = cached();
    params.layout = "t5r16";
    assert_false(load(params));
    assert_false(load(params));
    assert_int_equal(chmod(cache, 0700), 0);
}

static void test_limit(void **state) {
    tern_model_params params = cached();
    struct stat info;
    char image[400];
    (void)state;
    write_model("bitnet-tiny", 1);
    params.cache_limit = 1000; /* smaller than any image */
    assert_false(load(params));
    assert_false(load(params));
    assert_int_equal(count_files("image-"), 0);
    assert_false(load(cached()));
    assert_true(find_file("image-", image));
    assert_int_equal(stat(image, &info), 0);
    params.cache_limit = (uint64_t)info.st_size * 5 / 2; /* room for two */
    params.layout = "t5r16";
    assert_false(load(params));
    usleep(50000);               /* file times have the resolution of the system's clock */
    assert_true(load(cached())); /* the other image is now the oldest */
    params.layout = "tl1r16";
    assert_false(load(params));
    assert_int_equal(count_files("image-"), 2);
    assert_true(load(cached()));
    params.layout = "t5r16";
    assert_false(load(params));
}

/* Processes that start at once each get the right answer. One image is left, and nothing else. */
static void test_at_once(void **state) {
    enum { PROCESSES = 6 };
    bool mapped;
    size_t n;
    tern_model_params plain = cached();
    (void)state;
    write_model("bitnet-tiny", 1);
    plain.cache = NULL;
    float *expected = logits_of(plain, &mapped, &n);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < PROCESSES; i++)
            if (fork() == 0) {
                float *got = logits_of(cached(), &mapped, &n);
                _exit(memcmp(got, expected, n * sizeof *got) == 0 ? 0 : 1);
            }
        for (int i = 0; i < PROCESSES; i++) {
            int status;
            assert_true(wait(&status) > 0);
            assert_int_equal(status, 0);
        }
        assert_int_equal(count_files("image-"), 1);
    }
    free(expected);
    assert_true(load(cached()));
}

/* Two models of one process use one image, which is removed while both are open. */
static void test_shared(void **state) {
    tern_model_loading first, second;
    (void)state;
    write_model("bitnet-tiny", 1);
    assert_false(load(cached()));
    tern_model *a = open_model(cached(), &first);
    tern_model *b = open_model(cached(), &second);
    assert_true(first.mapped && second.mapped);
    assert_int_equal(remove_cache(NULL), 0);
    int32_t ids[TOKENS];
    tern_model_info info;
    tern_model_describe(a, &info);
    tiny_prompt(a, 7, ids, TOKENS);
    tern_session *s = tiny_session(a, (tern_session_params){.threads = 1});
    tern_session *t = tiny_session(b, (tern_session_params){.threads = 2});
    check_floats("logits", tiny_eval(s, ids, TOKENS), tiny_eval(t, ids, TOKENS), info.n_vocab);
    tern_session_free(&s);
    tern_session_free(&t);
    tern_model_free(&a);
    tern_model_free(&b);
}

/* An image only holds checked weights. Invalid weights get no image. */
static void test_bad_weights_make_no_image(void **state) {
    tiny_file file = tiny_read("llama-tiny-q8_0");
    const uint16_t nan = 0x7e00;
    (void)state;
    memcpy(tiny_find(&file, "blk.1.attn_k.weight")->data, &nan, sizeof nan);
    tiny_write(&file, path);
    tiny_file_free(&file);
    for (int i = 0; i < 2; i++) {
        const tern_model_params params = cached();
        tern_model *model = NULL;
        assert_int_equal(tern_model_open(path, &params, &model, NULL), TERN_ERR_TENSOR_DATA);
        assert_int_equal(count_files("image-"), 0);
    }
}

int main(void) {
#define TEST(f) cmocka_unit_test_teardown(f, remove_cache)
    const struct CMUnitTest tests[] = {
        TEST(test_same_logits),
        TEST(test_key),
        TEST(test_use),
        TEST(test_damaged),
        TEST(test_every_byte),
        TEST(test_content),
        TEST(test_changed_weights),
        TEST(test_folders),
        TEST(test_limit),
        TEST(test_at_once),
        TEST(test_shared),
        TEST(test_bad_weights_make_no_image),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
