/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "runtime/files/arch/arch.h"
#include "runtime/files/gguf/i2s_detect.h"
#include "runtime/files/gguf/internal.h"
#include "tern/kernels.h"

/* Bytes after the scale of an I2_S tensor that hold nothing; some writers omit them at the end. */
enum { I2_S_SLACK = 28 };

/* A tensor and its offset in the data section; lives only while the file is parsed. */
typedef struct place {
    uint64_t offset;
    tern_gguf_tensor *tensor;
} place;

static tern_status fail_tensor(const tern_gguf_cursor *c, const tern_gguf_tensor *t,
                               tern_status status, const char *what, uint64_t number) {
    return tern_fail(c->err, status, "%s: tensor '%.*s': %s %" PRIu64, c->file->name,
                     TERN_SPAN_ARG(t->name), what, number);
}

/* Reads the dimensions: 1 to 4, none zero, at most 2^62 elements, so that rounding and adding
 * cannot wrap. */
static tern_status parse_shape(tern_gguf_cursor *c, tern_gguf_tensor *t) {
    tern_status status = tern_gguf_take_u32(c, "a tensor description", &t->n_dims);
    if (status != TERN_OK)
        return status;
    if (t->n_dims < 1 || t->n_dims > 4)
        return fail_tensor(c, t, TERN_ERR_TENSOR_SHAPE,
                           "number of dimensions is not 1 to 4:", t->n_dims);
    uint64_t elements = 1;
    for (uint32_t i = 0; i < 4; i++)
        t->ne[i] = 1;
    for (uint32_t i = 0; i < t->n_dims; i++) {
        status = tern_gguf_take_u64(c, "a tensor description", &t->ne[i]);
        if (status != TERN_OK)
            return status;
        if (t->ne[i] == 0)
            return fail_tensor(c, t, TERN_ERR_TENSOR_SHAPE, "zero extent of dimension", i);
        if (__builtin_mul_overflow(elements, t->ne[i], &elements) || elements > UINT64_C(1) << 62)
            return fail_tensor(c, t, TERN_ERR_TENSOR_SHAPE, "more than 2^62 elements by the extent",
                               t->ne[i]);
    }
    return TERN_OK;
}

static tern_status parse_type(tern_gguf_cursor *c, tern_gguf_tensor *t) {
    tern_status status = tern_gguf_take_u32(c, "a tensor description", &t->type);
    if (status != TERN_OK)
        return status;
    if (t->type >= TERN_GGUF_FIRST_OWN_TYPE) /* types that only lists describe are not checked
                                                here */
        return fail_tensor(c, t, TERN_ERR_TENSOR_TYPE, "no GGUF file has type", t->type);
    status = tern_gguf_type_bytes(t->type, t->ne, &t->bytes);
    if (status == TERN_OK)
        return TERN_OK;
    return tern_fail(c->err, status,
                     "%s: tensor '%.*s': %" PRIu64 " columns of %" PRIu64
                     " rows do not suit type %" PRIu32 " (%s)",
                     c->file->name, TERN_SPAN_ARG(t->name), t->ne[0],
                     t->ne[1] * t->ne[2] * t->ne[3], t->type, tern_gguf_type_name(t->type));
}

static tern_status parse_tensor(tern_gguf_cursor *c, uint64_t index, place *p) {
    tern_gguf_tensor *t = p->tensor;
    tern_status status =
        tern_gguf_take_name(c, "tensor", index, TERN_GGUF_MAX_NAME_BYTES, &t->name);
    if (status == TERN_OK)
        status = parse_shape(c, t);
    if (status == TERN_OK)
        status = parse_type(c, t);
    if (status == TERN_OK)
        status = tern_gguf_take_u64(c, "a tensor description", &p->offset);
    if (status != TERN_OK)
        return status;
    if (p->offset % c->file->alignment != 0)
        return tern_fail(c->err, TERN_ERR_TENSOR_OFFSET,
                         "%s: tensor '%.*s': offset %" PRIu64 " is not a multiple of %" PRIu32,
                         c->file->name, TERN_SPAN_ARG(t->name), p->offset, c->file->alignment);
    return TERN_OK;
}

static int compare_names(const void *a, const void *b) {
    const tern_gguf_tensor *const *x = a, *const *y = b;
    return tern_span_compare((*x)->name, (*y)->name);
}

const tern_gguf_tensor *tern_gguf_sort_names(tern_gguf *file) {
    for (size_t i = 0; i < file->n_tensors; i++)
        file->by_name[i] = &file->tensors[i];
    qsort(file->by_name, file->n_tensors, sizeof file->by_name[0], compare_names);
    for (size_t i = 1; i < file->n_tensors; i++)
        if (tern_span_compare(file->by_name[i - 1]->name, file->by_name[i]->name) == 0)
            return file->by_name[i];
    return NULL;
}

static tern_status index_tensors(const tern_gguf_cursor *c) {
    const tern_gguf_tensor *twice = tern_gguf_sort_names(c->file);
    if (twice == NULL)
        return TERN_OK;
    return tern_fail(c->err, TERN_ERR_TENSOR_DUPLICATE, "%s: tensor '%.*s' occurs twice",
                     c->file->name, TERN_SPAN_ARG(twice->name));
}

/* Finds where the data section starts, and its bytes up to the end of the file. */
static tern_status find_data(const tern_gguf_cursor *c, const uint8_t **data, uint64_t *size) {
    const tern_gguf *file = c->file;
    const size_t used = file->size - c->left;
    const size_t padding = (file->alignment - used % file->alignment) % file->alignment;
    if (padding > c->left)
        return tern_fail(c->err, TERN_ERR_TRUNCATED,
                         "%s: file ends after %zu bytes, before its data at %zu", file->name,
                         file->size, used + padding);
    *data = c->at + padding;
    *size = c->left - padding;
    return TERN_OK;
}

