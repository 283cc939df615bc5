/* SPDX-License-Identifier: Apache-2.0 */
/* AC:8. Encoding and decoding with small vocabularies, whose type is found in the model file. In
 * byte-level ones, id b is byte b. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/text/tokenizer_case.h"

enum { HE = 256, LL, HELL, HELLO, SPACE_W, END, BEGIN, MARK, MARK_LONG, WHOLE };

static const char *const bpe_tokens[] = {"he",  "ll",     "hell",    "hello",    "\u0120w", "<end>",
                                         "<s>", "<mark>", "<mark>!", "w\u0120w", NULL};
static const int32_t bpe_types[] = {1, 1, 1, 1, 1, 3, 3, 4, 4, 1};
/* "l l" comes twice: its first rank counts. "o w" gives something that is not a token. */
static const char *const bpe_merges[] = {"h e",      "l l", "he ll", "hell o",
                                         "\u0120 w", "o h", "l l",   NULL};
static const tokenizer_case bpe = {.model = "gpt2",
                                   .pre = "gpt-2",
                                   .byte_level = true,
                                   .tokens = bpe_tokens,
                                   .types = bpe_types,
                                   .merges = bpe_merges,
                                   .id_key = "tokenizer.ggml.bos_token_id",
                                   .id = BEGIN};

static void merges_follow_rank(void **state) {
    (void)state;
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &bpe, NULL), TERN_OK);
    assert_string_equal(tern_tokenizer_pre(f.t), "gpt-2");
    EXPECT_IDS(f.t, "hello", 0, HELLO);
    EXPECT_IDS(f.t, "hello wll", 0, HELLO, SPACE_W, LL);
    EXPECT_IDS(f.t, "lll", 0, LL, 'l'); /* among equal ranks, the leftmost */
    EXPECT_IDS(f.t, "hehe\n", 0, HE, HE, '\n');
    EXPECT_IDS(f.t, "ohe", 0, 'o', HE); /* "h e" before "o h", though that begins further left */
    EXPECT_TEXT(f.t, false, "hello w\n", HELLO, SPACE_W, '\n');
    tokenizer_close(&f);
}

static void a_symbol_without_token_falls_apart(void **state) {
    (void)state;
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &bpe, NULL), TERN_OK);
    EXPECT_IDS(f.t, "oh", 0, 'o', 'h'); /* "o h" merges, "oh" is not a token: its bytes are */
    tokenizer_close(&f);
}

static void whole_pieces_only_where_the_rule_says(void **state) {
    (void)state;
    static const char *const tokens[] = {"abc", NULL};
    static const char *const merges[] = {"x y", NULL};
    const tokenizer_case c = {
        .model = "gpt2", .byte_level = true, .tokens = tokens, .merges = merges};
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &c, "llama-bpe"), TERN_OK);
    EXPECT_IDS(f.t, "abc", 0, 256);
    EXPECT_IDS(f.t, "abc", TERN_TOKENIZE_SPECIAL, 11, 256); /* this rule adds the default BOS */
    tokenizer_close(&f);
    assert_int_equal(tokenizer_open(&f, &c, "dbrx"), TERN_OK);
    EXPECT_IDS(f.t, "abc", TERN_TOKENIZE_SPECIAL, 'a', 'b', 'c');
    tokenizer_close(&f);
}

static void invalid_bytes_become_replacement_characters(void **state) {
    (void)state;
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &bpe, NULL), TERN_OK);
    EXPECT_IDS(f.t, "\xff", 0, 0xEF, 0xBF, 0xBD);
    EXPECT_IDS(f.t, "\xE2\x82", 0, 0xEF, 0xBF, 0xBD, 0xEF, 0xBF, 0xBD);
    EXPECT_IDS(f.t, "\xC3\xA9", 0, 0xC3, 0xA9);
    EXPECT_IDS(f.t, "a\0b", 0, 'a', 0, 'b');
    tokenizer_close(&f);
}

