/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/sparse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_map.h"
#include "runtime/model/load/dense_blocks.h"

/* A candidate block while blocks are chosen. */
typedef struct place {
    double energy;
    float largest;
    size_t index;
} place;

static place measure(const tern_iebs *m, const float *weights, size_t index) {
    const size_t columns = tern_iebs_block_columns(m);
    const size_t r0 = index / columns * m->block_rows, k0 = index % columns * m->block_cols;
    place p = {.index = index};
    for (size_t r = r0; r < r0 + m->block_rows && r < m->rows; r++) {
        for (size_t k = k0; k < k0 + m->block_cols && k < m->cols; k++) {
            const float w = weights[r * m->cols + k];
            p.energy += (double)w * (double)w;
            p.largest = fabsf(w) > p.largest ? fabsf(w) : p.largest;
        }
    }
    return p;
}

/* Orders by falling energy, then by rising place. */
static int compare_places(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->energy != y->energy)
        return x->energy > y->energy ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

/* Stores the first of the sorted blocks that are large enough. */
static void take_places(const convert_sparse_rule *rule, const place *places, convert_sparse *s) {
    const double most = rule->keep / 100.0 * (double)s->places;
    double energy = 0.0, lost = 0.0;
    for (size_t i = 0; i < s->places; i++) {
        const place *p = &places[i];
        energy += p->energy;
        if (p->largest == 0.0f) {
            s->zero++;
        } else if (p->largest >= rule->threshold && (double)s->form.blocks + 1.0 <= most) {
            s->stored[p->index] = true;
            s->form.blocks++;
        } else {
            s->dropped++;
            lost += p->energy;
            s->largest = p->largest > s->largest ? p->largest : s->largest;
        }
    }
    s->lost = energy > 0.0 ? lost / energy : 0.0;
}

/* Ternary weights are 0 and plus or minus the scale. */
static float scale_of(const float *weights, size_t n) {
    float scale = 0.0f;
    for (size_t i = 0; i < n; i++)
        scale = fabsf(weights[i]) > scale ? fabsf(weights[i]) : scale;
    return scale;
}

tern_status convert_sparse_choose(const convert_sparse_rule *rule, tern_format format,
                                  const float *weights, size_t rows, size_t cols,
                                  convert_sparse *out, tern_error *err) {
    *out = (convert_sparse){.form = {.format = format,
                                     .rows = (uint32_t)rows,
                                     .cols = (uint32_t)cols,
                                     .block_rows = rule->block_rows,
                                     .block_cols = rule->block_cols,
                                     .scale = 1.0f}};
    if (tern_iebs_bytes(&out->form) == 0 || out->form.rows != rows || out->form.cols != cols)
        return tern_fail(
            err, TERN_ERR_TENSOR_SHAPE, "%zu x %zu weights of %s in blocks of %u x %u cannot be%s",
            rows, cols, tern_format_describe(format)->name, rule->block_rows, rule->block_cols,
            format == TERN_FORMAT_I2_S ? ": their sides are 4, 8 or multiples of 16" : "");
    if (format == TERN_FORMAT_I2_S)
        out->form.scale = scale_of(weights, rows * cols);
    out->places = tern_iebs_block_rows(&out->form) * tern_iebs_block_columns(&out->form);
    out->stored = calloc(out->places, sizeof *out->stored);
    place *places = malloc(out->places * sizeof *places);
    if (out->stored == NULL || places == NULL) {
        free(places);
        convert_sparse_free(out);
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu x %zu weights in blocks", rows,
                         cols);
    }
    for (size_t i = 0; i < out->places; i++)
        places[i] = measure(&out->form, weights, i);
    qsort(places, out->places, sizeof *places, compare_places);
    take_places(rule, places, out);
    free(places);
    return TERN_OK;
}

void convert_sparse_free(convert_sparse *sparse) {
    free(sparse->stored);
    *sparse = (convert_sparse){.stored = NULL};
}

/* ---- tensors of a model ---------------------------------------------------------------------- */

