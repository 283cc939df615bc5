/* SPDX-License-Identifier: Apache-2.0 */
/* Words at the edge of a terminal: the bytes that a pseudo-terminal of a given width gets. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "tests/support/check.h"
#include "tools/cli/output.h"
#include "tools/terminal/wrap.h"

static int master, before;

static int open_terminal(void **state) {
    struct termios raw;
    (void)state;
    master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        return -1;
    const int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    if (slave < 0 || tcgetattr(slave, &raw) != 0)
        return -1;
    cfmakeraw(&raw);
    (void)tcsetattr(slave, TCSANOW, &raw);
    (void)fflush(stdout);
    before = dup(STDOUT_FILENO);
    (void)dup2(slave, STDOUT_FILENO);
    (void)close(slave);
    wrap_choose_letters();
    return 0;
}

static int close_terminal(void **state) {
    (void)state;
    (void)dup2(before, STDOUT_FILENO);
    (void)close(master);
    return 0;
}

static void set_columns(unsigned columns) {
    const struct winsize window = {.ws_row = 24, .ws_col = (unsigned short)columns};
    assert_int_equal(ioctl(master, TIOCSWINSZ, &window), 0);
}

/* Writes the pieces and compares what arrived. */
static void check_written(wrap *w, const char *pieces, const char *expected) {
    char seen[512];
    for (const char *end; *pieces != '\0'; pieces = *end == '|' ? end + 1 : end) {
        end = strchr(pieces, '|');
        end = end != NULL ? end : pieces + strlen(pieces);
        assert_true(wrap_write(w, pieces, (size_t)(end - pieces)));
    }
    assert_true(out_flush());
    const ssize_t n = read(master, seen, sizeof seen - 1);
    assert_true(n >= 0);
    seen[n] = '\0';
    assert_string_equal(seen, expected);
}

static void test_words(void **state) {
    static const struct {
        const char *name, *pieces, *expected;
    } cases[] = {
        {"fits", "one two", "one two"},
        {"in pieces", "one tw|o th|ree", "one two th\033[9G\033[K\nthree"},
        {"a space at the edge", "0123456789 ab", "0123456789\nab"},
        {"spaces at the edge", "0123456789   ab", "0123456789\nab"},
        {"a line end at the edge", "0123456789\nab", "0123456789\nab"},
        {"a space and a line end", "0123456789 \nab", "0123456789\nab"},
        {"a word of a whole line", "0123456789abc de", "0123456789abc de"},
        {"a longer word behind another", "a 0123456789abc",
         "a 01234567\033[3G\033[K\n0123456789abc"},
        {"tabs", "a\tb\tc", "a\tb\nc"},
        {"wide letters", "\xe6\x97\xa5\xe6\x9c\xac\xe6\x97\xa5\xe6\x9c\xac\xe6\x97\xa5\xe6\x9c\xac",
         "\xe6\x97\xa5\xe6\x9c\xac\xe6\x97\xa5\xe6\x9c\xac\xe6\x97\xa5\n\xe6\x9c\xac"},
        {"a letter that does not fit", "abc 12345\xe6\x97\xa5", "abc 12345\n\xe6\x97\xa5"},
        {"marks above letters", "abcdefge\xcc\x81 x", "abcdefge\xcc\x81 x"},
        {"control characters", "a\033[2J b", "a?[2J b"},
    };
    (void)state;
    set_columns(10);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wrap w = {.on = true};
        wrap_begin(&w);
        check_case("%s", cases[i].name);
        check_written(&w, cases[i].pieces, cases[i].expected);
    }
}

/* A line of 12 columns is broken anew by a window of 8: the next letter is in column 4. */
static void test_resize(void **state) {
    wrap w = {.on = true};
    (void)state;
    set_columns(20);
    wrap_begin(&w);
    check_written(&w, "0123456 abc ", "0123456 abc ");
    set_columns(8);
    check_written(&w, "abcde", "abcd\033[5G\033[K\nabcde");
    set_columns(20);
    check_written(&w, "fgh", "fgh");
}

static void test_off(void **state) {
    wrap w = {0};
    (void)state;
    set_columns(8);
    wrap_begin(&w);
    check_written(&w, "0123456 abc", "0123456 abc");
}

static void test_rows(void **state) {
    static const struct {
        const char *printed;
        unsigned from, row, column;
    } cases[] = {
        {"abc", 0, 0, 3},    {"abc", 8, 1, 1},   {"0123456789", 0, 1, 0},
        {"ab\ncd", 0, 1, 2}, {"ab\tc", 0, 0, 9}, {"012345678\xe6\x97\xa5", 0, 1, 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned column = cases[i].from;
        check_case("%s", cases[i].printed);
        assert_int_equal(wrap_row(cases[i].printed, strlen(cases[i].printed), 10, &column),
                         cases[i].row);
        assert_int_equal(column, cases[i].column);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_words, open_terminal, close_terminal),
        cmocka_unit_test_setup_teardown(test_resize, open_terminal, close_terminal),
        cmocka_unit_test_setup_teardown(test_off, open_terminal, close_terminal),
        cmocka_unit_test(test_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