static void special_tokens_need_permission(void **state) {
    (void)state;
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &bpe, NULL), TERN_OK);
    EXPECT_IDS(f.t, "<s>he", TERN_TOKENIZE_PARSE, BEGIN, HE);
    EXPECT_IDS(f.t, "<s>", 0, '<', 's', '>');
    EXPECT_IDS(f.t, "he<mark>!he", 0, HE, MARK_LONG, HE); /* longest first */
    EXPECT_IDS(f.t, "<mark><mark>?", 0, MARK, MARK, '?');
    EXPECT_TEXT(f.t, true, "he<mark>", HE, END, MARK);
    EXPECT_TEXT(f.t, false, "he<end><mark>", HE, END, MARK);
    tokenizer_close(&f);
}

static void begin_and_end_tokens(void **state) {
    (void)state;
    tokenizer_fixture f;
    tokenizer_case c = bpe;
    c.true_key = "tokenizer.ggml.add_bos_token";
    assert_int_equal(tokenizer_open(&f, &c, NULL), TERN_OK);
    assert_int_equal(tern_token_bos(f.t), BEGIN);
    assert_int_equal(tern_token_eos(f.t), 11); /* the default without the key */
    EXPECT_IDS(f.t, "he", TERN_TOKENIZE_SPECIAL, BEGIN, HE);
    EXPECT_IDS(f.t, "", TERN_TOKENIZE_SPECIAL, BEGIN);
    tokenizer_close(&f);
    c.true_key = "tokenizer.ggml.add_eos_token";
    c.id_key = "tokenizer.ggml.eos_token_id";
    c.id = END;
    assert_int_equal(tokenizer_open(&f, &c, NULL), TERN_OK);
    EXPECT_IDS(f.t, "he", TERN_TOKENIZE_SPECIAL, HE, END);
    assert_true(tern_token_ends_text(f.t, END));
    assert_false(tern_token_ends_text(f.t, HE));
    assert_false(tern_token_ends_text(f.t, -1));
    assert_false(tern_token_ends_text(f.t, 100000));
    tokenizer_close(&f);
}

static void named_end_tokens_are_control(void **state) {
    (void)state;
    static const char *const tokens[] = {"<|eot_id|>", "<|im_end|>", "<plain>", NULL};
    tokenizer_case c = bpe;
    c.tokens = tokens;
    c.types = NULL;
    c.id_key = "tokenizer.ggml.eot_token_id";
    c.id = 258;
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &c, NULL), TERN_OK);
    for (int32_t id = 256; id < 259; id++)
        assert_true(tern_token_ends_text(f.t, id));
    EXPECT_IDS(f.t, "<|im_end|>", TERN_TOKENIZE_PARSE, 257);
    EXPECT_TEXT(f.t, true, "", 256, 257, 258);
    tokenizer_close(&f);
}

static void pieces_of_tokens(void **state) {
    (void)state;
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &bpe, NULL), TERN_OK);
    size_t size = 9;
    assert_memory_equal(tern_token_bytes(f.t, SPACE_W, false, &size), " w", 2);
    assert_int_equal(size, 2);
    tern_token_bytes(f.t, END, false, &size);
    assert_int_equal(size, 0);
    assert_memory_equal(tern_token_bytes(f.t, END, true, &size), "<end>", 5);
    assert_int_equal(size, 5);
    tern_token_bytes(f.t, -1, true, &size);
    assert_int_equal(size, 0);
    tern_token_bytes(f.t, (int32_t)tern_tokenizer_size(f.t), true, &size);
    assert_int_equal(size, 0);
    for (int32_t id = 0; id < 256; id++) { /* the alphabet is complete and its own inverse */
        const char *byte = tern_token_bytes(f.t, id, false, &size);
        assert_int_equal(size, 1);
        assert_int_equal((unsigned char)byte[0], id);
    }
    tokenizer_close(&f);
}

