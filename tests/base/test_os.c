/* SPDX-License-Identifier: Apache-2.0 */
/* The portability layer (base/os/os.h) does on this system what its header says. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/os/os.h"
#include "tests/support/check.h"

enum { PATH_BYTES = 64 };

static void check_flags(int descriptor, bool waits) {
    assert_true(descriptor >= 0);
    assert_int_equal(fcntl(descriptor, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal((fcntl(descriptor, F_GETFL) & O_NONBLOCK) == 0, waits);
}

static void new_folder(char path[PATH_BYTES]) {
    (void)snprintf(path, PATH_BYTES, "/tmp/tern-os-XXXXXX");
    assert_non_null(mkdtemp(path));
}

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void check_text(const char *path, const char *want) {
    char got[32] = {0};
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    (void)fread(got, 1, sizeof got - 1, file);
    assert_int_equal(fclose(file), 0);
    assert_string_equal(got, want);
}

/* ---- sockets and pipes ----------------------------------------------------------------------- */

static void test_sockets(void **state) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    char folder[PATH_BYTES];
    (void)state;
    new_folder(folder);
    (void)snprintf(name.sun_path, sizeof name.sun_path, "%s/socket", folder);
    const int listening = tern_os_socket(AF_UNIX, SOCK_STREAM, false);
    const int client = tern_os_socket(AF_UNIX, SOCK_STREAM, true);
    check_flags(listening, false);
    check_flags(client, true);
    assert_int_equal(bind(listening, (const struct sockaddr *)&name, sizeof name), 0);
    assert_int_equal(listen(listening, 1), 0);
    assert_int_equal(tern_os_accept(listening), -1); /* does not wait */
    assert_true(errno == EAGAIN || errno == EWOULDBLOCK);
    assert_int_equal(connect(client, (const struct sockaddr *)&name, sizeof name), 0);
    const int accepted = tern_os_accept(listening);
    check_flags(accepted, false);
    (void)close(accepted);
    (void)close(client);
    (void)close(listening);
    assert_int_equal(tern_os_socket(-1, SOCK_STREAM, true), -1);
    assert_int_equal(unlink(name.sun_path), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void check_ends(const int ends[2], int from, int to) {
    char byte = 0;
    check_flags(ends[0], true);
    check_flags(ends[1], true);
    assert_int_equal(write(ends[from], "x", 1), 1);
    assert_int_equal(read(ends[to], &byte, 1), 1);
    assert_int_equal(byte, 'x');
}

static void test_pairs(void **state) {
    int ends[2];
    (void)state;
    assert_true(tern_os_pipe(ends));
    check_ends(ends, 1, 0);
    (void)close(ends[0]);
    (void)close(ends[1]);
    assert_true(tern_os_socket_pair(ends));
    check_ends(ends, 1, 0);
    check_ends(ends, 0, 1);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static bool is_heard(const tern_os_bell *bell) {
    struct pollfd look = {.fd = bell->hears, .events = POLLIN};
    return poll(&look, 1, 0) == 1;
}

static void test_bell(void **state) {
    tern_os_bell bell;
    (void)state;
    assert_true(tern_os_bell_open(&bell));
    check_flags(bell.hears, false);
    check_flags(bell.rings, false);
    assert_false(is_heard(&bell));
    tern_os_bell_hush(&bell); /* nothing rang: does not wait */
    for (int i = 0; i < 3; i++)
        tern_os_bell_ring(&bell);
    assert_true(is_heard(&bell));
    tern_os_bell_hush(&bell);
    assert_false(is_heard(&bell));
    for (int i = 0; i < 200000; i++) /* more than a pipe holds: does not wait */
        tern_os_bell_ring(&bell);
    tern_os_bell_hush(&bell);
    assert_false(is_heard(&bell));
    tern_os_bell_close(&bell);
    assert_int_equal(fcntl(bell.hears, F_GETFD), -1);
    assert_int_equal(fcntl(bell.rings, F_GETFD), -1);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void test_rename_to_new(void **state) {
    char folder[PATH_BYTES], from[PATH_BYTES + 8], to[PATH_BYTES + 8];
    (void)state;
    new_folder(folder);
    (void)snprintf(from, sizeof from, "%s/from", folder);
    (void)snprintf(to, sizeof to, "%s/to", folder);
    write_file(from, "new");
    write_file(to, "old");
    if (!tern_os_rename_to_new(from, to) && (errno == EINVAL || errno == ENOSYS)) {
        print_message("this file system has no such call\n");
    } else {
        check_text(to, "old");
        assert_int_equal(errno, EEXIST);
        assert_int_equal(unlink(to), 0);
        assert_true(tern_os_rename_to_new(from, to));
        check_text(to, "new");
        assert_int_equal(access(from, F_OK), -1);
    }
    (void)unlink(from);
    assert_int_equal(unlink(to), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* A file without a name leaves nothing, and has all that was written once it has one. */
static void test_nameless(void **state) {
    char folder[PATH_BYTES], path[PATH_BYTES + 8];
    (void)state;
    new_folder(folder);
    (void)snprintf(path, sizeof path, "%s/name", folder);
    const int file = tern_os_open_nameless(folder, 0600);
    if (file < 0) {
        print_message("this system has no such files\n");
    } else {
        assert_int_equal(fcntl(file, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        assert_int_equal(write(file, "text", 4), 4);
        assert_int_equal(access(path, F_OK), -1);
        assert_true(tern_os_name_file(file, path));
        assert_false(tern_os_name_file(file, path));
        assert_int_equal(errno, EEXIST);
        (void)close(file);
        check_text(path, "text");
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(folder), 0);
}

static void test_times(void **state) {
    char path[] = "/tmp/tern-os-XXXXXX";
    const struct timespec given[2] = {{.tv_sec = 1000, .tv_nsec = 5000},
                                      {.tv_sec = 2000, .tv_nsec = 7000}};
    struct stat info;
    (void)state;
    const int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(futimens(file, given), 0);
    assert_int_equal(tern_os_reserve(file, 12345), 0);
    assert_int_equal(futimens(file, given), 0);
    assert_int_equal(fstat(file, &info), 0);
    assert_int_equal(info.st_size, 12345);
    assert_int_equal(tern_os_read_time(&info).tv_sec, 1000);
    assert_int_equal(tern_os_read_time(&info).tv_nsec, 5000);
    assert_int_equal(tern_os_write_time(&info).tv_sec, 2000);
    assert_int_equal(tern_os_write_time(&info).tv_nsec, 7000);
    assert_true(tern_os_change_time(&info).tv_sec > 1000000000); /* now: nobody can set it */
    assert_true(tern_os_reserve(file, SIZE_MAX / 2) != 0);
    (void)close(file);
    assert_int_equal(unlink(path), 0);
}

static void test_open_nothing(void **state) {
    char byte = 0;
    (void)state;
    const int lowest = dup(0);
    (void)close(lowest);
    const int nothing = tern_os_open_nothing();
    assert_int_equal(nothing, lowest);
    assert_int_equal(read(nothing, &byte, 1), -1);
    assert_int_equal(write(nothing, &byte, 1), -1);
    (void)close(nothing);
}

static void test_program(void **state) {
    unsigned char start[4] = {0};
    (void)state;
    assert_ptr_equal(tern_os_program(), tern_os_program());
    FILE *file = fopen(tern_os_program(), "rb");
    assert_non_null(file);
    assert_int_equal(fread(start, 1, sizeof start, file), sizeof start);
    (void)fclose(file);
    const bool elf = memcmp(start,
                            "\x7f"
                            "ELF",
                            4) == 0;
    assert_true(elf || memcmp(start, "\xcf\xfa\xed\xfe", 4) == 0);
}

static void test_discard(void **state) {
    char path[] = "/tmp/tern-os-XXXXXX";
    (void)state;
    const int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    assert_true(fputs("kept", file) >= 0);
    assert_int_equal(fflush(file), 0);
    assert_true(fputs("dropped", file) >= 0);
    tern_os_discard(file);
    assert_int_equal(fclose(file), 0);
    check_text(path, "kept");
    assert_int_equal(unlink(path), 0);
}

static void test_random_bytes(void **state) {
    uint8_t a[600] = {0}, b[600] = {0};
    size_t zeros = 0;
    (void)state;
    assert_true(tern_os_random_bytes(a, sizeof a - 1));
    assert_true(tern_os_random_bytes(b, sizeof b));
    assert_int_equal(a[sizeof a - 1], 0);
    assert_memory_not_equal(a, b, sizeof a - 1);
    for (size_t i = 0; i < sizeof b; i++)
        zeros += b[i] == 0;
    assert_true(zeros < 40); /* 2.3 are expected: the end is filled, too */
    assert_true(tern_os_random_bytes(a, 0));
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void test_pages(void **state) {
    const size_t bytes = (size_t)4 << 20;
    (void)state;
    uint8_t *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    tern_os_use_huge_pages(pages, bytes);
    memset(pages, 7, bytes);
    tern_os_use_small_pages(pages, bytes);
    assert_int_equal(pages[bytes - 1], 7); /* advice changes nothing */
    tern_os_drop_pages(pages, bytes / 2);
    assert_true(pages[0] == 0 || pages[0] == 7);
    assert_int_equal(pages[bytes / 2], 7);
    assert_int_equal(munmap(pages, bytes), 0);
}

/* It is that of one processor: hwloc, Linux's lscpu and others read the same file. */
static void test_last_cache(void **state) {
    unsigned long kib = 0;
    (void)state;
    FILE *file = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "r");
    if (file == NULL)
        return;
    assert_int_equal(fscanf(file, "%luK", &kib), 1);
    (void)fclose(file);
    assert_int_equal(tern_os_last_cache_bytes(), (size_t)kib * 1024);
}

/* ---- processors ------------------------------------------------------------------------------ */

static void test_processors(void **state) {
    uint32_t *all, *one, n, n_one;
    (void)state;
    assert_true(tern_os_allowed_processors(&all, &n));
    assert_true(n >= 1 && (long)n <= sysconf(_SC_NPROCESSORS_CONF));
    for (uint32_t i = 1; i < n; i++)
        assert_true(all[i] > all[i - 1]);
    tern_os_set *before = tern_os_set_new(all[n - 1]), *last = tern_os_set_new(all[n - 1]);
    assert_true(before != NULL && last != NULL);
    tern_os_set_add(last, all[n - 1]);
    if (tern_os_own_set(before) != ENOTSUP) {
        assert_int_equal(tern_os_bind_self(last), 0);
        assert_true(tern_os_allowed_processors(&one, &n_one));
        assert_int_equal(tern_os_bind_self(before), 0);
        assert_int_equal(n_one, 1);
        assert_int_equal(one[0], all[n - 1]);
        free(one);
        assert_int_equal(tern_os_bind_thread(pthread_self(), last), 0);
        assert_true(tern_os_allowed_processors(&one, &n_one));
        assert_int_equal(tern_os_bind_thread(pthread_self(), before), 0);
        assert_int_equal(n_one, 1);
        free(one);
        assert_true(tern_os_allowed_processors(&one, &n_one));
        assert_int_equal(n_one, n);
        free(one);
    }
    tern_os_set_free(before);
    tern_os_set_free(last);
    tern_os_set_free(NULL);
    free(all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sockets),      cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_bell),         cmocka_unit_test(test_rename_to_new),
        cmocka_unit_test(test_nameless),     cmocka_unit_test(test_times),
        cmocka_unit_test(test_open_nothing), cmocka_unit_test(test_program),
        cmocka_unit_test(test_discard),      cmocka_unit_test(test_random_bytes),
        cmocka_unit_test(test_pages),        cmocka_unit_test(test_last_cache),
        cmocka_unit_test(test_processors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
