/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/hf_tensors.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "authoring/convert/hf_adding.h"
#include "authoring/convert/hf_rank.h"
#include "authoring/convert/hf_rest.h"
#include "authoring/convert/hf_wanted.h"
#include "runtime/model/config/factors.h"
#include "runtime/model/config/joined_matrices.h"
#include "runtime/model/config/rope.h"
#include "runtime/model/config/rope_scaling.h"
#include "runtime/model/parts/block.h"

/* ---- one tensor ------------------------------------------------------------------------------ */

static tern_status check_taps(const hf_adding *a, const safetensors_tensor *t, size_t rows,
                              size_t cols) {
    if (t->n_dims == 3 && t->shape[0] == rows && t->shape[1] == 1 && t->shape[2] == cols)
        return TERN_OK;
    return tern_fail(a->err, TERN_ERR_TENSOR_SHAPE, "%s: tensor %s is not %zu x 1 x %zu", t->file,
                     t->name, rows, cols);
}

static tern_status check_shape(const hf_adding *a, const safetensors_tensor *t, size_t rows,
                               size_t cols, bool vector) {
    const bool fits = vector ? t->n_dims == 1 && t->shape[0] == cols
                             : t->n_dims == 2 && t->shape[0] == rows && t->shape[1] == cols;
    if (fits)
        return TERN_OK;
    return tern_fail(a->err, TERN_ERR_TENSOR_SHAPE,
                     "%s: tensor %s has %" PRIu32 " dimensions, %" PRIu64 " x %" PRIu64
                     ", must be %zu x %zu",
                     t->file, t->name, t->n_dims, t->n_dims > 0 ? t->shape[0] : 1,
                     t->n_dims > 1 ? t->shape[1] : 1, rows, cols);
}

/* Finds the scale of packed weights: model.layers.0.mlp.up_proj.weight_scale. */
static tern_status find_scale(const hf_adding *a, hf_source *s) {
    char name[CONVERT_NAME_BYTES];
    (void)snprintf(name, sizeof name, "%.200s_scale", s->tensor->name);
    const safetensors_tensor *t = hf_files_find(a->files, name);
    if (t == NULL) {
        return tern_fail(a->err, TERN_ERR_TENSOR_MISSING, "%s: tensor %s is missing",
                         s->tensor->file, name);
    }
    if (!hf_is_float(t->type) || t->n_dims > 1 || (t->n_dims == 1 && t->shape[0] != 1)) {
        return tern_fail(a->err, TERN_ERR_TENSOR_SHAPE, "%s: tensor %s is not one number", t->file,
                         name);
    }
    if (a->c->scale == HF_SCALE_UNSAID) {
        return tern_fail(a->err, TERN_ERR_CONFIG,
                         "%s: tensor %s: config.json has no quantization_config that says "
                         "whether it multiplies or divides",
                         t->file, name);
    }
    s->scale_tensor = t;
    return TERN_OK;
}

convert_tensor *hf_add_source(hf_adding *a, const hf_wanted *w, hf_source **source) {
    convert_tensor *t = convert_job_add(a->job);
    if (t == NULL || a->out->n == a->out->capacity) {
        (void)tern_fail(a->err, TERN_ERR_NOMEM, "no memory for %zu tensors", a->out->n);
        return NULL;
    }
    hf_source *s = &a->out->sources[a->out->n++];
    *s = (hf_source){.rows = w->rows,
                     .cols = w->cols,
                     .first = w->first,
                     .turns = w->turns,
                     .turns_columns = w->turns_columns,
                     .packing = w->packing,
                     .vector = w->vector,
                     .rates = w->rates};
    (void)snprintf(t->name, sizeof t->name, "%s", w->name);
    t->n_dims = w->vector ? 1 : 2;
    t->ne[0] = w->cols;
    t->ne[1] = w->rows;
    t->ne[2] = t->ne[3] = 1;
    t->rows = w->rows;
    t->cols = w->cols;
    t->row = hf_source_row;
    t->context = s;
    *source = s;
    return t;
}

