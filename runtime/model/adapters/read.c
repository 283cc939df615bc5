/* SPDX-License-Identifier: Apache-2.0 */

/* Reads one adapter: finds its pairs for the model's matrices, checks and copies them. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "runtime/files/gguf/internal.h"
#include "runtime/model/adapters/adapters.h"
#include "runtime/model/config/joined_matrices.h"

enum { NAME_BYTES = 64, MOST_RANK = 65536 };

/* The state that the steps of reading a file share. */
typedef struct reading {
    const tern_adapter_base *base;
    const tern_gguf *file;
    tern_adapter *to;
    tern_adapter_info *info;
    bool *used; /* [tensors of the file] */
    tern_error *err;
} reading;

/* ---- metadata -------------------------------------------------------------------------------- */

static bool is(tern_span text, const char *wanted) {
    return text.size == strlen(wanted) && memcmp(text.data, wanted, text.size) == 0;
}

/* Refuses a file whose key does not say what is wanted. */
static tern_status expect(const reading *r, const char *key, const char *wanted,
                          tern_status refusal) {
    tern_span text;
    const tern_status status = tern_gguf_string(r->file, key, &text, r->err);
    if (status != TERN_OK || is(text, wanted))
        return status;
    return tern_fail(r->err, refusal, "%s: %s is '%.*s', must be '%s' for an adapter of %s",
                     tern_gguf_name(r->file), key, TERN_SPAN_SHOWN(text), wanted, r->base->name);
}

static tern_status read_alpha(const reading *r) {
    static const char key[] = "adapter.lora.alpha";
    float alpha = 0.0f;
    const tern_status status = tern_gguf_f32(r->file, key, &alpha, r->err);
    if (status != TERN_OK && status != TERN_ERR_KEY_MISSING)
        return status;
    if (!isfinite(alpha))
        return tern_fail(r->err, TERN_ERR_KEY_RANGE, "%s: %s is not finite",
                         tern_gguf_name(r->file), key);
    r->info->alpha = alpha;
    return TERN_OK;
}

