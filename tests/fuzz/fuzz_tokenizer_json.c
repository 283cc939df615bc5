/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is a JSON vocabulary; its last bytes are also the texts for its tokenizer. Seeds:
 * tests/fuzz/seeds_tokenizer_json.py FOLDER.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/text/tokenizer/tokenizer.h"
#include "runtime/text/tokenizer/vocabulary.h"

enum { TEXT_BYTES = 64, MAX_IDS = 1 << 14 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition)
        abort();
}

/* The stream must give the same bytes as decoding all ids at once. */
static void check_decoding(const tern_tokenizer *t, const int32_t *ids, size_t n) {
    size_t size, again, at = 0, bytes;
    require(tern_detokenize(t, ids, n, true, NULL, 0, &size, NULL) == TERN_OK);
    char *text = malloc(size + 1);
    require(text != NULL);
    require(tern_detokenize(t, ids, n, true, text, size, &again, NULL) == TERN_OK && again == size);
    tern_text_stream *stream = NULL;
    require(tern_text_stream_new(t, true, &stream, NULL) == TERN_OK);
    for (size_t i = 0; i <= n; i++) {
        const char *part = i < n ? tern_text_stream_push(stream, ids[i], &bytes)
                                 : tern_text_stream_flush(stream, &bytes);
        require(bytes <= size - at && memcmp(part, text + at, bytes) == 0);
        at += bytes;
    }
    require(at == size);
    tern_text_stream_free(&stream);
    free(text);
}

/* A pattern may take too long, or a text become too long. Nothing else may go wrong. */
static void check_text(const tern_tokenizer *t, const char *text, size_t size, unsigned flags) {
    int32_t *ids = malloc(MAX_IDS * sizeof *ids);
    size_t n, again;
    require(ids != NULL);
    const tern_status status = tern_tokenize(t, text, size, flags, NULL, 0, &n, NULL);
    require(status == TERN_OK || status == TERN_ERR_TOKENIZER_PATTERN);
    if (status == TERN_OK && n <= MAX_IDS) {
        require(tern_tokenize(t, text, size, flags, ids, MAX_IDS, &again, NULL) == TERN_OK);
        require(again == n);
        for (size_t i = 0; i < n; i++)
            require(ids[i] >= 0 && (size_t)ids[i] < tern_tokenizer_size(t));
        check_decoding(t, ids, n);
    }
    free(ids);
}

static void check_vocabulary(const tern_vocabulary *v) {
    for (size_t i = 0; i < v->n_tokens; i++)
        require(v->types[i] < TERN_TOKEN_TYPE_COUNT);
    const int32_t roles[] = {v->bos, v->eos, v->unknown, v->padding};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        require(roles[i] >= -1 && (roles[i] < 0 || (size_t)roles[i] < v->n_tokens));
    float *scores = malloc(v->n_tokens * sizeof *scores);
    require(scores != NULL && tern_vocabulary_rank_scores(v, scores, NULL) == TERN_OK);
    free(scores);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tern_vocabulary *v = NULL;
    tern_tokenizer *t = NULL;
    tern_error err = {0};
    const size_t tail = size < TEXT_BYTES ? size : TEXT_BYTES;
    const char *text = (const char *)data + size - tail;
    /* The bytes after the last brace are only text. */
    size_t json = size;
    while (json > 0 && data[json - 1] != '}')
        json--;
    char *bytes = malloc(json + 1);
    require(bytes != NULL);
    if (json > 0)
        memcpy(bytes, data, json);
    if (tern_vocabulary_parse(bytes, json, "fuzz", &v, &err) != TERN_OK) {
        require(v == NULL && strncmp(err.message, "fuzz: ", 6) == 0);
        return 0;
    }
    check_vocabulary(v);
    const tern_status status = tern_tokenizer_build(v, NULL, &t, &err);
    tern_vocabulary_free(&v);
    if (status == TERN_OK)
        for (unsigned flags = 0; flags < 4; flags++)
            check_text(t, text, tail, flags);
    else
        require(t == NULL && strncmp(err.message, "fuzz: ", 6) == 0);
    tern_tokenizer_free(&t);
    return 0;
}
