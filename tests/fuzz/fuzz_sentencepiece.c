/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is a model of SentencePiece, as in a tokenizer.model and as in XLM-RoBERTa's
 * sentencepiece.bpe.model, or else a vocab.txt of words; its last bytes are also the text for its
 * tokenizer. Seeds: tests/fuzz/seeds_sentencepiece.py FOLDER.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "authoring/convert/hf_older_roberta.h"
#include "authoring/convert/hf_older_spm.h"
#include "authoring/convert/hf_older_words.h"
#include "runtime/text/tokenizer/tokenizer.h"

enum { TEXT_BYTES = 64, MAX_IDS = 1 << 14 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition)
        abort();
}

/* Makes the class of the tokenizer one that the files' writers know. */
static void set_class(hf_older_files *f, const char *model_type) {
    char written[64];
    const int n = snprintf(written, sizeof written, "{\"model_type\":\"%s\"}", model_type);
    char *bytes = strdup(written);
    require(bytes != NULL && tern_json_parse(bytes, (size_t)n, "fuzz", &f->model, NULL) == TERN_OK);
}

/* Ids are those of the vocabulary; no text becomes a control piece of s, which may be NULL. */
static void check_ids(const sentencepiece *s, const tern_vocabulary *v, tern_span given) {
    tern_tokenizer *t = NULL;
    size_t n = 0;
    int32_t *ids = malloc(MAX_IDS * sizeof *ids);
    require(ids != NULL);
    if (tern_tokenizer_build(v, NULL, &t, NULL) == TERN_OK &&
        tern_tokenize(t, given.data, given.size, 0, ids, MAX_IDS, &n, NULL) == TERN_OK)
        for (size_t i = 0; i < n; i++)
            require(ids[i] >= 0 && (size_t)ids[i] < v->n_tokens &&
                    (s == NULL || s->pieces[ids[i]].type != SENTENCEPIECE_CONTROL));
    tern_tokenizer_free(&t);
    free(ids);
}

/* A text that is written is a tokenizer.json; only its tables and patterns may be refused. s: the
 * model of a tokenizer.model, or NULL. */
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
        if (s != NULL) /* v is for writing only afterwards */
            require(hf_older_spm_said(f, s, v, &said, NULL) == TERN_OK);
    }
    tern_vocabulary_free(&v);
}

/* Looks at what a writer of a tokenizer.json left, and frees it. */
static void check_end(tern_status written, const tern_error *err, const sentencepiece *s,
                      hf_older_files *f, text *out, tern_span given) {
    if (written == TERN_OK)
        check_written(s, f, out, given);
    else
        require(err->message[0] != '\0');
    text_free(out);
    hf_older_files_close(f);
}

static void try_words(tern_span bytes, tern_span given) {
    hf_older_files f = {.n = 0};
    text out = {0};
    tern_error err = {0};
    set_class(&f, "bert");
    const tern_status written = hf_older_words_write(&f, bytes, "fuzz.txt", &out, &err);
    check_end(written, &err, NULL, &f, &out, given);
}

static void try_roberta(const sentencepiece *s, tern_span given) {
    hf_older_files f = {.n = 0};
    text out = {0};
    tern_error err = {0};
    set_class(&f, "xlm-roberta");
    const tern_status written = hf_older_roberta_write(&f, s, "fuzz.model", &out, &err);
    check_end(written, &err, NULL, &f, &out, given);
}

static void try_model(sentencepiece *s, tern_span given) {
    hf_older_files f = {.n = 0};
    text out = {0};
    tern_error err = {0};
    const tern_status written = hf_older_spm_write(&f, s, "fuzz.model", &out, &err);
    check_end(written, &err, s, &f, &out, given);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sentencepiece s = {.n = 0};
    tern_error err = {0};
    const tern_span bytes = {(const char *)data, size};
    const size_t tail = size < TEXT_BYTES ? size : TEXT_BYTES;
    const tern_span given = {bytes.data + size - tail, tail};
    if (sentencepiece_parse(bytes, "fuzz.model", &s, &err) == TERN_OK) {
        try_roberta(&s, given);
        try_model(&s, given);
    } else {
        require(err.message[0] != '\0');
        try_words(bytes, given);
    }
    sentencepiece_free(&s);
    return 0;
}