static tern_status read_weights(const convert_tensor *t, float **out, tern_error *err) {
    float *weights = calloc(t->rows, t->cols * sizeof *weights);
    if (weights == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "tensor %s: no memory for its weights", t->name);
    for (size_t r = 0; r < t->rows; r++)
        t->row(t->context, r, weights + r * t->cols);
    for (size_t i = 0; i < t->rows * t->cols; i++)
        if (!isfinite(weights[i])) {
            free(weights);
            return tern_fail(err, TERN_ERR_TENSOR_DATA,
                             "tensor %s: row %zu has values that are not finite", t->name,
                             i / t->cols);
        }
    *out = weights;
    return TERN_OK;
}

static bool is_possible(const convert_tensor *t) {
    return t->target == t->source && tern_format_sparse_layout(t->target) != TERN_LAYOUT_NONE;
}

static tern_status make_sparse(convert_tensor *t, const convert_sparse_rule *rule, bool gladly,
                               tern_error *err) {
    tern_error why = {.status = TERN_OK};
    float *weights;
    if (!is_possible(t))
        return gladly
                   ? TERN_OK
                   : tern_fail(err, TERN_ERR_TENSOR_TYPE,
                               "tensor %s is %s and becomes %s: only f32, f16 and i2_s that stay "
                               "what they are become sparse",
                               t->name, t->origin, tern_format_describe(t->target)->name);
    tern_status status = read_weights(t, &weights, err);
    if (status != TERN_OK)
        return status;
    convert_sparse *s = calloc(1, sizeof *s);
    status = s == NULL ? tern_fail(&why, TERN_ERR_NOMEM, "no memory to make it sparse")
                       : convert_sparse_choose(rule, t->target, weights, t->rows, t->cols, s, &why);
    free(weights);
    if (status != TERN_OK) {
        free(s);
        return tern_fail(err, status, "tensor %s: %s", t->name, why.message);
    }
    const uint64_t bytes = tern_iebs_bytes(&s->form);
    if (gladly && (bytes >= t->bytes || !tern_blocks_pay_somewhere(&s->form))) {
        convert_sparse_free(s);
        free(s);
        return TERN_OK;
    }
    t->sparse = s;
    t->as_is = NULL;
    t->tiled = 0;
    t->bn = 0;
    t->bytes = bytes;
    return TERN_OK;
}

/* ---- layers by their names ------------------------------------------------------------------- */

static bool is_word(const char *word, size_t n, const char *text) {
    return strlen(text) == n && memcmp(word, text, n) == 0;
}

/* `word` names the tensor "blk.3.ffn_down.weight", as the header says. */
static bool names(const char *word, size_t n, const convert_tensor *t) {
    static const char ending[] = ".weight";
    const char *end = t->name + strlen(t->name) - (sizeof ending - 1);
    const char *inside = strncmp(t->name, "blk.", 4) == 0 ? strchr(t->name + 4, '.') : NULL;
    if (t->n_dims != 2 || inside == NULL || end <= inside || strcmp(end, ending) != 0)
        return false;
    return is_word(word, n, "all") || is_word(word, n, "auto") || is_word(word, n, t->name) ||
           (n == (size_t)(end - t->name) && memcmp(word, t->name, n) == 0) ||
           (n == (size_t)(inside - t->name) && memcmp(word, t->name, n) == 0) ||
           (n == (size_t)(end - inside - 1) && memcmp(word, inside + 1, n) == 0);
}

tern_status convert_sparse_plan(convert_job *job, const convert_sparse_rule *rule,
                                tern_error *err) {
    for (const char *word = rule->layers; *word != '\0';) {
        const size_t n = strcspn(word, ",");
        bool found = false;
        for (size_t i = 0; i < job->n; i++) {
            convert_tensor *t = &job->tensors[i];
            if (!names(word, n, t))
                continue;
            found = true;
            const tern_status status =
                t->sparse == NULL ? make_sparse(t, rule, is_word(word, n, "auto"), err) : TERN_OK;
            if (status != TERN_OK)
                return status;
        }
        if (!found)
            return tern_fail(err, TERN_ERR_NAME, "no matrix of a block is called '%.*s'", (int)n,
                             word);
        word += n + (word[n] == ',');
    }
    return TERN_OK;
}

