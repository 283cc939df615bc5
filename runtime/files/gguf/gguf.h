/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_FILES_GGUF_GGUF_H
#define TERN_RUNTIME_FILES_GGUF_GGUF_H

/* The part of the reader of GGUF files (tern/gguf.h) that only the library needs. */

#include "base/hash64.h"
#include "kernels/import.h"
#include "tern/gguf.h"

/* Types of tensors that other programs use for something else, too. The bytes tell which (tl.c). */
enum { TERN_GGUF_TL1 = 38, TERN_GGUF_TL2 = 39 };

/* Types of ternary rows with scales. */
enum { TERN_GGUF_IQ1_BN = 134, TERN_GGUF_IQ2_BN = 135, TERN_GGUF_IQ2_BN_R4 = 335 };

/* Types that GGUF has no number for, and that lists of tensors may name (iebin.h). */
#define TERN_GGUF_UNKNOWN_TYPE (UINT32_MAX - 1)
#define TERN_GGUF_U8_TYPE (UINT32_MAX - 2)
#define TERN_GGUF_INT4_TYPE (UINT32_MAX - 3)

#define TERN_GGUF_SPARSE_TYPE (UINT32_MAX - 4) /* the bytes of a file of sparse blocks */

/* The lowest of these types. */
#define TERN_GGUF_FIRST_OWN_TYPE TERN_GGUF_SPARSE_TYPE

/* A name for "%.*s" in messages. */
#define TERN_SPAN_SHOWN(span) (int)((span).size < 64 ? (span).size : 64), (span).data

/* Tells which tiled ternary type a tensor has; 0: none. */
tern_tl_kind tern_gguf_tiled(const tern_gguf_tensor *tensor);

/* Tells which kind of ternary rows with scales a tensor has; 0: none. */
tern_bn_kind tern_gguf_bn(const tern_gguf_tensor *tensor);

/* Rows of ne[0] elements, of all matrices that it holds. */
static inline size_t tern_gguf_rows_of(const tern_gguf_tensor *tensor) {
    return (size_t)(tensor->ne[1] * tensor->ne[2] * tensor->ne[3]);
}

/* The number for general.file_type, by the format of most weights. */
uint32_t tern_gguf_file_type(tern_format format);

/* tern_gguf_open for bytes that the caller keeps alive; `name` is used in messages. */
TERN_MUST_CHECK tern_status tern_gguf_parse(const void *bytes, size_t size, const char *name,
                                            tern_gguf **out, tern_error *err);

/*
 * Joins the n parts of a model, made by tern_gguf_parse and in their order; checks that they belong
 * together. Takes all parts over, also when it fails. tern_gguf_open does this by itself.
 */
TERN_MUST_CHECK tern_status tern_gguf_join(tern_gguf **parts, size_t n, tern_gguf **out,
                                           tern_error *err);

/* Some rows of a matrix under a name of their own. */
typedef struct tern_gguf_rows {
    const tern_gguf_tensor *of; /* tensor of the file; two dimensions, each row a run of bytes */
    tern_span name;             /* lives as long as the file */
    uint64_t first, n;          /* rows; n >= 1, first + n at most those there are */
} tern_gguf_rows;

/*
 * Replaces tensors by n pieces, which are their rows. The pieces are in the file's order, and those
 * of one tensor are side by side. `names` is memory that holds their names; the file frees it, also
 * when it fails. Pointers to the file's tensors mean nothing afterwards. TERN_ERR_NOMEM,
 * TERN_ERR_TENSOR_DUPLICATE.
 */
TERN_MUST_CHECK tern_status tern_gguf_divide(tern_gguf *file, const tern_gguf_rows *pieces,
                                             size_t n, char *names, tern_error *err);

/* tern_file_map_stamp of all parts; false for parsed bytes. */
bool tern_gguf_stamp(const tern_gguf *file, tern_hash64 *hash, int64_t *newest);

/*
 * Tells the kernel that the pages of a tensor will not be read again soon (they were packed), so
 * that they do not count as this process's memory. No effect on parsed (unmapped) files.
 */
void tern_gguf_drop_pages(const tern_gguf *file, const tern_gguf_tensor *tensor);

/* Does the same for a part of a tensor: `bytes` from data on, which lies in the file. */
void tern_gguf_drop_range(const tern_gguf *file, const void *data, uint64_t bytes);

/*
 * Tells the kernel that only small parts of the file will be read from now on, here and there. A
 * huge page mapped for one of them would count as this process's memory. No effect on parsed files.
 */
void tern_gguf_expect_parts(const tern_gguf *file);

#endif
