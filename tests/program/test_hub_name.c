/* SPDX-License-Identifier: Apache-2.0 */
/* Names of models of a hub: what is read, how long each part may be, and what is no such name. */
#include <stdio.h>
#include <string.h>

#include "tests/support/check.h"
#include "tools/hub/hub_name.h"

enum { LONGEST_WORD = 96 };

static void test_parts(void **state) {
    static const struct {
        const char *text, *repo, *revision, *file;
    } names[] = {
        {"a/b", "a/b", "main", ""},
        {"A-1/b_2.c", "A-1/b_2.c", "main", ""},
        {"a/b@v1.0", "a/b", "v1.0", ""},
        {"a/b@refs/pr/1:q4", "a/b", "refs/pr/1", "q4"},
        {"a/b:folder/model.gguf", "a/b", "main", "folder/model.gguf"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        hub_name n;
        check_case("%s", names[i].text);
        assert_true(hub_name_read(names[i].text, &n));
        assert_string_equal(n.repo, names[i].repo);
        assert_string_equal(n.revision, names[i].revision);
        assert_string_equal(n.file, names[i].file);
    }
}

static void test_none(void **state) {
    static const char *const texts[] = {
        "",         "a",        "a/",       "/b",       "a/b/c",    "a/b@",      "a/b:",
        "-a/b",     "a/.b",     "a/b..c",   "a/b--c",   "a b/c",    "a/b@x y",   "a/b@../c",
        "a/b@a//b", "a/b:../c", "a/b:/etc", "a/b:c/..", "a/b:c\\d", "a/b:c\x01", "a/b@.",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        hub_name n;
        if (hub_name_read(texts[i], &n))
            fail_msg("'%s' is read as %s@%s:%s", texts[i], n.repo, n.revision, n.file);
    }
}

/* A name whose owner, name, revision and file have so many letters. */
static bool reads(int owner, int name, int revision, int file) {
    static const char letters[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                                  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                                  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    char text[2048], path[HUB_FILE_BYTES + 1];
    hub_name n;
    memset(path, 'f', (size_t)file);
    path[file] = '\0';
    (void)snprintf(text, sizeof text, "%.*s/%.*s@%.*s:%s", owner, letters, name, letters, revision,
                   letters, path);
    return hub_name_read(text, &n) && strlen(n.repo) == (size_t)(owner + 1 + name) &&
           strlen(n.revision) == (size_t)revision && strlen(n.file) == (size_t)file;
}

/* Each part as long as it may be, and one letter more. A hub's names have 96, git's revisions and
 * files of a repository are longer. */
static void test_limits(void **state) {
    (void)state;
    assert_true(reads(LONGEST_WORD, LONGEST_WORD, 127, 511));
    assert_false(reads(LONGEST_WORD + 1, 1, 1, 1));
    assert_false(reads(1, LONGEST_WORD + 1, 1, 1));
    assert_false(reads(1, 1, 128, 1));
    assert_false(reads(1, 1, 1, 512));
    assert_true(reads(1, 1, 1, 1));
    assert_false(reads(1, 0, 1, 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts), cmocka_unit_test(test_none),
                                       cmocka_unit_test(test_limits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
