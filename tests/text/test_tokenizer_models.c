/* SPDX-License-Identifier: Apache-2.0 */
/* Unigram and WordPiece, from tokenizer.json and from GGUF: small worked cases, and refusals.
 * tests/tokenizers/trained.py compares whole vocabularies. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base64.h"
#include "runtime/text/tokenizer/charsmap.h"
#include "runtime/text/tokenizer/normalize.h"
#include "tests/support/check.h"
#include "tests/text/tokenizer_case.h"

enum { DOCUMENT_BYTES = 1 << 16 };

static tern_status open_json(const char *text, tern_tokenizer **t, tern_error *err) {
    tern_vocabulary *v = NULL;
    tern_status status = tern_vocabulary_parse(strdup(text), strlen(text), "v.json", &v, err);
    if (status == TERN_OK)
        status = tern_tokenizer_build(v, NULL, t, err);
    tern_vocabulary_free(&v);
    return status;
}

static tern_tokenizer *build(const char *text) {
    tern_error err = {0};
    tern_tokenizer *t = NULL;
    if (open_json(text, &t, &err) != TERN_OK)
        fail_msg("%s", err.message);
    return t;
}

static void refuse(const char *text, tern_status status, const char *part) {
    tern_error err = {0};
    tern_tokenizer *t = NULL;
    assert_int_equal(open_json(text, &t, &err), status);
    assert_null(t);
    if (strncmp(err.message, "v.json: ", 8) != 0 || strstr(err.message, part) == NULL)
        fail_msg("%s\n  is refused with '%s', not '%s'", text, err.message, part);
}

static void expect_refusal(const tokenizer_case *c, tern_status status, const char *part) {
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, c, NULL), status);
    if (strncmp(f.err.message, "case.gguf: ", 11) != 0 || strstr(f.err.message, part) == NULL)
        fail_msg("'%s' is not '%s'", f.err.message, part);
    tokenizer_close(&f);
}

/* ---- a map of replacements ------------------------------------------------------------------- */

enum { UNITS = 2048, MAP_TEXTS = 5, MAP_BYTES = 4 + 4 * UNITS + MAP_TEXTS };

typedef struct map_bytes {
    uint8_t bytes[MAP_BYTES];
} map_bytes;

static void set_unit(map_bytes *m, size_t i, uint32_t unit) {
    for (size_t k = 0; k < 4; k++)
        m->bytes[4 + 4 * i + k] = (uint8_t)(unit >> 8 * k);
}

/* "e" becomes "x", "e" with a following acute accent becomes "yz", and "q" vanishes. */
static map_bytes make_map(void) {
    enum { VALUE = 1 << 8, LEAF = 1u << 31, E = 0x100 ^ 'e', ACUTE1 = E ^ 0x200 ^ 0xCC };
    enum { ACUTE2 = ACUTE1 ^ 0x400 ^ 0x81, Q = 0x100 ^ 'q' };
    map_bytes m = {{0}};
    m.bytes[1] = UNITS * 4 >> 8;
    set_unit(&m, 0, 0x100 << 10);
    set_unit(&m, E, 0x200 << 10 | VALUE | 'e');
    set_unit(&m, E ^ 0x200, (uint32_t)LEAF | 0);
    set_unit(&m, ACUTE1, 0x400 << 10 | 0xCC);
    set_unit(&m, ACUTE2, 0x10 << 10 | VALUE | 0x81);
    set_unit(&m, ACUTE2 ^ 0x10, (uint32_t)LEAF | 2);
    set_unit(&m, Q, 0x300 << 10 | VALUE | 'q');
    set_unit(&m, Q ^ 0x300, (uint32_t)LEAF | 1);
    memcpy(m.bytes + MAP_BYTES - MAP_TEXTS, "x\0yz", MAP_TEXTS);
    return m;
}

static tern_span span_of(const map_bytes *m, size_t size) {
    return (tern_span){(const char *)m->bytes, size};
}

