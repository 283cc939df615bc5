/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizing that ends before the whole text is done. Progress counts bytes of work. */

#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"
#include "tests/text/tokenizer_case.h"

static const char model[] = TERN_SOURCE_DIR "/models/tern-small.gguf";

enum { TEXT = 4 << 20, SLICE = 1 << 15 };

/* The reported progress. */
typedef struct told {
    size_t bytes, calls, until; /* until: calls after which it is called off; 0: never */
} told;

static bool goes_on(void *user, size_t bytes) {
    told *t = user;
    t->bytes += bytes;
    t->calls++;
    return t->until == 0 || t->calls < t->until;
}

static tern_tokenizer *open_small(void) {
    tern_tokenizer *t = NULL;
    assert_int_equal(tern_tokenizer_open(model, NULL, &t, NULL), TERN_OK);
    return t;
}

/* "a b a b ...", without a terminator. */
static char *make_text(size_t size, const char *words) {
    char *text = malloc(size);
    assert_non_null(text);
    for (size_t i = 0, n = strlen(words); i < size; i++)
        text[i] = words[i % n];
    return text;
}

static tern_status within(const tern_tokenizer *t, const char *text, size_t size,
                          tern_tokenize_limits limits, told *seen, size_t *n) {
    int32_t *ids = NULL;
    *seen = (told){.until = seen->until};
    limits.goes_on = goes_on;
    limits.user = seen;
    const tern_status status = tern_tokenize_within(t, text, size, 0, &limits, &ids, n, NULL);
    if (status == TERN_OK) {
        size_t sized = 0;
        int32_t *same = calloc(*n + 1, sizeof *same);
        assert_non_null(same);
        assert_int_equal(tern_tokenize(t, text, size, 0, same, *n, &sized, NULL), TERN_OK);
        assert_int_equal(sized, *n);
        assert_memory_equal(same, ids, *n * sizeof *ids);
        free(same);
    }
    free(ids);
    return status;
}

/* A text that cannot fit, judging by its bytes, is not read. */
static void test_bytes_come_first(void **state) {
    (void)state;
    tern_tokenizer *t = open_small();
    const size_t reach = tern_tokenizer_reach(t);
    char *text = make_text(TEXT, "a b ");
    told seen = {0};
    size_t n = 0;
    assert_in_range(reach, 4, 1000);
    assert_int_equal(within(t, text, TEXT, (tern_tokenize_limits){.most_tokens = 100}, &seen, &n),
                     TERN_ERR_CONTEXT);
    assert_int_equal(seen.calls, 0);
    assert_int_equal(within(t, text, 4097, (tern_tokenize_limits){.most_bytes = 4096}, &seen, &n),
                     TERN_ERR_CONTEXT);
    assert_int_equal(seen.calls, 0);
    assert_int_equal(within(t, text, 256, (tern_tokenize_limits){.most_bytes = 256}, &seen, &n),
                     TERN_OK);
    free(text);
    tern_tokenizer_free(&t);
}

/* A text that might fit by its bytes is abandoned once it has too many tokens. */
static void test_then_tokens(void **state) {
    (void)state;
    tern_tokenizer *t = open_small();
    char *text = make_text(TEXT, "a b ");
    const size_t most = TEXT / tern_tokenizer_reach(t) + 1;
    told seen = {0};
    size_t n = 0;
    assert_int_equal(within(t, text, TEXT, (tern_tokenize_limits){.most_tokens = most}, &seen, &n),
                     TERN_ERR_CONTEXT);
    assert_true(seen.calls > 0 && seen.bytes < TEXT / 2);
    assert_int_equal(within(t, text, 1000, (tern_tokenize_limits){0}, &seen, &n), TERN_OK);
    const size_t all = n;
    assert_int_equal(within(t, text, 1000, (tern_tokenize_limits){.most_tokens = all}, &seen, &n),
                     TERN_OK);
    free(text);
    tern_tokenizer_free(&t);
}

/* The caller calls it off. */
static void test_stops(void **state) {
    (void)state;
    tern_tokenizer *t = open_small();
    char *text = make_text(TEXT, "a b ");
    told seen = {.until = 3};
    size_t n = 0;
    assert_int_equal(within(t, text, TEXT, (tern_tokenize_limits){0}, &seen, &n), TERN_ERR_STATE);
    assert_true(seen.calls >= 3 && seen.bytes <= 4 * 2 * SLICE);
    seen.until = 0;
    assert_int_equal(within(t, text, 5 * SLICE, (tern_tokenize_limits){0}, &seen, &n), TERN_OK);
    assert_true(seen.bytes >= 5 * SLICE); /* all work was reported */
    free(text);
    tern_tokenizer_free(&t);
}

/* A single endless piece: progress is also reported while symbols are joined. */
static void test_stops_inside_of_a_piece(void **state) {
    (void)state;
    const tokenizer_case scores = {.model = "llama",
                                   .tokens =
                                       (const char *[]){"<unk>", "a", "b", "ab", "abab", NULL},
                                   .types = (const int32_t[]){2, 1, 1, 1, 1},
                                   .scores = (const float[]){0, -3, -3, -2, -1}};
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &scores, NULL), TERN_OK);
    char *text = make_text(1 << 18, "ab");
    told seen = {0};
    size_t n = 0;
    assert_int_equal(within(f.t, text, 1 << 18, (tern_tokenize_limits){0}, &seen, &n), TERN_OK);
    const size_t calls = seen.calls;
    assert_true(calls > 20);
    seen.until = calls / 2;
    assert_int_equal(within(f.t, text, 1 << 18, (tern_tokenize_limits){0}, &seen, &n),
                     TERN_ERR_STATE);
    assert_int_equal(seen.calls, seen.until);
    free(text);
    tokenizer_close(&f);
}

/* The number of bytes has no limit if text may vanish. */
static void test_reach(void **state) {
    (void)state;
    static const char *const tokens[] = {"<unk>", "a", "abc", NULL};
    static const int32_t types[] = {2, 1, 1};
    static const float scores[] = {0, -1, -1};
    const struct {
        tokenizer_case c;
        size_t reach;
    } cases[] = {
        {{.model = "llama",
          .tokens = tokens,
          .types = types,
          .scores = scores,
          .id_key = "tokenizer.ggml.unknown_token_id",
          .id = 0},
         5},
        {{.model = "t5",
          .tokens = tokens,
          .types = types,
          .scores = scores,
          .id_key = "tokenizer.ggml.unknown_token_id",
          .id = 0},
         0},
        {{.model = "gpt2",
          .pre = "gpt-2",
          .byte_level = true,
          .tokens = (const char *const[]){"ab", NULL},
          .types = (const int32_t[]){1},
          .merges = (const char *const[]){"a b", NULL}},
         2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tokenizer_fixture f;
        if (tokenizer_open(&f, &cases[i].c, NULL) != TERN_OK)
            fail_msg("case %zu: %s", i, f.err.message);
        assert_int_equal(tern_tokenizer_reach(f.t), cases[i].reach);
        tokenizer_close(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_come_first),
        cmocka_unit_test(test_then_tokens),
        cmocka_unit_test(test_stops),
        cmocka_unit_test(test_stops_inside_of_a_piece),
        cmocka_unit_test(test_reach),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
