/* SPDX-License-Identifier: Apache-2.0 */
/* Missing and wrong entries of files, and the resulting messages. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/text/tokenizer_case.h"

static const char *const two_tokens[] = {"aa", "bb", NULL};
static const char *const one_merge[] = {"a a", NULL};
static const float two_scores[] = {0, -1};

static const tokenizer_case good_bpe = {
    .model = "gpt2", .byte_level = true, .tokens = two_tokens, .merges = one_merge};
static const tokenizer_case good_spm = {
    .model = "llama", .tokens = two_tokens, .scores = two_scores};

static void expect_failure(const tokenizer_case *c, const char *pre, tern_status status,
                           const char *part) {
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, c, pre), status);
    assert_null(f.t);
    assert_int_equal(f.err.status, status);
    assert_memory_equal(f.err.message, "case.gguf: ", 11);
    assert_non_null(strstr(f.err.message, part));
    tokenizer_close(&f);
}

static void missing_parts(void **state) {
    (void)state;
    expect_failure(&(tokenizer_case){.model = "gpt2"}, NULL, TERN_ERR_TOKENIZER_MISSING,
                   "tokenizer.ggml.tokens");
    tokenizer_case c = good_bpe;
    c.merges = NULL;
    expect_failure(&c, NULL, TERN_ERR_TOKENIZER_DATA, "'tokenizer.ggml.merges' is missing");
    c = good_spm;
    c.scores = NULL;
    expect_failure(&c, NULL, TERN_ERR_TOKENIZER_DATA, "'tokenizer.ggml.scores' is missing");
}

static void other_models(void **state) {
    (void)state;
    static const char *const models[] = {"bort", "t6", "rwkv", "none", "sentence-piece"};
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        tokenizer_case c = good_bpe;
        c.model = models[i];
        expect_failure(&c, NULL, TERN_ERR_TOKENIZER_MODEL, models[i]);
    }
    tokenizer_case c = good_bpe;
    c.model = NULL;
    expect_failure(&c, NULL, TERN_ERR_TOKENIZER_MODEL, "''");
}

static void pre_tokenizer_names(void **state) {
    (void)state;
    tokenizer_case c = good_bpe;
    c.pre = "gemma4";
    expect_failure(&c, NULL, TERN_ERR_TOKENIZER_PRE, "'gemma4'");
    expect_failure(&c, NULL, TERN_ERR_TOKENIZER_PRE, "docs/tokenizers.md");
    expect_failure(&good_bpe, "nonsense", TERN_ERR_TOKENIZER_PRE, "'nonsense'");
    expect_failure(&good_spm, "gpt-2", TERN_ERR_TOKENIZER_PRE, "no pre-tokenizer");
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &c, "qwen2"), TERN_OK); /* the override wins */
    assert_string_equal(tern_tokenizer_pre(f.t), "qwen2");
    tokenizer_close(&f);
    assert_int_equal(tokenizer_open(&f, &good_bpe, NULL), TERN_OK);
    assert_string_equal(tern_tokenizer_pre(f.t), "default");
    tokenizer_close(&f);
}

/* The vocabulary size of BitNet 2B only decides together with the architecture. */
static void bitnet_without_pre(void **state) {
    (void)state;
    enum { TOKENS = 128256, TEXT = 24 };
    static char texts[TOKENS][TEXT];
    const char **tokens = calloc(TOKENS - 256 + 1, sizeof *tokens);
    assert_non_null(tokens);
    for (int i = 0; i < TOKENS - 256; i++) {
        snprintf(texts[i], TEXT, "[t%d]", i);
        tokens[i] = texts[i];
    }
    tokenizer_case c = good_bpe;
    c.tokens = tokens;
    c.architecture = "bitnet-b1.58";
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &c, NULL), TERN_OK);
    assert_string_equal(tern_tokenizer_pre(f.t), "llama-bpe");
    tokenizer_close(&f);
    assert_int_equal(tokenizer_open(&f, &c, "default"), TERN_OK);
    assert_string_equal(tern_tokenizer_pre(f.t), "default");
    tokenizer_close(&f);
    c.architecture = "llama";
    assert_int_equal(tokenizer_open(&f, &c, NULL), TERN_OK);
    assert_string_equal(tern_tokenizer_pre(f.t), "default");
    tokenizer_close(&f);
    free(tokens);
}

static void bad_vocabularies(void **state) {
    (void)state;
    static const char *const same[] = {"aa", "aa", NULL};
    tokenizer_case c = good_bpe;
    c.tokens = same;
    expect_failure(&c, NULL, TERN_ERR_TOKENIZER_DATA, "tokens 256 and 257 are the same");
    static const int32_t types[] = {1, 9};
    c = good_bpe;
    c.types = types;
    expect_failure(&c, NULL, TERN_ERR_TOKENIZER_DATA, "token 257 has the unknown type 9");
    static const float nan_scores[] = {0, NAN};
    c = good_spm;
    c.scores = nan_scores;
    expect_failure(&c, NULL, TERN_ERR_TOKENIZER_DATA, "the score of token 1 is NaN");
    c = good_bpe;
    c.scores = two_scores; /* two for 258 tokens */
    expect_failure(&c, NULL, TERN_ERR_TOKENIZER_DATA, "2 elements for 258 tokens");
}