static void map_finds_longest_and_shortest(void **state) {
    (void)state;
    const map_bytes m = make_map();
    char why[TERN_CHARSMAP_WHY_BYTES];
    tern_charsmap map;
    size_t used;
    tern_span to;
    assert_int_equal(tern_charsmap_open(span_of(&m, MAP_BYTES), &map, why), TERN_OK);
    const tern_span accent = {"e\xCC\x81!", 4}, plain = {"ef", 2}, none = {"f", 1};
    assert_true(tern_charsmap_find(&map, accent, false, &used, &to));
    assert_int_equal(used, 3);
    assert_memory_equal(to.data, "yz", to.size);
    assert_true(tern_charsmap_find(&map, accent, true, &used, &to));
    assert_int_equal(used, 1);
    assert_int_equal(to.size, 1);
    assert_true(tern_charsmap_find(&map, plain, false, &used, &to));
    assert_int_equal(used, 1);
    assert_false(tern_charsmap_find(&map, none, false, &used, &to));
    assert_int_equal(tern_charsmap_open((tern_span){"", 0}, &map, why), TERN_OK);
    assert_false(tern_charsmap_find(&map, plain, false, &used, &to));
}

static void expect_bad_map(const map_bytes *m, size_t size, const char *part) {
    char why[TERN_CHARSMAP_WHY_BYTES] = "";
    tern_charsmap map;
    assert_int_equal(tern_charsmap_open(span_of(m, size), &map, why), TERN_ERR_TOKENIZER_DATA);
    if (strstr(why, part) == NULL)
        fail_msg("'%s' is not '%s'", why, part);
}

static void broken_maps(void **state) {
    (void)state;
    map_bytes m = make_map();
    for (size_t size = 1; size <= 4 + 4 * UNITS; size += 1021)
        expect_bad_map(&m, size, "does not fit");
    expect_bad_map(&m, 4 + 4 * UNITS, "has no end");
    expect_bad_map(&m, MAP_BYTES - 1, "has no end");
    expect_bad_map(&m, MAP_BYTES - 3, "leads to no replacement");
    m.bytes[MAP_BYTES - 3] = 0xFF;
    expect_bad_map(&m, MAP_BYTES, "not UTF-8");
    memcpy(m.bytes + MAP_BYTES - MAP_TEXTS, "x\xC3\xA9z", MAP_TEXTS); /* 2: inside a character */
    expect_bad_map(&m, MAP_BYTES, "leads to no replacement");
    m = make_map();
    m.bytes[0] = 1;
    expect_bad_map(&m, MAP_BYTES, "does not fit");
}

/* ---- Unigram --------------------------------------------------------------------------------- */

#define MARK "\xE2\x96\x81"
#define METASPACE                                                                                  \
    "{\"type\": \"Metaspace\", \"replacement\": \"" MARK "\", \"prepend_scheme\": \"always\"}"
#define UNIGRAM(vocab, rest)                                                                       \
    "{\"model\": {\"type\": \"Unigram\", \"vocab\": [" vocab "]" rest                              \
    "}, \"pre_tokenizer\": " METASPACE ", \"decoder\": " METASPACE "}"
#define PIECES                                                                                     \
    "[\"<unk>\", 0], [\"" MARK "\", -3], [\"a\", -2], [\"b\", -2.5], [\"ab\", -4.25], "            \
    "[\"" MARK "a\", -4.5], [\"bb\", -8]"

static void greatest_sum(void **state) {
    (void)state;
    tern_tokenizer *t = build(UNIGRAM(PIECES, ", \"unk_id\": 0"));
    assert_string_equal(tern_tokenizer_kind(t), "Unigram");
    EXPECT_IDS(t, "ab", 0, 5, 3); /* -7; _ ab is -7.25, _ a b -7.5 */
    EXPECT_IDS(t, "aab", 0, 5, 4);
    EXPECT_IDS(t, "bb a", 0, 1, 3, 3, 5); /* two b are better than bb */
    EXPECT_TEXT(t, false, "ab a", 5, 3, 5);
    tern_tokenizer_free(&t);
}

static void ways_that_are_as_good(void **state) {
    (void)state;
    tern_tokenizer *t = build("{\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": "
                              "[[\"?\", -9], [\"a\", -1], [\"aa\", -2]]}, \"decoder\": "
                              "{\"type\": \"Fuse\"}}");
    EXPECT_IDS(t, "aa", 0, 2); /* the one with the earlier start wins */
    EXPECT_IDS(t, "aaa", 0, 1, 2);
    tern_tokenizer_free(&t);
}

