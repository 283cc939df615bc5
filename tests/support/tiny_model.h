/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_SUPPORT_TINY_MODEL_H
#define TERN_TESTS_SUPPORT_TINY_MODEL_H

/*
 * Tiny models with random weights (authoring/synth.h), in temporary files that are removed when a
 * test ends, and copies of them with changes.
 */

#include "runtime/files/gguf/gguf.h"
#include "tern/tern.h"

enum { TINY_PATH_BYTES = 64 };

/* Presets for every weight format and every architecture: all with "-tiny" in their names. NULL
 * ends the list. TERN_TEST_SHARE=K/N keeps every N-th from the K-th on, for sanitizers. */
const char *const *tiny_presets(void);

/* Names of the instruction sets that run here. Returns how many there are. */
size_t tiny_isas(const char **names, size_t capacity);

/* Creates an empty temporary file of that name. The caller removes it with unlink(). */
void tiny_path(char path[TINY_PATH_BYTES]);

/* The model of a preset, opened for an instruction set (NULL: the best). Its file is removed. */
tern_model *tiny_open(const char *preset, const char *isa);

/* The same, opened with these parameters. */
tern_model *tiny_open_with(const char *preset, tern_model_params params);

/* Bytes of a cache for one position of a head. */
size_t tiny_cache_row_bytes(tern_format kv, size_t head_dim);

/* Opens a session. Fails the test if that fails. */
tern_session *tiny_session(const tern_model *model, tern_session_params params);

/* Fails unless the caches of two sessions of the same format are equal below position n. */
void tiny_same_cache(const tern_session *a, const tern_session *b, uint32_t n);

/* Evaluates tokens. Fails the test if that fails. Returns the session's own logits. */
float *tiny_eval(tern_session *s, const int32_t *tokens, size_t n);

/* n ids that depend on the seed and are below the vocabulary's size. ids[0] is BOS if there is
 * one. */
void tiny_prompt(const tern_model *model, uint64_t seed, int32_t *ids, size_t n);

/* n floats, aligned to TERN_ALIGN. The caller frees them. */
float *tiny_floats(size_t n);

/* ---- changed models ------------------------------------------------------------------------- */

typedef struct tiny_tensor {
    char name[64];
    uint32_t type, n_dims;
    uint64_t ne[4];
    uint8_t *data; /* owned */
    size_t bytes;
} tiny_tensor;

/* A model file in memory: the metadata of `source`, and tensors that may be changed. */
typedef struct tiny_file {
    tern_gguf *source;
    tiny_tensor *tensors;
    size_t n;
    uint32_t alignment; /* general.alignment; if it is 32, no key is written */
    const char *filler; /* if not NULL, a string whose length shifts the tensor data */
} tiny_file;

tiny_file tiny_read(const char *preset);
void tiny_file_free(tiny_file *file);

/* The tensor of that name. Fails the test if it is missing. */
tiny_tensor *tiny_find(tiny_file *file, const char *name);
void tiny_remove(tiny_file *file, const char *name);

/* Appends a tensor of zeros. It is a vector if ne1 == 0. */
tiny_tensor *tiny_add(tiny_file *file, const char *name, tern_format format, uint64_t ne0,
                      uint64_t ne1);

void tiny_write(const tiny_file *file, const char *path);

/* True if the layers of the model of that preset, or of that architecture, have different matrices.
 */
bool tiny_mixes_layers(const char *preset);

#endif
