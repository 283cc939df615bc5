/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.json files and plain vocabularies: their meaning, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/text/tokenizer/normalize.h"
#include "runtime/text/tokenizer/tokenizer.h"
#include "tests/support/check.h"
#include "tests/text/tokenizer_case.h"

static tern_vocabulary *parse(const char *text, tern_error *err) {
    char *bytes = malloc(strlen(text) + 1);
    assert_non_null(bytes);
    memcpy(bytes, text, strlen(text));
    tern_vocabulary *v = NULL;
    const tern_status status = tern_vocabulary_parse(bytes, strlen(text), "v.json", &v, err);
    assert_int_equal(status == TERN_OK, v != NULL);
    return v;
}

static tern_tokenizer *build(const char *text) {
    tern_error err = {0};
    tern_tokenizer *t = NULL;
    tern_vocabulary *v = parse(text, &err);
    if (v == NULL || tern_tokenizer_build(v, NULL, &t, &err) != TERN_OK)
        fail_msg("%s", err.message);
    check_freed(tern_vocabulary_free, v);
    return t;
}

static void refuse(const char *text, tern_status status, const char *part) {
    tern_error err = {0};
    tern_tokenizer *t = NULL;
    tern_vocabulary *v = parse(text, &err);
    const tern_status got = v != NULL ? tern_tokenizer_build(v, NULL, &t, &err) : err.status;
    tern_vocabulary_free(&v);
    assert_null(t);
    if (got != status || memcmp(err.message, "v.json: ", 8) != 0 ||
        strstr(err.message, part) == NULL)
        fail_msg("%s\n  is refused with %d, '%s', not %d, '%s'", text, got, err.message, status,
                 part);
}

/* A tokenizer.json. `model` is inserted after the model's type, `rest` after the decoder. */
#define DOCUMENT(model, rest)                                                                      \
    "{\"version\": \"1.0\", \"model\": {\"type\": \"BPE\", " model "}, "                           \
    "\"decoder\": {\"type\": \"ByteLevel\"}" rest "}"
#define BYTES "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false}"
#define VOCAB                                                                                      \
    "\"vocab\": {\"h\": 0, \"e\": 1, \"l\": 2, \"o\": 3, \"he\": 4, \"ll\": 5, \"hell\": 6, "      \
    "\"\\u0120\": 7, \"hello\": 8, \"x\": 9}, "
#define MERGES "\"merges\": [\"h e\", \"l l\", \"he ll\"]"
#define ADDED(id, content, flags)                                                                  \
    "{\"id\": " #id ", \"content\": \"" content                                                    \
    "\", \"special\": false, \"normalized\": false" flags "}"

static void merges_of_both_forms(void **state) {
    (void)state;
    tern_tokenizer *t = build(DOCUMENT(VOCAB MERGES, ", " BYTES));
    EXPECT_IDS(t, "hello hell", 0, 6, 3, 7, 6);
    assert_string_equal(tern_tokenizer_kind(t), "byte-level BPE");
    assert_string_equal(tern_tokenizer_pre(t), "gpt-2");
    tern_tokenizer_free(&t);
    t = build(DOCUMENT(VOCAB "\"merges\": [[\"h\", \"e\"], [\"l\", \"l\"], [\"he\", \"ll\"]]",
                       ", " BYTES));
    EXPECT_IDS(t, "hell", 0, 6);
    tern_tokenizer_free(&t);
}

static void whole_pieces(void **state) {
    (void)state;
    tern_tokenizer *t = build(DOCUMENT(VOCAB "\"ignore_merges\": true, " MERGES, ", " BYTES));
    EXPECT_IDS(t, "hello hello", 0, 8, 7, 6, 3);
    tern_tokenizer_free(&t);
    /* But not for a token that the model itself lacks. */
    t = build(DOCUMENT(VOCAB "\"ignore_merges\": true, " MERGES,
                       ", " BYTES ", \"added_tokens\": [{\"id\": 10, \"content\": \"xh\", "
                       "\"special\": true}]"));
    EXPECT_IDS(t, "xh", 0, 9, 0);
    EXPECT_IDS(t, "xh", TERN_TOKENIZE_PARSE, 10);
    tern_tokenizer_free(&t);
}