static void unknown_characters_cost_more(void **state) {
    (void)state;
    tern_tokenizer *t = build("{\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": "
                              "[[\"?\", 0], [\"a\", 0.5], [\"ab\", -8]]}, \"decoder\": "
                              "{\"type\": \"Fuse\"}}");
    EXPECT_IDS(t, "ab", 0, 2); /* a and an unknown b have -17.5 */
    EXPECT_IDS(t, "ac", 0, 1, 0);
    tern_tokenizer_free(&t);
}

static void unknown_neighbours_are_one(void **state) {
    (void)state;
    tern_tokenizer *t = build(UNIGRAM(PIECES, ", \"unk_id\": 0"));
    EXPECT_IDS(t, "xyb\xC3\xA9z", 0, 1, 0, 3, 0);
    tern_tokenizer_free(&t);
    t = build(UNIGRAM(PIECES ", [\"<0xC3>\", -9], [\"<0xA9>\", -9]",
                      ", \"unk_id\": 0, \"byte_fallback\": true"));
    EXPECT_IDS(t,
               "\xC3\xA9"
               "b",
               0, 1, 7, 8, 3);
    EXPECT_IDS(t, "\xC3\xA8", 0, 1, 0);
    tern_tokenizer_free(&t);
}

static void bad_unigrams(void **state) {
    (void)state;
    refuse(UNIGRAM(PIECES, ""), TERN_ERR_TOKENIZER_DATA, "unk_id");
    refuse(UNIGRAM(PIECES, ", \"unk_id\": 7"), TERN_ERR_TOKENIZER_DATA, "unk_id");
    refuse(UNIGRAM("", ", \"unk_id\": 0"), TERN_ERR_TOKENIZER_DATA, "unk_id");
    refuse(UNIGRAM("[\"a\", 1e999]", ", \"unk_id\": 0"), TERN_ERR_TOKENIZER_DATA, "token 0");
    refuse(UNIGRAM("[\"a\", 1], [\"\", 1]", ", \"unk_id\": 0"), TERN_ERR_TOKENIZER_DATA, "token 1");
    refuse(UNIGRAM("[\"a\"]", ", \"unk_id\": 0"), TERN_ERR_TOKENIZER_DATA, "token 0");
    refuse(UNIGRAM("[\"a\", 1], [\"a\", 1]", ", \"unk_id\": 0"), TERN_ERR_TOKENIZER_DATA,
           "the same");
    char *text = malloc(DOCUMENT_BYTES);
    assert_non_null(text);
    char long_token[1026];
    memset(long_token, 'a', 1025);
    long_token[1025] = '\0';
    (void)snprintf(text, DOCUMENT_BYTES, UNIGRAM("[\"%s\", 1]", ", \"unk_id\": 0"), long_token);
    refuse(text, TERN_ERR_TOKENIZER_DATA, "1025 bytes");
    free(text);
}

static const char *const pieces[] = {"<pad>", "</s>", "<unk>", MARK, "x", "y", "yz", "z", NULL};
static const float scores[] = {0, 0, 0, -1, -2, -3, -4, -5};
static const int32_t types[] = {3, 3, 2, 1, 1, 1, 1, 1};

static tokenizer_case unigram_case(const map_bytes *map) {
    return (tokenizer_case){.model = "t5",
                            .tokens = pieces,
                            .scores = scores,
                            .types = types,
                            .true_key = "tokenizer.ggml.add_space_prefix",
                            .other_true_key = "tokenizer.ggml.remove_extra_whitespaces",
                            .charsmap = map->bytes,
                            .charsmap_bytes = MAP_BYTES};
}

static void unigram_of_gguf(void **state) {
    (void)state;
    const map_bytes map = make_map();
    tokenizer_case c = unigram_case(&map);
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &c, NULL), TERN_OK);
    EXPECT_IDS(f.t, "  e   e\xCC\x81  ", 0, 3, 4, 3, 6); /* the longest entry of the map counts */
    EXPECT_IDS(f.t, "   ", TERN_TOKENIZE_SPECIAL, 1);
    EXPECT_IDS(f.t, "x</s>x", TERN_TOKENIZE_PARSE, 3, 4, 1, 3, 4);
    EXPECT_TEXT(f.t, true, "x yz", 3, 4, 3, 6, 1);
    tokenizer_close(&f);
    c.other_true_key = NULL;
    assert_int_equal(tokenizer_open(&f, &c, NULL), TERN_OK);
    EXPECT_IDS(f.t, "q", 0, 3); /* the leading space stays if nothing else does */
    expect_ids(f.t, "", 0, 0, 0, NULL);
    tokenizer_close(&f);
    c.charsmap = NULL;
    assert_int_equal(tokenizer_open(&f, &c, NULL), TERN_OK);
    EXPECT_IDS(f.t, " e ", 0, 3, 3, 2, 3);
    tokenizer_close(&f);
    c.true_key = NULL;
    assert_int_equal(tokenizer_open(&f, &c, NULL), TERN_OK);
    EXPECT_IDS(f.t, "x x", 0, 4, 3, 4);
    tokenizer_close(&f);
}

