/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/text/tokenizer_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/text/tokenizer/internal.h"

enum { N_VALUES_AT = 16, NORMAL = 1 };

static size_t count_strings(const char *const *list) {
    size_t n = 0;
    while (list != NULL && list[n] != NULL)
        n++;
    return n;
}

/* The character that stands for a byte, terminated. */
static void alphabet_text(unsigned byte, char out[3]) {
    const uint32_t code = tern_byte_to_char((unsigned char)byte);
    memset(out, 0, 3);
    if (code < 0x80) {
        out[0] = (char)code;
        return;
    }
    out[0] = (char)(0xC0 | code >> 6);
    out[1] = (char)(0x80 | (code & 0x3F));
}

/* Adds strings in one piece: gguf_add moves everything each time, and vocabularies are long. */
static void add_strings(gguf_bytes *b, const char *const *list, size_t n) {
    size_t size = 0;
    for (size_t i = 0; i < n; i++)
        size += sizeof(uint64_t) + strlen(list[i]);
    char *bytes = malloc(size + 1), *at = bytes;
    assert_non_null(bytes);
    for (size_t i = 0; i < n; i++) {
        const uint64_t length = strlen(list[i]);
        memcpy(at, &length, sizeof length);
        memcpy(at + sizeof length, list[i], length);
        at += sizeof length + length;
    }
    gguf_add(b, bytes, size);
    free(bytes);
}

static uint64_t add_tokens(gguf_bytes *b, const tokenizer_case *c) {
    const size_t own = count_strings(c->tokens), alphabet = c->byte_level ? 256 : 0;
    if (own + alphabet == 0)
        return 0;
    gguf_add_key_array(b, "tokenizer.ggml.tokens", TERN_GGUF_STRING, own + alphabet);
    for (unsigned i = 0; i < alphabet; i++) {
        char text[3];
        alphabet_text(i, text);
        gguf_add_string(b, text);
    }
    add_strings(b, c->tokens, own);
    if (c->types == NULL)
        return 1;
    gguf_add_key_array(b, "tokenizer.ggml.token_type", TERN_GGUF_I32, own + alphabet);
    for (size_t i = 0; i < alphabet; i++)
        gguf_add_u32(b, NORMAL);
    gguf_add(b, c->types, own * sizeof *c->types);
    return 2;
}

static uint64_t add_string(gguf_bytes *b, const char *key, const char *value) {
    if (value == NULL)
        return 0;
    gguf_add_key_string(b, key, value);
    return 1;
}

static uint64_t add_bool(gguf_bytes *b, const char *key, uint8_t value) {
    if (key == NULL)
        return 0;
    gguf_add_string(b, key);
    gguf_add_u32(b, TERN_GGUF_BOOL);
    gguf_add_u8(b, value);
    return 1;
}

static uint64_t add_rest(gguf_bytes *b, const tokenizer_case *c) {
    uint64_t n = 0;
    if (c->merges != NULL) {
        gguf_add_key_array(b, "tokenizer.ggml.merges", TERN_GGUF_STRING, count_strings(c->merges));
        add_strings(b, c->merges, count_strings(c->merges));
        n++;
    }
    if (c->scores != NULL) {
        const size_t count = count_strings(c->tokens);
        gguf_add_key_array(b, "tokenizer.ggml.scores", TERN_GGUF_F32, count);
        gguf_add(b, c->scores, count * sizeof *c->scores);
        n++;
    }
    n += add_bool(b, c->true_key, 1) + add_bool(b, c->other_true_key, 1);
    n += add_bool(b, c->false_key, 0);
    if (c->charsmap != NULL) {
        gguf_add_key_array(b, "tokenizer.ggml.precompiled_charsmap", TERN_GGUF_U8,
                           c->charsmap_bytes);
        gguf_add(b, c->charsmap, c->charsmap_bytes);
        n++;
    }
    if (c->id_key != NULL) {
        gguf_add_key_u32(b, c->id_key, c->id);
        n++;
    }
    return n;
}

tern_status tokenizer_open(tokenizer_fixture *f, const tokenizer_case *c, const char *pre) {
    memset(f, 0, sizeof *f);
    gguf_add_header(&f->bytes, 3, 0, 0);
    uint64_t n = add_string(&f->bytes, "tokenizer.ggml.model", c->model);
    n += add_string(&f->bytes, "tokenizer.ggml.pre", c->pre);
    n += add_string(&f->bytes, "tokenizer.chat_template", c->chat_template);
    n += add_string(&f->bytes, TERN_VOCABULARY_WHOLE_KEY, c->whole);
    n += add_tokens(&f->bytes, c);
    n += add_rest(&f->bytes, c);
    gguf_patch_u64(&f->bytes, N_VALUES_AT, n);
    assert_int_equal(tern_gguf_parse(f->bytes.data, f->bytes.size, "case.gguf", &f->file, &f->err),
                     TERN_OK);
    return tern_tokenizer_new(f->file, c->architecture, pre, &f->t, &f->err);
}

void tokenizer_close(tokenizer_fixture *f) {
    tern_tokenizer_free(&f->t);
    assert_null(f->t);
    tern_gguf_close(&f->file);
    gguf_bytes_free(&f->bytes);
}

void expect_ids(const tern_tokenizer *t, const char *text, size_t size, unsigned flags, size_t n,
                const int32_t *ids) {
    int32_t got[CASE_MAX_IDS];
    size_t count = 0, sized = 0;
    assert_int_equal(tern_tokenize(t, text, size, flags, NULL, 0, &sized, NULL), TERN_OK);
    assert_int_equal(tern_tokenize(t, text, size, flags, got, CASE_MAX_IDS, &count, NULL), TERN_OK);
    assert_int_equal(sized, count);
    assert_int_equal(count, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(got[i], ids[i]);
    assert_true(tern_tokenizer_reach(t) == 0 || n * tern_tokenizer_reach(t) >= size);
}

void expect_text(const tern_tokenizer *t, bool skip_special, size_t n, const int32_t *ids,
                 const char *text) {
    char got[CASE_MAX_IDS];
    size_t size = 0;
    assert_int_equal(tern_detokenize(t, ids, n, skip_special, got, sizeof got, &size, NULL),
                     TERN_OK);
    assert_int_equal(size, strlen(text));
    assert_memory_equal(got, text, size);
}