static void bad_merges(void **state) {
    (void)state;
    static const char *const lines[] = {"aa", "a ", " a", "", "  "};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const char *const merges[] = {"a a", lines[i], NULL};
        tokenizer_case c = good_bpe;
        c.merges = merges;
        expect_failure(&c, NULL, TERN_ERR_TOKENIZER_DATA, "merge 1 is not a pair");
    }
    static const char *const none[] = {NULL};
    tokenizer_case c = good_bpe;
    c.merges = none;
    expect_failure(&c, NULL, TERN_ERR_TOKENIZER_DATA, "0 strings");
}

static void bad_ids(void **state) {
    (void)state;
    static const char *const keys[] = {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",
                                       "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id",
                                       "tokenizer.ggml.unknown_token_id"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        tokenizer_case c = good_bpe;
        c.id_key = keys[i];
        c.id = 258;
        expect_failure(&c, NULL, TERN_ERR_TOKENIZER_DATA, "258 is not below 258 tokens");
    }
    tokenizer_case c = good_bpe;
    c.id_key = "tokenizer.ggml.bos_token_id";
    c.id = UINT32_MAX; /* "none" */
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &c, NULL), TERN_OK);
    assert_int_equal(tern_token_bos(f.t), -1);
    tokenizer_close(&f);
}

static void wrong_types_of_keys(void **state) {
    (void)state;
    tokenizer_case c = good_bpe;
    c.id_key = "tokenizer.ggml.add_bos_token"; /* a number instead of a bool */
    expect_failure(&c, NULL, TERN_ERR_TOKENIZER_DATA, "is not a bool");
    c.id_key = "tokenizer.chat_template";
    expect_failure(&c, NULL, TERN_ERR_TOKENIZER_DATA, "is not a string");
    c.id_key = "tokenizer.ggml.token_type";
    expect_failure(&c, NULL, TERN_ERR_TOKENIZER_DATA, "is not an array of i32");
    c.id_key = NULL;
    c.true_key = "tokenizer.ggml.eos_token_id";
    expect_failure(&c, NULL, TERN_ERR_TOKENIZER_DATA, "is not a token id");
}

/* ---- a tokenizer.json as a key ---------------------------------------------------------------- */

#define WHOLE(steps, vocab, added, decoder)                                                        \
    "{" steps "\"model\":{\"type\":\"BPE\",\"vocab\":{" vocab                                       \
    "},\"merges\":[]},\"added_tokens\":[" added "],\"decoder\":{\"type\":\"" decoder "\"}}"

/* A token with a meaning that the list of tokens does not have: it has no row of the embedding. */
static void meanings_outside_of_the_list(void **state) {
    (void)state;
    static const char *const tokens[] = {"a", "b", NULL};
    tokenizer_case c = {
        .model = "huggingface",
        .tokens = tokens,
        .whole = WHOLE("", "\"a\":0,\"b\":1",
                       "{\"id\":70000,\"content\":\"</s>\",\"special\":true}", "Fuse")};
    expect_failure(&c, NULL, TERN_ERR_TOKENIZER_DATA, "ids up to 70000");
    c.whole = WHOLE("", "\"a\":0,\"b\":1",
                    "{\"id\":2000,\"content\":\"</s>\",\"special\":true}", "Fuse");
    expect_failure(&c, NULL, TERN_ERR_TOKENIZER_DATA,
                   "token 2000 of tokenizer.huggingface.json has a meaning");
    c.id_key = "tokenizer.ggml.eos_token_id";
    c.id = 1;
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &c, NULL), TERN_OK);
    assert_int_equal(tern_token_eos(f.t), 1);
    assert_int_equal(tern_tokenizer_size(f.t), 2);
    tokenizer_close(&f);
}

/* The usual keys say how texts become tokens where a pattern of the tokenizer.json cannot. */
static void patterns_that_only_keys_replace(void **state) {
    (void)state;
    tokenizer_case c = good_bpe;
    c.whole = WHOLE("\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
                    "\"pattern\":{\"Regex\":\"\\\\R\"},\"behavior\":\"Isolated\",\"invert\":false},"
                    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]},",
                    "\"aa\":256,\"bb\":257", "", "ByteLevel");
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &c, NULL), TERN_OK);
    assert_string_equal(tern_tokenizer_pre(f.t), "default");
    tokenizer_close(&f);
    c.model = "huggingface"; /* then they do not */
    expect_failure(&c, NULL, TERN_ERR_TOKENIZER_PRE, "the escape \\R");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_parts),
        cmocka_unit_test(other_models),
        cmocka_unit_test(pre_tokenizer_names),
        cmocka_unit_test(bitnet_without_pre),
        cmocka_unit_test(bad_vocabularies),
        cmocka_unit_test(bad_merges),
        cmocka_unit_test(bad_ids),
        cmocka_unit_test(wrong_types_of_keys),
        cmocka_unit_test(meanings_outside_of_the_list),
        cmocka_unit_test(patterns_that_only_keys_replace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
