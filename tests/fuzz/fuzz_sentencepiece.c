/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is a model of SentencePiece; its last bytes are also the text for its tokenizer. Seeds:
 * tests/fuzz/seeds_sentencepiece.py FOLDER.
 */
#include <stdlib.h>
#include <string.h>

#include "authoring/convert/hf_older_spm.h"
#include "runtime/text/tokenizer/tokenizer.h"

enum { TEXT_BYTES = 64, MAX_IDS = 1 << 14 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition)
        abort();
}

/* Ids are those of the model's pieces; no text becomes a control piece. */
static void check_ids(const sentencepiece *s, const tern_vocabulary *v, tern_span given) {
    tern_tokenizer *t = NULL;
    size_t n = 0;
    int32_t *ids = malloc(MAX_IDS * sizeof *ids);
    require(ids != NULL);
    if (tern_tokenizer_build(v, NULL, &t, NULL) == TERN_OK &&
        tern_tokenize(t, given.data, given.size, 0, ids, MAX_IDS, &n, NULL) == TERN_OK)
        for (size_t i = 0; i < n; i++)
            require(ids[i] >= 0 && (size_t)ids[i] < s->n &&
                    s->pieces[ids[i]].type != SENTENCEPIECE_CONTROL);
    tern_tokenizer_free(&t);
    free(ids);
}

/* A text that is written is a tokenizer.json; only its tables and patterns may be refused. */
static void check_written(const sentencepiece *s, const hf_older_files *f, text *out,
                          tern_span given) {
    tern_vocabulary *v = NULL;
    tern_error err = {0};
    hf_said said;
    size_t size;
    char *bytes = text_take(out, &size);
    require(bytes != NULL);
    const tern_status status = tern_vocabulary_parse(bytes, size, "fuzz.model", &v, &err);
    require(status != TERN_ERR_JSON);
    require(status == TERN_OK || err.message[0] != '\0');
    if (status == TERN_OK) {
        check_ids(s, v, given);
        require(hf_older_spm_said(f, s, v, &said, NULL) == TERN_OK); /* v is for writing only now */
    }
    tern_vocabulary_free(&v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sentencepiece s = {.n = 0};
    hf_older_files f = {.n = 0};
    text out = {0};
    tern_error err = {0};
    const tern_span bytes = {(const char *)data, size};
    const size_t tail = size < TEXT_BYTES ? size : TEXT_BYTES;
    if (sentencepiece_parse(bytes, "fuzz.model", &s, &err) != TERN_OK)
        require(err.message[0] != '\0');
    else if (hf_older_spm_write(&f, &s, "fuzz.model", &out, &err) != TERN_OK)
        require(err.message[0] != '\0');
    else
        check_written(&s, &f, &out, (tern_span){bytes.data + size - tail, tail});
    text_free(&out);
    hf_older_files_close(&f);
    sentencepiece_free(&s);
    return 0;
}