static void small_buffers_are_refused(void **state) {
    (void)state;
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &bpe, NULL), TERN_OK);
    int32_t ids[2] = {-7, -7};
    size_t n = 0;
    assert_int_equal(tern_tokenize(f.t, "abc", 3, 0, ids, 2, &n, &f.err), TERN_ERR_BUFFER);
    assert_int_equal(n, 3);
    assert_memory_equal(f.err.message, "case.gguf: ", 11);
    char text[1];
    assert_int_equal(tern_detokenize(f.t, ids, 0, true, text, 1, &n, NULL), TERN_OK);
    assert_int_equal(n, 0);
    const int32_t two[] = {'a', 'b'};
    assert_int_equal(tern_detokenize(f.t, two, 2, true, text, 1, &n, NULL), TERN_ERR_BUFFER);
    assert_int_equal(n, 2);
    assert_int_equal(tern_tokenize(NULL, "", 0, 0, NULL, 0, &n, NULL), TERN_ERR_NULL);
    assert_int_equal(tern_tokenize(f.t, NULL, 1, 0, NULL, 0, &n, NULL), TERN_ERR_NULL);
    assert_int_equal(tern_tokenize(f.t, "", (size_t)1 << 40, 0, NULL, 0, &n, NULL), TERN_ERR_ARG);
    assert_int_equal(tern_detokenize(f.t, NULL, 1, true, NULL, 0, &n, NULL), TERN_ERR_NULL);
    tokenizer_close(&f);
}

/* ---- SentencePiece-style ---- */

enum { S_UNK, S_BOS, S_EOS, S_SPACE, S_H, S_E, S_L, S_HE, S_LL, S_SPACE_HE, S_HELL, S_EURO2, S_FF };

static const char *const spm_tokens[] = {"<unk>", "<s>",    "</s>",   "\u2581", "h",
                                         "e",     "l",      "he",     "ll",     "\u2581he",
                                         "hell",  "<0xE2>", "<0xFF>", NULL};
static const int32_t spm_types[] = {2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 6, 6};
static const float spm_scores[] = {0, 0, 0, -9, -9, -9, -9, -2, -1, -3, -4, 0, 0};
static const tokenizer_case spm = {
    .model = "llama", .tokens = spm_tokens, .types = spm_types, .scores = spm_scores};

static void scores_decide(void **state) {
    (void)state;
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &spm, NULL), TERN_OK);
    assert_string_equal(tern_tokenizer_pre(f.t), "");
    /* ll (-1), he (-2), then _he (-3) before hell (-4) */
    EXPECT_IDS(f.t, "hell", 0, S_SPACE_HE, S_LL);
    EXPECT_IDS(f.t, "hell", TERN_TOKENIZE_SPECIAL, S_BOS, S_SPACE_HE, S_LL);
    EXPECT_IDS(f.t, " he", 0, S_SPACE, S_SPACE_HE);
    EXPECT_IDS(f.t, "lll", 0, S_SPACE, S_LL, S_L);
    EXPECT_IDS(f.t, "he</s>he", TERN_TOKENIZE_PARSE, S_SPACE_HE, S_EOS, S_SPACE_HE);
    assert_int_equal(tern_tokenize(f.t, "", 0, 0, NULL, 0, &(size_t){0}, NULL), TERN_OK);
    tokenizer_close(&f);

    /* The pair with the better score wins, not the leftmost of two that overlap. */
    static const char *const tokens[] = {"<unk>", "<s>", "</s>", "\u2581", "a",
                                         "b",     "c",   "ab",   "bc",     NULL};
    static const int32_t types[] = {2, 3, 3, 1, 1, 1, 1, 1, 1};
    static const float scores[] = {0, 0, 0, -9, -9, -9, -9, -5, -1};
    const tokenizer_case overlap = {
        .model = "llama", .tokens = tokens, .types = types, .scores = scores};
    assert_int_equal(tokenizer_open(&f, &overlap, NULL), TERN_OK);
    EXPECT_IDS(f.t, "abc", 0, 3, 4, 8);
    tokenizer_close(&f);
}

/* The text of a conversation tells for each byte which message it comes from. Names of known roles
 * count as the template's own text. */
