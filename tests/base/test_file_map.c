/* SPDX-License-Identifier: Apache-2.0 */
/* Which mapped file an address belongs to: a handler of SIGBUS names that file. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_map.h"
#include "tern/tern.h"
#include "tests/support/check.h"

enum { FILES = 3, BYTES = 5000, LISTED = 256 };

static char path[FILES][32];

static int make_files(void **state) {
    (void)state;
    for (int i = 0; i < FILES; i++) {
        (void)snprintf(path[i], sizeof path[i], "/tmp/tern-file-map-XXXXXX");
        const int fd = mkstemp(path[i]);
        if (fd < 0 || ftruncate(fd, BYTES) != 0 || close(fd) != 0)
            return 1;
    }
    return 0;
}

static int remove_files(void **state) {
    (void)state;
    for (int i = 0; i < FILES; i++)
        (void)unlink(path[i]);
    return 0;
}

static tern_file_map *open_map(int i) {
    tern_file_map *m = NULL;
    tern_error err = {.status = TERN_OK};
    assert_int_equal(tern_file_map_open(path[i], &m, &err), TERN_OK);
    return m;
}

static bool is_mapped(int i) {
    struct stat info;
    assert_int_equal(stat(path[i], &info), 0);
    return tern_file_is_mapped(&info);
}

static void test_several(void **state) {
    tern_file_map *maps[FILES];
    (void)state;
    for (int i = 0; i < FILES; i++) {
        assert_false(is_mapped(i));
        maps[i] = open_map(i);
    }
    for (int closed = 0; closed <= FILES; closed++) {
        for (int i = closed; i < FILES; i++) {
            const uint8_t *bytes = tern_file_map_bytes(maps[i]);
            const size_t page = (size_t)sysconf(_SC_PAGESIZE);
            const uint8_t *last =
                bytes + (BYTES + page - 1) / page * page - 1; /* the last byte of the last page */
            assert_string_equal(tern_mapped_file(bytes), path[i]);
            assert_string_equal(tern_mapped_file(last), path[i]);
            assert_true(is_mapped(i));
        }
        for (int i = 0; i < closed; i++)
            assert_false(is_mapped(i));
        if (closed < FILES)
            tern_file_map_close(&maps[closed]);
    }
    assert_null(tern_mapped_file(&maps));
}

/* Maps beyond the list's capacity work but have no name. A slot that becomes free is used again. */
static void test_many(void **state) {
    tern_file_map *maps[LISTED + 2];
    (void)state;
    for (int i = 0; i < LISTED + 2; i++)
        maps[i] = open_map(i == 0 ? 0 : 1);
    assert_null(tern_mapped_file(tern_file_map_bytes(maps[LISTED])));
    assert_string_equal(tern_mapped_file(tern_file_map_bytes(maps[LISTED - 1])), path[1]);
    tern_file_map_close(&maps[LISTED]);
    assert_true(is_mapped(0));
    tern_file_map_close(&maps[0]);
    assert_false(is_mapped(0));
    maps[0] = open_map(2);
    assert_string_equal(tern_mapped_file(tern_file_map_bytes(maps[0])), path[2]);
    for (int i = 0; i < LISTED + 2; i++)
        tern_file_map_close(&maps[i]);
    for (int i = 0; i < FILES; i++)
        assert_false(is_mapped(i));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_several), cmocka_unit_test(test_many)};
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
