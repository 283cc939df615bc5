/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an index of shared bytes and checks it against the files and tensors that it names. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/word_list.h"
#include "base/grow.h"
#include "runtime/files/gguf/dedup.h"

const char *const tern_dedup_fields[TERN_DEDUP_FILES] = {"defaults", "masks", "exceptions", "base"};
const char *const tern_dedup_names[TERN_DEDUP_FILES] = {"model.defaults.bin", "model.masks.bin",
                                                        "model.exceptions.bin", "model.base.bin"};

/* An index while it is read. */
typedef struct index_reading {
    tern_iebin_reading *r;
    tern_dedup_index *index;
    tern_span bytes[TERN_DEDUP_FILES]; /* bytes of the files */
    uint64_t used[TERN_DEDUP_FILES];   /* end of the last range of masks and exceptions */
    size_t capacity;                   /* room for ranges in the index */
    tern_dedup_range group;            /* the default of the group that is read */
    tern_error *err;
} index_reading;

static const char *index_name(const index_reading *d) {
    return d->index->file->name;
}

static tern_status wrong(const index_reading *d, const tern_json_value *at, tern_status status,
                         const char *what) {
    return tern_fail(d->err, status, "%s: line %" PRIu32 ": %s", index_name(d), at->line, what);
}

/* A number that is not negative; a missing one is `fallback` unless that is UINT64_MAX. */
static tern_status read_number(const index_reading *d, const tern_json_value *object,
                               const char *key, uint64_t fallback, uint64_t *out) {
    const tern_json_value *v = tern_json_get(object, key);
    int64_t number;
    *out = fallback;
    if (v == NULL && fallback != UINT64_MAX)
        return TERN_OK;
    if (v == NULL || !tern_json_integer(v, &number) || number < 0)
        return tern_fail(d->err, TERN_ERR_JSON,
                         "%s: line %" PRIu32 ": '%s' is not a number of bytes", index_name(d),
                         object->line, key);
    *out = (uint64_t)number;
    return TERN_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* True if the index was found where a link leads to (iebin.c). It names the files there; the links
 * beside the list have the usual names. */
static bool is_elsewhere(const index_reading *d) {
    const char *list = d->r->file->name, *index = index_name(d);
    const size_t folder = (size_t)(file_base_name(list) - list);
    return strncmp(list, index, folder) != 0 || strchr(index + folder, '/') != NULL;
}

/* Opens a file that has bytes; its length must be the one that the index tells. */
static tern_status open_file(index_reading *d, tern_dedup_file which) {
    const tern_json_value *root = d->index->json.values;
    const tern_json_value *totals = tern_json_get(root, "totals");
    const tern_json_value usual = {
        .type = TERN_JSON_STRING,
        .text = {tern_dedup_names[which], strlen(tern_dedup_names[which])}};
    const tern_json_value *name =
        is_elsewhere(d) ? &usual
                        : tern_json_get(tern_json_get(root, "files"), tern_dedup_fields[which]);
    char key[32];
    uint64_t size;
    tern_gguf *file;
    (void)snprintf(key, sizeof key, "%s_size", tern_dedup_fields[which]);
    if (totals == NULL)
        return wrong(d, root, TERN_ERR_JSON, "'totals' is missing");
    tern_status status =
        read_number(d, totals, key, which == TERN_DEDUP_BASE ? 0 : UINT64_MAX, &size);
    if (status != TERN_OK || size == 0)
        return status;
    if (name == NULL)
        return tern_fail(d->err, TERN_ERR_JSON, "%s: 'files' does not name the %s", index_name(d),
                         tern_dedup_fields[which]);
    status = tern_iebin_file(d->r, name, &file, d->err);
    if (status != TERN_OK)
        return status;
    if (file->size != size)
        return tern_fail(d->err, TERN_ERR_TRUNCATED,
                         "%s: has %zu bytes, but %s was made for one of %" PRIu64, file->name,
                         file->size, index_name(d), size);
    d->bytes[which] = (tern_span){(const char *)file->bytes, file->size};
    d->index->capacity += file->size < UINT64_C(1) << 48 ? file->size * TERN_DEDUP_RATIO : 0;
    return TERN_OK;
}

/* The bytes [offset, offset + size) of a file. */
static tern_status find_bytes(const index_reading *d, const tern_json_value *at,
                              tern_dedup_file which, uint64_t offset, uint64_t size,
                              const uint8_t **out) {
    const tern_span file = d->bytes[which];
    if (offset > file.size || size > file.size - offset)
        return tern_fail(
            d->err, TERN_ERR_TENSOR_RANGE,
            "%s: line %" PRIu32 ": %" PRIu64 " bytes at %" PRIu64 " of the %s, which have %zu",
            index_name(d), at->line, size, offset, tern_dedup_fields[which], file.size);
    *out = (const uint8_t *)file.data + offset;
    return TERN_OK;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static tern_status add_range(index_reading *d, const tern_dedup_range *range) {
    tern_dedup_index *index = d->index;
    if (!tern_grow((void **)&index->ranges, &d->capacity, index->n_ranges, sizeof *range,
                   SIZE_MAX / sizeof *range))
        return tern_fail(d->err, TERN_ERR_NOMEM, "%s: no memory for more than %zu ranges",
                         index_name(d), index->n_ranges);
    index->ranges[index->n_ranges++] = *range;
    return TERN_OK;
}

/* Reads which bytes of which tensor are meant, and checks that they lie in it. */
static tern_status read_place(const index_reading *d, const tern_json_value *v,
                              tern_dedup_range *out) {
    const tern_gguf *list = d->r->file;
    uint64_t number;
    tern_status status = read_number(d, v, "tensor_index", UINT64_MAX, &number);
    if (status == TERN_OK)
        status = read_number(d, v, "tensor_off", 0, &out->offset);
    if (status == TERN_OK)
        status = read_number(d, v, "nbytes", UINT64_MAX, &out->bytes);
    if (status != TERN_OK)
        return status;
    if (number >= list->n_tensors)
        return tern_fail(d->err, TERN_ERR_TENSOR_MISSING,
                         "%s: line %" PRIu32 ": tensor %" PRIu64 " of %zu in %s", index_name(d),
                         v->line, number, list->n_tensors, list->name);
    const tern_gguf_tensor *t = &list->tensors[number];
    out->tensor = (size_t)number;
    if (t->type == TERN_GGUF_SPARSE_TYPE) /* its blocks were checked where they lie */
        return tern_fail(d->err, TERN_ERR_TENSOR_TYPE,
                         "%s: line %" PRIu32 ": sparse tensor '%.*s' cannot be shared",
                         index_name(d), v->line, TERN_SPAN_ARG(t->name));
    if (out->bytes == 0 || out->offset > t->bytes || out->bytes > t->bytes - out->offset)
        return tern_fail(d->err, TERN_ERR_TENSOR_RANGE,
                         "%s: line %" PRIu32 ": %" PRIu64 " bytes at %" PRIu64
                         " of tensor '%.*s', which has %" PRIu64,
                         index_name(d), v->line, out->bytes, out->offset, TERN_SPAN_ARG(t->name),
                         t->bytes);
    return TERN_OK;
}

static uint64_t count_bits(const uint8_t *mask, uint64_t bytes) {
    uint64_t n = 0;
    for (uint64_t i = 0; i < bytes; i++)
        n += (uint64_t)__builtin_popcount(mask[i]);
    return n;
}

/* Masks and exceptions stand in the order of their targets, so no byte belongs to two of them. */
static tern_status take_next(index_reading *d, const tern_json_value *v, tern_dedup_file which,
                             const char *key, uint64_t size, const uint8_t **out) {
    uint64_t offset;
    const tern_status status = read_number(d, v, key, UINT64_MAX, &offset);
    if (status != TERN_OK)
        return status;
    if (offset < d->used[which])
        return tern_fail(d->err, TERN_ERR_TENSOR_OVERLAP,
                         "%s: line %" PRIu32 ": '%s' is %" PRIu64
                         ", inside what another target has",
                         index_name(d), v->line, key, offset);
    const tern_status found = find_bytes(d, v, which, offset, size, out);
    if (found == TERN_OK)
        d->used[which] = offset + size;
    return found;
}

/* The mask has a bit for each byte and none after them; there are as many exceptions as bits. */
static tern_status check_mask(const index_reading *d, const tern_json_value *v,
                              const tern_dedup_range *t, uint64_t mask_bytes, uint64_t said) {
    const unsigned last = (unsigned)(t->bytes % 8);
    if (last != 0 && t->mask[mask_bytes - 1] >> last != 0)
        return tern_fail(d->err, TERN_ERR_TENSOR_DATA,
                         "%s: line %" PRIu32 ": the mask has bits after its %" PRIu64 " bytes",
                         index_name(d), v->line, t->bytes);
    const uint64_t bits = count_bits(t->mask, mask_bytes);
    if (bits != t->n_exceptions || bits != said)
        return tern_fail(d->err, TERN_ERR_TENSOR_DATA,
                         "%s: line %" PRIu32 ": the mask has %" PRIu64
                         " bits, 'exc_nbytes' is %" PRIu64 ", 'exc_popcount' %" PRIu64,
                         index_name(d), v->line, bits, t->n_exceptions, said);
    return TERN_OK;
}

static tern_status read_exceptions(index_reading *d, const tern_json_value *v,
                                   tern_dedup_range *t) {
    const uint64_t wanted = t->bytes / 8 + (t->bytes % 8 != 0);
    uint64_t mask_bytes, said;
    tern_status status = read_number(d, v, "mask_nbytes", 0, &mask_bytes);
    if (status == TERN_OK)
        status = read_number(d, v, "exc_nbytes", 0, &t->n_exceptions);
    if (status == TERN_OK)
        status = read_number(d, v, "exc_popcount", t->n_exceptions, &said);
    if (status != TERN_OK)
        return status;
    if (mask_bytes == 0 && t->n_exceptions == 0 && said == 0)
        return TERN_OK; /* the default itself */
    if (mask_bytes != wanted)
        return tern_fail(d->err, TERN_ERR_TENSOR_DATA,
                         "%s: line %" PRIu32 ": 'mask_nbytes' is %" PRIu64 ", %" PRIu64
                         " bytes need %" PRIu64,
                         index_name(d), v->line, mask_bytes, t->bytes, wanted);
    status = take_next(d, v, TERN_DEDUP_MASKS, "mask_off", mask_bytes, &t->mask);
    if (status == TERN_OK)
        status = check_mask(d, v, t, mask_bytes, said);
    return status == TERN_OK
               ? take_next(d, v, TERN_DEDUP_EXCEPTIONS, "exc_off", t->n_exceptions, &t->exceptions)
               : status;
}

static tern_status read_target(index_reading *d, const tern_json_value *v) {
    const tern_dedup_range *group = &d->group;
    tern_dedup_range t = {.defaults = group->defaults};
    tern_status status = read_place(d, v, &t);
    if (status == TERN_OK && t.bytes != group->bytes)
        status = tern_fail(d->err, TERN_ERR_TENSOR_RANGE,
                           "%s: line %" PRIu32 ": %" PRIu64 " bytes in a group of %" PRIu64,
                           index_name(d), v->line, t.bytes, group->bytes);
    if (status == TERN_OK)
        status = read_exceptions(d, v, &t);
    return status == TERN_OK ? add_range(d, &t) : status;
}

/* Reads a default: bytes of a file. If they are the model's own, the index also says which tensor
 * has them. */
static tern_status read_default(index_reading *d, const tern_json_value *v, tern_dedup_range *out) {
    const tern_json_value *file = tern_json_get(v, "file");
    const bool base = tern_json_is_string(file, tern_dedup_fields[TERN_DEDUP_BASE]);
    const tern_dedup_file which = base ? TERN_DEDUP_BASE : TERN_DEDUP_DEFAULTS;
    uint64_t offset;
    *out = (tern_dedup_range){.is_default = true};
    if (file != NULL && !base && !tern_json_is_string(file, tern_dedup_fields[TERN_DEDUP_DEFAULTS]))
        return wrong(d, v, TERN_ERR_JSON, "'file' is neither \"defaults\" nor \"base\"");
    tern_status status =
        base ? read_number(d, v, "nbytes", UINT64_MAX, &out->bytes) : read_place(d, v, out);
    if (status == TERN_OK)
        status = read_number(d, v, "default_off", UINT64_MAX, &offset);
    if (status == TERN_OK)
        status = find_bytes(d, v, which, offset, out->bytes, &out->defaults);
    return status == TERN_OK && !base ? add_range(d, out) : status;
}

typedef tern_status element_reader(index_reading *d, const tern_json_value *v);

/* Calls `read` with every element of a list, which must be objects. */
static tern_status read_elements(index_reading *d, const tern_json_value *list, const char *refusal,
                                 element_reader *read) {
    const tern_json_value *v = list + 1;
    tern_status status = TERN_OK;
    for (uint32_t i = 0; status == TERN_OK && i < list->count; i++, v += v->size)
        status = v->type == TERN_JSON_OBJECT ? read(d, v) : wrong(d, v, TERN_ERR_JSON, refusal);
    return status;
}

static tern_status read_group(index_reading *d, const tern_json_value *group) {
    const tern_json_value *first = tern_json_get(group, "default");
    const tern_json_value *targets = tern_json_get(group, "targets");
    if (first == NULL || first->type != TERN_JSON_OBJECT)
        return wrong(d, group, TERN_ERR_JSON, "'default' of a group is missing");
    if (targets == NULL || targets->type != TERN_JSON_ARRAY)
        return wrong(d, group, TERN_ERR_JSON, "'targets' of a group is not a list");
    const tern_status status = read_default(d, first, &d->group);
    return status == TERN_OK ? read_elements(d, targets, "a target is not an object", read_target)
                             : status;
}

static tern_status read_groups(index_reading *d) {
    const tern_json_value *root = d->index->json.values;
    const tern_json_value *groups = tern_json_get(root, "groups");
    if (groups == NULL || groups->type != TERN_JSON_ARRAY)
        return wrong(d, root, TERN_ERR_JSON, "'groups' is not a list");
    return read_elements(d, groups, "a group is not an object", read_group);
}

/* ---- tensors --------------------------------------------------------------------------------- */

static int compare_ranges(const void *a, const void *b) {
    const tern_dedup_range *x = a, *y = b;
    if (x->tensor != y->tensor)
        return x->tensor < y->tensor ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static tern_status check_next(const index_reading *d, const tern_dedup_range *range, uint64_t at,
                              bool default_before) {
    const tern_gguf_tensor *t = &d->r->file->tensors[range->tensor];
    if (range->offset < at)
        return tern_fail(d->err, TERN_ERR_TENSOR_OVERLAP,
                         "%s: tensor '%.*s': byte %" PRIu64 " occurs twice%s", index_name(d),
                         TERN_SPAN_ARG(t->name), range->offset,
                         range->is_default != default_before
                             ? ", as a default and as a target: defaults cannot depend on others"
                             : "");
    if (range->offset > at)
        return tern_fail(d->err, TERN_ERR_TENSOR_RANGE,
                         "%s: tensor '%.*s': bytes %" PRIu64 " to %" PRIu64 " are in no group",
                         index_name(d), TERN_SPAN_ARG(t->name), at, range->offset);
    return TERN_OK;
}

/* Each tensor is covered once and whole, and all together are no more than the files may give. */
static tern_status check_cover(const index_reading *d) {
    const tern_dedup_index *index = d->index;
    const tern_gguf *list = d->r->file;
    uint64_t left = index->capacity;
    if (index->n_ranges > 1)
        qsort(index->ranges, index->n_ranges, sizeof *index->ranges, compare_ranges);
    for (size_t i = 0; i < index->n_ranges;) {
        const tern_gguf_tensor *t = &list->tensors[index->ranges[i].tensor];
        const size_t tensor = index->ranges[i].tensor;
        uint64_t at = 0;
        bool default_before = false;
        for (; i < index->n_ranges && index->ranges[i].tensor == tensor; i++) {
            const tern_dedup_range *range = &index->ranges[i];
            const tern_status status = check_next(d, range, at, default_before);
            if (status != TERN_OK)
                return status;
            at = range->offset + range->bytes;
            default_before = range->is_default;
        }
        if (at != t->bytes)
            return tern_fail(d->err, TERN_ERR_TENSOR_RANGE,
                             "%s: tensor '%.*s': bytes %" PRIu64 " to %" PRIu64 " are in no group",
                             index_name(d), TERN_SPAN_ARG(t->name), at, t->bytes);
        if (at > left)
            return tern_fail(d->err, TERN_ERR_COUNT,
                             "%s: makes more than %d bytes of each byte of its files",
                             index_name(d), TERN_DEDUP_RATIO);
        left -= at;
    }
    return TERN_OK;
}

/* Reads what the index says of a tensor: its name, and the checksum of its bytes. */
static tern_status read_tensor(index_reading *d, const tern_json_value *v) {
    tern_dedup_range all = {.offset = 0};
    uint64_t sum;
    const tern_status status = read_place(d, v, &all);
    if (status != TERN_OK)
        return status;
    const tern_gguf_tensor *t = &d->r->file->tensors[all.tensor];
    const tern_json_value *name = tern_json_get(v, "name");
    if (name == NULL || name->type != TERN_JSON_STRING || tern_span_compare(name->text, t->name))
        return tern_fail(d->err, TERN_ERR_TENSOR_MISSING,
                         "%s: line %" PRIu32 ": tensor %zu is '%.*s' in %s", index_name(d), v->line,
                         all.tensor, TERN_SPAN_ARG(t->name), d->r->file->name);
    if (all.bytes != t->bytes || !tern_iebin_sum(tern_json_get(v, "xxh64"), &sum))
        return wrong(d, v, TERN_ERR_JSON, "'nbytes' or 'xxh64' is not that of a tensor");
    d->index->sums[all.tensor] = sum;
    d->index->has_sum[all.tensor] = 1;
    return TERN_OK;
}

static tern_status read_tensors(index_reading *d) {
    tern_dedup_index *index = d->index;
    const tern_json_value *tensors = tern_json_get(index->json.values, "tensors");
    index->n_sums = d->r->file->n_tensors;
    index->sums = calloc(index->n_sums + 1, sizeof *index->sums); /* + 1: never of size 0 */
    index->has_sum = calloc(index->n_sums + 1, 1);
    if (index->sums == NULL || index->has_sum == NULL)
        return tern_fail(d->err, TERN_ERR_NOMEM, "%s: no memory for %zu checksums", index_name(d),
                         index->n_sums);
    if (tensors == NULL)
        return TERN_OK; /* other writers have none */
    if (tensors->type != TERN_JSON_ARRAY)
        return wrong(d, tensors, TERN_ERR_JSON, "'tensors' is not a list");
    return read_elements(d, tensors, "a tensor is not an object", read_tensor);
}

/* ---- the index ------------------------------------------------------------------------------- */

static tern_status open_index(index_reading *d) {
    static const char name[] = TERN_DEDUP_INDEX;
    const tern_json_value wanted = {.type = TERN_JSON_STRING, .text = {name, sizeof name - 1}};
    tern_gguf *file;
    tern_status status = tern_iebin_file(d->r, &wanted, &file, d->err);
    if (status != TERN_OK)
        return status;
    d->index->file = file;
    d->index->capacity = (uint64_t)file->size * TERN_DEDUP_RATIO;
    return tern_iebin_text(file, &d->index->json, d->err);
}

static tern_status check_head(const index_reading *d) {
    const tern_json_value *root = d->index->json.values;
    int64_t version;
    if (!tern_json_is_string(tern_json_get(root, "magic"), "DUDP"))
        return tern_fail(d->err, TERN_ERR_JSON, "%s: 'magic' is not \"DUDP\"", index_name(d));
    if (!tern_json_integer(tern_json_get(root, "version"), &version) || version != 1)
        return tern_fail(d->err, TERN_ERR_VERSION, "%s: 'version' is not 1", index_name(d));
    return TERN_OK;
}

tern_status tern_dedup_index_read(tern_iebin_reading *r, tern_dedup_index *out, tern_error *err) {
    index_reading d = {.r = r, .index = out, .err = err};
    *out = (tern_dedup_index){.file = NULL};
    tern_status status = open_index(&d);
    if (status == TERN_OK)
        status = check_head(&d);
    for (int i = 0; status == TERN_OK && i < TERN_DEDUP_FILES; i++)
        status = open_file(&d, (tern_dedup_file)i);
    if (status == TERN_OK)
        status = read_groups(&d);
    if (status == TERN_OK)
        status = check_cover(&d);
    return status == TERN_OK ? read_tensors(&d) : status;
}

void tern_dedup_index_free(tern_dedup_index *index) {
    tern_json_free(&index->json);
    free(index->ranges);
    free(index->sums);
    free(index->has_sum);
    *index = (tern_dedup_index){.file = NULL};
}
