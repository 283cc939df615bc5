/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_GGUF_H
#define TERN_GGUF_H

/*
 * Reader for GGUF v2 and v3. A file is mapped read-only and checked completely when it is opened:
 * after tern_gguf_open has succeeded every key, string, array and tensor extent lies inside the
 * map. The object is immutable and may be read by any number of threads. A model that was split
 * into several files is one object: the metadata of its first part, the tensors of all. A folder
 * with model.ie.json (IEBIN, docs/formats.md) is read as the same object.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/dedup.h"
#include "tern/kernels.h"
#include "tern/span.h"
#include "tern/status.h"

TERN_API_BEGIN

typedef struct tern_gguf tern_gguf;

typedef enum tern_gguf_type {
    TERN_GGUF_U8,
    TERN_GGUF_I8,
    TERN_GGUF_U16,
    TERN_GGUF_I16,
    TERN_GGUF_U32,
    TERN_GGUF_I32,
    TERN_GGUF_F32,
    TERN_GGUF_BOOL,
    TERN_GGUF_STRING,
    TERN_GGUF_ARRAY,
    TERN_GGUF_U64,
    TERN_GGUF_I64,
    TERN_GGUF_F64,
    TERN_GGUF_TYPE_COUNT
} tern_gguf_type;

typedef struct tern_gguf_value {
    tern_span key;
    tern_gguf_type type;
    tern_gguf_type element; /* of an array; otherwise equal to type */
    uint64_t count;         /* of an array; otherwise 1 */
    const uint8_t *data;    /* first byte of the (first) value, little endian, unaligned; of a
                               string: its u64 length, see tern_gguf_next_string */
} tern_gguf_value;

/* How a row of an int4 tensor lies in its bytes (docs/formats.md): only lists of tensors have any.
 */
typedef struct tern_int4_rows {
    uint64_t group;       /* columns that share a scale; 0: no int4 tensor */
    bool zero_points;     /* a byte for each group; without them zero is code 8 */
    bool twos_complement; /* nibbles are -8 .. 7, else 0 .. 15 */
    bool high_first;      /* column 0 is in the upper nibble of byte 0 */
} tern_int4_rows;

typedef struct tern_gguf_tensor {
    tern_span name;
    uint32_t type;       /* GGUF type id, known or not */
    uint32_t n_dims;     /* 1..4 */
    uint64_t ne[4];      /* ne[0] contiguous; unused ones are 1 */
    uint64_t bytes;      /* by type and shape; 0: tern does not know the size rule of the type */
    uint64_t extent;     /* bytes up to the next tensor or the end of the file */
    const uint8_t *data; /* aligned to general.alignment (32 unless the file says otherwise); of
                            a list's tensors, not at all */
    tern_int4_rows int4;
    uint64_t replaces; /* of sparse blocks: XXH64 of the dense bytes that they stand for; 0: not
                          said */
} tern_gguf_tensor;

/*
 * Lower-case name of a tensor type id ("q6_k"), also of types that tern cannot compute with;
 * "unknown" for ids that are not in use. Static storage.
 */
const char *tern_gguf_type_name(uint32_t type);

/*
 * The same for a tensor: two types of the list have two meanings, which the bytes tell apart
 * ("tl2", "mxfp4"). Static storage.
 */
const char *tern_gguf_tensor_type(const tern_gguf_tensor *tensor);

/* The format that tern computes with: I2_S for tiled tensors too; NONE for what it does not know.
 */
tern_format tern_gguf_format(const tern_gguf_tensor *tensor);

/* Name of a metadata type ("u32", "array"); type < TERN_GGUF_TYPE_COUNT. Static storage. */
const char *tern_gguf_value_type_name(tern_gguf_type type);

/*
 * Maps and checks a file (of IEBIN: the folder, or its *.ie.json, and all files that it names), and
 * when it is part of a split model (split.count above 1) also all the
 * others, which lie beside it under the names that only differ in the number:
 * NAME-00002-of-00003.gguf. A part that is missing or is of another model is refused in a line
 * that names the part: TERN_ERR_IO, TERN_ERR_PARTS, TERN_ERR_TENSOR_DUPLICATE. *out is untouched on
 * failure. Every refusal of a malformed file has its own status (tern/status.h). Tensors of types
 * that tern does not know are accepted, their offsets are checked. An I2_S tensor at the end of a
 * file may lack the 28 unused bytes after its scale; `bytes` is then smaller by 28; what is only
 * called I2_S is TERN_ERR_TENSOR_TYPE, with its name (docs/formats.md). The file must not be
 * changed while it is open: see tern_gguf_unchanged.
 */
TERN_MUST_CHECK tern_status tern_gguf_open(const char *path, tern_gguf **out, tern_error *err);

/*
 * The same, with shared bytes of an IEBIN folder as params say (tern/dedup.h). With
 * TERN_DEDUP_STRICT a file that cannot have any is TERN_ERR_STRICT.
 */
