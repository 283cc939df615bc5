/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is a schema if it begins with '{', tags with schemas if it begins with '<', and
 * otherwise a grammar. The bytes after a NUL choose the tokens of a text. Masks must agree with
 * reading the text byte by byte, and every text that followed the masks can go on or is whole.
 * Schemas are mostly changed into other JSON, grammars into others with words of their notation.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/read.h"
#include "runtime/text/tokenizer/tokenizer.h"
#include "runtime/text/tokenizer/vocabulary.h"
#include "tern/grammar.h"
#include "tests/fuzz/change_json.h"
#include "tests/fuzz/change_words.h"

/* Reading texts anew takes most of the time. So one mask in MASKS_A_CHECK is checked, for one token
 * in TOKENS_A_CHECK. */
enum {
    MOST_TOKENS = 24,
    MOST_TEXT = 512,
    MASKS_A_CHECK = 4,
    TOKENS_A_CHECK = 64,
    MOST_TAGS = 3,
    SEPARATOR = 0x1e /* between the schemas of tags; JSON never has it */
};

/* Bits of the byte after '<'. */
enum { FREE_TEXT = 1, REQUIRED = 2, SINGLE = 4, LIST = 8, COMMAS = 16, COMPACT = 32, SHORT = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t most, unsigned seed);

static tern_tokenizer *tokenizer;
static tern_grammar_tokens *tokens;
static size_t n_vocab;

static void require(bool condition) {
    if (!condition)
        abort();
}

/* ASCII, bytes, and a few longer tokens. */
static void open_tokens(void) {
    char *json = malloc(1 << 14);
    size_t n = 0;
    require(json != NULL);
    n += (size_t)sprintf(json, "{\"</s>\": 0");
    for (int c = 1; c < 256; c++)
        n += c >= 0x20 && c < 0x7f && c != '<'
                 ? (size_t)sprintf(json + n, ", \"%s%c\": %d", c == '"' || c == '\\' ? "\\" : "", c,
                                   c)
                 : (size_t)sprintf(json + n, ", \"<0x%02X>\": %d", (unsigned)c, c);
    n += (size_t)sprintf(
        json + n, ", \"{\\\"\": 256, \"\\\":\": 257, \"ab\": 258, \"12\": 259, \"],[\": 260, "
                  "\"aa\": 261, \"ac\": 262, "
                  "\"ad\": 263, \"ae\": 264, \"af\": 265, \"ag\": 266, \"ah\": 267, \"abc\": 268, "
                  "\"1234\": 269, "
                  "\"\u00e9\": 270, \"\u65e5\u672c\": 271, \"true\": 272, \"<tool_call>\": 273}");
    tern_vocabulary *v = NULL;
    require(tern_vocabulary_parse(json, n, "fuzz", &v, NULL) == TERN_OK);
    require(tern_tokenizer_build(v, NULL, &tokenizer, NULL) == TERN_OK);
    tern_vocabulary_free(&v);
    n_vocab = tern_tokenizer_size(tokenizer);
    require(tern_grammar_tokens_new(tokenizer, n_vocab, &tokens, NULL) == TERN_OK);
}

static bool is_set(const uint64_t *bits, size_t i) {
    return bits[i / 64] >> (i % 64) & 1;
}

/* A token's bit must tell whether the text, with the token's bytes, begins a text of the
 * grammar. */
static void check_mask(tern_grammar *g, const uint64_t *allowed, char *text, size_t size,
                       uint8_t which) {
    for (size_t id = which % TOKENS_A_CHECK; id < n_vocab; id += TOKENS_A_CHECK) {
        size_t bytes;
        bool begins = false;
        bool whole = false;
        const char *piece = tern_token_bytes(tokenizer, (int32_t)id, false, &bytes);
        memcpy(text + size, piece, bytes);
        if (tern_grammar_check(g, text, size + bytes, &begins, &whole, NULL) != TERN_OK)
            return;
        if (tern_token_ends_text(tokenizer, (int32_t)id))
            require(is_set(allowed, id) == whole || bytes > 0);
        else
            require(is_set(allowed, id) == (begins && bytes > 0));
    }
}

