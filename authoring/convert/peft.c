/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/peft.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "authoring/convert/hf_config.h"
#include "authoring/convert/hf_tensors.h"
#include "authoring/convert/peft_config.h"
#include "runtime/model/config/config.h"
#include "runtime/model/config/joined_matrices.h"

enum { PATH_BYTES = 4096, NAME_BYTES = 160 };

/* ---- the base model -------------------------------------------------------------------------- */

static tern_status read_folder(const char *path, peft_base *out, tern_error *err) {
    hf_config c;
    const tern_status status = hf_config_read(path, &c, err);
    if (status == TERN_OK)
        *out =
            (peft_base){.arch = c.arch,
                        .sizes = {c.n_embd, c.n_ff, c.n_head, c.n_head_kv, c.head_dim, c.n_expert},
                        .n_layer = c.n_layer};
    return status;
}

tern_status peft_base_read(const char *path, peft_base *out, tern_error *err) {
    struct stat info;
    tern_gguf *file = NULL;
    tern_config c;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return read_folder(path, out, err);
    tern_status status = tern_gguf_open(path, &file, err);
    if (status == TERN_OK)
        status = tern_config_read(file, &c, err);
    if (status == TERN_OK)
        *out = (peft_base){c.arch, tern_config_block(&c), c.n_layer};
    tern_gguf_close(&file);
    return status;
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* A pair of the folder, and what it becomes. */
typedef struct pair {
    const safetensors_tensor *a, *b;
    char name[NAME_BYTES]; /* of the model's tensor in GGUF files */
    uint32_t head_dim;     /* of heads whose rows change their order; 0: none do */
    double scale;          /* of the product, as PEFT computes it */
} pair;

typedef struct adapter {
    const peft_base *base;
    peft_config config;
    safetensors *file;
    pair *pairs;
    size_t n;
    bool *used; /* [tensors of the file] */
    tern_error *err;
} adapter;

static const safetensors_tensor *find(const adapter *a, const char *module, const char *half) {
    static const char *const forms[] = {"base_model.model.%s.lora_%s.weight",
                                        "base_model.model.%s.lora_%s.default.weight"};
    char name[2 * NAME_BYTES];
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        (void)snprintf(name, sizeof name, forms[i], module, half);
        const safetensors_tensor *t = safetensors_find(a->file, name);
        if (t != NULL) {
            a->used[t - safetensors_at(a->file, 0)] = true;
            return t;
        }
    }
    return NULL;
}

static bool is_float(safetensors_type type) {
    return type == SAFETENSORS_F32 || type == SAFETENSORS_F16 || type == SAFETENSORS_BF16;
}

static tern_status check_pair(const adapter *a, const pair *p, uint64_t rows, uint64_t cols) {
    const safetensors_tensor *x = p->a, *y = p->b;
    if (!is_float(x->type) || x->type != y->type)
        return tern_fail(a->err, TERN_ERR_TENSOR_TYPE,
                         "%s: tensors %s and %s have types %s and %s, must be the same of F32, F16 "
                         "and BF16",
                         x->file, x->name, y->name, safetensors_type_name(x->type),
                         safetensors_type_name(y->type));
    if (x->n_dims == 2 && y->n_dims == 2 && x->shape[0] >= 1 && x->shape[1] == cols &&
        y->shape[0] == rows && y->shape[1] == x->shape[0])
        return TERN_OK;
    return tern_fail(a->err, TERN_ERR_TENSOR_SHAPE,
                     "%s: tensors %s and %s must be rank x %llu and %llu x rank", x->file, x->name,
                     y->name, (unsigned long long)cols, (unsigned long long)rows);
}

/* Adds the pair of a module, if the folder has one. */
static tern_status add(adapter *a, const char *module, pair *p, uint64_t rows, uint64_t cols) {
    p->a = find(a, module, "A");
    p->b = find(a, module, "B");
    if (p->a == NULL && p->b == NULL)
        return TERN_OK;
    if (p->a == NULL || p->b == NULL)
        return tern_fail(a->err, TERN_ERR_TENSOR_MISSING, "%s: module %s has no lora_%c",
                         (p->a != NULL ? p->a : p->b)->file, module, p->a != NULL ? 'B' : 'A');
    const tern_status status = check_pair(a, p, rows, cols);
    if (status == TERN_OK) {
        p->scale = peft_config_scale(&a->config, module, (uint32_t)p->a->shape[0]);
        a->pairs[a->n++] = *p;
    }
    return status;
}

