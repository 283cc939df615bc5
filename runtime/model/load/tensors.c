/* SPDX-License-Identifier: Apache-2.0 */

/* Lists the tensors that a model reads, by the table of block.h, and what the file says of each. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/iebs.h"
#include "kernels/ternary.h"
#include "runtime/model/config/factors.h"
#include "runtime/model/load/list.h"

enum { AROUND_BLOCKS = 13 }; /* entries, at most */

/* ---- entries ------------------------------------------------------------------------------- */

static tern_status wrong_shape(const char *path, const char *name, const tern_gguf_tensor *t,
                               size_t cols, size_t rows, size_t n, tern_error *err) {
    if (n > 1)
        return tern_fail(err, TERN_ERR_TENSOR_SHAPE,
                         "%s: tensor %s is %llu x %llu x %llu, must be %zu x %zu x %zu", path, name,
                         (unsigned long long)t->ne[0], (unsigned long long)t->ne[1],
                         (unsigned long long)t->ne[2], cols, rows, n);
    return tern_fail(err, TERN_ERR_TENSOR_SHAPE, "%s: tensor %s is %llu x %llu, must be %zu x %zu",
                     path, name, (unsigned long long)t->ne[0], (unsigned long long)t->ne[1], cols,
                     rows);
}

/* Finds the tensor of that name: n matrices of rows x cols; a vector has one row. */
static tern_status find(const tern_gguf *file, const char *name, size_t cols, size_t rows, size_t n,
                        const tern_gguf_tensor **out, tern_error *err) {
    const char *path = tern_gguf_name(file);
    const tern_gguf_tensor *t = tern_gguf_find_tensor(file, name);
    if (t == NULL)
        return tern_fail(err, TERN_ERR_TENSOR_MISSING, "%s: tensor %s is missing", path, name);
    if (t->ne[0] != cols || t->ne[1] != rows || t->ne[2] != n || t->ne[3] != 1)
        return wrong_shape(path, name, t, cols, rows, n, err);
    *out = t;
    return TERN_OK;
}

static tern_status wrong_type(const tern_gguf *file, const tern_gguf_tensor *t, const char *use,
                              tern_error *err) {
    if (t->type >= TERN_GGUF_FIRST_OWN_TYPE) /* tern's own types have names and no numbers */
        return tern_fail(err, TERN_ERR_TENSOR_TYPE, "%s: tensor %.*s has type %s, which %s",
                         tern_gguf_name(file), TERN_SPAN_SHOWN(t->name), tern_gguf_tensor_type(t),
                         use);
    return tern_fail(err, TERN_ERR_TENSOR_TYPE, "%s: tensor %.*s has type %u (%s), which %s",
                     tern_gguf_name(file), TERN_SPAN_SHOWN(t->name), t->type,
                     tern_gguf_tensor_type(t), use);
}

/* True if the tensor's bytes are those of its rows, one after the other. */
static bool is_of_rows(const tern_gguf_tensor *t) {
    return tern_gguf_format(t) != TERN_FORMAT_NONE && t->type < TERN_GGUF_FIRST_OWN_TYPE &&
           tern_gguf_tiled(t) == 0;
}

/* The format of a tensor that is read row by row; NONE: it is of another kind. */
static tern_format format_of_rows(const tern_gguf_tensor *t) {
    return is_of_rows(t) ? tern_gguf_format(t) : TERN_FORMAT_NONE;
}

/* Adds an entry. The caller sets its destination, by kind. */
static tern_load_entry *add(tern_load_list *l, tern_load_kind kind, const tern_gguf_tensor *t,
                            size_t rows, size_t cols) {
    tern_load_entry *e = &l->entries[l->n++];
    *e = (tern_load_entry){
        .kind = kind, .tensor = t, .rows = rows, .cols = cols, .divisor = 1.0f, .scale = 1.0f};
    e->format = tern_gguf_format(t);
    return e;
}

/* Lists `count` vectors of n numbers, one after the other. */
static tern_status list_vectors(tern_load_list *l, const char *name, size_t n, size_t count,
                                float divisor, const float **to, tern_error *err) {
    const tern_gguf_tensor *t;
    const tern_status status = find(l->file, name, n, count, 1, &t, err);
    if (status != TERN_OK)
        return status;
    const tern_format format = format_of_rows(t);
    if (format > TERN_FORMAT_BF16 || tern_kernel_scalar(TERN_OP_EMBED, format) == NULL)
        return wrong_type(l->file, t, "is not a float type", err);
    tern_load_entry *e = add(l, TERN_LOAD_VECTOR, t, 1, count * n);
    e->to.vector = to;
    e->divisor = divisor;
    return TERN_OK;
}

static tern_status list_vector(tern_load_list *l, const char *name, size_t n, float divisor,
                               const float **to, tern_error *err) {
    return list_vectors(l, name, n, 1, divisor, to, err);
}