/* The later of two equal merges counts. Characters without a token vanish before merging. */
static void odd_merges(void **state) {
    (void)state;
    tern_tokenizer *t = build(
        DOCUMENT("\"vocab\": {\"a\": 0, \"b\": 1, \"c\": 2, \"ab\": 3, \"bc\": 4}, \"merges\": "
                 "[\"#version 1\", \"a b\", \"b c\", \"a b\"]",
                 ", " BYTES));
    EXPECT_IDS(t, "abc", 0, 0, 4);
    tern_tokenizer_free(&t);
    t = build(DOCUMENT(VOCAB MERGES, ", " BYTES));
    EXPECT_IDS(t, "h?e", 0, 0, 1); /* three pieces */
    tern_tokenizer_free(&t);
    t = build(DOCUMENT(VOCAB MERGES, ", \"pre_tokenizer\": {\"type\": \"ByteLevel\", "
                                     "\"add_prefix_space\": false, \"use_regex\": false}"));
    EXPECT_IDS(t, "h?e", 0, 4);
    tern_tokenizer_free(&t);
}

#define NEXT ", "
#define ADDED_LIST                                                                                 \
    ADDED(10, "<a>", "")                                                                           \
    NEXT ADDED(11, "<a>b", "") NEXT ADDED(16, "lxl", "")                                           \
        NEXT ADDED(12, "<l>", ", \"lstrip\": true") NEXT ADDED(13, "<r>", ", \"rstrip\": true")    \
            NEXT ADDED(14, "hex", ", \"single_word\": true") NEXT                                  \
        "{\"id\": 15, \"content\": \"<s>\", \"special\": true}"

static void added_tokens(void **state) {
    (void)state;
    tern_tokenizer *t =
        build(DOCUMENT(VOCAB MERGES, ", " BYTES ", \"added_tokens\": [" ADDED_LIST "]"));
    EXPECT_IDS(t, "lxlxl", 0, 16, 9, 2);       /* each character belongs to one token */
    EXPECT_IDS(t, "<a>h<a>b", 0, 10, 0, 11);   /* the longest at each place */
    EXPECT_IDS(t, "h  <l> h", 0, 0, 12, 7, 0); /* with the white space before it */
    EXPECT_IDS(t, "h <r>  h", 0, 0, 7, 13, 0); /* and after it */
    EXPECT_IDS(t, "hex hexe", 0, 14, 7, 4, 9, 1);
    EXPECT_IDS(t, "h<s>", TERN_TOKENIZE_PARSE, 0, 15);
    EXPECT_IDS(t, "hs", 0, 0); /* text without a token vanishes */
    EXPECT_TEXT(t, true, "h<a>", 0, 15, 10);
    EXPECT_TEXT(t, false, "h<s>", 0, 15);
    tern_tokenizer_free(&t);
}

