/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is a schema if it begins with '{', else a grammar; what follows a NUL byte chooses the
 * tokens of a text. Seeds: tests/fuzz/seeds_grammar.py FOLDER. Masks must be what reading the text
 * byte by byte says, and every text that a mask led to can go on or is whole.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/vocabulary.h"
#include "tern/grammar.h"

/* Reading texts anew takes nine tenths of the time, so one mask of MASKS_A_CHECK is checked. */
enum { MOST_TOKENS = 24, MOST_TEXT = 512, MASKS_A_CHECK = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
        json + n, ", \"{\\\"\": 256, \"\\\":\": 257, \"ab\": 258, \"12\": 259, \"],[\": 260}");
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

/* A token's bit is whether the text with its bytes begins a text of the grammar. */
static void check_mask(tern_grammar *g, const uint64_t *allowed, char *text, size_t size,
                       uint8_t which) {
    for (size_t id = which % 16; id < n_vocab; id += 16) {
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

static void write_text(tern_grammar *g, const uint8_t *choices, size_t n) {
    tern_grammar_state *s = NULL;
    int32_t ids[MOST_TOKENS];
    char text[MOST_TEXT + 64];
    uint64_t allowed[8];
    size_t size = 0;
    require(tern_grammar_state_new(g, 1, &s, NULL) == TERN_OK);
    for (size_t i = 0; i < MOST_TOKENS && i < n && size < MOST_TEXT; i++) {
        const tern_progress p = {.tokens = ids, .n = i};
        size_t bytes;
        memset(allowed, 0xff, sizeof allowed);
        if (!tern_grammar_mask(s, &p, allowed, 8)) {
            /* Too much work; or a byte for which there is no token: NUL. */
            require(tern_grammar_state_error(s)->status == TERN_ERR_GRAMMAR);
            break;
        }
        if (i % MASKS_A_CHECK == n % MASKS_A_CHECK)
            check_mask(g, allowed, text, size, choices[i]);
        size_t id = choices[i];
        while (!is_set(allowed, id))
            id = (id + 1) % 512;
        if (tern_token_ends_text(tokenizer, (int32_t)id))
            break;
        const char *piece = tern_token_bytes(tokenizer, (int32_t)id, false, &bytes);
        memcpy(text + size, piece, bytes);
        size += bytes;
        ids[i] = (int32_t)id;
    }
    tern_grammar_state_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tern_grammar *g = NULL;
    tern_error err = {0};
    const char *text = (const char *)data;
    const uint8_t *end = size > 0 ? memchr(data, 0, size) : NULL;
    const size_t n = end != NULL ? (size_t)(end - data) : size;
    const tern_schema_params params = {.compact = size % 2 == 0};
    if (tokens == NULL)
        open_tokens();
    const tern_status status =
        n > 0 && text[0] == '{'
            ? tern_grammar_from_schema(tokens, text, n, "fuzz", &params, &g, &err)
            : tern_grammar_from_gbnf(tokens, text, n, "fuzz", &g, &err);
    if (status != TERN_OK)
        require(g == NULL && strncmp(err.message, "fuzz: ", 6) == 0);
    else
        write_text(g, data + n, size - n);
    tern_grammar_free(&g);
    return 0;
}
