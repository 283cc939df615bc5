/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_TEXT_TOKENIZER_CASE_H
#define TERN_TESTS_TEXT_TOKENIZER_CASE_H

/* Small vocabularies as GGUF bytes in memory, and checks of the tokenizers that they give. */

#include "runtime/text/tokenizer/tokenizer.h"
#include "tests/support/gguf_bytes.h"

enum { CASE_MAX_IDS = 512 };

/* NULL and 0 omit a key. Arrays of strings end with NULL. */
typedef struct tokenizer_case {
    const char *model, *pre, *chat_template, *architecture;
    const char *whole; /* tokenizer.huggingface.json */
    const char *const *tokens; /* after the 256 characters of the byte alphabet if byte_level */
    const char *const *merges;
    const int32_t *types; /* one for each of `tokens`; the alphabet is normal */
    const float *scores;  /* one for each of `tokens` */
    const char *true_key, *other_true_key, *false_key; /* bool keys */
    const void *charsmap;                              /* tokenizer.ggml.precompiled_charsmap */
    size_t charsmap_bytes;
    const char *id_key; /* a token id key and its value */
    uint32_t id;
    bool byte_level;
} tokenizer_case;

typedef struct tokenizer_fixture {
    gguf_bytes bytes;
    tern_gguf *file;
    tern_tokenizer *t;
    tern_error err;
} tokenizer_fixture;

/* Builds the file "case.gguf" and opens its tokenizer, with `pre` as an override. Returns the
 * tokenizer's status. */
tern_status tokenizer_open(tokenizer_fixture *f, const tokenizer_case *c, const char *pre);
void tokenizer_close(tokenizer_fixture *f);

/* Checks the ids of a text against the `n` numbers that follow. */
void expect_ids(const tern_tokenizer *t, const char *text, size_t size, unsigned flags, size_t n,
                const int32_t *ids);
#define EXPECT_IDS(t, text, flags, ...)                                                            \
    expect_ids(t, text, sizeof(text) - 1, flags, sizeof((int32_t[]){__VA_ARGS__}) / 4,             \
               (int32_t[]){__VA_ARGS__})

/* Checks that the ids give this text. */
void expect_text(const tern_tokenizer *t, bool skip_special, size_t n, const int32_t *ids,
                 const char *text);
#define EXPECT_TEXT(t, skip, text, ...)                                                            \
    expect_text(t, skip, sizeof((int32_t[]){__VA_ARGS__}) / 4, (int32_t[]){__VA_ARGS__}, text)

#endif