static tern_status list_embedding(tern_load_list *l, const char *name, size_t rows, size_t cols,
                                  tern_load_check check, tern_embedding *to, tern_error *err) {
    const tern_gguf_tensor *t;
    uint64_t row_bytes = 0;
    tern_status status = find(l->file, name, cols, rows, 1, &t, err);
    if (status != TERN_OK)
        return status;
    const tern_format format = format_of_rows(t);
    if (format == TERN_FORMAT_NONE || tern_kernel_scalar(TERN_OP_EMBED, format) == NULL)
        return wrong_type(l->file, t, "cannot be used as embedding", err);
    status = tern_format_bytes(format, 1, cols, &row_bytes);
    if (status != TERN_OK)
        return tern_fail(err, status, "%s: tensor %s: %zu columns do not suit its type",
                         tern_gguf_name(l->file), name, cols);
    tern_load_entry *e = add(l, TERN_LOAD_EMBEDDING, t, rows, cols);
    e->to.embedding = to;
    e->check = check;
    to->row_bytes = (size_t)row_bytes;
    return TERN_OK;
}

/* ---- matrices ------------------------------------------------------------------------------ */

static tern_status make_room(const tern_gguf *file, tern_load_entry *e, tern_error *err) {
    e->row_scales = malloc(e->rows * sizeof *e->row_scales);
    return e->row_scales != NULL
               ? TERN_OK
               : tern_fail(err, TERN_ERR_NOMEM, "%s: tensor %.*s: no memory for %zu scales",
                           tern_gguf_name(file), TERN_SPAN_SHOWN(e->tensor->name), e->rows);
}

/* Keeps the scales of rows unless they are all the same. */
static void settle_scales(tern_load_entry *e) {
    e->scale = e->row_scales[0];
    for (size_t r = 0; r < e->rows; r++)
        e->differ |= memcmp(&e->row_scales[r], e->row_scales, sizeof *e->row_scales) != 0;
    if (e->differ)
        return;
    free(e->row_scales);
    e->row_scales = NULL;
}

/* Reads how ternary codes are stored that become I2_S, and the scales of their rows. */
static tern_status read_codes(const tern_gguf *file, const tern_reading *reading,
                              tern_load_entry *e, tern_error *err) {
    const tern_gguf_tensor *t = e->tensor;
    tern_error problem = {.status = TERN_OK};
    tern_status status = tern_reading_of(reading, t, &e->how, &problem);
    if (status == TERN_OK)
        status = tern_import_check(&e->how, t->data, e->rows, e->cols, &problem);
    if (status == TERN_OK && make_room(file, e, err) != TERN_OK)
        return TERN_ERR_NOMEM;
    if (status == TERN_OK)
        status = tern_import_scales(&e->how, t->data, e->rows, e->cols, e->row_scales, &problem);
    if (status != TERN_OK)
        return tern_fail(err, status, "%s: tensor %.*s: %s", tern_gguf_name(file),
                         TERN_SPAN_SHOWN(t->name), problem.message);
    settle_scales(e);
    return TERN_OK;
}

/* Reads the scales of TQ blocks; packing checks that they are finite. A matrix whose scales differ
 * within a row is not ternary. */
static tern_status read_block_scales(const tern_gguf *file, tern_load_entry *e, tern_error *err) {
    const tern_status status = make_room(file, e, err);
    if (status != TERN_OK)
        return status;
    e->is_ternary =
        tern_ternary_row_scales(e->format, e->tensor->data, e->rows, e->cols, e->row_scales);
    if (e->is_ternary) {
        settle_scales(e);
        return TERN_OK;
    }
    free(e->row_scales);
    e->row_scales = NULL;
    e->scale = 1.0f;
    return TERN_OK;
}

/* Reads the facts of a matrix that packing needs. */
static tern_status read_facts(const tern_gguf *file, const tern_reading *reading,
                              tern_load_entry *e, tern_error *err) {
    const tern_layout own = tern_format_layout(e->format);
    e->is_ternary = e->format == TERN_FORMAT_I2_S;
    if (e->tensor->type == TERN_GGUF_SPARSE_TYPE) {
        e->scale = tern_iebs_view(e->tensor->data).scale;
        return TERN_OK;
    }
    if (e->is_ternary)
        return read_codes(file, reading, e, err);
    return own != TERN_LAYOUT_NONE && tern_layout_input(own) == TERN_INPUT_TOKEN
               ? read_block_scales(file, e, err)
               : TERN_OK;
}

/* The rows of a matrix that a rank has are those of a kind. */
typedef struct share {
    const tern_split *split;
    tern_split_kind kind;
} share;

/* Sparse blocks and int4 of IEBIN folders are not divided: their rows are not bytes of their own.
 */
