/* SPDX-License-Identifier: Apache-2.0 */
/* Files of keys: every form of a line, and the message for other lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "serve/http/keys.h"
#include "tests/support/check.h"

enum { LONGEST_LINE = 4096, LONGEST_LABEL = KEY_LABEL_BYTES - 1 };

static char path[] = "/tmp/tern-keys-XXXXXX";

static int make_file(void **state) {
    (void)state;
    const int fd = mkstemp(path);
    return fd < 0 || close(fd) != 0;
}

static int remove_file(void **state) {
    (void)state;
    return unlink(path);
}

static tern_status read_keys(const char *bytes, size_t size, keys *k, tern_error *err) {
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
    *k = (keys){0};
    return keys_add_file(k, path, err);
}

static bool opens(const keys *k, const char *text, const char *label) {
    char held[KEY_LABEL_BYTES] = "";
    key *found = keys_find(k, text, strlen(text));
    if (found != NULL)
        key_label(found, held);
    key_release(found);
    return found != NULL && strcmp(held, label) == 0;
}

#define TEXT(literal) literal, sizeof(literal) - 1

typedef struct sound_file {
    const char *bytes;
    size_t size, n;
    const char *key, *label; /* of one of the keys */
} sound_file;

static const sound_file sound[] = {
    {TEXT("k"), 1, "k", "key1"},
    {TEXT("k\n"), 1, "k", "key1"},
    {TEXT("alice k\n"), 1, "k", "alice"},
    {TEXT("alice\tk\n"), 1, "k", "alice"},
    {TEXT(" \t alice \t k \t \n"), 1, "k", "alice"},
    {TEXT("alice k\r\nbob l\r\n"), 2, "l", "bob"},
    {TEXT("alice k\r\n\r\n\r\nbob l"), 2, "l", "bob"},
    {TEXT("\n\n \n\t\nk\n\n"), 1, "k", "key1"},
    {TEXT("# alice x\nbob k\n"), 1, "k", "bob"},
    {TEXT("  # alice x\nbob k\n"), 1, "k", "bob"},
    {TEXT("#alice x\r\n#\r\nbob k\n"), 1, "k", "bob"},
    {TEXT("a k#1\nb#c l\n"), 2, "l", "b#c"},
    {TEXT("a k#1\n"), 1, "k#1", "a"},
    {TEXT("\xef\xbb\xbf# remark\nk\n"), 1, "k", "key1"},
    {TEXT("\xef\xbb\xbf"
          "alice k\n"),
     1, "k", "alice"},
    {TEXT("alice k\nalice l\n"), 2, "l", "alice"},
    {TEXT("k\nl\n"), 2, "l", "key2"},
    {TEXT("alice k requests=1\ttokens-per-minute=2 \r\n"), 1, "k", "alice"},
    {TEXT("k requests=1\n"), 1, "k", "key1"},
    {TEXT("k=x,y;z\"'%\\~ requests=1\n"), 1, "k=x,y;z\"'%\\~", "key1"},
    {TEXT("\xc3\xb6 \xc3\xa4\n"), 1, "\xc3\xa4", "\xc3\xb6"},
};

static void test_sound_files(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof sound / sizeof *sound; i++) {
        keys k;
        tern_error err = {0};
        const sound_file *f = &sound[i];
        if (read_keys(f->bytes, f->size, &k, &err) != TERN_OK)
            check_fail("file %zu: %s", i, err.message);
        if (k.n != f->n || !opens(&k, f->key, f->label))
            check_fail("file %zu: %zu keys, and %s is not that of %s", i, k.n, f->key, f->label);
        keys_free(&k);
    }
}

typedef struct wrong_file {
    const char *bytes;
    size_t size;
    const char *line; /* in the message, after the file's name */
} wrong_file;

