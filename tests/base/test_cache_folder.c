/* SPDX-License-Identifier: Apache-2.0 */
/* The cache folder: where it is, how files appear and disappear in it, and what is not trusted. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cache_folder.h"
#include "tern/tern.h"
#include "tests/support/check.h"

static char root[] = "/tmp/tern-cache-folder-XXXXXX";

static int make_root(void **state) {
    (void)state;
    return mkdtemp(root) == NULL;
}

static int remove_root(void **state) {
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

/* Path below the root, in static storage. */
static const char *at(const char *name) {
    static char path[2][256];
    static unsigned turn;
    char *out = path[turn++ % 2];
    snprintf(out, sizeof path[0], "%s/%s", root, name);
    return out;
}

static tern_cache_folder *folder_open(const char *name) {
    tern_cache_folder *f = NULL;
    tern_error err = {.status = TERN_OK};
    if (tern_cache_folder_open(at(name), &f, &err) != TERN_OK)
        check_fail("%s", err.message);
    return f;
}

static void put(const tern_cache_folder *f, const char *name, size_t bytes) {
    tern_out_file *out = NULL;
    char *content = calloc(bytes, 1);
    assert_int_equal(tern_cache_folder_create(f, name, &out, NULL), TERN_OK);
    assert_int_equal(tern_out_file_write(out, content, bytes, NULL), TERN_OK);
    assert_int_equal(tern_out_file_commit(&out, NULL), TERN_OK);
    free(content);
}

static bool has(const char *folder, const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", at(folder), name);
    return access(path, F_OK) == 0;
}