/* A tokenizer.json whose normalizer is the map. Freed by the caller. */
static char *precompiled(const map_bytes *m) {
    static const char rest[] = "\"}, \"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": "
                               "[[\"?\", 0], [\"x\", -1], [\"\\u0301\", -2], [\"\\u20d0\", -3]]}}";
    static const char before[] =
        "{\"decoder\": {\"type\": \"Metaspace\", \"replacement\": \"\\u2581\"}, "
        "\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": \"";
    const size_t at = sizeof before - 1, quads = (MAP_BYTES + 2) / 3;
    char *text = calloc(1, at + 4 * quads + sizeof rest);
    assert_non_null(text);
    memcpy(text, before, at);
    for (size_t i = 0; i < quads; i++)
        tern_base64_quad(m->bytes + 3 * i, MAP_BYTES - 3 * i < 3 ? MAP_BYTES - 3 * i : 3,
                         text + at + 4 * i);
    memcpy(text + at + 4 * quads, rest, sizeof rest);
    return text;
}

/* A perceived character of up to five bytes becomes the replacement of its shortest prefix; of a
 * longer one, each code point is looked up. */
static void whole_characters_are_mapped(void **state) {
    (void)state;
    if (!tern_can_normalize())
        check_skip("built without utf8proc");
    const map_bytes map = make_map();
    char *text = precompiled(&map);
    tern_tokenizer *t = build(text);
    EXPECT_IDS(t, "e\xCC\x81", 0, 1);
    EXPECT_IDS(t, "e\xCC\x81\xCC\x81", 0, 1);
    EXPECT_IDS(t, "e\xE2\x83\x90\xCC\x81", 0, 1, 3, 2);
    EXPECT_IDS(t, "e\xCC\x81\xCC\x81\xCC\x81", 0, 1, 2, 2, 2);
    tern_tokenizer_free(&t);
    free(text);
}

static void bad_unigrams_of_gguf(void **state) {
    (void)state;
    const map_bytes map = make_map();
    tokenizer_case c = unigram_case(&map);
    c.charsmap_bytes = MAP_BYTES - 1;
    expect_refusal(&c, TERN_ERR_TOKENIZER_DATA, "precompiled_charsmap: its last replacement");
    c = unigram_case(&map);
    float other[] = {0, 0, 0, -1, -2, -3, -4, INFINITY};
    c.scores = other;
    expect_refusal(&c, TERN_ERR_TOKENIZER_DATA, "the score of token 7 is infinite");
    other[7] = NAN;
    expect_refusal(&c, TERN_ERR_TOKENIZER_DATA, "the score of token 7 is NaN");
    c.scores = NULL;
    expect_refusal(&c, TERN_ERR_TOKENIZER_DATA, "Unigram needs scores");
    c = unigram_case(&map);
    c.id_key = "tokenizer.ggml.unknown_token_id";
    c.id = UINT32_MAX;
    expect_refusal(&c, TERN_ERR_TOKENIZER_DATA, "unknown_token_id");
    c.id_key = "tokenizer.ggml.precompiled_charsmap";
    c.charsmap = NULL;
    expect_refusal(&c, TERN_ERR_TOKENIZER_DATA, "is not an array of u8");
}

/* Two letters that begin tokens of all lengths: each byte takes as many steps as the longest one
 * has. */
static void long_texts_take_no_quadratic_time(void **state) {
    (void)state;
    enum { SIZE = 1 << 20 };
    tern_tokenizer *t = build(UNIGRAM(PIECES ", [\"aaaaaaaaaaaaaaaa\", -9]", ", \"unk_id\": 0"));
    char *text = malloc(SIZE);
    assert_non_null(text);
    memset(text, 'a', SIZE);
    size_t n = 0;
    assert_int_equal(tern_tokenize(t, text, SIZE, 0, NULL, 0, &n, NULL), TERN_OK);
    assert_in_range(n, SIZE / 16, SIZE / 16 + 16);
    free(text);
    tern_tokenizer_free(&t);
}

