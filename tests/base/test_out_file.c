/* SPDX-License-Identifier: Apache-2.0 */
/* Files that appear whole: what they replace and what an aborted one leaves behind, on file systems
 * with and without unnamed files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file_map.h"
#include "base/out_file.h"
#include "tern/tern.h"
#include "tests/support/check.h"

static char root[] = "/tmp/tern-out-file-XXXXXX";

static int make_root(void **state) {
    (void)state;
    return mkdtemp(root) == NULL || chdir(root) != 0;
}

static int remove_root(void **state) {
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", root);
    return chdir("/") + system(command);
}

static void clean(void) {
    assert_int_equal(system("rm -rf ./*"), 0);
}

static int count_files(void) {
    int n = 0;
    DIR *open = opendir(".");
    const struct dirent *item;
    while ((item = readdir(open)) != NULL)
        n += item->d_name[0] != '.';
    closedir(open);
    return n;
}

static void put(const char *name, const char *text) {
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void check_content(const char *name, const char *text) {
    char found[64] = "";
    FILE *f = fopen(name, "r");
    assert_non_null(f);
    found[fread(found, 1, sizeof found - 1, f)] = '\0';
    fclose(f);
    assert_string_equal(found, text);
}

static tern_status begin(const char *name, tern_out_mode mode, tern_out_file **file,
                         tern_error *err) {
    const tern_status status = tern_out_file_create(name, mode, file, err);
    return status == TERN_OK ? tern_out_file_write(*file, "new", 3, err) : status;
}

static tern_status write_file(const char *name, tern_out_mode mode, tern_error *err) {
    tern_out_file *file = NULL;
    const tern_status status = begin(name, mode, &file, err);
    return status == TERN_OK ? tern_out_file_commit(&file, err) : status;
}

/* ---- checks for both kinds of file systems --------------------------------------------------- */

static void check_modes(void) {
    tern_error err = {0};
    clean();
    assert_int_equal(write_file("a", TERN_OUT_NEW, &err), TERN_OK);
    check_content("a", "new");
    put("a", "old");
    assert_int_equal(write_file("a", TERN_OUT_NEW, &err), TERN_ERR_EXISTS);
    assert_non_null(strstr(err.message, "a: exists already"));
    assert_int_equal(write_file("a", TERN_OUT_SECRET, &err), TERN_ERR_EXISTS);
    check_content("a", "old");
    assert_int_equal(write_file("a", TERN_OUT_REPLACE, &err), TERN_OK);
    check_content("a", "new");
    put("a", "old");
    assert_int_equal(write_file("a", TERN_OUT_CACHE, &err), TERN_OK);
    check_content("a", "new");
    assert_int_equal(write_file(".", TERN_OUT_NEW, &err), TERN_ERR_IO);
    assert_int_equal(write_file("/dev/null", TERN_OUT_REPLACE, &err), TERN_ERR_IO);
    assert_int_equal(count_files(), 1);
}

/* A file that somebody else creates while the new one is written stays. */
static void check_race(void) {
    tern_out_file *file = NULL;
    tern_error err = {0};
    clean();
    assert_int_equal(begin("a", TERN_OUT_NEW, &file, &err), TERN_OK);
    put("a", "other");
    assert_int_equal(tern_out_file_commit(&file, &err), TERN_ERR_EXISTS);
    assert_null(file);
    check_content("a", "other");
    assert_int_equal(count_files(), 1);
}

static void check_links(void) {
    tern_error err = {0};
    clean();
    assert_int_equal(symlink("nothing", "a"), 0);
    assert_int_equal(write_file("a", TERN_OUT_NEW, &err), TERN_ERR_EXISTS);
    assert_int_equal(write_file("a", TERN_OUT_REPLACE, &err), TERN_OK);
    check_content("a", "new");
    assert_int_equal(count_files(), 1);
}

/* A mapped file is not replaced under any of its names, unless the caller says that it is a
 * cache. */
static void check_mapped(void) {
    tern_file_map *map = NULL;
    tern_out_file *file = NULL;
    tern_error err = {0};
    clean();
    put("a", "old");
    assert_int_equal(link("a", "b") | symlink("a", "c"), 0);
    assert_int_equal(begin("a", TERN_OUT_REPLACE, &file, &err), TERN_OK);
    assert_int_equal(tern_file_map_open("b", &map, &err), TERN_OK);
    assert_int_equal(tern_out_file_commit(&file, &err), TERN_ERR_EXISTS);
    for (const char *name = "abc"; *name != '\0'; name++) {
        const char path[] = {*name, '\0'};
        assert_int_equal(write_file(path, TERN_OUT_REPLACE, &err), TERN_ERR_EXISTS);
        check_content(path, "old");
    }
    assert_int_equal(write_file("a", TERN_OUT_CACHE, &err), TERN_OK);
    tern_file_map_close(&map);
    assert_int_equal(write_file("b", TERN_OUT_REPLACE, &err), TERN_OK);
    assert_int_equal(count_files(), 3);
}

static void check_secret(void) {
    struct stat info;
    clean();
    assert_int_equal(write_file("key", TERN_OUT_SECRET, NULL), TERN_OK);
    assert_int_equal(stat("key", &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
}

static void check_all(void) {
    check_modes();
    check_race();
    check_links();
    check_mapped();
    check_secret();
}

static void test_here(void **state) {
    (void)state;
    check_all();
}

/* ---- a file system without unnamed files, and without renameat2 ------------------------------ */

#define FAIL(code) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (code))

/* Works on little-endian machines, whose filters find the low half of an argument first. */
static bool make_it_old(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 1),
        FAIL(EINVAL),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
        FAIL(EOPNOTSUPP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* The file has a temporary name, which a signal handler can remove. */
static void check_temporary(void) {
    tern_out_file *file = NULL;
    clean();
    assert_int_equal(begin("a", TERN_OUT_NEW, &file, NULL), TERN_OK);
    assert_int_equal(count_files(), 1);
    tern_temporary_files_remove();
    assert_int_equal(count_files(), 0);
    tern_out_file_discard(&file);
}

static void test_old_file_system(void **state) {
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        if (!make_it_old())
            _exit(77);
        check_temporary();
        check_all();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        check_skip("system calls cannot be trapped here");
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* A file has no name before it is whole, if the file system allows that. */
static void test_nameless(void **state) {
    (void)state;
    clean();
    const int probe = open(".", O_TMPFILE | O_WRONLY, 0600);
    if (probe < 0)
        check_skip("this file system has no files without a name");
    close(probe);
    tern_out_file *file = NULL;
    assert_int_equal(begin("a", TERN_OUT_NEW, &file, NULL), TERN_OK);
    assert_int_equal(count_files(), 0);
    assert_int_equal(tern_out_file_commit(&file, NULL), TERN_OK);
    assert_int_equal(count_files(), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_here),
        cmocka_unit_test(test_old_file_system),
        cmocka_unit_test(test_nameless),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