static void set_used(const char *folder, const char *name, time_t used, time_t changed) {
    const struct timespec times[2] = {{.tv_sec = used}, {.tv_sec = changed}};
    char path[256];
    snprintf(path, sizeof path, "%s/%s", at(folder), name);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void test_default(void **state) {
    char path[64];
    (void)state;
    setenv("HOME", "/home/someone", 1);
    setenv("XDG_CACHE_HOME", "/var/tmp/c", 1);
    assert_int_equal(tern_cache_default(path, sizeof path), strlen("/var/tmp/c/tern"));
    assert_string_equal(path, "/var/tmp/c/tern");
    setenv("XDG_CACHE_HOME", "relative", 1); /* a relative path is ignored */
    (void)tern_cache_default(path, sizeof path);
    assert_string_equal(path, "/home/someone/.cache/tern");
    unsetenv("XDG_CACHE_HOME");
    assert_int_equal(tern_cache_default(path, 5), strlen("/home/someone/.cache/tern"));
    assert_string_equal(path, "/hom");
    unsetenv("HOME");
    assert_int_equal(tern_cache_default(path, sizeof path), 0);
}

static void test_created(void **state) {
    struct stat info;
    (void)state;
    tern_cache_folder *f = folder_open("a/b/c");
    assert_int_equal(stat(at("a/b/c"), &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
    assert_string_equal(tern_cache_folder_path(f), at("a/b/c"));
    check_freed(tern_cache_folder_close, f);
    assert_null(f);
    tern_cache_folder_close(&f);
    f = folder_open("a/b/c"); /* the second time it exists */
    tern_cache_folder_close(&f);
}

static void test_round_trip(void **state) {
    tern_file_map *map = NULL;
    tern_out_file *out = NULL;
    tern_error err = {.status = TERN_OK};
    (void)state;
    tern_cache_folder *f = folder_open("trip");
    assert_int_equal(tern_cache_folder_map(f, "image-1", &map, &err), TERN_ERR_IO);
    assert_non_null(strstr(err.message, "trip/image-1"));
    assert_int_equal(tern_cache_folder_create(f, "image-1", &out, NULL), TERN_OK);
    assert_int_equal(tern_out_file_write(out, "weights", 7, NULL), TERN_OK);
    assert_false(has("trip", "image-1")); /* the file appears whole or not at all */
    assert_false(tern_cache_folder_holds(f, "image-1"));
    assert_int_equal(tern_out_file_commit(&out, NULL), TERN_OK);
    assert_true(tern_cache_folder_holds(f, "image-1"));
    assert_true(tern_cache_folder_holds(f, "image-"));
    assert_false(tern_cache_folder_holds(f, "image-10"));
    assert_int_equal(tern_cache_folder_map(f, "image-1", &map, NULL), TERN_OK);
    assert_int_equal(tern_file_map_size(map), 7);
    assert_memory_equal(tern_file_map_bytes(map), "weights", 7);
    tern_cache_folder_remove(f, "image-1");
    tern_cache_folder_remove(f, "image-1");
    assert_memory_equal(tern_file_map_bytes(map), "weights", 7); /* the mapping is still valid */
    check_freed(tern_file_map_close, map);
    assert_false(has("trip", "image-1"));
    assert_false(tern_cache_folder_holds(f, "image-"));
    tern_cache_folder_close(&f);
}

/* The least recently used file goes first; files of other kinds stay. */
static void test_trim(void **state) {
    tern_file_map *map = NULL;
    (void)state;
    tern_cache_folder *f = folder_open("trim");
    for (int i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "image-%d", i);
        put(f, name, 100);
        set_used("trim", name, 1000 + i, 1000);
    }
    put(f, "tuned-1", 100);
    assert_int_equal(tern_cache_folder_trim(f, "image-", 400), 400);
    assert_true(has("trim", "image-0"));
    assert_int_equal(tern_cache_folder_map(f, "image-0", &map, NULL), TERN_OK); /* used now */
    tern_file_map_close(&map);
    assert_int_equal(tern_cache_folder_trim(f, "image-", 399), 300);
    assert_false(has("trim", "image-1"));
    assert_int_equal(tern_cache_folder_trim(f, "image-", 150), 100);
    assert_true(has("trim", "image-0"));
    assert_int_equal(tern_cache_folder_trim(f, "image-", 0), 0);
    assert_false(has("trim", "image-0"));
    assert_true(has("trim", "tuned-1"));
    tern_cache_folder_close(&f);
}

/* Leftovers of a killed writer are removed after an hour. Newer ones may be in use, so they stay
 * and do not count. */
static void test_leftovers(void **state) {
    (void)state;
    tern_cache_folder *f = folder_open("left");
    put(f, "image-1.tmp-77", 10);
    put(f, "image-2.tmp-78", 10);
    set_used("left", "image-1.tmp-77", 1000, 1000);
    assert_int_equal(tern_cache_folder_trim(f, "image-", 0), 0);
    assert_false(has("left", "image-1.tmp-77"));
    assert_true(has("left", "image-2.tmp-78"));
    tern_cache_folder_close(&f);
}

static void refuse(const char *name, const char *because) {
    tern_cache_folder *f = NULL;
    tern_error err = {.status = TERN_OK};
    assert_int_equal(tern_cache_folder_open(name, &f, &err), TERN_ERR_IO);
    assert_null(f);
    if (strstr(err.message, because) == NULL)
        check_fail("'%s' does not say '%s'", err.message, because);
}

static void test_refused(void **state) {
    tern_file_map *map = NULL;
    tern_error err = {.status = TERN_OK};
    (void)state;
    tern_cache_folder *f = folder_open("open");
    put(f, "image-1", 10);
    assert_int_equal(chmod(at("open/image-1"), 0666), 0);
    assert_int_equal(tern_cache_folder_map(f, "image-1", &map, &err), TERN_ERR_IO);
    assert_non_null(strstr(err.message, "others could have written it"));
    tern_cache_folder_close(&f);
    refuse(at("open/image-1"), "is not a folder");
    refuse(at("open/image-1/below"), "Not a directory");
    assert_int_equal(chmod(at("open"), 0777), 0);
    refuse(at("open"), "others could have written");
    assert_int_equal(tern_cache_folder_open("", &f, NULL), TERN_ERR_ARG);
    assert_int_equal(tern_cache_folder_open(NULL, &f, NULL), TERN_ERR_NULL);
    refuse("/proc/tern", "/proc/tern: ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default),    cmocka_unit_test(test_created),
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_trim),
        cmocka_unit_test(test_leftovers),  cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
