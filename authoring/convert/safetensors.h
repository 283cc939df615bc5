/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_SAFETENSORS_H
#define TERN_AUTHORING_CONVERT_SAFETENSORS_H

/*
 * Reader for safetensors files: a JSON header that names tensors, then their data. A file is mapped
 * and checked completely when it is opened: every tensor lies inside the data and has the size that
 * its type and shape require, no two tensors overlap, and no bytes are left over.
 */

#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

/* X(NAME, bytes of an element), with the names of the format. */
#define SAFETENSORS_TYPE_LIST(X)                                                                   \
    X(F64, 8)                                                                                      \
    X(F32, 4)                                                                                      \
    X(F16, 2)                                                                                      \
    X(BF16, 2)                                                                                     \
    X(I64, 8)                                                                                      \
    X(I32, 4)                                                                                      \
    X(I16, 2)                                                                                      \
    X(I8, 1)                                                                                       \
    X(U64, 8)                                                                                      \
    X(U32, 4)                                                                                      \
    X(U16, 2)                                                                                      \
    X(U8, 1)                                                                                       \
    X(BOOL, 1)                                                                                     \
    X(F8_E4M3, 1)                                                                                  \
    X(F8_E5M2, 1)

typedef enum safetensors_type {
#define SAFETENSORS_TYPE_ENUM(name, bytes) SAFETENSORS_##name,
    SAFETENSORS_TYPE_LIST(SAFETENSORS_TYPE_ENUM)
#undef SAFETENSORS_TYPE_ENUM
        SAFETENSORS_UNKNOWN, /* the size cannot be checked against the shape */
    SAFETENSORS_TYPE_COUNT
} safetensors_type;

enum {
    SAFETENSORS_MAX_DIMS = 8,
    SAFETENSORS_MAX_HEADER = 100000000, /* bytes: what the format's own library accepts */
    SAFETENSORS_MAX_TENSORS = 1 << 20
};

typedef struct safetensors_tensor {
    char *name; /* without zero bytes; owned by the file */
    safetensors_type type;
    uint32_t n_dims;                      /* 0: one element */
    uint64_t shape[SAFETENSORS_MAX_DIMS]; /* the last one is contiguous */
    uint64_t bytes;
    const uint8_t *data; /* of any alignment */
    const char *file;    /* the name of the file that holds it */
} safetensors_tensor;

typedef struct safetensors safetensors;

/* "BF16"; "unknown". Static storage. */
const char *safetensors_type_name(safetensors_type type);

/*
 * Maps and checks a file. TERN_ERR_IO, TERN_ERR_TRUNCATED (header or data), TERN_ERR_COUNT (header
 * or tensors), TERN_ERR_JSON (the header is malformed), TERN_ERR_TENSOR_SHAPE, _RANGE, _OVERLAP,
 * _DUPLICATE.
 */
TERN_MUST_CHECK tern_status safetensors_open(const char *path, safetensors **out, tern_error *err);

/* The same for bytes that the caller keeps alive. */
TERN_MUST_CHECK tern_status safetensors_parse(const uint8_t *bytes, size_t size, const char *name,
                                              safetensors **out, tern_error *err);

/* Frees *file (and its map) and sets it to NULL. NULL and *NULL are fine. */
void safetensors_close(safetensors **file);

size_t safetensors_count(const safetensors *file);
const safetensors_tensor *safetensors_at(const safetensors *file, size_t index); /* by name */
const safetensors_tensor *safetensors_find(const safetensors *file, const char *name);

#endif