/* Keys that change what an adapter does, and that tern does not know how to follow. */
static tern_status refuse_others(const reading *r) {
    static const char *const others[] = {"adapter.alora.invocation_tokens"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (tern_gguf_find(r->file, others[i]) != NULL)
            return tern_fail(r->err, TERN_ERR_CONFIG, "%s: adapters with %s are not supported",
                             tern_gguf_name(r->file), others[i]);
    return TERN_OK;
}

static tern_status read_metadata(const reading *r) {
    tern_span name = {.data = "", .size = 0};
    tern_status status = expect(r, "general.type", "adapter", TERN_ERR_CONFIG);
    if (status == TERN_OK)
        status = expect(r, "adapter.type", "lora", TERN_ERR_CONFIG);
    if (status == TERN_OK)
        status = expect(r, "general.architecture", r->base->config->arch->name, TERN_ERR_ARCH);
    if (status == TERN_OK)
        status = refuse_others(r);
    if (status == TERN_OK)
        status = read_alpha(r);
    if (status != TERN_OK)
        return status;
    (void)tern_gguf_string(r->file, "general.name", &name, NULL);
    r->to->name = strndup(name.data, name.size);
    return r->to->name != NULL ? TERN_OK
                               : tern_fail(r->err, TERN_ERR_NOMEM, "%s: no memory for its name",
                                           tern_gguf_name(r->file));
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* One matrix of the model, as an adapter may name it. */
typedef struct place {
    char name[NAME_BYTES];  /* of the tensor in the model's file */
    uint64_t columns, rows; /* that tensor's */
    uint64_t first, count;  /* its rows that are the matrix */
} place;

/* One pair of a file. */
typedef struct found {
    const tern_gguf_tensor *a, *b;
} found;

static const tern_gguf_tensor *find(const reading *r, const char *base, const char *suffix) {
    char name[NAME_BYTES + 8];
    (void)snprintf(name, sizeof name, "%s%s", base, suffix);
    const tern_gguf_tensor *t = tern_gguf_find_tensor(r->file, name);
    if (t != NULL)
        r->used[t - r->file->tensors] = true;
    return t;
}

static tern_status check_type(const reading *r, const tern_gguf_tensor *t) {
    const tern_format format = tern_gguf_format(t);
    if (format == TERN_FORMAT_F32 || format == TERN_FORMAT_F16 || format == TERN_FORMAT_BF16)
        return TERN_OK;
    return tern_fail(r->err, TERN_ERR_TENSOR_TYPE,
                     "%s: tensor %.*s is %s, adapters must be f32, f16 or bf16",
                     tern_gguf_name(r->file), TERN_SPAN_SHOWN(t->name), tern_gguf_tensor_type(t));
}

/* A must be [columns, rank] and B [rank, rows], as GGUF writes shapes. */
static tern_status check_shapes(const reading *r, const place *at, const found *f) {
    const tern_gguf_tensor *a = f->a, *b = f->b;
    const bool flat = a->n_dims <= 2 && b->n_dims <= 2;
    if (flat && a->ne[0] == at->columns && b->ne[1] == at->rows && a->ne[1] == b->ne[0] &&
        a->ne[1] >= 1 && a->ne[1] <= MOST_RANK)
        return TERN_OK;
    return tern_fail(
        r->err, TERN_ERR_TENSOR_SHAPE,
        "%s: the pair of %s is [%llu, %llu] and [%llu, %llu], must be [%llu, rank] and [rank, "
        "%llu], the rank from 1 to %d",
        tern_gguf_name(r->file), at->name, (unsigned long long)a->ne[0],
        (unsigned long long)a->ne[1], (unsigned long long)b->ne[0], (unsigned long long)b->ne[1],
        (unsigned long long)at->columns, (unsigned long long)at->rows, (int)MOST_RANK);
}

/* The pair of a place; f->a NULL: the file has none. */
static tern_status find_pair(const reading *r, const place *at, found *f) {
    *f = (found){find(r, at->name, ".lora_a"), find(r, at->name, ".lora_b")};
    if (f->a == NULL && f->b == NULL)
        return TERN_OK;
    if (f->a == NULL || f->b == NULL)
        return tern_fail(r->err, TERN_ERR_TENSOR_MISSING, "%s: tensor %s.lora_%c is missing",
                         tern_gguf_name(r->file), at->name, f->a == NULL ? 'a' : 'b');
    tern_status status = check_type(r, f->a);
    if (status == TERN_OK)
        status = check_type(r, f->b);
    return status == TERN_OK ? check_shapes(r, at, f) : status;
}

/* The matrix under its own name. */
static place place_of(const reading *r, uint32_t layer, const tern_block_tensor *t) {
    const tern_block_sizes sizes = tern_config_block(r->base->config);
    place at = {.columns = tern_block_length(&sizes, t->columns),
                .rows = tern_block_length(&sizes, t->rows)};
    at.count = at.rows;
    (void)snprintf(at.name, sizeof at.name, "blk.%u.%s", layer, t->name);
    return at;
}

/* The same matrix as some rows of a joined one. */
static place joined_place(const reading *r, uint32_t layer, const tern_block_tensor *t,
                          const tern_joined *joined) {
    const tern_block_sizes sizes = tern_config_block(r->base->config);
    place at = place_of(r, layer, t);
    for (size_t i = 0; strcmp(joined->pieces[i].name, t->name) != 0; i++)
        at.first += tern_block_length(&sizes, joined->pieces[i].rows);
    at.rows = tern_joined_rows(joined, &sizes);
    (void)snprintf(at.name, sizeof at.name, "blk.%u.%s", layer, joined->name);
    return at;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

static tern_matrix matrix_of(const tern_gguf_tensor *t, uint64_t first, uint64_t rows) {
    const tern_format format = tern_gguf_format(t);
    const size_t row_bytes = (size_t)t->ne[0] * tern_format_describe(format)->block_bytes;
    return (tern_matrix){.format = format,
                         .layout = TERN_LAYOUT_ROWS,
                         .rows = (size_t)rows,
                         .cols = (size_t)t->ne[0],
                         .scale = 1.0f,
                         .data = t->data + first * row_bytes};
}

/* Notes the pair of a matrix, as it lies in the file. */
static void note(const reading *r, const place *at, const found *f, tern_adapter_pair *pair) {
    const uint64_t rank = f->a->ne[1];
    const double alpha = (double)r->info->alpha;
    pair->a = matrix_of(f->a, 0, rank);
    pair->b = matrix_of(f->b, at->first, at->count);
    pair->factor = alpha != 0.0 ? (float)(alpha / (double)rank) : 1.0f;
    r->info->matrices++;
    if (rank > r->info->rank)
        r->info->rank = (uint32_t)rank;
}

static tern_status read_pair(const reading *r, uint32_t layer, const tern_block_tensor *t,
                             tern_adapter_pair *pair) {
    const tern_joined *joined = tern_joined_of(r->base->config->arch, t);
    place at = place_of(r, layer, t);
    found f;
    tern_status status;
    if (joined != NULL) {
        const tern_gguf_tensor *own = find(r, at.name, ".lora_b");
        if (own == NULL || own->ne[1] != at.rows)
            at = joined_place(r, layer, t, joined);
    }
    status = find_pair(r, &at, &f);
    if (status == TERN_OK && f.a != NULL)
        note(r, &at, &f, pair);
    return status;
}

static tern_status refuse_unused(const reading *r) {
    for (size_t i = 0; i < r->file->n_tensors; i++)
        if (!r->used[i])
            return tern_fail(
                r->err, TERN_ERR_TENSOR_MISSING,
                "%s: tensor %.*s belongs to no matrix of %s that an adapter can add to",
                tern_gguf_name(r->file), TERN_SPAN_SHOWN(r->file->tensors[i].name), r->base->name);
    return r->info->matrices > 0
               ? TERN_OK
               : tern_fail(r->err, TERN_ERR_TENSOR_MISSING, "%s: an adapter without tensors",
                           tern_gguf_name(r->file));
}

/* Only matrices of dense blocks: neither routers nor experts. */
static bool takes(const tern_config *c, uint32_t layer, const tern_block_tensor *t) {
    return tern_block_has_in(c->arch, tern_config_kind_of(c, layer), t) &&
           t->when != TERN_HAS_EXPERTS && t->when != TERN_HAS_SHARED_EXPERT;
}

static tern_status read_pairs(const reading *r) {
    const tern_config *c = r->base->config;
    tern_status status = TERN_OK;
    for (uint32_t layer = 0; layer < c->n_layer; layer++)
        for (size_t i = 0; status == TERN_OK && i < TERN_LAYER_LINEARS; i++)
            if (takes(c, layer, tern_block_matrix(i)))
                status = read_pair(r, layer, tern_block_matrix(i),
                                   &r->to->pairs[layer * TERN_LAYER_LINEARS + i]);
    return status == TERN_OK ? refuse_unused(r) : status;
}

/* ---- their data ------------------------------------------------------------------------------ */

static size_t bytes_of(const tern_matrix *m) {
    return m->rows * m->cols * tern_format_describe(m->format)->block_bytes;
}

/* Room for a matrix in the arena. */
static tern_status take(const reading *r, const tern_matrix *m, void **to) {
    return tern_arena_take(&r->to->arena, bytes_of(m), 1, to, r->err);
}

/* Copies B, as the file has it, to its groups. */
static void copy_groups(const tern_adapter_pair *pair, const uint8_t *from, uint8_t *to) {
    const size_t rank = pair->b.cols, size = tern_format_describe(pair->b.format)->block_bytes;
    for (size_t first = 0; first < pair->b.rows; first += TERN_ADAPTER_ROWS) {
        const size_t rows = tern_adapter_group(pair, first);
        for (size_t i = 0; i < rows * rank; i++, to += size)
            memcpy(to, from + ((first + i % rows) * rank + i / rows) * size, size);
    }
}

static tern_status copy_pair(const reading *r, tern_adapter_pair *pair) {
    void *a, *b;
    tern_status status = take(r, &pair->a, &a);
    if (status == TERN_OK)
        status = take(r, &pair->b, &b);
    if (status != TERN_OK)
        return status;
    memcpy(a, pair->a.data, bytes_of(&pair->a));
    copy_groups(pair, pair->b.data, b);
    pair->a.data = a;
    pair->b.data = b;
    return TERN_OK;
}

static tern_status copy(const reading *r, size_t n) {
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        const tern_adapter_pair *pair = &r->to->pairs[i];
        if (pair->a.data != NULL) {
            (void)tern_arena_reserve(&bytes, bytes_of(&pair->a), 1);
            (void)tern_arena_reserve(&bytes, bytes_of(&pair->b), 1);
            r->info->bytes += bytes_of(&pair->a) + bytes_of(&pair->b);
        }
    }
    tern_status status = tern_arena_new(bytes, true, &r->to->arena, r->err);
    for (size_t i = 0; status == TERN_OK && i < n; i++)
        if (r->to->pairs[i].a.data != NULL)
            status = copy_pair(r, &r->to->pairs[i]);
    return status;
}

/* True if no number of 16 bits has all bits of its exponent set. */
static bool halves_are_finite(const uint16_t *x, size_t n, uint16_t exponent) {
    for (size_t i = 0; i < n; i++)
        if ((x[i] & exponent) == exponent)
            return false;
    return true;
}

static bool floats_are_finite(const float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

static bool is_finite(const tern_matrix *m) {
    const size_t n = m->rows * m->cols;
    if (m->format == TERN_FORMAT_F32)
        return floats_are_finite(m->data, n);
    return halves_are_finite(m->data, n, m->format == TERN_FORMAT_F16 ? 0x7c00 : 0x7f80);
}

static tern_status check_numbers(const reading *r, size_t i, const tern_adapter_pair *pair) {
    const bool a = is_finite(&pair->a);
    if (a && is_finite(&pair->b))
        return TERN_OK;
    return tern_fail(r->err, TERN_ERR_TENSOR_DATA,
                     "%s: tensor blk.%zu.%s.lora_%c has numbers that are not finite",
                     tern_gguf_name(r->file), i / TERN_LAYER_LINEARS,
                     tern_block_matrix(i % TERN_LAYER_LINEARS)->name, a ? 'b' : 'a');
}

static void add_matrix(tern_sha256 *h, const tern_matrix *m) {
    const uint64_t facts[] = {(uint64_t)tern_format_describe(m->format)->gguf_type, m->rows,
                              m->cols};
    tern_sha256_add(h, facts, sizeof facts);
    tern_sha256_add(h, m->data, bytes_of(m));
}

/* Makes the digest: of each matrix its place, factor, shapes and bytes, as the file has them. */
static void make_digest(const reading *r, size_t n) {
    tern_sha256 h;
    tern_sha256_start(&h);
    for (size_t i = 0; i < n; i++) {
        const tern_adapter_pair *pair = &r->to->pairs[i];
        const char *name = tern_block_matrix(i % TERN_LAYER_LINEARS)->name;
        const uint32_t layer = (uint32_t)(i / TERN_LAYER_LINEARS);
        if (pair->a.data == NULL)
            continue;
        tern_sha256_add(&h, &layer, sizeof layer);
        tern_sha256_add(&h, name, strlen(name) + 1);
        tern_sha256_add(&h, &pair->factor, sizeof pair->factor);
        add_matrix(&h, &pair->a);
        add_matrix(&h, &pair->b);
    }
    tern_sha256_finish(&h, r->info->digest);
}

/* Checks the copies, which are aligned. */
static tern_status check_all(const reading *r, size_t n) {
    tern_status status = TERN_OK;
    for (size_t i = 0; status == TERN_OK && i < n; i++)
        if (r->to->pairs[i].a.data != NULL)
            status = check_numbers(r, i, &r->to->pairs[i]);
    return status;
}

tern_status tern_adapter_read(const tern_adapter_base *base, const tern_gguf *file,
                              tern_adapter *out, tern_adapter_info *info, tern_error *err) {
    const size_t n = (size_t)base->config->n_layer * TERN_LAYER_LINEARS;
    reading r = {.base = base, .file = file, .to = out, .info = info, .err = err};
    out->pairs = calloc(n, sizeof *out->pairs);
    r.used = calloc(file->n_tensors + 1, sizeof *r.used);
    tern_status status =
        out->pairs != NULL && r.used != NULL
            ? read_metadata(&r)
            : tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for an adapter", tern_gguf_name(file));
    if (status == TERN_OK)
        status = read_pairs(&r);
    if (status == TERN_OK) {
        make_digest(&r, n);
        status = copy(&r, n);
    }
    if (status == TERN_OK)
        status = check_all(&r, n);
    free(r.used);
    return status;
}