/* Writes token number i of a text, allowed by its mask. Returns false if the text ends. */
static bool write_token(tern_grammar *g, tern_grammar_state *s, const uint8_t *choices, size_t n,
                        size_t i, int32_t *ids, char *text, size_t *size) {
    const tern_progress p = {.tokens = ids, .n = i};
    uint64_t allowed[8];
    size_t bytes;
    memset(allowed, 0xff, sizeof allowed);
    if (!tern_grammar_mask(s, &p, allowed, 8)) {
        /* There was too much work, or the next byte is NUL, for which there is no token. */
        require(tern_grammar_state_error(s)->status == TERN_ERR_GRAMMAR);
        return false;
    }
    if (i % MASKS_A_CHECK == n % MASKS_A_CHECK)
        check_mask(g, allowed, text, *size, choices[i]);
    size_t id = choices[i];
    while (!is_set(allowed, id))
        id = (id + 1) % 512;
    if (tern_token_ends_text(tokenizer, (int32_t)id))
        return false;
    const char *piece = tern_token_bytes(tokenizer, (int32_t)id, false, &bytes);
    memcpy(text + *size, piece, bytes);
    *size += bytes;
    ids[i] = (int32_t)id;
    return true;
}

/* The state must agree with the reader on whether a text is whole, also after following another
 * one. */
static void check_parts(tern_grammar *g, tern_grammar_state *s, int32_t *ids, size_t n,
                        const char *text, size_t size) {
    bool whole = false, begins = false, known = false;
    tern_progress p = {.tokens = ids, .n = n};
    if (tern_grammar_follow(s, &p, &whole, NULL) != TERN_OK ||
        tern_grammar_check(g, text, size, &begins, &known, NULL) != TERN_OK)
        return;
    require(begins && whole == known);
    p.n = n / 2;
    (void)tern_grammar_follow(s, &p, &whole, NULL);
    if (n > 0)
        ids[0] = (ids[0] + 1) % (int32_t)n_vocab;
    p.n = n;
    (void)tern_grammar_follow(s, &p, &known, NULL);
}

static void write_text(tern_grammar *g, const uint8_t *choices, size_t n) {
    tern_grammar_state *s = NULL;
    int32_t ids[MOST_TOKENS];
    char text[MOST_TEXT + 64];
    size_t size = 0, i = 0;
    require(tern_grammar_state_new(g, 1, &s, NULL) == TERN_OK);
    while (i < MOST_TOKENS && i < n && size < MOST_TEXT &&
           write_token(g, s, choices, n, i, ids, text, &size))
        i++;
    check_parts(g, s, ids, i, text, size);
    tern_grammar_state_free(&s);
}

/* ---- grammars -------------------------------------------------------------------------------- */

/* Tags of one form. text[size] holds their schemas. */
static tern_status read_tags(uint8_t form, const char *text, size_t size, tern_grammar **g,
                             tern_error *err) {
    const char *trigger = form & SHORT ? "aab" : "<tool_call>";
    const char *open = form & LIST ? "[" : NULL;
    tern_grammar_tag tags[MOST_TAGS];
    char begins[MOST_TAGS][64];
    size_t n = 0;
    for (const char *end = text + size; n < MOST_TAGS && text <= end; n++) {
        const char *next = memchr(text, SEPARATOR, (size_t)(end - text));
        const size_t schema_size = (size_t)((next != NULL ? next : end) - text);
        (void)snprintf(begins[n], sizeof begins[n], "%s%s{\"%zu\":", trigger, open ? open : "", n);
        tags[n] = (tern_grammar_tag){.begin = begins[n],
                                     .end = "}",
                                     .schema = text,
                                     .schema_size = schema_size,
                                     .name = "fuzz"};
        text += schema_size + 1;
    }
    const tern_grammar_tags all = {.tags = tags,
                                   .n_tags = n,
                                   .trigger = trigger,
                                   .separator = form & COMMAS ? "," : NULL,
                                   .free_text = (form & FREE_TEXT) != 0,
                                   .required = (form & REQUIRED) != 0,
                                   .single = (form & SINGLE) != 0,
                                   .open = open,
                                   .close = open ? "]" : NULL,
                                   .schema = {.compact = (form & COMPACT) != 0}};
    return tern_grammar_from_tags(tokens, &all, g, err);
}

/* The number of bytes before the choices. */
static size_t text_size(const uint8_t *data, size_t size) {
    const uint8_t *end = size > 0 ? memchr(data, 0, size) : NULL;
    return end != NULL ? (size_t)(end - data) : size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tern_grammar *g = NULL;
    tern_error err = {0};
    const char *text = (const char *)data;
    const size_t n = text_size(data, size);
    const tern_schema_params params = {.compact = size % 2 == 0};
    tern_status status;
    if (tokens == NULL)
        open_tokens();
    if (n > 0 && text[0] == '{')
        status = tern_grammar_from_schema(tokens, text, n, "fuzz", &params, &g, &err);
    else if (n > 1 && text[0] == '<')
        status = read_tags(data[1], text + 2, n - 2, &g, &err);
    else
        status = tern_grammar_from_gbnf(tokens, text, n, "fuzz", &g, &err);
    if (status != TERN_OK)
        require(g == NULL &&
                (strncmp(err.message, "fuzz: ", 6) == 0 || strncmp(err.message, "tags: ", 6) == 0));
    else
        write_text(g, data + n, size - n);
    tern_grammar_free(&g);
    return 0;
}

