/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one tensor of an IEBIN list: its name, type and shape, and which bytes are its own. */

#include <inttypes.h>

#include "kernels/iebs.h"
#include "runtime/files/gguf/iebin_internal.h"

/* An entry while it is being read. */
typedef struct entry_reading {
    const tern_iebin_reading *r;
    const tern_json_value *entry;
    size_t index;
    tern_gguf_tensor *t;
    uint64_t wanted; /* "nbytes"; 0: the entry does not say */
    tern_error *err;
} entry_reading;

/* Fails with the entry's name, or with its number if it has no name yet. */
static tern_status wrong(const entry_reading *e, tern_status status, const char *what) {
    const tern_span name = e->t->name;
    return name.size > 0
               ? tern_fail(e->err, status, "%s: tensor '%.*s': %s", e->r->file->name,
                           TERN_SPAN_ARG(name), what)
               : tern_fail(e->err, status, "%s: tensor %zu: %s", e->r->file->name, e->index, what);
}

/* Reads a number that is not negative; false if the member is something else. */
static bool read_size(const tern_json_value *v, uint64_t *out) {
    int64_t number;
    if (!tern_json_integer(v, &number) || number < 0)
        return false;
    *out = (uint64_t)number;
    return true;
}

/*
 * Finds the member of an entry that has several names. Two of them must say the same: a reader that
 * knows only one would read another model.
 */
static tern_status find_alias(const entry_reading *e, const char *const *names,
                              const tern_json_value **out) {
    *out = NULL;
    for (; *names != NULL; names++) {
        const tern_json_value *v = tern_json_get(e->entry, *names);
        if (v == NULL)
            continue;
        if (*out != NULL && ((*out)->type != v->type || tern_span_compare((*out)->text, v->text)))
            return tern_fail(e->err, TERN_ERR_JSON, "%s: tensor '%.*s': '%s' contradicts its alias",
                             e->r->file->name, TERN_SPAN_ARG(e->t->name), *names);
        *out = v;
    }
    return TERN_OK;
}

static tern_status read_name(const entry_reading *e) {
    const tern_json_value *name = tern_json_get(e->entry, "name");
    if (name == NULL || name->type != TERN_JSON_STRING)
        return wrong(e, TERN_ERR_JSON, "'name' is missing");
    if (name->text.size == 0 || name->text.size > TERN_GGUF_MAX_NAME_BYTES ||
        memchr(name->text.data, 0, name->text.size) != NULL)
        return wrong(e, TERN_ERR_STRING, "'name' is empty, too long, or has a zero byte");
    e->t->name = name->text;
    return TERN_OK;
}

/* Reads the shape. Rows come first, as in safetensors, which is the opposite order of GGUF's. */
static tern_status read_shape(const entry_reading *e) {
    tern_gguf_tensor *t = e->t;
    const tern_json_value *shape = tern_json_get(e->entry, "shape");
    if (shape == NULL || shape->type != TERN_JSON_ARRAY || shape->count > 4)
        return wrong(e, TERN_ERR_TENSOR_SHAPE, "'shape' is not a list of at most 4 numbers");
    uint64_t elements = 1;
    const tern_json_value *v = shape + 1;
    t->n_dims = shape->count > 0 ? shape->count : 1;
    for (size_t i = 0; i < 4; i++)
        t->ne[i] = 1;
    for (uint32_t i = shape->count; i-- > 0; v += v->size) {
        if (!read_size(v, &t->ne[i]) || t->ne[i] == 0)
            return wrong(e, TERN_ERR_TENSOR_SHAPE, "'shape' holds something else than sizes");
        if (__builtin_mul_overflow(elements, t->ne[i], &elements) || elements > UINT64_C(1) << 62)
            return wrong(e, TERN_ERR_TENSOR_SHAPE, "'shape' has more than 2^62 elements");
    }
    return TERN_OK;
}

/* Reads type and bytes. A type that tern does not know takes what "nbytes" says, and no kernel
 * takes it. */
static tern_status read_type(const entry_reading *e) {
    tern_gguf_tensor *t = e->t;
    const tern_json_value *dtype = tern_json_get(e->entry, "dtype");
    if (dtype == NULL || dtype->type != TERN_JSON_STRING)
        return wrong(e, TERN_ERR_JSON, "'dtype' is missing");
    t->type = tern_gguf_type_find(dtype->text);
    if (t->type == TERN_GGUF_UNKNOWN_TYPE)
        return TERN_OK;
    if (t->type == TERN_GGUF_SPARSE_TYPE) {
        t->bytes = e->wanted;
        return t->bytes > 0 ? TERN_OK : wrong(e, TERN_ERR_JSON, "iebs needs the field 'nbytes'");
    }
    if (t->type == TERN_GGUF_INT4_TYPE) {
        const tern_status status = tern_iebin_int4(e->r->file, e->entry, t, e->err);
        if (status != TERN_OK)
            return status;
    } else if (tern_gguf_type_bytes(t->type, t->ne, &t->bytes) != TERN_OK) {
        return wrong(e, TERN_ERR_TENSOR_SHAPE, "'shape' does not suit its 'dtype'");
    }
    if (t->type == TERN_GGUF_TL2 && tern_gguf_type_called(dtype->text, "mxfp4"))
        t->bytes = tern_gguf_mxfp4_bytes(t);
    else if (t->type == TERN_GGUF_TL1 || t->type == TERN_GGUF_TL2)
        t->bytes = tern_gguf_tl_bytes(t);
    if (t->bytes > 0 && e->wanted > 0 && t->bytes != e->wanted)
        return tern_fail(e->err, TERN_ERR_TENSOR_SHAPE,
                         "%s: tensor '%.*s': 'nbytes' is %" PRIu64 ", but its shape has %" PRIu64
                         " bytes of type %s",
                         e->r->file->name, TERN_SPAN_ARG(t->name), e->wanted, t->bytes,
                         tern_gguf_tensor_type(t));
    return TERN_OK;
}

