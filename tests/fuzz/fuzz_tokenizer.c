/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is a GGUF file, or a tokenizer.json that the target puts into the key
 * tokenizer.huggingface.json of one. Its last bytes are also the texts for its tokenizer. Seeds:
 * tests/fuzz/seeds_tokenizer.py FOLDER.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/text/tokenizer/tokenizer.h"
#include "runtime/text/tokenizer/vocabulary.h"
#include "tests/support/gguf_bytes.h"

enum { TEXT_BYTES = 96, MAX_IDS = 8192 };

/* Bits of the byte after a tokenizer.json: keys that the file has beside it. */
enum { HAS_TOKENS = 1, HAS_END = 2, HAS_USUAL_KEYS = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition)
        abort();
}

/* The stream must give the same bytes as decoding all ids at once. */
static void check_stream(const tern_tokenizer *t, const int32_t *ids, size_t n, const char *text,
                         size_t size) {
    tern_text_stream *stream = NULL;
    require(tern_text_stream_new(t, true, &stream, NULL) == TERN_OK);
    size_t at = 0, bytes;
    for (size_t i = 0; i <= n; i++) {
        const char *part = i < n ? tern_text_stream_push(stream, ids[i], &bytes)
                                 : tern_text_stream_flush(stream, &bytes);
        require(bytes <= size - at && memcmp(part, text + at, bytes) == 0);
        at += bytes;
    }
    require(at == size);
    tern_text_stream_free(&stream);
}

static void check_decoding(const tern_tokenizer *t, const int32_t *ids, size_t n) {
    size_t size, again;
    require(tern_detokenize(t, ids, n, true, NULL, 0, &size, NULL) == TERN_OK);
    char *text = malloc(size + 1);
    require(text != NULL);
    require(tern_detokenize(t, ids, n, true, text, size, &again, NULL) == TERN_OK);
    require(again == size);
    check_stream(t, ids, n, text, size);
    free(text);
}

static void check_ids(const tern_tokenizer *t, const int32_t *ids, size_t n) {
    for (size_t i = 0; i < n; i++)
        require(ids[i] >= 0 && (size_t)ids[i] < tern_tokenizer_size(t));
    check_decoding(t, ids, n);
}

static void check_text(const tern_tokenizer *t, const char *text, size_t size, unsigned flags) {
    int32_t ids[MAX_IDS];
    size_t n, again;
    const tern_status status = tern_tokenize(t, text, size, flags, NULL, 0, &n, NULL);
    require(status == TERN_OK || status == TERN_ERR_TOKENIZER_PATTERN);
    if (status != TERN_OK) /* a table of replacements made the text too long */
        return;
    require(n <= MAX_IDS);
    require(tern_tokenize(t, text, size, flags, ids, MAX_IDS, &again, NULL) == TERN_OK);
    require(again == n);
    check_ids(t, ids, n);
}

static void check_chat(const tern_tokenizer *t, const char *text, size_t size) {
    char content[TEXT_BYTES + 1];
    memcpy(content, text, size);
    content[size] = '\0';
    const tern_chat_message messages[] = {{.role = "system", .content = content},
                                          {.role = "user", .content = content},
                                          {.role = "assistant", .content = content},
                                          {.role = "user", .content = content}};
    int32_t ids[MAX_IDS];
    size_t n;
    const tern_status status = tern_chat_tokenize(t, messages, 4, ids, MAX_IDS, &n, NULL);
    const char *format = tern_chat_format(t);
    require(strcmp(format, "template") == 0 || status == TERN_ERR_TOKENIZER_PATTERN ||
            (status == TERN_OK) == (strcmp(format, "none") != 0));
    if (status == TERN_OK)
        check_ids(t, ids, n);
}

/* ---- a tokenizer.json as a key ----------------------------------------------------------------
 */

/* Adds the first tokens of the vocabulary, all but `fewer`. Returns the number of keys added. */
static uint64_t add_tokens(gguf_bytes *b, const uint8_t *json, size_t size, size_t fewer) {
    tern_vocabulary *v = NULL;
    char *bytes = malloc(size);
    require(bytes != NULL);
    memcpy(bytes, json, size);
    if (tern_vocabulary_parse(bytes, size, "fuzz", &v, NULL) != TERN_OK)
        return 0;
    const size_t n = v->n_tokens > fewer ? v->n_tokens - fewer : 1;
    gguf_add_key_array(b, "tokenizer.ggml.tokens", TERN_GGUF_STRING, n);
    for (size_t i = 0; i < n; i++) {
        gguf_add_u64(b, v->tokens[i].size);
        gguf_add(b, v->tokens[i].data, v->tokens[i].size);
    }
    tern_vocabulary_free(&v);
    return 1;
}

/* The bytes of a file with that tokenizer.json, which two bytes may follow. */
static gguf_bytes file_around(const uint8_t *json, size_t size, const uint8_t *keys, size_t left) {
    enum { N_VALUES_AT = 16 };
    const unsigned has = left > 0 ? keys[0] : 0;
    const uint8_t number = left > 1 ? keys[1] : 0;
    gguf_bytes b = {NULL, 0};
    gguf_add_header(&b, 3, 0, 0);
    uint64_t n = 2;
    gguf_add_key_string(&b, "tokenizer.ggml.model",
                        has & HAS_USUAL_KEYS ? "gpt2" : TERN_VOCABULARY_WHOLE_MODEL);
    gguf_add_string(&b, TERN_VOCABULARY_WHOLE_KEY);
    gguf_add_u32(&b, TERN_GGUF_STRING);
    gguf_add_u64(&b, size);
    gguf_add(&b, json, size);
    if (has & HAS_TOKENS)
        n += add_tokens(&b, json, size, number);
    if (has & HAS_END) {
        gguf_add_key_u32(&b, "tokenizer.ggml.eos_token_id", number);
        n++;
    }
    gguf_patch_u64(&b, N_VALUES_AT, n);
    return b;
}

/* ---- a file -----------------------------------------------------------------------------------
 */

static void check_file(const uint8_t *data, size_t size, const char *text, size_t text_size) {
    tern_gguf *file = NULL;
    tern_tokenizer *t = NULL;
    tern_error err = {0};
    if (tern_gguf_parse(data, size, "fuzz", &file, &err) != TERN_OK)
        return;
    if (tern_tokenizer_new(file, "bitnet-b1.58", NULL, &t, &err) == TERN_OK) {
        for (unsigned flags = 0; flags < 4; flags++)
            check_text(t, text, text_size, flags);
        check_chat(t, text, text_size);
    } else {
        require(t == NULL && strncmp(err.message, "fuzz: ", 6) == 0);
    }
    tern_tokenizer_free(&t);
    tern_gguf_close(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const size_t tail = size < TEXT_BYTES ? size : TEXT_BYTES;
    const char *text = (const char *)data + size - tail;
    if (size == 0 || data[0] != '{') {
        check_file(data, size, text, tail);
        return 0;
    }
    size_t json = size;
    while (json > 1 && data[json - 1] != '}')
        json--;
    gguf_bytes b = file_around(data, json, data + json, size - json);
    check_file(b.data, b.size, text, tail);
    gguf_bytes_free(&b);
    return 0;
}