/* ---- changes --------------------------------------------------------------------------------- */

static const char *const marks[] = {"root ::= ",
                                    "\na ::= ",
                                    "\nb ::= ",
                                    "\nc-1 ::= ",
                                    " root ",
                                    " a ",
                                    " b ",
                                    " c-1 ",
                                    "\"a\"",
                                    "\"\"",
                                    "\"{\\\"\"",
                                    "\"\\n\\r\\t\\\\\\x41\"",
                                    "\"\\u00e9\"",
                                    "\"\\U0001F642\"",
                                    "[a-z]",
                                    "[^a-z]",
                                    "[]",
                                    "[^]",
                                    "[\\]\\[]",
                                    "[a-]",
                                    "[^\\x00-\\x7f]",
                                    "[\\u0100-\\uffff]",
                                    "[\\U00010000-\\U0010ffff]",
                                    ".",
                                    " | ",
                                    "\n| ",
                                    "(",
                                    ")",
                                    "*",
                                    "+",
                                    "?",
                                    "{2}",
                                    "{0}",
                                    "{,3}",
                                    "{2,}",
                                    "{1,3}",
                                    "{0,64}",
                                    "{16777216}",
                                    " # x\n",
                                    "\n",
                                    "\r\n",
                                    "\t",
                                    "\"12\"",
                                    "\"],[\""};

/* Names and values of schemas. */
static const char described[] =
    "{\"properties\": {\"type\": {\"1\": {\"const\": \"object\"}, \"2\": {\"const\": \"array\"}, "
    "\"3\": {\"const\": \"string\"}, \"4\": {\"const\": \"integer\"}, \"5\": {\"const\": "
    "\"number\"}, \"6\": {\"const\": \"boolean\"}, \"7\": {\"const\": \"null\"}, \"8\": "
    "{\"const\": [\"string\", \"null\"]}, \"9\": {\"const\": [\"integer\", \"object\"]}},"
    "\"enum\": {\"1\": {\"const\": [1, \"x\", null, [2.5], {\"a\": 1}]}, \"2\": {\"const\": "
    "[true, false]}, \"3\": {\"const\": [\"a\", \"b\"]}, \"4\": {\"const\": [1, 1.0, 1e0]}}, "
    "\"const\": {\"1\": {\"const\": 1}, \"2\": {\"const\": \"ab\"}, \"3\": {\"const\": 1.5}},"
    "\"$ref\": {\"1\": {\"const\": \"#\"}, \"2\": {\"const\": \"#/$defs/a\"}, \"3\": {\"const\": "
    "\"#/properties/a\"}, \"4\": {\"const\": \"#/$defs/%61\"}, \"5\": {\"const\": "
    "\"#/allOf/0\"}}, \"pattern\": {\"1\": {\"const\": \"^a+$\"}, \"2\": {\"const\": "
    "\"(ab?|[^x-z\\\\d]{2,3})*\"}, \"3\": {\"const\": \"^[\\\\w\\\\s]{2,5}?$\"}, \"4\": "
    "{\"const\": \"^(?:a|b.)$|\\\\u00e9\\\\x41\\\\n\"}, \"5\": {\"const\": \"^.*$\"}},"
    "\"format\": {\"1\": {\"const\": \"date\"}, \"2\": {\"const\": \"time\"}, \"3\": {\"const\": "
    "\"email\"}, \"4\": {\"const\": \"uuid\"}, \"5\": {\"const\": \"ipv4\"}, \"6\": {\"const\": "
    "\"json-pointer\"}}, \"minLength\": {\"const\": 2}, \"maxLength\": {\"const\": 5},"
    "\"minItems\": {\"const\": 1}, \"maxItems\": {\"const\": 3}, \"minProperties\": {\"const\": "
    "1}, \"minimum\": {\"const\": -3}, \"maximum\": {\"const\": 120}, \"exclusiveMinimum\": "
    "{\"const\": 0.5}, \"exclusiveMaximum\": {\"const\": 10}, \"uniqueItems\": {\"const\": true},"
    "\"properties\": {\"1\": {\"const\": {\"a\": {}}}, \"2\": {\"const\": {\"a\": {\"const\": 1}, "
    "\"b\": false}}}, \"required\": {\"1\": {\"const\": [\"a\"]}, \"2\": {\"const\": [\"b\", "
    "\"c\"]}}, \"additionalProperties\": {\"const\": false}, \"patternProperties\": {\"const\": "
    "{\"^x\": {\"type\": \"integer\"}}}, \"items\": {\"1\": {\"const\": {\"type\": \"integer\"}}, "
    "\"2\": {\"const\": [{\"const\": 1}]}}, \"prefixItems\": {\"const\": [{\"const\": 1}, {}]},"
    "\"additionalItems\": {\"const\": false}, \"allOf\": {\"const\": [{\"type\": \"object\"}, "
    "{\"required\": [\"a\"]}]}, \"anyOf\": {\"const\": [{\"type\": \"string\"}, {\"const\": 1}]},"
    "\"oneOf\": {\"const\": [{\"type\": \"boolean\"}, {\"type\": \"null\"}]}, \"not\": {\"1\": "
    "{\"const\": {\"type\": \"string\"}}, \"2\": {\"const\": {\"required\": [\"a\"]}}, \"3\": "
    "{\"const\": {\"enum\": [\"a\", true]}}, \"4\": {\"const\": {\"properties\": {\"a\": "
    "{\"const\": 1}}}}}, \"if\": {\"const\": {\"properties\": {\"a\": {\"const\": \"x\"}}, "
    "\"required\": [\"a\"]}}, \"then\": {\"const\": {\"required\": [\"b\"]}}, \"else\": "
    "{\"const\": false}, \"dependentRequired\": {\"const\": {\"a\": [\"b\"]}}, "
    "\"dependentSchemas\": {\"const\": {\"a\": {\"required\": [\"c\"]}}}, \"dependencies\": "
    "{\"const\": {\"b\": [\"a\"]}}, \"$defs\": {\"const\": {\"a\": {\"type\": \"array\"}}}, "
    "\"title\": {}, \"x-a\": {}, \"$id\": {\"const\": \"s\"}, \"a\": {}, \"b\": {}, \"c\": {}}}";