/* True if rows of q and k change their order: most folders pair the halves of a head. */
static bool pairs_neighbours(const hf_config *c) {
    return c->arch->rope == TERN_OP_ROPE_NORM && !c->arch->neighbour_folders;
}

/* Describes the source of a tensor of the folder, and from that the tensor that is written. */
static tern_status describe(const hf_adding *a, const safetensors_tensor *from, const hf_wanted *w,
                            hf_source *s, convert_tensor *t) {
    s->tensor = from;
    t->before = from->bytes;
    s->less_one = w->norm && (a->c->arch->gemma_folders || a->c->delta.n_states > 0);
    s->head_dim = w->turned && pairs_neighbours(a->c) ? a->c->head_dim : 0;
    const bool ternary = w->ternary && !hf_kept_has(&a->c->kept, from->name);
    s->packed = ternary && from->type == SAFETENSORS_U8;
    s->ternarized = ternary && a->c->weights == HF_WEIGHTS_MASTER;
    if (!hf_is_float(from->type) && !s->packed) {
        return tern_fail(a->err, TERN_ERR_TENSOR_TYPE, "%s: tensor %s has type %s", from->file,
                         from->name, safetensors_type_name(from->type));
    }
    if (ternary && !s->packed && a->c->weights == HF_WEIGHTS_TERNARY) {
        return tern_fail(a->err, TERN_ERR_TENSOR_TYPE,
                         "%s: tensor %s has type %s, but config.json says packed ternary weights",
                         from->file, from->name, safetensors_type_name(from->type));
    }
    if (s->packed) {
        s->ternarized = false;
        t->origin = "packed ternary";
        t->source = TERN_FORMAT_I2_S;
        return s->rows % 4 == 0 ? check_shape(a, from, s->rows / 4, s->cols, false)
                                : tern_fail(a->err, TERN_ERR_TENSOR_SHAPE,
                                            "%s: tensor %s: %zu rows cannot be packed by four",
                                            from->file, from->name, s->rows);
    }
    t->source = s->ternarized ? TERN_FORMAT_I2_S : hf_format_of(from->type);
    t->origin = s->ternarized ? "ternarized floats" : tern_format_describe(t->source)->name;
    if (!s->ternarized && s->head_dim == 0 && s->first == 0 && !s->less_one && !s->rates &&
        s->turns.of <= 1 && s->packing.rows == 0)
        t->as_is = from->data;
    if (s->packing.rows > 0) /* of which the tensor has more */
        return check_shape(a, from, s->packing.groups * s->packing.rows, s->cols, false);
    if (w->taps)
        return check_taps(a, from, s->rows, s->cols);
    return check_shape(a, from, s->first + s->rows, s->cols, s->vector);
}

/* ---- NVFP4 ----------------------------------------------------------------------------------- */

/* True if the matrix is in NVFP4 here. The embedding has no factor that anything multiplies by. */
static bool is_fp4(const hf_adding *a, const safetensors_tensor *from, const hf_wanted *w) {
    return a->c->fp4 && !w->vector && strcmp(w->name, "token_embd.weight") != 0 &&
           hf_fp4_is(a->files, from);
}

/* Takes the codes of a matrix, or of the next expert's, with what lies beside them. */
static tern_status take_fp4(const hf_adding *a, const safetensors_tensor *codes, size_t rows,
                            size_t cols, convert_tensor *t, hf_source *s) {
    if (a->out->n_fp4 == a->out->capacity)
        return tern_fail(a->err, TERN_ERR_NOMEM, "no memory for %zu matrices", a->out->n_fp4);
    hf_fp4 *m = &a->out->fp4[a->out->n_fp4++];
    const tern_status status = hf_fp4_read(a->files, codes, rows, cols, m, a->err);
    if (s->fp4 == NULL)
        s->fp4 = m;
    if (status == TERN_OK)
        t->before += codes->bytes + m->scales->bytes;
    t->source = TERN_FORMAT_NVFP4;
    t->origin = "nvfp4";
    t->row = hf_source_fp4_row;
    t->raw = hf_source_fp4_bytes;
    return status;
}