static tern_part part_of(const share *own, const tern_load_entry *e, uint32_t experts) {
    if (e->tensor->type == TERN_GGUF_SPARSE_TYPE || e->format == TERN_FORMAT_INT4)
        return (tern_part){0, e->rows};
    if (experts == 0)
        return tern_split_part(own->split, own->kind, e->rows);
    const tern_part part = tern_split_part(own->split, own->kind, experts);
    const size_t rows = e->rows / experts;
    return (tern_part){part.begin * rows, part.end * rows};
}

/* Lists a matrix of rows x cols, or if experts > 0 that many as one matrix of all their rows. */
static tern_status list_matrix(tern_load_list *l, const tern_reading *reading, const char *name,
                               uint32_t experts, size_t rows, size_t cols, const share *own,
                               tern_linear *to, tern_error *err) {
    const size_t n = experts > 0 ? experts : 1;
    const tern_gguf_tensor *t;
    const tern_status status = find(l->file, name, cols, rows, n, &t, err);
    if (status != TERN_OK)
        return status;
    if (experts > 0 && !is_of_rows(t) && t->type != TERN_GGUF_INT4_TYPE)
        return wrong_type(l->file, t, "cannot be cut into experts", err);
    if (tern_gguf_format(t) == TERN_FORMAT_NONE || t->bytes == 0)
        return wrong_type(l->file, t, "has no kernels", err);
    tern_load_entry *e = add(l, TERN_LOAD_MATRIX, t, n * rows, cols);
    e->to.linear = to;
    e->part = part_of(own, e, experts);
    *to = (tern_linear){
        .tensor = t, .experts = experts, .all_rows = e->rows, .first_row = e->part.begin};
    to->matrix =
        (tern_matrix){.format = e->format, .rows = e->part.end - e->part.begin, .cols = cols};
    return read_facts(l->file, reading, e, err);
}

/* The factors of a matrix; NULL: the file has none. */
static const tern_gguf_tensor *find_factor(const tern_gguf *file, const char *matrix) {
    char name[TERN_FACTOR_NAME_BYTES];
    tern_factor_name(matrix, "scale", name);
    return tern_gguf_find_tensor(file, name);
}

/* Lists the factors of a matrix that is listed: one for each expert, or one. */
static tern_status list_factor(tern_load_list *l, const char *matrix, uint32_t experts,
                               tern_linear *to, tern_error *err) {
    char name[TERN_FACTOR_NAME_BYTES];
    tern_factor_name(matrix, "scale", name);
    return find_factor(l->file, matrix) != NULL
               ? list_vector(l, name, experts > 0 ? experts : 1, 1.0f, &to->factor, err)
               : TERN_OK;
}

/* ---- the model ----------------------------------------------------------------------------- */

/* The inputs that the list is made from. */
typedef struct lister {
    tern_load_list *list;
    const tern_reading *reading;
    const tern_load_target *to;
} lister;

static tern_status list_layer(const lister *l, uint32_t n, tern_error *err) {
    const tern_config *c = l->to->config;
    tern_layer *layer = &l->to->layers[n];
    const tern_block_sizes sizes = tern_config_block(c);
    size_t count;
    const tern_block_tensor *tensors = tern_block_tensors(&count);
    tern_status status = TERN_OK;
    for (size_t i = 0; status == TERN_OK && i < count; i++) {
        const tern_block_tensor *t = &tensors[i];
        const size_t rows = tern_block_length(&sizes, t->rows);
        const size_t cols = tern_block_length(&sizes, t->columns);
        const uint32_t experts = t->routed ? c->n_expert : 0;
        const share own = {l->to->split, tern_split_kind_of(t)};
        char name[64];
        snprintf(name, sizeof name, "blk.%u.%s", n, t->name);
        if (!tern_block_has_in(c->arch, tern_config_kind_of(c, n), t))
            continue;
        if (t->kind == TERN_BLOCK_MATRIX) {
            tern_linear *to = tern_layer_matrix(layer, t);
            status = list_matrix(l->list, l->reading, name, experts, rows, cols, &own, to, err);
            if (status == TERN_OK)
                status = list_factor(l->list, name, experts, to, err);
        } else if (t->kind != TERN_BLOCK_BIAS || tern_gguf_find_tensor(l->list->file, name) != NULL)
            status = list_vectors(l->list, name, cols, t->routed ? experts : rows, 1.0f,
                                  tern_layer_vector(layer, t), err);
    }
    return status;
}

/* Lists the head that scores pairs of texts. Files of BERT have no dense part where another program
 * left it out. */
