/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/hf_tensors.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/model/rope.h"

/* What is special about a tensor of a block. */
typedef enum part_kind {
    PART_NORM,     /* a vector */
    PART_ROWS,     /* a matrix that is never ternary */
    PART_MATRIX,   /* may be ternary */
    PART_HEADS,    /* a matrix whose rows are heads that are turned: may be reordered */
    PART_BIAS,     /* a vector, optional */
    PART_HEAD_BIAS /* an optional vector of heads that are turned */
} part_kind;

typedef enum part_size { SIZE_EMBD, SIZE_FF, SIZE_Q, SIZE_KV, SIZE_HEAD, SIZE_ONE } part_size;

/* Tensors of a block: model.layers.N.<hf> and blk.N.<gguf>. */
static const struct part {
    const char *hf, *older; /* older: another name, or NULL */
    const char *gguf;
    part_kind kind;
    part_size rows, cols;
    enum { ALWAYS, WITH_BIAS, WITH_SUB_NORMS, WITH_QK_NORMS } when;
} parts[] = {
    {"input_layernorm.weight", NULL, "attn_norm.weight", PART_NORM, SIZE_ONE, SIZE_EMBD, ALWAYS},
    {"self_attn.q_proj.weight", NULL, "attn_q.weight", PART_HEADS, SIZE_Q, SIZE_EMBD, ALWAYS},
    {"self_attn.q_proj.bias", NULL, "attn_q.bias", PART_HEAD_BIAS, SIZE_ONE, SIZE_Q, WITH_BIAS},
    {"self_attn.q_norm.weight", NULL, "attn_q_norm.weight", PART_NORM, SIZE_ONE, SIZE_HEAD,
     WITH_QK_NORMS},
    {"self_attn.k_proj.weight", NULL, "attn_k.weight", PART_HEADS, SIZE_KV, SIZE_EMBD, ALWAYS},
    {"self_attn.k_proj.bias", NULL, "attn_k.bias", PART_HEAD_BIAS, SIZE_ONE, SIZE_KV, WITH_BIAS},
    {"self_attn.k_norm.weight", NULL, "attn_k_norm.weight", PART_NORM, SIZE_ONE, SIZE_HEAD,
     WITH_QK_NORMS},
    {"self_attn.v_proj.weight", NULL, "attn_v.weight", PART_MATRIX, SIZE_KV, SIZE_EMBD, ALWAYS},
    {"self_attn.v_proj.bias", NULL, "attn_v.bias", PART_BIAS, SIZE_ONE, SIZE_KV, WITH_BIAS},
    {"self_attn.attn_sub_norm.weight", "self_attn.inner_attn_ln.weight", "attn_sub_norm.weight",
     PART_NORM, SIZE_ONE, SIZE_Q, WITH_SUB_NORMS},
    {"self_attn.o_proj.weight", NULL, "attn_output.weight", PART_MATRIX, SIZE_EMBD, SIZE_Q, ALWAYS},
    {"post_attention_layernorm.weight", NULL, "ffn_norm.weight", PART_NORM, SIZE_ONE, SIZE_EMBD,
     ALWAYS},
    {"mlp.gate_proj.weight", NULL, "ffn_gate.weight", PART_MATRIX, SIZE_FF, SIZE_EMBD, ALWAYS},
    {"mlp.up_proj.weight", NULL, "ffn_up.weight", PART_MATRIX, SIZE_FF, SIZE_EMBD, ALWAYS},
    {"mlp.ffn_sub_norm.weight", "mlp.ffn_layernorm.weight", "ffn_sub_norm.weight", PART_NORM,
     SIZE_ONE, SIZE_FF, WITH_SUB_NORMS},
    {"mlp.down_proj.weight", NULL, "ffn_down.weight", PART_MATRIX, SIZE_EMBD, SIZE_FF, ALWAYS},
};

typedef struct adding {
    const hf_config *c;
    hf_files *files;
    hf_tensors *out;
    convert_job *job;
    tern_error *err;
} adding;

/* ---- one tensor ------------------------------------------------------------------------------ */