static const wrong_file wrong[] = {
    {TEXT(""), "there is no key in it"},
    {TEXT("# SECRET\n\n"), "there is no key in it"},
    {TEXT("# SECRET"), "there is no key in it"},
    {TEXT("a SECRET-1\nalice #SECRET\n"), "line 2 has a word that begins with '#'"},
    {TEXT("SECRET # of alice\n"), "line 1 is not a key"},
    {TEXT("SECRET #alice\n"), "line 1 has a word that begins with '#'"},
    {TEXT("SECRET #alice requests=3\n"), "line 1 has a word that begins with '#'"},
    {TEXT("a SECRET c\n"), "line 1 is not a key"},
    {TEXT("a SECRET c d\n"), "line 1 is not a key"},
    {TEXT("a SECRET c d e\n"), "line 1 has limits other than"},
    {TEXT("a SECRET requests=1 requests=2\n"), "line 1 has limits other than"},
    {TEXT("a SECRET requests=0\n"), "line 1 has limits other than"},
    {TEXT("requests=3\n"), "line 1 has limits where its key belongs"},
    {TEXT("tokens-per-minute=3 requests=4\n"), "line 1 has limits where its key belongs"},
    {TEXT("requests=3 SECRET\n"), "line 1 has limits where its key belongs"},
    {TEXT("\n\nSECRET\nb SECRET\n"), "line 4 has a key that was given before"},
    {TEXT("a SECRET\na SECRET\n"), "line 2 has a key that was given before"},
    {TEXT("b x\na SEC\0RET\n"), "line 2 has a control character"},
    {TEXT("\0"), "line 1 has a control character"},
    {TEXT("# \0SECRET\nk\n"), "line 1 has a control character"},
    {TEXT("a SEC\rRET\n"), "line 1 has a control character"},
    {TEXT("a x\rb SECRET\r"), "line 1 has a control character"},
    {TEXT("a SECRET\r\r\n"), "line 1 has a control character"},
    {TEXT("a SECRET\x7f\n"), "line 1 has a control character"},
    {TEXT("a SECRET\v\n"), "line 1 has a control character"},
    {TEXT("a\x1b[31m SECRET\n"), "line 1 has a control character"},
};

static void refused(const char *bytes, size_t size, const char *said) {
    keys k;
    tern_error err = {0};
    if (read_keys(bytes, size, &k, &err) == TERN_OK)
        check_fail("taken, where it should be said: %s", said);
    if (strncmp(err.message, path, strlen(path)) != 0 || strstr(err.message, said) == NULL)
        check_fail("'%s' is said, not: %s", err.message, said);
    if (strstr(err.message, "SEC") != NULL || strstr(err.message, "alice") != NULL)
        check_fail("a part of the line is said: %s", err.message);
    keys_free(&k);
}

static void test_wrong_files(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        check_case("file %zu", i);
        refused(wrong[i].bytes, wrong[i].size, wrong[i].line);
    }
}

static void test_sizes(void **state) {
    (void)state;
    enum { FILE_BYTES = 1 << 20 };
    keys k;
    tern_error err = {0};
    char *text = malloc(FILE_BYTES + 2);
    assert_non_null(text);
    memset(text, 'S', LONGEST_LINE + 1);
    assert_int_equal(read_keys(text, LONGEST_LINE, &k, &err), TERN_OK);
    keys_free(&k);
    memcpy(text + LONGEST_LINE, "\r\n", 2); /* the line end does not count */
    assert_int_equal(read_keys(text, LONGEST_LINE + 2, &k, &err), TERN_OK);
    keys_free(&k);
    text[LONGEST_LINE] = 'S';
    refused(text, LONGEST_LINE + 1, "line 1 has more than 4096 bytes");
    memset(text, 'S', FILE_BYTES + 2);
    refused(text, FILE_BYTES, "line 1 has more than 4096 bytes");
    memset(text, '\n', FILE_BYTES + 2);
    memcpy(text, "k", 1);
    assert_int_equal(read_keys(text, FILE_BYTES, &k, &err), TERN_OK);
    assert_int_equal(k.n, 1);
    keys_free(&k);
    refused(text, FILE_BYTES + 2, "has more than 1048576 bytes");
    memset(text, 'l', LONGEST_LABEL);
    memcpy(text + LONGEST_LABEL, " k", 2);
    assert_int_equal(read_keys(text, LONGEST_LABEL + 2, &k, &err), TERN_OK);
    keys_free(&k);
    memcpy(text + LONGEST_LABEL, "l k", 3);
    refused(text, LONGEST_LABEL + 3, "line 1 has a label of more than 31 bytes");
    free(text);
}

/* A key in a list may contain any byte except a comma. Each key may only come once. */
static void test_lists(void **state) {
    (void)state;
    keys k = {0};
    tern_error err = {0};
    assert_int_equal(keys_add_list(&k, "one,#two, three", &err), TERN_OK);
    assert_true(opens(&k, "#two", "key2") && opens(&k, " three", "key3"));
    assert_int_equal(keys_add_list(&k, "four,one", &err), TERN_ERR_ARG);
    assert_string_equal(err.message, "key number 2 was given before");
    keys_free(&k);
    assert_int_equal(keys_add_list(&k, "SECRET,SECRET", &err), TERN_ERR_ARG);
    assert_null(strstr(err.message, "SECRET"));
    keys_free(&k);
    assert_int_equal(keys_add_list(&k, "a,,b", &err), TERN_ERR_ARG);
    keys_free(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound_files),
        cmocka_unit_test(test_wrong_files),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_lists),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