static tern_status list_rank_head(const lister *l, tern_error *err) {
    const uint32_t n = l->to->config->n_embd;
    tern_rank_head *head = &l->to->own->rank;
    tern_status status = TERN_OK;
    if (tern_gguf_find_tensor(l->list->file, TERN_RANK_DENSE) != NULL) {
        status = list_embedding(l->list, TERN_RANK_DENSE, n, n, TERN_CHECK_KEEP, &head->dense, err);
        if (status == TERN_OK)
            status = list_vector(l->list, TERN_RANK_DENSE_BIAS, n, 1.0f, &head->dense_bias, err);
    }
    if (status == TERN_OK)
        status = list_vector(l->list, TERN_RANK_OUT, n, 1.0f, &head->out, err);
    return status == TERN_OK
               ? list_vector(l->list, TERN_RANK_OUT_BIAS, 1, 1.0f, &head->out_bias, err)
               : status;
}

/* Lists what an encoder adds to the embedding of tokens, and the norm of the sum. */
static tern_status list_encoder(const lister *l, tern_error *err) {
    const tern_config *c = l->to->config;
    tern_weight_set *own = l->to->own;
    tern_status status = list_embedding(l->list, "position_embd.weight", c->n_ctx, c->n_embd,
                                        TERN_CHECK_KEEP, &own->positions, err);
    if (status == TERN_OK)
        status = list_embedding(l->list, "token_types.weight", c->n_types, c->n_embd,
                                TERN_CHECK_KEEP, &own->types, err);
    if (status == TERN_OK)
        status =
            list_vector(l->list, "token_embd_norm.weight", c->n_embd, 1.0f, &own->embd_norm, err);
    if (status == TERN_OK)
        status = list_vector(l->list, "token_embd_norm.bias", c->n_embd, 1.0f, &own->embd_norm_bias,
                             err);
    return status == TERN_OK && c->ranks ? list_rank_head(l, err) : status;
}

/* Lists the head, and after it the place of its image; a head with a factor has none, since
 * bounds of its products are not those of its logits. */
static tern_status list_head(const lister *l, const char *name, tern_error *err) {
    const tern_config *c = l->to->config;
    const share own = {l->to->split, TERN_SPLIT_VOCAB};
    tern_linear *head = &l->to->own->head;
    tern_status status =
        list_matrix(l->list, l->reading, name, 0, c->n_vocab, c->n_embd, &own, head, err);
    const bool scaled = find_factor(l->list->file, name) != NULL;
    if (status == TERN_OK && l->to->image != NULL && !scaled)
        add(l->list, TERN_LOAD_IMAGE, head->tensor, c->n_vocab, c->n_embd)->to.image = l->to->image;
    if (status == TERN_OK)
        status = list_factor(l->list, name, 0, head, err);
    return status;
}

/* Lists the tensors around the blocks. An embedding that is not the head is read where it lies, a
 * few rows for each token, so its pages are given back. */
static tern_status list_ends(const lister *l, tern_error *err) {
    static const char output[] = "output.weight", embedding[] = "token_embd.weight";
    const tern_config *c = l->to->config;
    tern_weight_set *own = l->to->own;
    const bool apart =
        !c->arch->embedding_head && tern_gguf_find_tensor(l->list->file, output) != NULL;
    tern_status status =
        list_embedding(l->list, embedding, c->n_vocab, c->n_embd,
                       apart ? TERN_CHECK_DROP : TERN_CHECK_NONE, &own->embedding, err);
    if (status == TERN_OK && c->arch->encodes)
        status = list_encoder(l, err);
    else if (status == TERN_OK)
        status = list_vector(l->list, "output_norm.weight", c->n_embd, c->logit_divisor,
                             &own->output_norm, err);
    return status == TERN_OK ? list_head(l, apart ? output : embedding, err) : status;
}

tern_status tern_load_list_make(tern_load_list *list, const tern_gguf *file,
                                const tern_reading *reading, const tern_load_target *target,
                                tern_error *err) {
    const lister l = {.list = list, .reading = reading, .to = target};
    const uint32_t n_layer = target->config->n_layer;
    size_t capacity;
    (void)tern_block_tensors(&capacity);
    capacity = (capacity + TERN_LAYER_LINEARS) * n_layer + AROUND_BLOCKS; /* with factors */
    *list = (tern_load_list){.file = file, .entries = malloc(capacity * sizeof *list->entries)};
    if (list->entries == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to list %zu tensors",
                         tern_gguf_name(file), capacity);
    tern_status status = TERN_OK;
    for (uint32_t n = 0; status == TERN_OK && n < n_layer; n++)
        status = list_layer(&l, n, err);
    return status == TERN_OK ? list_ends(&l, err) : status;
}

void tern_load_list_free(tern_load_list *l) {
    for (size_t i = 0; i < l->n; i++)
        free(l->entries[i].row_scales);
    free(l->entries);
    *l = (tern_load_list){.file = NULL};
}