static words known;

static void learn(void) {
    static json_t *description; /* kept, since the learned words point into it */
    if (description != NULL)
        return;
    description = json_read(described, sizeof described - 1, "words", NULL);
    require(description != NULL);
    words_learn(&known, description);
}

/* Changes the schema in text[size]. Returns 0 if it is not JSON, or becomes too long. */
static size_t change_schema(char *text, size_t size, size_t most, const json_t *other,
                            unsigned seed) {
    learn();
    return change_json(&known, text, size, most, other, seed);
}

/* Changes the text before the choices, which are kept. */
static size_t change_text(uint8_t *data, size_t size, size_t most, const uint8_t *other,
                          size_t other_size, unsigned seed) {
    uint8_t choices[256];
    char *text = (char *)data;
    const size_t n = text_size(data, size);
    const size_t kept = size - n < sizeof choices ? size - n : sizeof choices;
    const size_t head = n > 1 && text[0] == '<' ? 2 : 0;
    const size_t room = most - head - kept;
    const bool json = n > head && (head > 0 || text[0] == '{');
    if (most < n + kept)
        return 0;
    memcpy(choices, data + n, kept);
    const char *end = json ? memchr(text + head, SEPARATOR, n - head) : NULL;
    json_t *part =
        json && other_size > 0 ? json_read((const char *)other, other_size, "other", NULL) : NULL;
    size_t made = json && end == NULL ? change_schema(text + head, n - head, room, part, seed) : 0;
    json_decref(part);
    if (made == 0)
        made = change_words(marks, sizeof marks / sizeof *marks, text + head, n - head, room,
                            (const char *)other, other_size, seed);
    memcpy(data + head + made, choices, kept);
    return head + made + kept;
}

/* One change in eight affects arbitrary bytes, and one affects the choices. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    const size_t n = text_size(data, size);
    if (seed % 8 == 1 && n + 1 < most) {
        data[n] = 0;
        const size_t choices = size > n ? size - n - 1 : 0;
        return n + 1 + LLVMFuzzerMutate(data + n + 1, choices, most - n - 1);
    }
    const size_t made = seed % 8 > 1 ? change_text(data, size, most, NULL, 0, seed) : 0;
    return made > 0 ? made : LLVMFuzzerMutate(data, size, most);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t most, unsigned seed) {
    if (a_size > most)
        return 0;
    memcpy(out, a, a_size);
    return change_text(out, a_size, most, b, text_size(b, b_size), seed);
}
