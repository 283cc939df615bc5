/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/hf_older.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "authoring/convert/hf_older_bytes.h"
#include "authoring/convert/hf_older_roberta.h"
#include "authoring/convert/hf_older_spm.h"
#include "authoring/convert/hf_older_words.h"
#include "base/in_file.h"
#include "runtime/text/tokenizer/vocabulary_json.h"

enum { MAX_MODEL_BYTES = 32 << 20, MAX_WORDS_BYTES = 64 << 20 };

/* Reads the vocabulary from a text that was made, which o keeps. */
static tern_status take_text(hf_older *o, text *made, const char *path, tern_error *err) {
    size_t size;
    o->json = text_take(made, &size);
    char *parsed = o->json != NULL ? strdup(o->json) : NULL;
    return parsed != NULL ? tern_vocabulary_open_as(parsed, size, path, &o->vocabulary, err)
                          : tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for its tokens", path);
}

/* Takes the text that writing it left, if it did not fail. */
static tern_status take_written(hf_older *o, tern_status written, text *made, const char *path,
                                tern_error *err) {
    const tern_status status = written == TERN_OK ? take_text(o, made, path, err) : written;
    text_free(made);
    return status;
}

/* Opens a tokenizer from a parsed model. */
typedef tern_status open_model(hf_older_files *f, sentencepiece *s, const char *path, hf_older *o,
                               tern_error *err);

static tern_status open_llama(hf_older_files *f, sentencepiece *s, const char *path, hf_older *o,
                              tern_error *err) {
    text made = {0};
    const tern_status written = hf_older_spm_write(f, s, path, &made, err);
    const tern_status status = take_written(o, written, &made, path, err);
    return status == TERN_OK ? hf_older_spm_said(f, s, o->vocabulary, &o->said, err) : status;
}

static tern_status open_roberta(hf_older_files *f, sentencepiece *s, const char *path, hf_older *o,
                                tern_error *err) {
    text made = {0};
    const tern_status written = hf_older_roberta_write(f, s, path, &made, err);
    const tern_status status = take_written(o, written, &made, path, err);
    return status == TERN_OK ? hf_tokenizer_said(o->vocabulary, &o->said, err) : status;
}

static tern_status open_parsed(hf_older_files *f, const char *path, open_model *open, hf_older *o,
                               tern_error *err) {
    char *bytes = NULL;
    size_t size = 0;
    sentencepiece s = {.n = 0};
    tern_status status = tern_in_file_read(path, MAX_MODEL_BYTES, &bytes, &size, err);
    if (status != TERN_OK)
        return status;
    status = sentencepiece_parse((tern_span){bytes, size}, path, &s, err);
    if (status == TERN_OK)
        status = open(f, &s, path, o, err);
    sentencepiece_free(&s);
    free(bytes);
    return status;
}

static tern_status open_spm(hf_older_files *f, const char *path, hf_older *o, tern_error *err) {
    return open_parsed(f, path, open_llama, o, err);
}

static tern_status open_bpe_model(hf_older_files *f, const char *path, hf_older *o,
                                  tern_error *err) {
    return open_parsed(f, path, open_roberta, o, err);
}

/* Writes the text of a tokenizer.json from the file. */
typedef tern_status write_file(hf_older_files *f, const char *path, text *out, tern_error *err);

static tern_status open_written(hf_older_files *f, const char *path, write_file *write, hf_older *o,
                                tern_error *err) {
    text made = {0};
    const tern_status written = write(f, path, &made, err);
    const tern_status status = take_written(o, written, &made, path, err);
    return status == TERN_OK ? hf_tokenizer_said(o->vocabulary, &o->said, err) : status;
}

static tern_status open_bytes(hf_older_files *f, const char *path, hf_older *o, tern_error *err) {
    return open_written(f, path, hf_older_bytes_write, o, err);
}

static tern_status write_words(hf_older_files *f, const char *path, text *out, tern_error *err) {
    char *bytes = NULL;
    size_t size = 0;
    tern_status status = tern_in_file_read(path, MAX_WORDS_BYTES, &bytes, &size, err);
    if (status == TERN_OK)
        status = hf_older_words_write(f, (tern_span){bytes, size}, path, out, err);
    free(bytes);
    return status;
}

static tern_status open_words(hf_older_files *f, const char *path, hf_older *o, tern_error *err) {
    return open_written(f, path, write_words, o, err);
}

/* Opens a tokenizer from its file. */
typedef tern_status open_file(hf_older_files *f, const char *path, hf_older *o, tern_error *err);

static tern_status refuse(hf_older_files *f, const char *path, hf_older *o, tern_error *err) {
    (void)f;
    (void)o;
    return tern_fail(err, TERN_ERR_TOKENIZER_MODEL,
                     "%s: tern does not read this file; "
                     "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER) of "
                     "transformers makes a tokenizer.json of it",
                     path);
}

static const struct {
    const char *name;
    open_file *open;
} files[] = {
    {"tokenizer.model", open_spm}, {"vocab.json", open_bytes},
    {"vocab.txt", open_words},     {"sentencepiece.bpe.model", open_bpe_model},
    {"spiece.model", refuse},
};

static tern_status open_beside(const char *path, open_file *open, hf_older *o, tern_error *err) {
    hf_older_files f = {.n = 0};
    tern_status status = hf_older_files_open(path, &f, err);
    if (status == TERN_OK)
        status = open(&f, path, o, err);
    hf_older_files_close(&f);
    return status;
}

tern_status hf_older_open(const char *missing, hf_older *out, tern_error *err) {
    hf_older o = {.json = NULL};
    tern_status status = TERN_OK;
    bool there = false;
    for (size_t i = 0; status == TERN_OK && !there && i < sizeof files / sizeof *files; i++) {
        char *path = tern_json_beside(missing, files[i].name);
        if (path == NULL)
            status = tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for a path", missing);
        there = path != NULL && access(path, F_OK) == 0;
        if (there)
            status = open_beside(path, files[i].open, &o, err);
        free(path);
    }
    if (status != TERN_OK)
        hf_older_free(&o);
    *out = o;
    return status;
}

void hf_older_free(hf_older *o) {
    tern_vocabulary_free(&o->vocabulary);
    free(o->json);
    o->json = NULL;
}
