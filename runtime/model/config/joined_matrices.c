/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/model/config/joined_matrices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/model/config/factors.h"

enum { NAME_BYTES = 48 }; /* "blk.1023.ffn_gate.input_scale" */

static const tern_joined matrices[] = {
    {"attn_qkv.weight",
     "self_attn.qkv_proj.weight",
     TERN_JOINS_QKV,
     3,
     {{"attn_q.weight", TERN_SIZE_Q},
      {"attn_k.weight", TERN_SIZE_KV},
      {"attn_v.weight", TERN_SIZE_KV}}},
    {"ffn_up.weight",
     "mlp.gate_up_proj.weight",
     TERN_JOINS_GATE_UP,
     2,
     {{"ffn_gate.weight", TERN_SIZE_FF}, {"ffn_up.weight", TERN_SIZE_FF}}},
};

enum { N_MATRICES = sizeof matrices / sizeof *matrices };

const tern_joined *tern_joined_of(const tern_arch *arch, const tern_block_tensor *t) {
    for (size_t i = 0; i < N_MATRICES; i++)
        for (size_t k = 0; (arch->joined & matrices[i].join) != 0 && k < matrices[i].n; k++)
            if (strcmp(matrices[i].pieces[k].name, t->name) == 0)
                return &matrices[i];
    return NULL;
}

uint64_t tern_joined_rows(const tern_joined *joined, const tern_block_sizes *sizes) {
    uint64_t rows = 0;
    for (size_t i = 0; i < joined->n; i++)
        rows += tern_block_length(sizes, joined->pieces[i].rows);
    return rows;
}

bool tern_joined_begins(const tern_joined *joined, const tern_block_tensor *t) {
    return strcmp(joined->pieces[0].name, t->name) == 0;
}

/* The pieces of a file's joined matrices. */
typedef struct division {
    const tern_gguf *file;
    const tern_arch *arch;
    tern_block_sizes sizes;
    tern_gguf_rows *pieces;
    char *names;
    size_t n;
} division;

/* True if every row is a run of the same number of bytes. */
static bool has_rows(const tern_gguf_tensor *t) {
    const tern_format format = tern_gguf_format(t);
    uint64_t bytes = 0;
    return format != TERN_FORMAT_NONE && t->type < TERN_GGUF_FIRST_OWN_TYPE &&
           tern_format_bytes(format, 1, t->ne[0], &bytes) == TERN_OK &&
           bytes * t->ne[1] == t->bytes;
}

static tern_status check(const division *d, const tern_joined *j, const tern_gguf_tensor *t,
                         tern_error *err) {
    const int size = (int)(t->name.size < 64 ? t->name.size : 64);
    if (t->n_dims != 2 || t->ne[1] != tern_joined_rows(j, &d->sizes))
        return tern_fail(err, TERN_ERR_TENSOR_SHAPE,
                         "%s: tensor %.*s has %llu rows, must have %llu, those of %zu matrices",
                         tern_gguf_name(d->file), size, t->name.data, (unsigned long long)t->ne[1],
                         (unsigned long long)tern_joined_rows(j, &d->sizes), j->n);
    if (!has_rows(t))
        return tern_fail(err, TERN_ERR_TENSOR_TYPE,
                         "%s: tensor %.*s is %zu matrices of type %s, whose rows cannot be told "
                         "apart",
                         tern_gguf_name(d->file), size, t->name.data, j->n,
                         tern_gguf_tensor_type(t));
    return TERN_OK;
}

static void add_pieces(division *d, const tern_joined *j, const tern_gguf_tensor *t,
                       uint32_t layer) {
    uint64_t first = 0;
    for (size_t i = 0; i < j->n; i++) {
        char *name = d->names + d->n * NAME_BYTES;
        const int size = snprintf(name, NAME_BYTES, "blk.%u.%s", layer, j->pieces[i].name);
        const uint64_t rows = tern_block_length(&d->sizes, j->pieces[i].rows);
        d->pieces[d->n++] =
            (tern_gguf_rows){.of = t, .name = {name, (size_t)size}, .first = first, .n = rows};
        first += rows;
    }
}