/* Finds the file of entries that name none: the list's own, which writers call by different
 * names. */
static const tern_json_value *list_file(const tern_json_value *root) {
    static const char *const names[] = {"weights_bin", "bin"};
    static const char *const places[] = {"weights", "iebin"};
    for (size_t i = 0; i < 2; i++) {
        const tern_json_value *v = tern_json_get(root, names[i]);
        for (size_t k = 0; v == NULL && k < 2; k++)
            v = tern_json_get(tern_json_get(root, places[k]), names[i]);
        if (v != NULL)
            return v;
    }
    return NULL;
}

static tern_status find_file(entry_reading *e, tern_iebin_reading *r, tern_gguf **file) {
    static const char *const names[] = {"file", "shard", NULL};
    static const char usual[] = TERN_IEBIN_DATA;
    static const tern_json_value pair = {.type = TERN_JSON_STRING,
                                         .text = {usual, sizeof usual - 1}};
    const tern_json_value *name;
    const tern_status status = find_alias(e, names, &name);
    if (status != TERN_OK)
        return status;
    if (name == NULL)
        name = list_file(r->root);
    return tern_iebin_file(r, name != NULL ? name : &pair, file, e->err);
}

static tern_status read_range(entry_reading *e, tern_iebin_reading *r) {
    static const char *const names[] = {"file_data_offset", "shard_data_offset", "offset", NULL};
    tern_gguf_tensor *t = e->t;
    const tern_json_value *at;
    tern_gguf *file;
    uint64_t offset = 0;
    tern_status status = find_alias(e, names, &at);
    if (status == TERN_OK && at == NULL && tern_json_is_true(tern_json_get(e->entry, "dedup")))
        return t->bytes > 0 && t->type != TERN_GGUF_SPARSE_TYPE
                   ? TERN_OK /* it has no data yet: dedup.h finds its bytes */
                   : wrong(e, TERN_ERR_TENSOR_TYPE, "'dedup' needs a type that is known");
    if (status == TERN_OK && (at == NULL || !read_size(at, &offset)))
        status = wrong(e, TERN_ERR_JSON, "'file_data_offset' is not an offset");
    if (status == TERN_OK)
        status = find_file(e, r, &file);
    if (status != TERN_OK)
        return status;
    /* A tensor of an unknown type has at least one byte. */
    t->extent = t->bytes > 0 ? t->bytes : e->wanted > 0 ? e->wanted : 1;
    if (offset > file->size || t->extent > file->size - offset)
        return tern_fail(e->err, TERN_ERR_TENSOR_RANGE,
                         "%s: tensor '%.*s': %" PRIu64 " bytes at %" PRIu64 " of %s, which has %zu",
                         r->file->name, TERN_SPAN_ARG(t->name), t->extent, offset, file->name,
                         file->size);
    t->data = file->bytes + offset;
    file->n_own++;
    return TERN_OK;
}

/* Checks that its bytes are one file of sparse blocks, of the tensor's shape. Values are checked
 * when a model is loaded, like those of dense tensors. */
static tern_status check_blocks(const entry_reading *e) {
    const tern_gguf_tensor *t = e->t;
    tern_error why = {.status = TERN_OK};
    tern_iebs m;
    if (t->type != TERN_GGUF_SPARSE_TYPE)
        return TERN_OK;
    const tern_json_value *sum = tern_json_get(e->entry, "replaces_xxh64");
    if (sum != NULL && !tern_iebin_sum(sum, &e->t->replaces))
        return wrong(e, TERN_ERR_JSON, "'replaces_xxh64' is not a text of 16 hexadecimal digits");
    if ((uintptr_t)t->data % TERN_ALIGN != 0)
        return wrong(e, TERN_ERR_ALIGNMENT, "sparse blocks begin at no multiple of 64");
    const tern_status status = tern_iebs_check(t->data, (size_t)t->bytes, &m, &why);
    if (status != TERN_OK)
        return wrong(e, status, why.message);
    return t->ne[0] == m.cols && t->ne[1] == m.rows && t->ne[2] == 1 && t->ne[3] == 1
               ? TERN_OK
               : wrong(e, TERN_ERR_TENSOR_SHAPE, "'shape' is not that of its sparse blocks");
}

tern_status tern_iebin_tensor(tern_iebin_reading *r, const tern_json_value *entry, size_t index,
                              tern_gguf_tensor *t, tern_error *err) {
    entry_reading e = {.r = r, .entry = entry, .index = index, .t = t, .err = err};
    const tern_json_value *bytes = tern_json_get(entry, "nbytes");
    if (entry->type != TERN_JSON_OBJECT)
        return wrong(&e, TERN_ERR_JSON, "is not an object");
    tern_status status = read_name(&e);
    if (status == TERN_OK && bytes != NULL && (!read_size(bytes, &e.wanted) || e.wanted == 0))
        status = wrong(&e, TERN_ERR_JSON, "'nbytes' is not a number of bytes");
    if (status == TERN_OK)
        status = read_shape(&e);
    if (status == TERN_OK)
        status = read_type(&e);
    if (status == TERN_OK)
        status = read_range(&e, r);
    return status == TERN_OK ? check_blocks(&e) : status;
}