static void sentencepiece(void **state) {
    (void)state;
    tokenizer_case other = spm;
    tokenizer_fixture f;
    other.model = "sentencepiece";
    assert_int_equal(tokenizer_open(&f, &other, NULL), TERN_OK);
    assert_string_equal(tern_tokenizer_kind(f.t), "SentencePiece scores");
    EXPECT_IDS(f.t, "hell", TERN_TOKENIZE_SPECIAL, S_BOS, S_SPACE_HE, S_LL);
    EXPECT_TEXT(f.t, true, "he", S_SPACE_HE);
    tokenizer_close(&f);
}

static void bytes_stand_in(void **state) {
    (void)state;
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &spm, NULL), TERN_OK);
    /* U+20AC is E2 82 AC: one byte has a token, two have none */
    EXPECT_IDS(f.t, "\xE2\x82\xAC", 0, S_SPACE, S_EURO2, S_UNK, S_UNK);
    EXPECT_IDS(f.t, "\xFFh", 0, S_SPACE, S_FF, S_H); /* broken text keeps its bytes */
    EXPECT_TEXT(f.t, true, "he\xEF\xBF\xBDh", S_SPACE_HE, S_FF, S_H);
    tokenizer_close(&f);
}

static void one_leading_space_is_dropped(void **state) {
    (void)state;
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &spm, NULL), TERN_OK);
    EXPECT_TEXT(f.t, true, "hell", S_BOS, S_SPACE_HE, S_LL);
    EXPECT_TEXT(f.t, true, " he he", S_SPACE, S_SPACE_HE, S_SPACE_HE);
    EXPECT_TEXT(f.t, false, "<s> he", S_BOS, S_SPACE_HE);
    tokenizer_close(&f);
    assert_int_equal(tokenizer_open(&f, &bpe, NULL), TERN_OK); /* here a space is kept as a space */
    EXPECT_TEXT(f.t, true, " wll", SPACE_W, LL);
    EXPECT_TEXT(f.t, true, " he", ' ', HE);
    tokenizer_close(&f);
}

/* Control tokens, the unknown token and unused ids are not text. Tokens that users added are. */
static void silent_tokens(void **state) {
    (void)state;
    int32_t types[] = {2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 6, 6};
    tokenizer_case c = spm;
    tokenizer_fixture f;
    c.types = types;
    types[S_HELL] = 5;
    types[S_LL] = 4;
    assert_int_equal(tokenizer_open(&f, &c, NULL), TERN_OK);
    EXPECT_TEXT(f.t, true, "hhe", S_BOS, S_UNK, S_H, S_EOS, S_HELL, S_HE);
    EXPECT_TEXT(f.t, false, "<s><unk>h</s>hellhe", S_BOS, S_UNK, S_H, S_EOS, S_HELL, S_HE);
    EXPECT_TEXT(f.t, true, "hllh", S_H, S_LL, S_H);
    tokenizer_close(&f);
}

static void long_words_take_no_quadratic_time(void **state) {
    (void)state;
    enum { SIZE = 200000 };
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &bpe, NULL), TERN_OK);
    char *text = malloc(SIZE);
    assert_non_null(text);
    memset(text, 'l', SIZE);
    size_t n = 0;
    assert_int_equal(tern_tokenize(f.t, text, SIZE, 0, NULL, 0, &n, NULL), TERN_OK);
    assert_int_equal(n, SIZE / 2);
    free(text);
    tokenizer_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_follow_rank),
        cmocka_unit_test(a_symbol_without_token_falls_apart),
        cmocka_unit_test(whole_pieces_only_where_the_rule_says),
        cmocka_unit_test(invalid_bytes_become_replacement_characters),
        cmocka_unit_test(special_tokens_need_permission),
        cmocka_unit_test(begin_and_end_tokens),
        cmocka_unit_test(named_end_tokens_are_control),
        cmocka_unit_test(pieces_of_tokens),
        cmocka_unit_test(small_buffers_are_refused),
        cmocka_unit_test(scores_decide),
        cmocka_unit_test(sentencepiece),
        cmocka_unit_test(bytes_stand_in),
        cmocka_unit_test(one_leading_space_is_dropped),
        cmocka_unit_test(silent_tokens),
        cmocka_unit_test(long_words_take_no_quadratic_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
