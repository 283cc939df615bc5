/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of experts that a Hugging Face folder holds in one tensor for all of a layer. */

#include <inttypes.h>
#include <stdio.h>

#include "authoring/convert/hf_adding.h"
#include "authoring/convert/hf_rest.h"
#include "base/word_list.h"

enum { STACK_NAME_BYTES = 64 };

/* The place of the matrices, or the biases, of all experts of a layer in a folder. */
typedef struct stack {
    const char *begin; /* of the name in the written file */
    const char *hf;
    size_t step, turn; /* of hf_source */
} stack;

static const stack stacks[] = {{"ffn_gate_exps.", "mlp.experts.gate_up_proj", 2, 0},
                               {"ffn_up_exps.", "mlp.experts.gate_up_proj", 2, 1},
                               {"ffn_down_exps.", "mlp.experts.down_proj", 1, 0}};

static const stack *stack_of(const tern_block_tensor *t) {
    const stack *s = stacks;
    while (!text_begins_with(t->name, s->begin))
        s++;
    return s;
}

/* The tensor of a stack whose name ends so; all its sides are given, unused ones 1. */
static tern_status find_stacked(const hf_adding *a, uint32_t layer, const stack *from,
                                const char *end, const uint64_t shape[4],
                                const safetensors_tensor **out) {
    char name[STACK_NAME_BYTES];
    (void)snprintf(name, sizeof name, "%s%s", from->hf, end);
    const safetensors_tensor *t = *out = hf_find_in_layer(a, layer, name);
    bool fits = t != NULL && t->n_dims >= 2 && t->n_dims <= 4;
    if (t == NULL)
        return hf_missing_in_layer(a, layer, name);
    for (uint32_t i = 0; fits && i < 4; i++)
        fits = (i < t->n_dims ? t->shape[i] : 1) == shape[i];
    return fits ? TERN_OK
                : tern_fail(a->err, TERN_ERR_TENSOR_SHAPE,
                            "%s: tensor %s is not %" PRIu64 " x %" PRIu64 " x %" PRIu64
                            " x %" PRIu64,
                            t->file, t->name, shape[0], shape[1], shape[2], shape[3]);
}

static tern_status wrong_stacked(const hf_adding *a, const safetensors_tensor *t,
                                 const char *must) {
    return tern_fail(a->err, TERN_ERR_TENSOR_TYPE, "%s: tensor %s has type %s, must be %s", t->file,
                     t->name, safetensors_type_name(t->type), must);
}

/* Sets the source of matrices in blocks of MXFP4, with their scales in a tensor beside. */
static tern_status find_blocks(const hf_adding *a, uint32_t layer, const stack *from, hf_source *s,
                               convert_tensor *to) {
    enum { COLUMNS = 32 };
    const uint64_t blocks = s->cols / COLUMNS, rows = s->each * from->step;
    const uint64_t shape[4] = {a->c->n_expert, rows, blocks, COLUMNS / 2};
    const uint64_t beside[4] = {a->c->n_expert, rows, blocks, 1};
    tern_status status = find_stacked(a, layer, from, "_blocks", shape, &s->tensor);
    if (status == TERN_OK)
        status = find_stacked(a, layer, from, "_scales", beside, &s->scale_tensor);
    if (status != TERN_OK)
        return status;
    if (s->tensor->type != SAFETENSORS_U8 || s->scale_tensor->type != SAFETENSORS_U8)
        return wrong_stacked(a, s->tensor->type != SAFETENSORS_U8 ? s->tensor : s->scale_tensor,
                             "U8");
    to->source = TERN_FORMAT_MXFP4;
    to->raw = hf_stack_bytes;
    to->row = hf_stack_block_row;
    return s->cols % COLUMNS == 0
               ? TERN_OK
               : tern_fail(a->err, TERN_ERR_TENSOR_SHAPE,
                           "%s: tensor %s: %zu columns cannot be cut into blocks", s->tensor->file,
                           s->tensor->name, s->cols);
}

bool hf_stacks_halves(const hf_adding *a, uint32_t layer) {
    return !a->c->arch->stacked_folders &&
           hf_find_in_layer(a, layer, "mlp.experts.gate_up_proj") != NULL;
}

static tern_status find_halves(const hf_adding *a, uint32_t layer, const stack *from, hf_source *s,
                               convert_tensor *to) {
    const uint64_t shape[4] = {a->c->n_expert, s->each * from->step, s->cols, 1};
    const tern_status status = find_stacked(a, layer, from, "", shape, &s->tensor);
    if (status != TERN_OK)
        return status;
    if (!hf_is_float(s->tensor->type))
        return wrong_stacked(a, s->tensor, "floats");
    to->source = hf_format_of(s->tensor->type);
    to->row = hf_stack_half_row;
    return TERN_OK;
}

static tern_status find_floats(const hf_adding *a, uint32_t layer, const stack *from, bool bias,
                               hf_source *s, convert_tensor *to) {
    if (hf_stacks_halves(a, layer))
        return find_halves(a, layer, from, s, to);
    const uint64_t shape[4] = {a->c->n_expert, bias ? s->cols * from->step : s->cols,
                               bias ? 1 : s->each * from->step, 1};
    const tern_status status = find_stacked(a, layer, from, bias ? "_bias" : "", shape, &s->tensor);
    if (status != TERN_OK)
        return status;
    if (!hf_is_float(s->tensor->type))
        return wrong_stacked(a, s->tensor, "floats");
    to->source = hf_format_of(s->tensor->type);
    to->row = bias ? hf_stack_bias_row : hf_stack_row;
    return TERN_OK;
}

tern_status hf_add_stack(hf_adding *a, uint32_t layer, const tern_block_tensor *t,
                         const hf_wanted *one) {
    const stack *from = stack_of(t);
    const bool bias = t->kind == TERN_BLOCK_BIAS;
    char name[STACK_NAME_BYTES];
    hf_wanted all = *one;
    hf_source *s;
    all.rows *= a->c->n_expert;
    all.vector = false;
    convert_tensor *to = hf_add_source(a, &all, &s);
    if (to == NULL)
        return TERN_ERR_NOMEM;
    s->each = one->rows;
    s->step = from->step;
    s->turn = from->turn;
    to->written = hf_source_written;
    if (!bias) {
        to->n_dims = 3;
        to->ne[1] = one->rows;
        to->ne[2] = a->c->n_expert;
    }
    (void)snprintf(name, sizeof name, "%s_blocks", from->hf);
    const bool blocks = !bias && hf_find_in_layer(a, layer, name) != NULL;
    const tern_status status =
        blocks ? find_blocks(a, layer, from, s, to) : find_floats(a, layer, from, bias, s, to);
    if (status != TERN_OK)
        return status;
    to->before = s->tensor->bytes / from->step;
    to->before += blocks ? s->scale_tensor->bytes / from->step : 0;
    to->origin = tern_format_describe(to->source)->name;
    return TERN_OK;
}