static bool is_float(safetensors_type type) {
    return type == SAFETENSORS_F32 || type == SAFETENSORS_F16 || type == SAFETENSORS_BF16;
}

static tern_format format_of(safetensors_type type) {
    return type == SAFETENSORS_F32   ? TERN_FORMAT_F32
           : type == SAFETENSORS_F16 ? TERN_FORMAT_F16
                                     : TERN_FORMAT_BF16;
}

static tern_status check_shape(const adding *a, const safetensors_tensor *t, size_t rows,
                               size_t cols, bool vector) {
    const bool fits = vector ? t->n_dims == 1 && t->shape[0] == cols
                             : t->n_dims == 2 && t->shape[0] == rows && t->shape[1] == cols;
    if (fits) {
        return TERN_OK;
    }
    return tern_fail(a->err, TERN_ERR_TENSOR_SHAPE,
                     "%s: tensor %s has %" PRIu32 " dimensions, %" PRIu64 " x %" PRIu64
                     ", must be %zu x %zu",
                     t->file, t->name, t->n_dims, t->n_dims > 0 ? t->shape[0] : 1,
                     t->n_dims > 1 ? t->shape[1] : 1, rows, cols);
}

/* The scale beside packed weights: model.layers.0.mlp.up_proj.weight_scale. */
static tern_status find_scale(const adding *a, hf_source *s) {
    char name[CONVERT_NAME_BYTES];
    (void)snprintf(name, sizeof name, "%.200s_scale", s->tensor->name);
    const safetensors_tensor *t = hf_files_find(a->files, name);
    if (t == NULL) {
        return tern_fail(a->err, TERN_ERR_TENSOR_MISSING, "%s: tensor %s is missing",
                         s->tensor->file, name);
    }
    if (!is_float(t->type) || t->n_dims > 1 || (t->n_dims == 1 && t->shape[0] != 1)) {
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

static convert_tensor *add_source(adding *a, const char *name, size_t rows, size_t cols,
                                  bool vector, hf_source **source) {
    convert_tensor *t = convert_job_add(a->job);
    if (t == NULL || a->out->n == a->out->capacity) {
        (void)tern_fail(a->err, TERN_ERR_NOMEM, "no memory for %zu tensors", a->out->n);
        return NULL;
    }
    hf_source *s = &a->out->sources[a->out->n++];
    *s = (hf_source){.rows = rows, .cols = cols, .vector = vector};
    (void)snprintf(t->name, sizeof t->name, "%s", name);
    t->n_dims = vector ? 1 : 2;
    t->ne[0] = cols;
    t->ne[1] = rows;
    t->ne[2] = t->ne[3] = 1;
    t->rows = rows;
    t->cols = cols;
    t->row = hf_source_row;
    t->context = s;
    *source = s;
    return t;
}

/* What kind of thing a tensor of the folder is, and so the one that is written. */
static tern_status describe(const adding *a, const safetensors_tensor *from, part_kind kind,
                            hf_source *s, convert_tensor *t) {
    const bool matrix = kind == PART_MATRIX || kind == PART_HEADS;
    const bool heads = kind == PART_HEADS || kind == PART_HEAD_BIAS;
    s->tensor = from;
    s->head_dim = heads && a->c->permuted ? a->c->head_dim : 0;
    s->packed = matrix && from->type == SAFETENSORS_U8;
    s->ternarized = matrix && a->c->weights == HF_WEIGHTS_MASTER;
    if (!is_float(from->type) && !s->packed) {
        return tern_fail(a->err, TERN_ERR_TENSOR_TYPE, "%s: tensor %s has type %s", from->file,
                         from->name, safetensors_type_name(from->type));
    }
    if (matrix && !s->packed && a->c->weights == HF_WEIGHTS_TERNARY) {
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
    t->source = s->ternarized ? TERN_FORMAT_I2_S : format_of(from->type);
    t->origin = s->ternarized ? "ternarized floats" : tern_format_describe(t->source)->name;
    if (!s->ternarized && s->head_dim == 0) {
        t->as_is = from->data;
    }
    return check_shape(a, from, s->rows, s->cols, s->vector);
}

static tern_status add_tensor(adding *a, const safetensors_tensor *from, const char *name,
                              part_kind kind, size_t rows, size_t cols) {
    hf_source *s;
    const bool vector = kind == PART_NORM || kind == PART_BIAS || kind == PART_HEAD_BIAS;
    convert_tensor *t = add_source(a, name, rows, cols, vector, &s);
    if (t == NULL) {
        return TERN_ERR_NOMEM;
    }
    const tern_status status = describe(a, from, kind, s, t);
    return status == TERN_OK && s->packed ? find_scale(a, s) : status;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static size_t size_of(const hf_config *c, part_size size) {
    switch (size) {
    case SIZE_EMBD:
        return c->n_embd;
    case SIZE_FF:
        return c->n_ff;
    case SIZE_Q:
        return (size_t)c->n_head * c->head_dim;
    case SIZE_KV:
        return (size_t)c->n_head_kv * c->head_dim;
    case SIZE_HEAD:
        return c->head_dim;
    default:
        return 1;
    }
}

static bool applies(const hf_config *c, const struct part *p) {
    return p->when == ALWAYS || (p->when == WITH_BIAS && c->qkv_bias) ||
           (p->when == WITH_SUB_NORMS && c->sub_norms) || (p->when == WITH_QK_NORMS && c->qk_norms);
}

static tern_status missing(const adding *a, const char *name) {
    return tern_fail(a->err, TERN_ERR_TENSOR_MISSING, "tensor %s is missing in the model's files",
                     name);
}

static tern_status add_part(adding *a, uint32_t layer, const struct part *p) {
    char hf[CONVERT_NAME_BYTES], older[CONVERT_NAME_BYTES], gguf[CONVERT_NAME_BYTES];
    (void)snprintf(hf, sizeof hf, "model.layers.%" PRIu32 ".%s", layer, p->hf);
    (void)snprintf(gguf, sizeof gguf, "blk.%" PRIu32 ".%s", layer, p->gguf);
    const safetensors_tensor *from = hf_files_find(a->files, hf);
    if (from == NULL && p->older != NULL) {
        (void)snprintf(older, sizeof older, "model.layers.%" PRIu32 ".%s", layer, p->older);
        from = hf_files_find(a->files, older);
    }
    if (from == NULL) {
        return p->when == WITH_BIAS ? TERN_OK : missing(a, hf);
    }
    return add_tensor(a, from, gguf, p->kind, size_of(a->c, p->rows), size_of(a->c, p->cols));
}

static tern_status add_outer(adding *a, const char *hf, const char *gguf, part_kind kind,
                             size_t rows) {
    const safetensors_tensor *from = hf_files_find(a->files, hf);
    return from == NULL ? missing(a, hf) : add_tensor(a, from, gguf, kind, rows, a->c->n_embd);
}

/*
 * Llama 3's scaling as divisors of the angles: 1 for wavelengths that fit often into the context of
 * training, `factor` for those that hardly do, and between them a weighted harmonic mean.
 */
static tern_status add_rope_factors(adding *a) {
    const hf_llama3_rope *r = &a->c->llama3;
    const size_t half = a->c->head_dim / 2;
    double *frequency = calloc(half, sizeof *frequency);
    a->out->rope_factors = calloc(half, sizeof(float));
    if (frequency == NULL || a->out->rope_factors == NULL) {
        free(frequency);
        return tern_fail(a->err, TERN_ERR_NOMEM, "no memory for %zu rotation factors", half);
    }
    tern_rope_frequencies((double)a->c->rope_base, 1.0, NULL, a->c->head_dim, frequency);
    for (size_t i = 0; i < half; i++) {
        const double turns = r->original_context * frequency[i] / (2.0 * 3.14159265358979323846);
        const double smooth = (turns - r->low) / (r->high - r->low);
        const double inside = 1.0 / ((1.0 - smooth) / r->factor + smooth);
        a->out->rope_factors[i] = (float)(turns > r->high  ? 1.0
                                          : turns < r->low ? r->factor
                                                           : inside);
    }
    free(frequency);
    hf_source *s;
    convert_tensor *t = add_source(a, "rope_freqs.weight", 1, half, true, &s);
    if (t == NULL) {
        return TERN_ERR_NOMEM;
    }
    s->made = a->out->rope_factors;
    t->origin = "made";
    t->source = TERN_FORMAT_F32;
    return TERN_OK;
}

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static bool same_tensor(const safetensors_tensor *a, const safetensors_tensor *b) {
    return a->type == b->type && a->n_dims == b->n_dims &&
           memcmp(a->shape, b->shape, sizeof a->shape) == 0 && a->bytes == b->bytes &&
           memcmp(a->data, b->data, (size_t)a->bytes) == 0;
}

/* A head of its own is dropped only where the folder says so, or where it is the embedding. */
static tern_status check_head(const adding *a) {
    const safetensors_tensor *head = a->c->tied ? hf_files_find(a->files, "lm_head.weight") : NULL;
    const safetensors_tensor *embedding = hf_files_find(a->files, "model.embed_tokens.weight");
    if (head == NULL || !a->c->must_tie || same_tensor(head, embedding)) {
        return TERN_OK;
    }
    return tern_fail(a->err, TERN_ERR_ARCH,
                     "%s: tensor %s is not the embedding, which is the head in architecture %s",
                     head->file, head->name, a->c->architecture);
}

/* Tensors that nothing asked for: tables that repeat the configuration are fine. */
static tern_status check_rest(const adding *a, void (*skipped)(const safetensors_tensor *t)) {
    for (size_t i = 0; i < a->files->n; i++) {
        const safetensors_tensor *t = a->files->tensors[i];
        if (a->files->used[i] || ends_with(t->name, ".rotary_emb.inv_freq")) {
            continue;
        }
        if (is_float(t->type) || t->type == SAFETENSORS_F64) {
            return tern_fail(a->err, TERN_ERR_ARCH, "%s: tensor %s has no place in architecture %s",
                             t->file, t->name, a->c->architecture);
        }
        skipped(t);
    }
    return TERN_OK;
}

static tern_status add_all(adding *a) {
    const size_t n_parts = sizeof parts / sizeof *parts;
    tern_status status =
        add_outer(a, "model.embed_tokens.weight", "token_embd.weight", PART_ROWS, a->c->n_vocab);
    if (status == TERN_OK && a->c->llama3.factor > 0.0) {
        status = add_rope_factors(a);
    }
    for (uint32_t n = 0; status == TERN_OK && n < a->c->n_layer; n++) {
        for (size_t i = 0; status == TERN_OK && i < n_parts; i++) {
            status = applies(a->c, &parts[i]) ? add_part(a, n, &parts[i]) : TERN_OK;
        }
    }
    if (status == TERN_OK) {
        status = add_outer(a, "model.norm.weight", "output_norm.weight", PART_NORM, 1);
    }
    return status == TERN_OK && !a->c->tied
               ? add_outer(a, "lm_head.weight", "output.weight", PART_ROWS, a->c->n_vocab)
               : status;
}

tern_status hf_tensors_add(const hf_config *c, hf_files *files, hf_tensors *out, convert_job *job,
                           void (*skipped)(const safetensors_tensor *t), tern_error *err) {
    adding a = {.c = c, .files = files, .out = out, .job = job, .err = err};
    out->scale = c->scale;
    out->capacity = files->n + 1; /* each tensor is used once, and one may be made */
    out->sources = calloc(out->capacity, sizeof *out->sources);
    if (out->sources == NULL) {
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu tensors", out->capacity);
    }
    tern_status status = add_all(&a);
    if (status == TERN_OK) {
        status = check_head(&a);
    }
    return status == TERN_OK ? check_rest(&a, skipped) : status;
}

void hf_tensors_free(hf_tensors *t) {
    free(t->sources);
    free(t->rope_factors);
    *t = (hf_tensors){.n = 0};
}