static const char llama2[] =
    "{\"model\": {\"type\": \"BPE\", \"byte_fallback\": true, \"fuse_unk\": true, "
    "\"unk_token\": \"<unk>\", \"vocab\": {\"<unk>\": 0, \"<s>\": 1, \"<0xC3>\": 2, "
    "\"<0xA9>\": 3, \"\\u2581\": 4, \"h\": 5, \"e\": 6, \"\\u2581he\": 7, \"he\": 8}, "
    "\"merges\": [\"h e\", \"\\u2581 he\"]}, \"added_tokens\": ["
    "{\"id\": 0, \"content\": \"<unk>\", \"special\": true, \"normalized\": false}, "
    "{\"id\": 1, \"content\": \"<s>\", \"special\": true, \"normalized\": false}], "
    "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": ["
    "{\"type\": \"Prepend\", \"prepend\": \"\\u2581\"}, {\"type\": \"Replace\", "
    "\"pattern\": {\"String\": \" \"}, \"content\": \"\\u2581\"}]}, "
    "\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": ["
    "{\"SpecialToken\": {\"id\": \"<s>\", \"type_id\": 0}}, "
    "{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}], \"special_tokens\": "
    "{\"<s>\": {\"id\": \"<s>\", \"ids\": [1], \"tokens\": [\"<s>\"]}}}, "
    "\"decoder\": {\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Replace\", "
    "\"pattern\": {\"String\": \"\\u2581\"}, \"content\": \" \"}, {\"type\": \"ByteFallback\"}, "
    "{\"type\": \"Fuse\"}, {\"type\": \"Strip\", \"content\": \" \", \"start\": 1, "
    "\"stop\": 0}]}}";

static void sentencepiece_style(void **state) {
    (void)state;
    tern_tokenizer *t = build(llama2);
    assert_string_equal(tern_tokenizer_kind(t), "BPE");
    EXPECT_IDS(t, "he h", TERN_TOKENIZE_SPECIAL, 1, 7, 4, 5);
    EXPECT_IDS(t, "h\xC3\xA9", 0, 4, 5, 2, 3);
    EXPECT_IDS(t, "xyh", 0, 4, 0, 5); /* unknown characters are one token */
    EXPECT_IDS(t, "he<s>he", TERN_TOKENIZE_PARSE, 7, 1, 7);
    EXPECT_TEXT(t, true, "he h\xC3\xA9", 1, 7, 4, 5, 2, 3);
    assert_int_equal(tern_token_bos(t), 1);
    tern_tokenizer_free(&t);
}

/* These scores lead to the same joins as the merges, for GGUF files, which have no such merges. */
static void scores_from_ranks(void **state) {
    (void)state;
    tern_error err = {0};
    tern_vocabulary *v = parse(llama2, &err);
    assert_non_null(v);
    float scores[9];
    assert_int_equal(v->n_tokens, 9);
    assert_int_equal(tern_vocabulary_rank_scores(v, scores, &err), TERN_OK);
    assert_true(scores[8] == 0.0f && scores[7] == -1.0f && scores[5] == 0.0f);
    assert_int_equal(v->types[0], TERN_TOKEN_UNKNOWN);
    assert_int_equal(v->types[1], TERN_TOKEN_CONTROL);
    assert_int_equal(v->types[2], TERN_TOKEN_BYTE);
    tern_vocabulary_free(&v);
}

#define WITH_PRE(pre)                                                                              \
    "{\"model\": {\"vocab\": {\"a\": 0, \"1\": 1, \"2\": 2, \".\": 3, \"12\": 4, \"1.\": 5, "      \
    "\".1\": 6, \"\\u2581\": 7, \"\\u2581a\": 8, \"a1\": 9, \"..\": 10}, \"merges\": ["            \
    "\". .\", \". 1\", \"1 .\", \"1 2\", \"\\u2581 a\", \"a 1\"]}, \"decoder\": "                  \
    "{\"type\": \"Fuse\"}, \"added_tokens\": [" ADDED(11, "<x>", "") "], "                         \
                                                                     "\"pre_tokenizer\": " pre "}"
#define SPLIT(text, behavior, invert)                                                              \
    WITH_PRE("{\"type\": \"Split\", \"pattern\": {\"String\": \"" text                             \
             "\"}, \"behavior\": \"" behavior "\", \"invert\": " invert "}")

static void splits(void **state) {
    (void)state;
    static const struct {
        const char *file;
        int32_t ids[4]; /* of 1..12 */
        size_t n;
    } cases[] = {
        {SPLIT(".", "Isolated", "false"), {1, 3, 3, 4}, 4},
        {SPLIT(".", "Removed", "false"), {1, 4}, 2},
        {SPLIT(".", "Contiguous", "false"), {1, 10, 4}, 3},
        {SPLIT(".", "MergedWithPrevious", "false"), {5, 3, 4}, 3},
        {SPLIT(".", "MergedWithNext", "false"), {1, 3, 6, 2}, 4},
        {SPLIT(".", "Removed", "true"), {3, 3}, 2},
        {WITH_PRE("{\"type\": \"Digits\", \"individual_digits\": true}"), {1, 10, 1, 2}, 4},
        {WITH_PRE("{\"type\": \"Digits\", \"individual_digits\": false}"), {1, 10, 4}, 3},
        {WITH_PRE("{\"type\": \"Punctuation\"}"), {1, 3, 3, 4}, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tern_tokenizer *t = build(cases[i].file);
        expect_ids(t, "1..12", 5, 0, cases[i].n, cases[i].ids);
        tern_tokenizer_free(&t);
    }
}

static void metaspace(void **state) {
    (void)state;
#define METASPACE(scheme)                                                                          \
    WITH_PRE(                                                                                      \
        "{\"type\": \"Metaspace\", \"replacement\": \"\\u2581\", \"prepend_scheme\": \"" scheme    \
        "\", \"split\": true}")
    tern_tokenizer *t = build(METASPACE("always"));
    EXPECT_IDS(t, "a  a", 0, 8, 7, 8);
    EXPECT_IDS(t, "<x>a", 0, 11, 8);
    tern_tokenizer_free(&t);
    t = build(METASPACE("never"));
    EXPECT_IDS(t, "a a", 0, 0, 8);
    tern_tokenizer_free(&t);
    t = build(METASPACE("first"));
    EXPECT_IDS(t, "a a", 0, 8, 8);
    EXPECT_IDS(t, "<x>a", 0, 11, 0); /* not after another token */
    tern_tokenizer_free(&t);
}

static void normal_forms(void **state) {
    (void)state;
    if (!tern_can_normalize())
        check_skip("built without utf8proc");
#define OF_FORM(form)                                                                              \
    "{\"model\": {\"vocab\": {\"\\u00e9\": 0, \"e\": 1, \"\\u0301\": 2, \"\\ufb01\": 3, \"f\": 4, "        \
    "\"i\": 5}, \"merges\": []}, \"decoder\": {\"type\": \"Fuse\"}, \"normalizer\": "                \
    "{\"type\": \"" form "\"}}"
    static const struct {
        const char *file;
        int32_t ids[6]; /* of an accent apart, one together, and a ligature */
        size_t n;
    } cases[] = {
        {OF_FORM("NFC"), {0, 0, 3}, 3},
        {OF_FORM("NFD"), {1, 2, 1, 2, 3}, 5},
        {OF_FORM("NFKC"), {0, 0, 4, 5}, 4},
        {OF_FORM("NFKD"), {1, 2, 1, 2, 4, 5}, 6},
    };
    static const char text[] = "e\xCC\x81\xC3\xA9\xEF\xAC\x81";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tern_tokenizer *t = build(cases[i].file);
        expect_ids(t, text, sizeof text - 1, 0, cases[i].n, cases[i].ids);
        tern_tokenizer_free(&t);
    }
}

static void plain(void **state) {
    (void)state;
    tern_tokenizer *t =
        build("{\"<s>\": 0, \"</s>\": 1, \"<unk>\": 2, \"\\u2581\": 3, \"\\u2581he\": 4, \"h\": 5, "
              "\"hello\": 6, \"ll\": 7, \"o\": 8, \"he\": 9, \"<0x0A>\": 10}");
    assert_string_equal(tern_tokenizer_kind(t), "longest match");
    EXPECT_IDS(t, "hello hello", TERN_TOKENIZE_SPECIAL, 0, 4, 7, 8, 4, 7, 8);
    EXPECT_IDS(t, "h\n?", 0, 3, 5, 10, 2);
    EXPECT_IDS(t, "h<s>", 0, 3, 5, 2, 2, 2);
    EXPECT_IDS(t, "h<s>", TERN_TOKENIZE_PARSE, 3, 5, 0);
    EXPECT_TEXT(t, true, "hello hello", 0, 4, 7, 8, 4, 7, 8);
    assert_int_equal(tern_token_bos(t), 0);
    assert_true(tern_token_ends_text(t, 1));
    tern_tokenizer_free(&t);
    t = build(
        "{\"vocab\": {\"a\": 0, \"\\u0120b\": 1, \"END\": 2, \"\\u00c3\": 3, \"\\u00a9\": 4}, "
        "\"special_tokens\": {\"eos_token\": \"END\"}}");
    EXPECT_IDS(t, "a b\xC3\xA9", 0, 0, 1, 3, 4);
    EXPECT_IDS(t, "END", 0); /* text does not turn into the token */
    EXPECT_TEXT(t, false, "a b\xC3\xA9", 0, 1, 3, 4);
    assert_int_equal(tern_token_eos(t), 2);
    tern_tokenizer_free(&t);
}

static void refused_models(void **state) {
    (void)state;
    refuse("[1]", TERN_ERR_TOKENIZER_DATA, "neither");
    refuse("{", TERN_ERR_JSON, "line 1");
    refuse("{\"model\": {\"type\": \"WordLevel\", \"vocab\": {}}}", TERN_ERR_TOKENIZER_MODEL,
           "'WordLevel'");
    refuse("{\"model\": {}}", TERN_ERR_TOKENIZER_DATA, "no vocab");
    refuse(DOCUMENT("\"dropout\": 0.1, " VOCAB MERGES, ""), TERN_ERR_TOKENIZER_MODEL, "dropout");
    refuse(DOCUMENT("\"end_of_word_suffix\": \"</w>\", " VOCAB MERGES, ""),
           TERN_ERR_TOKENIZER_MODEL, "end_of_word_suffix");
    refuse(DOCUMENT("\"continuing_subword_prefix\": \"##\", " VOCAB MERGES, ""),
           TERN_ERR_TOKENIZER_MODEL, "continuing_subword_prefix");
    refuse(DOCUMENT("\"vocab\": {\"a\": 0}", ""), TERN_ERR_TOKENIZER_DATA, "merges");
    refuse(DOCUMENT("\"vocab\": {\"a\": 0}, \"merges\": [\"a\"]", ""), TERN_ERR_TOKENIZER_DATA,
           "merge 0 is not a pair");
    refuse(DOCUMENT("\"vocab\": {\"a\": 0}, \"merges\": [\"a a a\"]", ""), TERN_ERR_TOKENIZER_DATA,
           "merge 0 is not a pair");
    refuse(DOCUMENT("\"vocab\": {\"a\": 0}, \"merges\": [\"a b\"]", ""), TERN_ERR_TOKENIZER_DATA,
           "'b' is not in the vocabulary");
    refuse(DOCUMENT("\"vocab\": {\"a\": 0, \"b\": 0}, \"merges\": []", ""), TERN_ERR_TOKENIZER_DATA,
           "'a' and 'b' have one id");
    refuse(DOCUMENT("\"vocab\": {\"a\": 0, \"a\": 1}, \"merges\": []", ""), TERN_ERR_TOKENIZER_DATA,
           "tokens 0 and 1 are the same");
    refuse(DOCUMENT("\"vocab\": {\"a\": 16000000}, \"merges\": []", ""), TERN_ERR_TOKENIZER_DATA,
           "ids up to 16000000 for 1 tokens");
    refuse(DOCUMENT("\"vocab\": {\"a\": -1}, \"merges\": []", ""), TERN_ERR_TOKENIZER_DATA,
           "token 'a' has no id");
    refuse(DOCUMENT(VOCAB MERGES, ", \"added_tokens\": [" ADDED(0, "z", "") "]"),
           TERN_ERR_TOKENIZER_DATA, "id 0 is 'h' and the added token 'z'");
    refuse("{\"vocab\": {\"a\": 0}, \"merges\": []}", TERN_ERR_TOKENIZER_MODEL, "merges");
    refuse("{\"vocab\": {\"a\": 0}, \"special_tokens\": [\"b\"]}", TERN_ERR_TOKENIZER_DATA,
           "'b' is not in the vocabulary");
    refuse("{}", TERN_ERR_TOKENIZER_DATA, "empty");
}

static void refused_parts(void **state) {
    (void)state;
    static const char *const parts[][2] = {
        {"\"normalizer\": {\"type\": \"ByteLevel\"}", "normalizer 'ByteLevel'"},
        {"\"normalizer\": {\"type\": \"Precompiled\"}", "Precompiled without its map"},
        {"\"pre_tokenizer\": {\"type\": \"UnicodeScripts\"}", "pre_tokenizer 'UnicodeScripts'"},
        {"\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"\\\\Bx\"}, "
         "\"behavior\": \"Isolated\"}",
         "the escape \\B"},
        {"\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"String\": \"a\"}, "
         "\"behavior\": \"Sideways\"}",
         "'Sideways'"},
        {"\"pre_tokenizer\": {\"type\": \"Sequence\"}", "without its list"},
        {"\"post_processor\": {\"type\": \"Other\"}", "post_processor 'Other'"},
        {"\"post_processor\": {\"type\": \"RobertaProcessing\", \"cls\": [\"h\", 77], \"sep\": "
         "[\"h\", 0]}",
         "adds a token that does not exist"},
        {"\"decoder\": {\"type\": \"CTC\"}", "decoder 'CTC'"},
        {"\"decoder\": null", "there is none"},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char text[1024];
        (void)snprintf(text, sizeof text, DOCUMENT(VOCAB MERGES, ", %s"), parts[i][0]);
        const bool pre =
            strncmp(parts[i][0], "\"p", 2) == 0 && strncmp(parts[i][0], "\"post", 5) != 0;
        const bool normalizer = strncmp(parts[i][0], "\"n", 2) == 0;
        refuse(text, pre || normalizer ? TERN_ERR_TOKENIZER_PRE : TERN_ERR_TOKENIZER_MODEL,
               parts[i][1]);
    }
}

/* Unknown kinds, and kinds that resemble a known one, are refused by name. */
static void unknown_kinds(void **state) {
    static const char *const kinds[] = {
        "Nonsense",  "bpe",       "BPE2",       "BP",   "unigram",  "Unigram ",  "WordPieces",
        "wordpiece", "bytelevel", "ByteLevel2", "Byte", "sequence", "Metaspaces"};
    static const char *const parts[] = {"normalizer", "pre_tokenizer", "post_processor"};
    char text[1024], word[32];
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        (void)snprintf(word, sizeof word, "'%s'", kinds[i]);
        check_case("kind %s", word);
        (void)snprintf(text, sizeof text,
                       "{\"model\": {\"type\": \"%s\", \"unk_token\": \"h\", " VOCAB MERGES
                       "}, \"decoder\": {\"type\": \"ByteLevel\"}}",
                       kinds[i]);
        refuse(text, TERN_ERR_TOKENIZER_MODEL, word);
        (void)snprintf(text, sizeof text,
                       "{\"model\": {\"type\": \"BPE\", " VOCAB MERGES
                       "}, \"decoder\": {\"type\": \"%s\"}}",
                       kinds[i]);
        refuse(text, TERN_ERR_TOKENIZER_MODEL, word);
        for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
            const tern_status status = p == 2 ? TERN_ERR_TOKENIZER_MODEL : TERN_ERR_TOKENIZER_PRE;
            (void)snprintf(text, sizeof text,
                           DOCUMENT(VOCAB MERGES, ", \"%s\": {\"type\": \"%s\"}"), parts[p],
                           kinds[i]);
            refuse(text, status, word);
        }
    }
    refuse("{\"model\": {\"type\": 7, " VOCAB MERGES "}}", TERN_ERR_TOKENIZER_MODEL, "'7'");
    refuse("{\"model\": {\"type\": \"\", " VOCAB MERGES "}}", TERN_ERR_TOKENIZER_MODEL, "''");
}

