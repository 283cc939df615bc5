/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_FILES_GGUF_INTERNAL_H
#define TERN_RUNTIME_FILES_GGUF_INTERNAL_H

/* Shared by the files of the GGUF reader and writer. Nothing here is for other files. */

#include <string.h>

#include "base/file_map.h"
#include "runtime/files/gguf/gguf.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "GGUF files are little endian and are read in place"
#endif

enum {
    TERN_GGUF_MAGIC = 0x46554747, /* "GGUF" */
    TERN_GGUF_DEFAULT_ALIGNMENT = 32,
    TERN_GGUF_MAX_ALIGNMENT = 65536, /* keeps all padding arithmetic far from wrapping */
    TERN_GGUF_MAX_RECORDS = 1 << 20, /* keys, tensors: real files have some hundred */
    TERN_GGUF_MIN_TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8, /* a description with one dimension */
    TERN_GGUF_MAX_KEY_BYTES = 65535,                    /* the format's own limit */
    TERN_GGUF_MAX_NAME_BYTES = 255, /* the format allows names of 64 bytes, some writers more */
    TERN_GGUF_SHOWN_BYTES = 96      /* bytes of a key or name that a message shows */
};

/* Memory that holds tensors which are made of shared bytes (dedup.h). */
typedef struct tern_dedup_store {
    uint8_t *memory;
    size_t memory_bytes;
    uint8_t *mapped; /* map of a file without a name */
    size_t mapped_bytes;
    tern_dedup_info info;
    char *problem; /* owned; what info.problem says */
} tern_dedup_store;

struct tern_gguf {
    char *name;           /* owned */
    const uint8_t *bytes; /* the whole file */
    size_t size;
    tern_file_map *map; /* owned, holds bytes; NULL: they are the caller's */
    uint32_t version;
    uint32_t alignment;
    size_t n_values, n_tensors;
    tern_gguf_value *values;          /* [n_values] in the file's order */
    tern_gguf_tensor *tensors;        /* [n_tensors] in the file's order */
    const tern_gguf_value **by_key;   /* [n_values] sorted by key */
    const tern_gguf_tensor **by_name; /* [n_tensors] sorted by name */
    size_t n_own;                     /* tensors of this file itself: the first ones */
    tern_gguf **others;               /* [n_others] the further parts of a split model, owned */
    size_t n_others;
    const tern_gguf *sidecar; /* the list of sparse layers, one of the others; NULL: none */
    char *text;               /* text of a list that is not a GGUF file, with its names; owned */
    char *pieces;             /* names of tensors that were divided; owned */
    tern_dedup_store dedup;   /* tensors of a list that are made of shared bytes */
};

/* Read position while a file is being parsed; `left` bytes from `at` on have not been read. */
typedef struct tern_gguf_cursor {
    tern_gguf *file;
    const uint8_t *at;
    size_t left;
    tern_error *err;
} tern_gguf_cursor;

/* For "%.*s" in messages. */
#define TERN_SPAN_ARG(span)                                                                        \
    (int)((span).size < TERN_GGUF_SHOWN_BYTES ? (span).size : TERN_GGUF_SHOWN_BYTES), (span).data

static inline uint32_t tern_load_u32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint64_t tern_load_u64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* `what` names the thing in the message: "key 3", "tensor 7". */
tern_status tern_gguf_take_u32(tern_gguf_cursor *c, const char *what, uint32_t *out);
tern_status tern_gguf_take_u64(tern_gguf_cursor *c, const char *what, uint64_t *out);

/* A key or tensor name of 1 to max bytes; `kind` and index name it in messages. */
tern_status tern_gguf_take_name(tern_gguf_cursor *c, const char *kind, uint64_t index, size_t max,
                                tern_span *out);

/* Order of spans: bytes first, then length; equal only when identical. */
int tern_span_compare(tern_span a, tern_span b);

/* tern_gguf_find_tensor for a name of any bytes. */
const tern_gguf_tensor *tern_gguf_find_name(const tern_gguf *file, tern_span name);

/* tern_gguf_find for a key of any bytes. */
const tern_gguf_value *tern_gguf_find_key(const tern_gguf *file, tern_span key);

/* Reads header and metadata; the cursor stands at the tensor descriptions afterwards. */
tern_status tern_gguf_parse_metadata(tern_gguf_cursor *c);

/* Reads tensor descriptions and checks where their data lies. */
tern_status tern_gguf_parse_tensors(tern_gguf_cursor *c);

/*
 * Bytes of a tensor of that type as the file stores it; 0 when the size rule of the type is not
 * known. TERN_ERR_TENSOR_SHAPE when the shape does not suit the type.
 */
tern_status tern_gguf_type_bytes(uint32_t type, const uint64_t *ne, uint64_t *bytes);

/* True if that is the type's name, in any case. */
bool tern_gguf_type_called(tern_span name, const char *known);

/* Finds the id of a type by its name, in any case; TERN_GGUF_UNKNOWN_TYPE when tern does not know
 * it. */
uint32_t tern_gguf_type_find(tern_span name);

/* Bytes of a tensor of type 38 or 39 as TL1 or TL2; 0: no tiles fit the shape. */
uint64_t tern_gguf_tl_bytes(const tern_gguf_tensor *t);

/* Bytes of a tensor of type 39 as MXFP4; 0: its blocks do not fit the shape. */
uint64_t tern_gguf_mxfp4_bytes(const tern_gguf_tensor *t);

/*
 * Bytes of a tensor of type 38 or 39, whose extent is known, as TL1, TL2 or MXFP4, whichever it is;
 * 0 when none has that size. `ternary`: the model has ternary weights.
 */
uint64_t tern_gguf_tl_detect(const tern_gguf_tensor *t, uint32_t alignment, bool last,
                             bool ternary);

/*
 * Settles the type of a tensor of type 42, 43, 142 or 143, whose extent is known: type 42 with the
 * bytes of PQ2_0 or STQ1_0 becomes that. TERN_ERR_TENSOR_TYPE: it has bytes of another format;
 * `file` is for the message.
 */
TERN_MUST_CHECK tern_status tern_gguf_group_settle(tern_gguf_tensor *t, uint32_t alignment,
                                                   bool last, const char *file, tern_error *err);

/*
 * Sorts by_name, which has n_tensors entries. Returns the first of two equal names, or NULL when
 * all differ.
 */
const tern_gguf_tensor *tern_gguf_sort_names(tern_gguf *file);

/* Maps and checks one file, a part of a split model or not. */
tern_status tern_gguf_open_file(const char *path, tern_gguf **out, tern_error *err);

/*
 * Opens the other parts of a split model and joins them; *file, which is freed on failure, becomes
 * the whole. Does nothing if split.count is absent, 0 or 1; programs that merge parts write these.
 */
tern_status tern_gguf_complete(tern_gguf **file, tern_error *err);

/* Unmaps and frees what it holds, and zeroes it. */
void tern_dedup_store_free(tern_dedup_store *store);

/* Bytes of one value of a metadata type; strings and arrays count their smallest form. */
size_t tern_gguf_scalar_bytes(tern_gguf_type type);

/* Bytes of a checked value from value->data on (of an array: of all its elements). */
size_t tern_gguf_value_bytes(const tern_gguf_value *value);

#endif