tern_status convert_sparse_alone(convert_job *job, tern_error *err) {
    size_t kept = 0;
    for (size_t i = 0; i < job->n; i++)
        if (job->tensors[i].sparse != NULL)
            job->tensors[kept++] = job->tensors[i];
    job->n = kept;
    job->beside = true;
    return kept > 0 ? TERN_OK
                    : tern_fail(err, TERN_ERR_EMPTY,
                                "no matrix is smaller as blocks and fast on some instruction set: "
                                "there is nothing to write");
}

/* ---- writing --------------------------------------------------------------------------------- */

tern_status convert_sparse_write(const convert_tensor *t, tern_gguf_writer *w,
                                 convert_result *result, tern_error *err) {
    const convert_sparse *s = t->sparse;
    float *weights;
    tern_status status = read_weights(t, &weights, err);
    if (status != TERN_OK)
        return status;
    void *bytes = malloc((size_t)t->bytes);
    if (bytes == NULL) {
        status = tern_fail(err, TERN_ERR_NOMEM, "tensor %s: no memory for its blocks", t->name);
    } else {
        tern_iebs_write(&s->form, s->stored, weights, bytes);
        status = tern_gguf_writer_data(w, bytes, (size_t)t->bytes, err);
    }
    *result = (convert_result){.outcome = s->dropped > 0 ? CONVERT_LOSSY : CONVERT_LOSSLESS,
                               .error = sqrt(s->lost)};
    free(bytes);
    free(weights);
    return status;
}

static tern_status check_dense(const char *path, const tern_file_map *map, size_t rows, size_t cols,
                               tern_error *err) {
    const float *weights = (const float *)(const void *)tern_file_map_bytes(map);
    size_t n, bytes;
    if (__builtin_mul_overflow(rows, cols, &n) ||
        __builtin_mul_overflow(n, sizeof(float), &bytes) || bytes != tern_file_map_size(map))
        return tern_fail(err, TERN_ERR_TENSOR_RANGE,
                         "%s: %zu bytes are not %zu x %zu floats of 4 bytes", path,
                         tern_file_map_size(map), rows, cols);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(weights[i]))
            return tern_fail(err, TERN_ERR_TENSOR_DATA, "%s: row %zu, column %zu is not finite",
                             path, i / cols, i % cols);
    return TERN_OK;
}

static tern_status write_file(const convert_sparse *s, const float *weights, const char *target,
                              tern_out_mode mode, tern_error *err) {
    const size_t size = (size_t)tern_iebs_bytes(&s->form);
    tern_out_file *file = NULL;
    void *bytes = malloc(size);
    if (bytes == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for %zu bytes", target, size);
    tern_iebs_write(&s->form, s->stored, weights, bytes);
    tern_status status = tern_out_file_create(target, mode, &file, err);
    if (status == TERN_OK)
        status = tern_out_file_write(file, bytes, size, err);
    free(bytes);
    if (status == TERN_OK)
        return tern_out_file_commit(&file, err);
    tern_out_file_discard(&file);
    return status;
}

tern_status convert_sparse_file(const char *path, size_t rows, size_t cols,
                                const convert_sparse_rule *rule, const char *target,
                                tern_out_mode mode, convert_sparse *out, tern_error *err) {
    tern_file_map *map = NULL;
    *out = (convert_sparse){.stored = NULL};
    tern_status status = tern_file_map_open(path, &map, err);
    if (status != TERN_OK)
        return status;
    const float *weights = (const float *)(const void *)tern_file_map_bytes(map);
    status = check_dense(path, map, rows, cols, err);
    if (status == TERN_OK)
        status = convert_sparse_choose(rule, TERN_FORMAT_F32, weights, rows, cols, out, err);
    if (status == TERN_OK)
        status = write_file(out, weights, target, mode, err);
    if (status != TERN_OK)
        convert_sparse_free(out);
    tern_file_map_close(&map);
    return status;
}