/* The name of a module: that of its tensor in the folder of the model, without ".weight". */
static void name_module(char *to, size_t size, uint32_t layer, const char *hf) {
    static const char ending[] = ".weight";
    (void)snprintf(to, size, "model.layers.%u.%s", layer, hf);
    const size_t n = strlen(to);
    if (n >= sizeof ending && strcmp(to + n - (sizeof ending - 1), ending) == 0)
        to[n - (sizeof ending - 1)] = '\0';
}

static tern_status add_joined(adapter *a, uint32_t layer, const tern_block_tensor *t,
                              const tern_joined *joined) {
    char module[NAME_BYTES];
    pair p = {.head_dim = 0};
    if (!tern_joined_begins(joined, t))
        return TERN_OK;
    name_module(module, sizeof module, layer, joined->hf);
    (void)snprintf(p.name, sizeof p.name, "blk.%u.%s", layer, joined->name);
    return add(a, module, &p, tern_joined_rows(joined, &a->base->sizes),
               tern_block_length(&a->base->sizes, t->columns));
}

static tern_status add_matrix(adapter *a, uint32_t layer, const tern_block_tensor *t) {
    const tern_block_sizes *sizes = &a->base->sizes;
    const tern_joined *joined = tern_joined_of(a->base->arch, t);
    const bool turned = t->turned && a->base->arch->rope == TERN_OP_ROPE_NORM;
    char module[NAME_BYTES];
    pair p = {.head_dim = turned ? sizes->head_dim : 0};
    name_module(module, sizeof module, layer, tern_block_hf_name(a->base->arch, t));
    (void)snprintf(p.name, sizeof p.name, "blk.%u.%s", layer, t->name);
    const tern_status status = joined != NULL ? add_joined(a, layer, t, joined) : TERN_OK;
    return status == TERN_OK ? add(a, module, &p, tern_block_length(sizes, t->rows),
                                   tern_block_length(sizes, t->columns))
                             : status;
}

static tern_status refuse_unused(const adapter *a) {
    for (size_t i = 0; i < safetensors_count(a->file); i++)
        if (!a->used[i])
            return tern_fail(a->err, TERN_ERR_TENSOR_MISSING,
                             "%s: tensor %.200s belongs to no matrix of the base model that an "
                             "adapter can add to",
                             safetensors_at(a->file, i)->file, safetensors_at(a->file, i)->name);
    return TERN_OK;
}

