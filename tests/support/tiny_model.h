/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_SUPPORT_TINY_MODEL_H
#define TERN_TESTS_SUPPORT_TINY_MODEL_H

/*
 * Tiny models with random weights (authoring/synth.h), in temporary files that are gone when a test
 * is over, and copies of them with something changed.
 */

#include "runtime/files/gguf/gguf.h"
#include "tern/tern.h"

enum { TINY_PATH_BYTES = 64 };

/* Presets of every weight format and of every architecture: all whose name has "-tiny" in it; NULL
 * ends the list. */
const char *const *tiny_presets(void);

/* Names of the instruction sets that run here; returns how many. */
size_t tiny_isas(const char **names, size_t capacity);

/* An empty temporary file of that name; unlink() it. */
void tiny_path(char path[TINY_PATH_BYTES]);

/* The model of a preset, opened for an instruction set (NULL: the best). Its file is gone. */
tern_model *tiny_open(const char *preset, const char *isa);

/* The same, opened as params say. */
tern_model *tiny_open_with(const char *preset, tern_model_params params);

/* Bytes that a cache has for one position of a head. */
size_t tiny_cache_row_bytes(tern_format kv, size_t head_dim);

/* A session; fails the test when there is none. */
tern_session *tiny_session(const tern_model *model, tern_session_params params);

/* Fails unless the caches of two sessions of one format hold the same bytes below position n. */
void tiny_same_cache(const tern_session *a, const tern_session *b, uint32_t n);

/* Evaluates tokens; fails the test when that fails. The session's own logits. */
float *tiny_eval(tern_session *s, const int32_t *tokens, size_t n);

/* n ids that depend on seed and stay below the vocabulary; ids[0] is BOS where there is one. */
void tiny_prompt(const tern_model *model, uint64_t seed, int32_t *ids, size_t n);

/* n floats aligned to TERN_ALIGN; free() them. */
float *tiny_floats(size_t n);

/* ---- changed models ------------------------------------------------------------------------- */

typedef struct tiny_tensor {
    char name[64];
    uint32_t type, n_dims;
    uint64_t ne[4];
    uint8_t *data; /* owned */
    size_t bytes;
} tiny_tensor;

/* A model file in memory: metadata of `source`, tensors that may be changed. */
typedef struct tiny_file {
    tern_gguf *source;
    tiny_tensor *tensors;
    size_t n;
    uint32_t alignment; /* general.alignment; 32 writes no key */
    const char *filler; /* not NULL: a string that moves the tensor data by its length */
} tiny_file;

tiny_file tiny_read(const char *preset);
void tiny_file_free(tiny_file *file);

/* The tensor of that name; fails the test when it is missing. */
tiny_tensor *tiny_find(tiny_file *file, const char *name);
void tiny_remove(tiny_file *file, const char *name);

/* Appends a tensor of zeros. ne1 == 0 makes it a vector. */
tiny_tensor *tiny_add(tiny_file *file, const char *name, tern_format format, uint64_t ne0,
                      uint64_t ne1);

void tiny_write(const tiny_file *file, const char *path);

#endif