/* Adds the factor of a joined matrix, as that of each of its pieces; none if the file has none. */
static void add_factors(division *d, const tern_joined *j, const char *ending, uint32_t layer) {
    char matrix[NAME_BYTES], factor[TERN_FACTOR_NAME_BYTES];
    snprintf(matrix, sizeof matrix, "blk.%u.%s", layer, j->name);
    tern_factor_name(matrix, ending, factor);
    const tern_gguf_tensor *t = tern_gguf_find_tensor(d->file, factor);
    for (size_t i = 0; t != NULL && i < j->n; i++) {
        char *name = d->names + d->n * NAME_BYTES;
        snprintf(matrix, sizeof matrix, "blk.%u.%s", layer, j->pieces[i].name);
        tern_factor_name(matrix, ending, factor);
        const int size = snprintf(name, NAME_BYTES, "%s", factor);
        d->pieces[d->n++] =
            (tern_gguf_rows){.of = t, .name = {name, (size_t)size}, .first = 0, .n = t->ne[1]};
    }
}

/* The joined matrix of a block, or NULL. An ffn_up beside an ffn_gate is not joined. */
static const tern_gguf_tensor *find(const tern_gguf *file, uint32_t layer, const tern_joined *j) {
    char name[NAME_BYTES], first[NAME_BYTES];
    snprintf(name, sizeof name, "blk.%u.%s", layer, j->name);
    snprintf(first, sizeof first, "blk.%u.%s", layer, j->pieces[0].name);
    const bool own_name = strcmp(j->name, j->pieces[j->n - 1].name) == 0;
    return own_name && tern_gguf_find_tensor(file, first) != NULL
               ? NULL
               : tern_gguf_find_tensor(file, name);
}

static int compare_places(const void *a, const void *b) {
    const tern_gguf_rows *x = a, *y = b;
    if (x->of != y->of)
        return x->of < y->of ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static tern_status find_all(division *d, uint32_t n_layer, tern_error *err) {
    for (uint32_t layer = 0; layer < n_layer; layer++)
        for (size_t i = 0; i < N_MATRICES; i++) {
            const bool may = (d->arch->joined & matrices[i].join) != 0;
            const tern_gguf_tensor *t = may ? find(d->file, layer, &matrices[i]) : NULL;
            const tern_status status = t != NULL ? check(d, &matrices[i], t, err) : TERN_OK;
            if (status != TERN_OK)
                return status;
            if (t == NULL)
                continue;
            add_pieces(d, &matrices[i], t, layer);
            add_factors(d, &matrices[i], "scale", layer);
            add_factors(d, &matrices[i], "input_scale", layer);
        }
    return TERN_OK;
}

tern_status tern_joined_divide(tern_gguf *file, const tern_config *c, tern_error *err) {
    const size_t most = (size_t)c->n_layer * N_MATRICES * TERN_JOINED_PIECES * 3; /* + factors */
    division d = {.file = file, .arch = c->arch, .sizes = tern_config_block(c)};
    if (c->arch->joined == 0)
        return TERN_OK;
    d.pieces = calloc(most, sizeof *d.pieces);
    d.names = calloc(most, NAME_BYTES);
    tern_status status = d.pieces != NULL && d.names != NULL
                             ? find_all(&d, c->n_layer, err)
                             : tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for %zu matrices",
                                         tern_gguf_name(file), most);
    if (status == TERN_OK && d.n > 0) {
        qsort(d.pieces, d.n, sizeof *d.pieces, compare_places);
        status = tern_gguf_divide(file, d.pieces, d.n, d.names, err);
        d.names = NULL; /* the file owns them now */
    }
    free(d.pieces);
    free(d.names);
    return status;
}
