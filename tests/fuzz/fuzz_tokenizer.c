/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is a GGUF file; its last bytes are also the texts for its tokenizer. Seeds:
 * tests/fuzz/seeds_tokenizer.py FOLDER.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/text/tokenizer/tokenizer.h"

enum { TEXT_BYTES = 96, MAX_IDS = 8192 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition)
        abort();
}

/* The stream must give the same bytes as decoding all ids at once. */
static void check_stream(const tern_tokenizer *t, const int32_t *ids, size_t n, const char *text,
                         size_t size) {
    tern_text_stream *stream = NULL;
    require(tern_text_stream_new(t, false, &stream, NULL) == TERN_OK);
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
    if (size == 0 || tern_tokenizer_pre(t)[0] != '\0') /* SPM drops a leading space */
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tern_gguf *file = NULL;
    tern_tokenizer *t = NULL;
    tern_error err = {0};
    if (tern_gguf_parse(data, size, "fuzz", &file, &err) != TERN_OK)
        return 0;
    if (tern_tokenizer_new(file, "bitnet-b1.58", NULL, &t, &err) == TERN_OK) {
        const size_t tail = size < TEXT_BYTES ? size : TEXT_BYTES;
        const char *text = (const char *)data + size - tail;
        for (unsigned flags = 0; flags < 4; flags++)
            check_text(t, text, tail, flags);
        check_chat(t, text, tail);
    } else {
        require(t == NULL && strncmp(err.message, "fuzz: ", 6) == 0);
    }
    tern_tokenizer_free(&t);
    tern_gguf_close(&file);
    return 0;
}