static tern_status check_range(const tern_gguf_cursor *c, const place *p, uint64_t data_size) {
    tern_gguf_tensor *t = p->tensor;
    /* A tensor of an unknown type has at least one byte. */
    const uint64_t bytes = t->bytes != 0 ? t->bytes : 1;
    const uint64_t left = p->offset < data_size ? data_size - p->offset : 0;
    if (bytes <= left)
        return TERN_OK;
    if (tern_format_from_gguf(t->type) == TERN_FORMAT_I2_S && bytes - I2_S_SLACK == left) {
        t->bytes = left;
        return TERN_OK;
    }
    uint64_t whole;
    if (__builtin_add_overflow(c->file->size - data_size, p->offset, &whole) ||
        __builtin_add_overflow(whole, bytes, &whole))
        whole = UINT64_MAX;
    return tern_fail(
        c->err, TERN_ERR_TENSOR_RANGE,
        "%s: tensor '%.*s': %" PRIu64 " bytes at offset %" PRIu64 " of a data section of %" PRIu64
        ": the file has %zu of at least %" PRIu64 " bytes",
        c->file->name, TERN_SPAN_ARG(t->name), bytes, p->offset, data_size, c->file->size, whole);
}

/* Refuses a tensor that is called I2_S and is something else; see i2s_detect.h. */
static tern_status check_i2s(const tern_gguf_cursor *c, const tern_gguf_tensor *t, bool last) {
    const tern_i2s_place where = {.rows = t->ne[1] * t->ne[2] * t->ne[3],
                                  .cols = t->ne[0],
                                  .extent = t->extent,
                                  .alignment = c->file->alignment,
                                  .last = last};
    const tern_i2s_kind kind = tern_i2s_detect(&where);
    if (kind == TERN_I2S_ONE_SCALE || (kind == TERN_I2S_UNKNOWN && t->extent < t->bytes))
        return TERN_OK; /* too short for anything: it is cut off, or overlaps another */
    return tern_fail(c->err, TERN_ERR_TENSOR_TYPE,
                     "%s: tensor '%.*s' is called i2_s, but its %" PRIu64 " bytes for %" PRIu64
                     " x %" PRIu64 " are %s; convert the original model to i2_s or tq2_0 anew",
                     c->file->name, TERN_SPAN_ARG(t->name), t->extent, where.rows, where.cols,
                     tern_i2s_kind_text(kind));
}

static int compare_offsets(const void *a, const void *b) {
    const place *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* True if the architecture has ternary weights. */
static bool is_ternary(const tern_gguf *file) {
    tern_span name = {.data = "", .size = 0};
    (void)tern_gguf_string(file, "general.architecture", &name, NULL);
    const tern_arch *arch = tern_arch_find(name);
    return arch != NULL && arch->ternary;
}

/* Sorts places by offset; afterwards every tensor has its data pointer and extent. */
static tern_status lay_out(const tern_gguf_cursor *c, place *places) {
    const tern_gguf *file = c->file;
    const uint8_t *data = NULL;
    uint64_t data_size = 0;
    const bool ternary = is_ternary(file);
    tern_status status = find_data(c, &data, &data_size);
    if (status != TERN_OK)
        return status;
    qsort(places, file->n_tensors, sizeof places[0], compare_offsets);
    for (size_t i = 0; i < file->n_tensors; i++) {
        tern_gguf_tensor *t = places[i].tensor;
        const bool last = i + 1 == file->n_tensors;
        const uint64_t end = last ? data_size : places[i + 1].offset;
        t->extent = end > places[i].offset ? end - places[i].offset : 0;
        if (t->extent > 0 && tern_format_from_gguf(t->type) == TERN_FORMAT_I2_S)
            status = check_i2s(c, t, last);
        if (t->type == TERN_GGUF_TL1 || t->type == TERN_GGUF_TL2)
            t->bytes = tern_gguf_tl_detect(t, file->alignment, last, ternary);
        if (status == TERN_OK)
            status = tern_gguf_group_settle(t, file->alignment, last, file->name, c->err);
        if (status == TERN_OK)
            status = check_range(c, &places[i], data_size);
        if (status != TERN_OK)
            return status;
        t->data = data + places[i].offset;
        if (t->extent < t->bytes || t->extent == 0)
            return tern_fail(c->err, TERN_ERR_TENSOR_OVERLAP,
                             "%s: tensors '%.*s' and '%.*s' overlap at offset %" PRIu64, file->name,
                             TERN_SPAN_ARG(t->name), TERN_SPAN_ARG(places[i + 1].tensor->name),
                             end);
    }
    return TERN_OK;
}

tern_status tern_gguf_parse_tensors(tern_gguf_cursor *c) {
    tern_gguf *file = c->file;
    file->n_own = file->n_tensors;
    if (file->n_tensors == 0)
        return TERN_OK;
    place *places = calloc(file->n_tensors, sizeof *places);
    file->tensors = calloc(file->n_tensors, sizeof *file->tensors);
    file->by_name = calloc(file->n_tensors, sizeof *file->by_name);
    tern_status status = TERN_OK;
    if (places == NULL || file->tensors == NULL || file->by_name == NULL)
        status = tern_fail(c->err, TERN_ERR_NOMEM, "%s: no memory for %zu tensors", file->name,
                           file->n_tensors);
    for (size_t i = 0; status == TERN_OK && i < file->n_tensors; i++) {
        places[i].tensor = &file->tensors[i];
        status = parse_tensor(c, i, &places[i]);
    }
    if (status == TERN_OK)
        status = index_tensors(c);
    if (status == TERN_OK)
        status = lay_out(c, places);
    free(places);
    return status;
}