TERN_MUST_CHECK tern_status tern_gguf_open_shared(const char *path, const tern_dedup_params *params,
                                                  tern_gguf **out, tern_error *err);

/* The outcome; the problem is owned by the file. */
tern_dedup_info tern_gguf_dedup(const tern_gguf *file);

/*
 * The folder of sparse layers that belongs to a GGUF file: X.sparse for X.gguf, and for the parts
 * X-00001-of-00003.gguf of a split model. False: it does not fit into `size` bytes.
 */
bool tern_gguf_sidecar_path(const char *model, char *path, size_t size);

/*
 * Puts the sparse layers in that folder into the places of the dense tensors of an open GGUF file
 * (docs/formats.md). Nothing to do where there is no folder, or for an IEBIN folder. A folder that
 * is there must be right: TERN_ERR_IO: it is not a folder or has no list; TERN_ERR_PARTS: it is a
 * model of its own, or was made for other weights; TERN_ERR_TENSOR_MISSING, _TYPE, _SHAPE: a tensor
 * that the file does not have; TERN_ERR_EMPTY, and the errors of opening a list. On failure the
 * file is as it was. Pointers to tensors stay what they are.
 */
TERN_MUST_CHECK tern_status tern_gguf_add_sidecar(tern_gguf *file, tern_error *err);

/* The list of the sparse layers that were put in, and how many; NULL: none. Owned by the file. */
const char *tern_gguf_sidecar(const tern_gguf *file, size_t *n);

/* TERN_ERR_CHANGED when the file, or a further part of it, was written to since it was opened.
 * Parsed bytes never are. */
TERN_MUST_CHECK tern_status tern_gguf_unchanged(const tern_gguf *file, tern_error *err);

/* Frees *file (and its map) and sets it to NULL. NULL and *NULL are fine. */
void tern_gguf_close(tern_gguf **file);

const char *tern_gguf_name(const tern_gguf *file);    /* path or name of the (first) file */
uint32_t tern_gguf_version(const tern_gguf *file);    /* 0: no GGUF file, but IEBIN */
uint64_t tern_gguf_file_bytes(const tern_gguf *file); /* of all parts */

/* One file of a model. */
typedef struct tern_gguf_part {
    const char *name; /* its path */
    uint64_t bytes;
    size_t n_tensors;
} tern_gguf_part;

size_t tern_gguf_part_count(const tern_gguf *file); /* 1 for a file that is a whole model */
tern_gguf_part tern_gguf_part_at(const tern_gguf *file, size_t index);

/*
 * SHA-256 of a part's file, in hexadecimal digits: of the one that was opened, also where another
 * one has its name now. TERN_ERR_CHANGED as tern_gguf_unchanged, TERN_ERR_IO.
 */
TERN_MUST_CHECK tern_status tern_gguf_part_sha256(const tern_gguf *file, size_t index, char hex[65],
                                                  tern_error *err);

size_t tern_gguf_value_count(const tern_gguf *file);
const tern_gguf_value *tern_gguf_value_at(const tern_gguf *file, size_t index);
const tern_gguf_value *tern_gguf_find(const tern_gguf *file, const char *key); /* NULL if absent */

size_t tern_gguf_tensor_count(const tern_gguf *file);
const tern_gguf_tensor *tern_gguf_tensor_at(const tern_gguf *file, size_t index);
const tern_gguf_tensor *tern_gguf_find_tensor(const tern_gguf *file, const char *name);

/*
 * Typed access. Each returns TERN_ERR_KEY_MISSING when the key is absent, TERN_ERR_KEY_TYPE when
 * its type does not fit (any integer type is accepted for integers, f64 for f32), and
 * TERN_ERR_KEY_RANGE when the value does not fit in *out, which is left untouched then. err may be
 * NULL where a missing key is not an error.
 */
tern_status tern_gguf_u32(const tern_gguf *file, const char *key, uint32_t *out, tern_error *err);
tern_status tern_gguf_f32(const tern_gguf *file, const char *key, float *out, tern_error *err);
tern_status tern_gguf_bool(const tern_gguf *file, const char *key, bool *out, tern_error *err);
tern_status tern_gguf_string(const tern_gguf *file, const char *key, tern_span *out,
                             tern_error *err);
/* The array under key, with elements of that type. */
tern_status tern_gguf_array(const tern_gguf *file, const char *key, tern_gguf_type element,
                            const tern_gguf_value **out, tern_error *err);

/* Element i of a scalar integer, or of an array of integers, as a u32; false if it does not fit,
 * is not an integer, or i is not below value->count. */
bool tern_gguf_element_u32(const tern_gguf_value *value, uint64_t i, uint32_t *out);

/*
 * Walks the strings of an array: start with *cursor = value->data, call it value->count times.
 * Each call returns the next string and moves the cursor after it.
 */
tern_span tern_gguf_next_string(const uint8_t **cursor);

TERN_API_END

#endif