static tern_status find_pairs(adapter *a) {
    tern_status status = TERN_OK;
    const size_t most = (size_t)a->base->n_layer * 2 * TERN_LAYER_LINEARS;
    a->pairs = calloc(most, sizeof *a->pairs);
    a->used = calloc(safetensors_count(a->file) + 1, sizeof *a->used);
    if (a->pairs == NULL || a->used == NULL)
        return tern_fail(a->err, TERN_ERR_NOMEM, "no memory for %zu matrices", most);
    for (uint32_t layer = 0; layer < a->base->n_layer; layer++)
        for (size_t i = 0; status == TERN_OK && i < TERN_LAYER_LINEARS; i++) {
            const tern_block_tensor *t = tern_block_matrix(i);
            if (tern_block_has(a->base->arch, t) && t->when != TERN_HAS_EXPERTS &&
                t->when != TERN_HAS_SHARED_EXPERT)
                status = add_matrix(a, layer, t);
        }
    return status == TERN_OK ? refuse_unused(a) : status;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* One alpha for all pairs, if scale * rank is the same everywhere; 0: it is not, and B is
 * multiplied. */
static double common_alpha(const adapter *a) {
    for (size_t i = 0; i < a->n; i++)
        if (a->pairs[i].scale * (double)a->pairs[i].a->shape[0] !=
            a->pairs[0].scale * (double)a->pairs[0].a->shape[0])
            return 0.0;
    return a->n > 0 ? a->pairs[0].scale * (double)a->pairs[0].a->shape[0] : 0.0;
}

static const tern_format_info *format_of(const safetensors_tensor *t, bool multiplied) {
    const tern_format format = multiplied || t->type == SAFETENSORS_F32 ? TERN_FORMAT_F32
                               : t->type == SAFETENSORS_F16             ? TERN_FORMAT_F16
                                                                        : TERN_FORMAT_BF16;
    return tern_format_describe(format);
}

static void describe(const adapter *a, tern_gguf_writer *w, bool multiplied) {
    for (size_t i = 0; i < 2 * a->n; i++) {
        const pair *p = &a->pairs[i / 2];
        const safetensors_tensor *t = i % 2 ? p->b : p->a;
        const tern_format_info *format = format_of(t, multiplied && i % 2);
        const uint64_t ne[] = {t->shape[1], t->shape[0]};
        char name[NAME_BYTES + 8];
        (void)snprintf(name, sizeof name, "%s.lora_%c", p->name, i % 2 ? 'b' : 'a');
        tern_gguf_put_tensor(w, name, format->gguf_type, 2, ne,
                             ne[0] * ne[1] * format->block_bytes);
    }
}

/* Writes the rows of B in the order of the GGUF file, multiplied by `scale` where it is not 0. */
static tern_status write_b(const pair *p, double scale, tern_gguf_writer *w, tern_error *err) {
    const hf_source from = {.tensor = p->b,
                            .rows = (size_t)p->b->shape[0],
                            .cols = (size_t)p->b->shape[1],
                            .head_dim = p->head_dim};
    const size_t bytes = (size_t)(p->b->bytes / p->b->shape[0]);
    float *row = malloc(from.cols * sizeof *row);
    tern_status status =
        row != NULL ? TERN_OK : tern_fail(err, TERN_ERR_NOMEM, "no memory for a row");
    for (size_t r = 0; status == TERN_OK && r < from.rows; r++) {
        if (scale == 0.0) {
            status = tern_gguf_writer_data(w, p->b->data + hf_source_origin(&from, r) * bytes,
                                           bytes, err);
            continue;
        }
        hf_source_row(&from, r, row);
        for (size_t k = 0; k < from.cols; k++)
            row[k] = (float)((double)row[k] * scale);
        status = tern_gguf_writer_data(w, row, from.cols * sizeof *row, err);
    }
    free(row);
    return status;
}

static tern_status write_tensors(const adapter *a, tern_gguf_writer *w, bool multiplied) {
    tern_status status = tern_gguf_writer_begin(w, a->err);
    for (size_t i = 0; status == TERN_OK && i < a->n; i++) {
        const pair *p = &a->pairs[i];
        status = tern_gguf_writer_data(w, p->a->data, (size_t)p->a->bytes, a->err);
        if (status == TERN_OK)
            status = write_b(p, multiplied ? p->scale : 0.0, w, a->err);
    }
    return status;
}

static tern_status write_all(const adapter *a, const char *name, tern_gguf_writer **w) {
    const double alpha = common_alpha(a);
    if (a->n == 0)
        return tern_fail(a->err, TERN_ERR_TENSOR_MISSING, "an adapter without matrices");
    tern_gguf_put_string(*w, "general.type", "adapter");
    tern_gguf_put_string(*w, "general.architecture", a->base->arch->name);
    tern_gguf_put_string(*w, "general.name", name);
    tern_gguf_put_string(*w, "adapter.type", "lora");
    if (alpha != 0.0)
        tern_gguf_put_f32(*w, "adapter.lora.alpha", (float)alpha);
    describe(a, *w, alpha == 0.0);
    const tern_status status = write_tensors(a, *w, alpha == 0.0);
    return status == TERN_OK ? tern_gguf_writer_finish(w, a->err) : status;
}

/* ---- the folder ------------------------------------------------------------------------------ */

static void path_of(char path[PATH_BYTES], const char *folder, const char *name) {
    (void)snprintf(path, PATH_BYTES, "%s/%s", folder, name);
}

bool peft_is_folder(const char *folder) {
    char path[PATH_BYTES];
    path_of(path, folder, "adapter_config.json");
    return access(path, F_OK) == 0;
}

tern_status peft_base_name(const char *folder, char *name, size_t size, tern_error *err) {
    char path[PATH_BYTES];
    path_of(path, folder, "adapter_config.json");
    return peft_config_base(path, name, size, err);
}

tern_status peft_write(const char *folder, const peft_base *base, const char *name,
                       tern_gguf_writer **w, size_t *matrices, tern_error *err) {
    adapter a = {.base = base, .err = err};
    char path[PATH_BYTES];
    path_of(path, folder, "adapter_config.json");
    tern_status status = peft_config_read(path, &a.config, err);
    path_of(path, folder, "adapter_model.safetensors");
    if (status == TERN_OK)
        status = safetensors_open(path, &a.file, err);
    if (status == TERN_OK)
        status = find_pairs(&a);
    if (status == TERN_OK)
        status = write_all(&a, name, w);
    *matrices = a.n;
    tern_gguf_writer_abort(w);
    free(a.pairs);
    free(a.used);
    safetensors_close(&a.file);
    peft_config_free(&a.config);
    return status;
}