/* Adds the factors of n matrices, and then those of what they read (`inputs`), if all have one. */
static tern_status add_factors(hf_adding *a, const char *matrix, const hf_fp4 *m, size_t n,
                               bool inputs) {
    char name[TERN_FACTOR_NAME_BYTES];
    const hf_wanted w = {.name = name, .rows = 1, .cols = n, .vector = true};
    float *values = a->out->factors + a->out->n_factors; /* each is a tensor: there is room */
    hf_source *s;
    tern_factor_name(matrix, inputs ? "input_scale" : "scale", name);
    if (!hf_fp4_factors(m, n, inputs, values))
        return TERN_OK;
    convert_tensor *t = hf_add_source(a, &w, &s);
    if (t == NULL)
        return TERN_ERR_NOMEM;
    a->out->n_factors += n;
    s->made = values;
    t->origin = "made";
    t->source = TERN_FORMAT_F32;
    return inputs ? TERN_OK : add_factors(a, matrix, m, n, true);
}

static tern_status add_fp4(hf_adding *a, const safetensors_tensor *from, const hf_wanted *w) {
    hf_source *s;
    convert_tensor *t = hf_add_source(a, w, &s);
    if (t == NULL)
        return TERN_ERR_NOMEM;
    s->tensor = from;
    s->head_dim = w->turned && pairs_neighbours(a->c) ? a->c->head_dim : 0;
    if (w->turns_columns && w->turns.of > 1)
        return tern_fail(a->err, TERN_ERR_TENSOR_TYPE,
                         "%s: tensor %s: columns of NVFP4 in another order are not supported",
                         from->file, from->name);
    const tern_status status = take_fp4(a, from, w->rows, w->cols, t, s);
    return status == TERN_OK ? add_factors(a, w->name, s->fp4, 1, false) : status;
}

static tern_status add_tensor(hf_adding *a, const safetensors_tensor *from, const hf_wanted *w) {
    hf_source *s;
    if (is_fp4(a, from, w))
        return add_fp4(a, from, w);
    convert_tensor *t = hf_add_source(a, w, &s);
    if (t == NULL)
        return TERN_ERR_NOMEM;
    const tern_status status = describe(a, from, w, s, t);
    return status == TERN_OK && s->packed ? find_scale(a, s) : status;
}

/* ---- all tensors ----------------------------------------------------------------------------- */

static tern_status missing(const hf_adding *a, const char *name) {
    return tern_fail(a->err, TERN_ERR_TENSOR_MISSING, "tensor %s is missing in the model's files",
                     name);
}

/* The folder's name of a tensor in a layer. */
static void name_in_layer(const hf_adding *a, uint32_t layer, const char *name,
                          char out[CONVERT_NAME_BYTES]) {
    (void)snprintf(out, CONVERT_NAME_BYTES, "%s.%" PRIu32 ".%s",
                   a->c->arch->encodes ? "encoder.layer" : "model.layers", layer, name);
}

/* The tensor of that name, or NULL. */
static const safetensors_tensor *find(const hf_adding *a, const char *name) {
    return a->c->fp4 ? hf_fp4_find(a->files, name) : hf_files_find(a->files, name);
}

const safetensors_tensor *hf_find_in_layer(const hf_adding *a, uint32_t layer, const char *name) {
    char text[CONVERT_NAME_BYTES];
    name_in_layer(a, layer, name, text);
    return find(a, text);
}

tern_status hf_missing_in_layer(const hf_adding *a, uint32_t layer, const char *name) {
    char text[CONVERT_NAME_BYTES];
    name_in_layer(a, layer, name, text);
    return missing(a, text);
}