/* ---- WordPiece ------------------------------------------------------------------------------- */

#define WORDS(flags, model, rest)                                                                  \
    "{\"normalizer\": {\"type\": \"BertNormalizer\"" flags                                         \
    "}, \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}, \"decoder\": {\"type\": "             \
    "\"WordPiece\", \"prefix\": \"##\", \"cleanup\": true}, \"added_tokens\": [{\"id\": 1, "       \
    "\"content\": \"[CLS]\", \"special\": true}], \"model\": {\"type\": \"WordPiece\", "           \
    "\"vocab\": {\"[UNK]\": 0, \"[CLS]\": 1, \"un\": 2, \"##able\": 3, \"##ab\": 4, "              \
    "\"##le\": 5, \"a\": 6, \"A\": 7, \"\xC3\xA4\": 8, \"\xE4\xB8\xAD\": 9, \".\": 10, "           \
    "\"##x\": 11}" model "}" rest "}"
#define SENTENCE "UNable \xC3\x84 a\xE4\xB8\xAD\xE4\xB8\xAD.a"

static void longest_tokens_of_words(void **state) {
    (void)state;
    if (!tern_can_normalize())
        check_skip("built without utf8proc");
    tern_tokenizer *t = build(WORDS("", "", ""));
    assert_string_equal(tern_tokenizer_kind(t), "WordPiece");
    EXPECT_IDS(t, SENTENCE, 0, 2, 3, 6, 6, 9, 9, 10, 6);
    EXPECT_IDS(t, "unablex unab unabl", 0, 2, 3, 11, 2, 4, 0); /* an unknown rest: all unknown */
    EXPECT_IDS(t,
               "a\xE2\x80\x8B"
               "\xC2\xA0"
               "un\x01[CLS]",
               0, 6, 2, 0, 0, 0);
    EXPECT_IDS(t, "a[CLS]", TERN_TOKENIZE_PARSE, 6, 1);
    EXPECT_TEXT(t, false, "unable a. [CLS]", 2, 3, 6, 10, 1);
    tern_tokenizer_free(&t);
}

static void flags_of_words(void **state) {
    (void)state;
    if (!tern_can_normalize())
        check_skip("built without utf8proc");
    tern_tokenizer *t = build(WORDS(", \"lowercase\": false", "", ""));
    EXPECT_IDS(t, SENTENCE, 0, 0, 0, 6, 9, 9, 10, 6);
    tern_tokenizer_free(&t);
    t = build(WORDS(", \"strip_accents\": false", "", ""));
    EXPECT_IDS(t, SENTENCE, 0, 2, 3, 8, 6, 9, 9, 10, 6);
    tern_tokenizer_free(&t);
    t = build(WORDS(", \"handle_chinese_chars\": false", "", ""));
    EXPECT_IDS(t, SENTENCE, 0, 2, 3, 6, 0, 10, 6);
    tern_tokenizer_free(&t);
    t = build(WORDS(", \"clean_text\": false", "", ""));
    EXPECT_IDS(t, "a\x01 a", 0, 0, 6);
    tern_tokenizer_free(&t);
    t = build(WORDS("", ", \"max_input_chars_per_word\": 5", ""));
    EXPECT_IDS(t, "unable a", 0, 0, 6);
    tern_tokenizer_free(&t);
}

static void bad_words(void **state) {
    (void)state;
    if (!tern_can_normalize())
        check_skip("built without utf8proc");
    refuse(WORDS("", ", \"unk_token\": \"<unk>\"", ""), TERN_ERR_TOKENIZER_DATA, "'<unk>'");
    refuse(WORDS("", ", \"max_input_chars_per_word\": 1025", ""), TERN_ERR_TOKENIZER_DATA,
           "max_input_chars_per_word");
    refuse(WORDS("", ", \"continuing_subword_prefix\": \"@\"", ""), TERN_ERR_TOKENIZER_MODEL,
           "another prefix");
    refuse("{\"decoder\": {\"type\": \"Fuse\"}, \"model\": {\"type\": \"WordPiece\", \"vocab\": "
           "{\"[UNK]\": 0}}}",
           TERN_ERR_TOKENIZER_MODEL, "not that of WordPiece");
    refuse("{\"decoder\": {\"type\": \"Fuse\"}, \"model\": {\"type\": \"WordLevel\", \"vocab\": "
           "{}}}",
           TERN_ERR_TOKENIZER_MODEL, "'WordLevel'");
}