/* A text that would grow without bounds, and a pattern that would run forever. */
static void limits(void **state) {
    (void)state;
    tern_error err = {0};
    size_t n;
    tern_tokenizer *t = build(
        "{\"model\": {\"vocab\": {\"a\": 0}, \"merges\": []}, \"decoder\": {\"type\": \"Fuse\"}, "
        "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": ["
#define GROW                                                                                       \
    "{\"type\": \"Replace\", \"pattern\": {\"String\": \"a\"}, \"content\": "                      \
    "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}"
        GROW ", " GROW ", " GROW ", " GROW "]}}");
    assert_int_equal(tern_tokenize(t, "aaaa", 4, 0, NULL, 0, &n, &err), TERN_ERR_TOKENIZER_PATTERN);
    assert_non_null(strstr(err.message, "v.json"));
    tern_tokenizer_free(&t);
    t = build(WITH_PRE("{\"type\": \"Split\", \"pattern\": {\"Regex\": \"(a*)*[bd]\"}, "
                       "\"behavior\": \"Isolated\"}"));
    char text[60];
    memset(text, 'a', sizeof text);
    assert_int_equal(tern_tokenize(t, text, sizeof text, 0, NULL, 0, &n, &err),
                     TERN_ERR_TOKENIZER_PATTERN);
    tern_tokenizer_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_of_both_forms),
        cmocka_unit_test(whole_pieces),
        cmocka_unit_test(odd_merges),
        cmocka_unit_test(added_tokens),
        cmocka_unit_test(sentencepiece_style),
        cmocka_unit_test(scores_from_ranks),
        cmocka_unit_test(splits),
        cmocka_unit_test(metaspace),
        cmocka_unit_test(normal_forms),
        cmocka_unit_test(plain),
        cmocka_unit_test(refused_models),
        cmocka_unit_test(refused_parts),
        cmocka_unit_test(unknown_kinds),
        cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