/* Adds several matrices that are joined to one, both in the folder and in the file. */
static tern_status add_joined(hf_adding *a, uint32_t layer, const tern_block_tensor *t,
                              const tern_joined *joined, const tern_block_sizes *sizes) {
    char name[CONVERT_NAME_BYTES];
    const hf_wanted w = {.name = name,
                         .rows = (size_t)tern_joined_rows(joined, sizes),
                         .cols = tern_block_length(sizes, t->columns),
                         .ternary = true};
    const safetensors_tensor *from = hf_find_in_layer(a, layer, joined->hf);
    if (from == NULL)
        return hf_missing_in_layer(a, layer, joined->hf);
    (void)snprintf(name, sizeof name, "blk.%" PRIu32 ".%s", layer, joined->name);
    return add_tensor(a, from, &w);
}

/* Finds the matrix of one expert of a routed tensor; all experts have one shape and one type. */
static tern_status find_expert(hf_adding *a, uint32_t layer, const tern_block_tensor *t,
                               uint32_t expert, const hf_wanted *one, hf_source *s,
                               convert_tensor *to) {
    char name[CONVERT_NAME_BYTES];
    const char *number = strstr(t->hf, "%u");
    (void)snprintf(name, sizeof name, "model.layers.%" PRIu32 ".%.*s%" PRIu32 "%s", layer,
                   (int)(number - t->hf), t->hf, expert, number + strlen("%u"));
    const safetensors_tensor *from = find(a, name);
    if (from == NULL)
        return missing(a, name);
    s->experts[expert] = from;
    if (is_fp4(a, from, one) && (expert == 0 || s->fp4 != NULL))
        return take_fp4(a, from, one->rows, one->cols, to, s);
    to->before += from->bytes;
    if (!hf_is_float(from->type) || from->type != s->experts[0]->type)
        return tern_fail(a->err, TERN_ERR_TENSOR_TYPE,
                         "%s: tensor %s has type %s, must be floats, of one type in all experts",
                         from->file, from->name, safetensors_type_name(from->type));
    return check_shape(a, from, one->rows, one->cols, false);
}

