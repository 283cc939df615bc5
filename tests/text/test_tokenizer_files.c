/* SPDX-License-Identifier: Apache-2.0 */
/* tern_tokenizer_open: files beside a tokenizer.json count, and other files are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/check.h"
#include "tests/text/tokenizer_case.h"

static const char tokenizer[] =
    "{\"model\": {\"vocab\": {\"h\": 0, \"e\": 1, \"he\": 2}, \"merges\": [\"h e\"]}, "
    "\"pre_tokenizer\": {\"type\": \"ByteLevel\"}, \"decoder\": {\"type\": \"ByteLevel\"}, "
    "\"added_tokens\": [{\"id\": 3, \"content\": \"<b>\", \"special\": true}, "
    "{\"id\": 4, \"content\": \"<e>\", \"special\": true}]}";

static void write_file(const char *folder, const char *name, const char *text) {
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

static void files_beside(void **state) {
    (void)state;
    static const char *const names[] = {"tokenizer.json", "tokenizer_config.json",
                                        "generation_config.json", "vocab.json", "merges.txt"};
    char folder[] = "/tmp/tern-test-XXXXXX", path[256];
    assert_non_null(mkdtemp(folder));
    write_file(folder, names[0], tokenizer);
    write_file(folder, names[1],
               "{\"bos_token\": {\"content\": \"<b>\"}, \"eos_token\": \"<e>\", "
               "\"add_bos_token\": true, \"chat_template\": [{\"name\": \"default\", "
               "\"template\": \"<|im_start|> <|im_end|> assistant\"}]}");
    write_file(folder, names[2], "{\"eos_token_id\": [4, 2, 4000]}");
    write_file(folder, names[3], "{\"a\": 0}");
    write_file(folder, names[4], "a b");
    (void)snprintf(path, sizeof path, "%s/%s", folder, names[0]);
    tern_tokenizer *t = NULL;
    tern_error err = {0};
    assert_int_equal(tern_tokenizer_open(path, NULL, &t, &err), TERN_OK);
    EXPECT_IDS(t, "he", TERN_TOKENIZE_SPECIAL, 3, 2);
    assert_true(tern_token_ends_text(t, 4) && tern_token_ends_text(t, 2));
    assert_false(tern_token_ends_text(t, 1));
    assert_string_equal(tern_chat_format(t), "template");
    assert_string_equal(tern_tokenizer_file(t), path);
    check_freed(tern_tokenizer_free, t);
    assert_int_equal(tern_tokenizer_open(path, "gpt-2", &t, &err), TERN_ERR_TOKENIZER_PRE);
    (void)snprintf(path, sizeof path, "%s/%s", folder, names[3]);
    assert_int_equal(tern_tokenizer_open(path, NULL, &t, &err), TERN_ERR_TOKENIZER_MODEL);
    assert_non_null(strstr(err.message, "merges.txt"));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(tern_tokenizer_open(path, NULL, &t, &err), TERN_ERR_IO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_beside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