static const char *const words[] = {"[UNK]",  "[CLS]",  "[SEP]",  MARK "un", "able",
                                    MARK "a", MARK ".", MARK "A", "x",       NULL};
static const int32_t word_types[] = {3, 3, 3, 1, 1, 1, 1, 1, 1};

static void words_of_gguf(void **state) {
    (void)state;
    if (!tern_can_normalize())
        check_skip("built without utf8proc");
    tokenizer_case c = {.model = "bert",
                        .tokens = words,
                        .types = word_types,
                        .id_key = "tokenizer.ggml.unknown_token_id",
                        .id = 0};
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &c, NULL), TERN_OK);
    EXPECT_IDS(f.t, "UNable A. able", 0, 3, 4, 5, 6, 0);
    EXPECT_IDS(f.t, MARK "a un" MARK "a", 0, 0, 0); /* not the beginning of a word */
    EXPECT_TEXT(f.t, true, "unable a.", 3, 4, 5, 6);
    tokenizer_close(&f);
    c.false_key = "tokenizer.ggml.normalizer.lowercase";
    assert_int_equal(tokenizer_open(&f, &c, NULL), TERN_OK);
    EXPECT_IDS(f.t, "UNable A.", 0, 0, 7, 6);
    tokenizer_close(&f);
    c.id_key = NULL;
    expect_refusal(&c, TERN_ERR_TOKENIZER_DATA, "unknown_token_id");
}

static void tokens_around_words(void **state) {
    (void)state;
    if (!tern_can_normalize())
        check_skip("built without utf8proc");
    enum { MANY = 104 };
    static char names[MANY][8];
    static const char *many[MANY + 1];
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof names[i], i == 103 ? MARK "a" : "t%zu", i);
        many[i] = names[i];
    }
    tokenizer_case c = {.model = "bert", .tokens = many};
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &c, NULL), TERN_OK);
    EXPECT_IDS(f.t, "a", TERN_TOKENIZE_SPECIAL, 101, 103, 102);
    EXPECT_IDS(f.t, "b", 0, 100);
    tokenizer_close(&f);
    c.id_key = "tokenizer.ggml.cls_token_id";
    c.id = 7;
    assert_int_equal(tokenizer_open(&f, &c, NULL), TERN_OK);
    EXPECT_IDS(f.t, "a", TERN_TOKENIZE_SPECIAL, 7, 103, 102);
    tokenizer_close(&f);
    c.id_key = "tokenizer.ggml.seperator_token_id";
    c.false_key = "tokenizer.ggml.add_bos_token";
    assert_int_equal(tokenizer_open(&f, &c, NULL), TERN_OK);
    EXPECT_IDS(f.t, "a", TERN_TOKENIZE_SPECIAL, 103, 7);
    tokenizer_close(&f);
    c.id_key = "tokenizer.ggml.max_input_chars_per_word";
    c.id = 1025;
    expect_refusal(&c, TERN_ERR_TOKENIZER_DATA, "is not a number from 0 to 1024");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(map_finds_longest_and_shortest),
        cmocka_unit_test(broken_maps),
        cmocka_unit_test(greatest_sum),
        cmocka_unit_test(ways_that_are_as_good),
        cmocka_unit_test(unknown_characters_cost_more),
        cmocka_unit_test(unknown_neighbours_are_one),
        cmocka_unit_test(bad_unigrams),
        cmocka_unit_test(unigram_of_gguf),
        cmocka_unit_test(whole_characters_are_mapped),
        cmocka_unit_test(bad_unigrams_of_gguf),
        cmocka_unit_test(long_texts_take_no_quadratic_time),
        cmocka_unit_test(longest_tokens_of_words),
        cmocka_unit_test(flags_of_words),
        cmocka_unit_test(bad_words),
        cmocka_unit_test(words_of_gguf),
        cmocka_unit_test(tokens_around_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