/* Adds the matrices of all experts as one tensor, whose rows are read from where they are. */
static tern_status add_experts(hf_adding *a, uint32_t layer, const tern_block_tensor *t,
                               const hf_wanted *one) {
    const uint32_t n = a->c->n_expert;
    hf_wanted all = *one;
    hf_source *s;
    all.rows *= n;
    convert_tensor *to = hf_add_source(a, &all, &s);
    if (to == NULL)
        return TERN_ERR_NOMEM;
    if (n > a->out->capacity - a->out->n_experts)
        return tern_fail(a->err, TERN_ERR_TENSOR_MISSING,
                         "the model's files have fewer tensors than experts of %" PRIu32 " layers",
                         a->c->n_layer);
    s->experts = a->out->experts + a->out->n_experts;
    a->out->n_experts += n;
    to->written = hf_source_written;
    to->n_dims = 3;
    to->ne[1] = one->rows;
    to->ne[2] = n;
    tern_status status = TERN_OK;
    for (uint32_t i = 0; status == TERN_OK && i < n; i++)
        status = find_expert(a, layer, t, i, one, s, to);
    if (status != TERN_OK)
        return status;
    s->tensor = s->experts[0];
    if (s->fp4 != NULL)
        return add_factors(a, one->name, s->fp4, n, false);
    to->source = hf_format_of(s->tensor->type);
    to->origin = tern_format_describe(to->source)->name;
    return TERN_OK;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static tern_status add_block_tensor(hf_adding *a, uint32_t layer, const tern_block_tensor *t) {
    const tern_block_sizes sizes = hf_wanted_sizes(a->c);
    char name[CONVERT_NAME_BYTES];
    const hf_wanted w = hf_wanted_of(a->c, &sizes, t, name);
    const char *hf = w.packed != NULL ? w.packed : tern_block_hf_name(a->c->arch, t);
    const tern_joined *joined = tern_joined_of(a->c->arch, t);
    if (t->routed) {
        (void)snprintf(name, sizeof name, "blk.%" PRIu32 ".%s", layer, t->name);
        return a->c->arch->stacked_folders || hf_stacks_halves(a, layer)
                   ? hf_add_stack(a, layer, t, &w)
                   : add_experts(a, layer, t, &w);
    }
    const safetensors_tensor *from = hf_find_in_layer(a, layer, hf);
    if (from == NULL && joined != NULL)
        return tern_joined_begins(joined, t) ? add_joined(a, layer, t, joined, &sizes) : TERN_OK;
    if (from == NULL && t->hf_older != NULL)
        from = hf_find_in_layer(a, layer, t->hf_older);
    if (from == NULL && t->kind == TERN_BLOCK_BIAS && !a->c->arch->encodes)
        return TERN_OK;
    if (from == NULL)
        return hf_missing_in_layer(a, layer, hf);
    (void)snprintf(name, sizeof name, "blk.%" PRIu32 ".%s", layer, t->name);
    return add_tensor(a, from, &w);
}

static tern_status add_block(hf_adding *a, uint32_t layer) {
    size_t n;
    const tern_block_tensor *tensors = tern_block_tensors(&n);
    tern_status status = TERN_OK;
    const uint32_t kind = a->c->period > 0 && (layer + 1) % a->c->period != 0 ? 1 : 0;
    for (size_t i = 0; status == TERN_OK && i < n; i++)
        if (tern_block_has_in(a->c->arch, kind, &tensors[i]))
            status = add_block_tensor(a, layer, &tensors[i]);
    return status;
}

static tern_status add_rank_head(hf_adding *a) {
    tern_status status = TERN_OK;
    for (size_t i = 0; status == TERN_OK && i < HF_RANK_PARTS; i++) {
        const hf_rank_part p = hf_rank_part_at(a->c, i);
        const safetensors_tensor *from = hf_files_find(a->files, p.hf);
        const hf_wanted w = {.name = p.name, .rows = p.rows, .cols = p.cols, .vector = p.vector};
        status = from == NULL ? missing(a, p.hf) : add_tensor(a, from, &w);
    }
    return status;
}

/* Adds a tensor outside the blocks without its first rows; rows 0: a norm or its bias. */
static tern_status add_end_of(hf_adding *a, const char *hf, const char *gguf, size_t first,
                              size_t rows) {
    const safetensors_tensor *from = find(a, hf);
    const hf_wanted w = {.name = gguf,
                         .rows = rows > 0 ? rows : 1,
                         .cols = a->c->n_embd,
                         .first = first,
                         .vector = rows == 0,
                         .norm = rows == 0};
    return from == NULL ? missing(a, hf) : add_tensor(a, from, &w);
}

static tern_status add_outer(hf_adding *a, const char *hf, const char *gguf, size_t rows) {
    return add_end_of(a, hf, gguf, 0, rows);
}

/*
 * Llama 3's scaling as divisors of the angles: 1 for wavelengths that fit into the training context
 * many times, `factor` for those that hardly fit, and in between a weighted harmonic mean.
 */
static tern_status add_rope_factors(hf_adding *a) {
    const tern_rope_llama3 *r = &a->c->llama3;
    const size_t half = a->c->head_dim / 2;
    double *frequency = calloc(half, sizeof *frequency);
    a->out->rope_factors = calloc(half, sizeof(float));
    if (frequency == NULL || a->out->rope_factors == NULL) {
        free(frequency);
        return tern_fail(a->err, TERN_ERR_NOMEM, "no memory for %zu rotation factors", half);
    }
    tern_rope_frequencies((double)a->c->rope_base, 1.0, NULL, a->c->head_dim, frequency);
    tern_rope_llama3_factors(r, frequency, a->c->head_dim, a->out->rope_factors);
    free(frequency);
    hf_source *s;
    const hf_wanted w = {.name = "rope_freqs.weight", .rows = 1, .cols = half, .vector = true};
    convert_tensor *t = hf_add_source(a, &w, &s);
    if (t == NULL)
        return TERN_ERR_NOMEM;
    s->made = a->out->rope_factors;
    t->origin = "made";
    t->source = TERN_FORMAT_F32;
    return TERN_OK;
}

/*
 * Adds the output head. A folder may say that the embedding is the head and have another one all
 * the same: then transformers does not tie them, and neither does the written file.
 */
static tern_status add_head(hf_adding *a) {
    static const char name[] = "lm_head.weight";
    const safetensors_tensor *head = find(a, name);
    const safetensors_tensor *embedding = hf_files_find(a->files, "model.embed_tokens.weight");
    if (a->c->tied && (head == NULL || hf_same_tensor(head, embedding)))
        return TERN_OK;
    if (!a->c->arch->embedding_head)
        return add_outer(a, name, "output.weight", a->c->n_vocab);
    return tern_fail(a->err, TERN_ERR_ARCH,
                     "%s: tensor %s is not the embedding, which is the head in architecture %s",
                     head->file, head->name, a->c->arch->name);
}

static tern_status add_encoder(hf_adding *a) {
    const hf_config *c = a->c;
    tern_status s;
    if ((s = add_outer(a, "embeddings.word_embeddings.weight", "token_embd.weight", c->n_vocab)) ||
        (s = add_outer(a, "embeddings.token_type_embeddings.weight", "token_types.weight",
                       c->n_types)) ||
        (s = add_end_of(a, "embeddings.position_embeddings.weight", "position_embd.weight",
                        c->first_position, c->n_ctx)) ||
        (s = add_outer(a, "embeddings.LayerNorm.weight", "token_embd_norm.weight", 0)) ||
        (s = add_outer(a, "embeddings.LayerNorm.bias", "token_embd_norm.bias", 0)))
        return s;
    for (uint32_t n = 0; s == TERN_OK && n < c->n_layer; n++)
        s = add_block(a, n);
    return s == TERN_OK && c->ranks ? add_rank_head(a) : s;
}

static tern_status add_decoder(hf_adding *a) {
    tern_status status =
        add_outer(a, "model.embed_tokens.weight", "token_embd.weight", a->c->n_vocab);
    if (status == TERN_OK && a->c->llama3.factor > 0.0)
        status = add_rope_factors(a);
    for (uint32_t n = 0; status == TERN_OK && n < a->c->n_layer; n++)
        status = add_block(a, n);
    if (status == TERN_OK)
        status = add_outer(a, "model.norm.weight", "output_norm.weight", 0);
    return status == TERN_OK ? add_head(a) : status;
}

tern_status hf_tensors_add(const hf_config *c, hf_files *files, hf_tensors *out, convert_job *job,
                           void (*skipped)(const safetensors_tensor *t), tern_error *err) {
    hf_adding a = {.c = c, .files = files, .out = out, .job = job, .err = err};
    out->scale = c->scale;
    if (c->ranks)
        files->within = c->other_class ? "roberta." : "bert.";
    out->capacity = 2 * files->n + 1; /* each tensor is used once or twice, one may be computed */
    out->sources = calloc(out->capacity, sizeof *out->sources);
    out->experts = calloc(out->capacity, sizeof *out->experts);
    out->fp4 = calloc(out->capacity, sizeof *out->fp4);
    out->factors = calloc(out->capacity, sizeof *out->factors);
    if (out->sources == NULL || out->experts == NULL || out->fp4 == NULL || out->factors == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu tensors", out->capacity);
    tern_status status = c->arch->encodes ? add_encoder(&a) : add_decoder(&a);
    return status == TERN_OK ? hf_rest_check(c, files, skipped, err) : status;
}

void hf_tensors_free(hf_tensors *t) {
    free(t->sources);
    free(t->experts);
    free(t->fp4);
    free(t->factors);
    free(t->rope_factors);
    *t = (hf_tensors){.n = 0};
}
