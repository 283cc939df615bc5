/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/recode.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "authoring/convert/formats.h"
#include "authoring/convert/int4.h"
#include "authoring/convert/sparse.h"

enum {
    PIECE_FLOATS = 1 << 21,  /* values that are held as floats at a time */
    COPIED_AT_ONCE = 1 << 24 /* bytes; small enough to show progress */
};

/* Half a step of f16: the error that an exactly ternary matrix may have after its scale is rounded
 * to f16. */
static const double SCALE_ROUNDING = 0x1p-11;

/* The contribution of a row to the error of its tensor. */
typedef struct row_sums {
    double difference, values; /* sums of squares */
    bool same, failed;
} row_sums;

/* Rows that are recoded together. */
typedef struct piece {
    const convert_tensor *t;
    size_t first, rows;
    size_t row_bytes; /* 0: the format is made from the whole matrix */
    float scale;      /* I2_S, once its codes are made */
    float *w; /* [matrices][cols] weights of the columns; NULL: all weigh the same, and the format
               * has no grid */
    const tern_grid_search *search; /* of the target, if it has a grid */
    float *x;                       /* [rows][cols] */
    float *back;                    /* [workers][cols] a worker's row, decoded again */
    uint8_t *out;
    row_sums *sums; /* [rows] */
} piece;

static bool all_finite(const float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

/* The column weights of row r: those of its matrix. */
static const float *weights_of(const piece *p, size_t r) {
    const size_t rows = p->t->rows / convert_matrices(p->t);
    return p->w != NULL ? p->w + (p->first + r) / rows * p->t->cols : NULL;
}

/* Encodes row r in the target's format; false: it has values that the format cannot hold. */
static bool encode_row(const piece *p, size_t r, const float *x, uint8_t *out) {
    const convert_tensor *t = p->t;
    const float *w = weights_of(p, r);
    if (t->target == TERN_FORMAT_INT4)
        return convert_int4_encode(&t->int4, x, w, t->cols, out);
    if (t->bn != 0)
        return tern_bn_write_row(t->bn, x, t->cols, out);
    return w != NULL ? tern_quantize_important(t->target, p->search, x, w, t->cols, out)
                     : tern_quantize_weights(t->target, x, 1, t->cols, out, NULL, NULL) == TERN_OK;
}

/* Decodes row r of a piece. */
static void decode_row(const piece *p, size_t r, float *back) {
    const convert_tensor *t = p->t;
    if (t->target == TERN_FORMAT_INT4)
        convert_int4_decode(&t->int4, p->out + r * p->row_bytes, t->cols, back);
    else if (t->bn != 0)
        tern_bn_floats(t->bn, p->out + r * p->row_bytes, t->cols, back);
    else
        tern_dequantize_row(t->target, p->out, t->cols, r, p->scale, back);
}

static void fetch_rows(tern_worker worker, void *argument) {
    piece *p = argument;
    const size_t cols = p->t->cols;
    const tern_part part = tern_team_split(worker, p->rows, 1);
    for (size_t r = part.begin; r < part.end; r++) {
        float *x = p->x + r * cols;
        p->t->row(p->t->context, p->first + r, x);
        p->sums[r] = (row_sums){.same = true, .failed = !all_finite(x, cols)};
        if (p->row_bytes > 0 && !p->sums[r].failed) {
            p->sums[r].failed = !encode_row(p, r, x, p->out + r * p->row_bytes);
        }
    }
}

static void measure_rows(tern_worker worker, void *argument) {
    piece *p = argument;
    const size_t cols = p->t->cols;
    float *back = p->back + worker.index * cols;
    const tern_part part = tern_team_split(worker, p->rows, 1);
    for (size_t r = part.begin; r < part.end; r++) {
        const float *x = p->x + r * cols;
        row_sums *sums = &p->sums[r];
        decode_row(p, r, back);
        for (size_t i = 0; i < cols; i++) {
            const double difference = (double)x[i] - (double)back[i];
            sums->same = sums->same && x[i] == back[i];
            sums->difference += difference * difference;
            sums->values += (double)x[i] * (double)x[i];
        }
    }
}

static tern_status check_rows(const piece *p, tern_error *err) {
    for (size_t r = 0; r < p->rows; r++) {
        if (p->sums[r].failed) {
            return tern_fail(err, TERN_ERR_TENSOR_DATA,
                             "tensor %s: row %zu has values that are not finite or too large for "
                             "%s",
                             p->t->name, p->first + r, tern_format_describe(p->t->target)->name);
        }
    }
    return TERN_OK;
}

static tern_status recode_piece(piece *p, tern_team *team, row_sums *total, tern_error *err) {
    const convert_tensor *t = p->t;
    tern_team_run(team, fetch_rows, p);
    tern_status status = check_rows(p, err);
    if (status == TERN_OK && p->row_bytes == 0) {
        status = tern_quantize_weights(t->target, p->x, p->rows, t->cols, p->out, NULL, err);
        p->scale = tern_format_scale(t->target, p->out, p->rows, t->cols);
    }
    if (status != TERN_OK)
        return status;
    tern_team_run(team, measure_rows, p);
    for (size_t r = 0; r < p->rows; r++) { /* in order, so the sum does not depend on the team */
        total->same = total->same && p->sums[r].same;
        total->difference += p->sums[r].difference;
        total->values += p->sums[r].values;
    }
    return TERN_OK;
}

/* Writes a whole I2_S tensor, in tiles if it is planned so. */
static tern_status write_tiles(const convert_tensor *t, const uint8_t *i2s, tern_gguf_writer *w,
                               tern_error *err) {
    tern_error why = {.status = TERN_OK};
    uint8_t *file = malloc((size_t)t->bytes);
    if (file == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "tensor %s: no memory for its tiles", t->name);
    tern_status status = tern_tl_export(t->tiled, i2s, t->rows, t->cols, &t->tiles, file, &why);
    status = status == TERN_OK ? tern_gguf_writer_data(w, file, (size_t)t->bytes, err)
                               : tern_fail(err, status, "tensor %s: %s", t->name, why.message);
    free(file);
    return status;
}

static tern_status copy_bytes(const convert_tensor *t, tern_gguf_writer *w, tern_error *err) {
    tern_status status = TERN_OK;
    for (uint64_t at = 0; status == TERN_OK && at < t->bytes; at += COPIED_AT_ONCE) {
        const uint64_t left = t->bytes - at;
        const size_t n = left < COPIED_AT_ONCE ? (size_t)left : COPIED_AT_ONCE;
        status = tern_gguf_writer_data(w, t->as_is + at, n, err);
    }
    return status;
}

/* Writes a tensor whose rows only lie in another order, some at a time. */
static tern_status copy_rows(const convert_tensor *t, tern_gguf_writer *w, tern_error *err) {
    const size_t row_bytes = (size_t)(t->bytes / t->rows);
    const size_t fit = COPIED_AT_ONCE / row_bytes, step = fit > 0 ? fit : 1;
    uint8_t *out = malloc((step < t->rows ? step : t->rows) * row_bytes);
    tern_status status = TERN_OK;
    if (out == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "tensor %s: no memory for %zu of its rows", t->name,
                         step);
    for (size_t first = 0; status == TERN_OK && first < t->rows; first += step) {
        const size_t n = t->rows - first < step ? t->rows - first : step;
        for (size_t r = 0; r < n; r++)
            t->raw(t->context, first + r, out + r * row_bytes);
        status = tern_gguf_writer_data(w, out, n * row_bytes, err);
        if (t->written != NULL)
            t->written(t->context, first, n);
    }
    free(out);
    return status;
}

/* The kind of weights that a coarse format stores exactly. */
static const char *coarse_kind(tern_format format) {
    switch (format) {
    case TERN_FORMAT_Q1_0:
        return "binary";
    case TERN_FORMAT_STQ1_0:
        return "ternary with one zero in four";
    default:
        return "ternary";
    }
}

static tern_status judge(const convert_tensor *t, const row_sums *total, bool force,
                         convert_result *result, tern_error *err) {
    const double error =
        total->values > 0.0 ? sqrt(total->difference / total->values) : total->difference;
    if (convert_is_coarse(t->target) && !force && error > SCALE_ROUNDING) {
        const uint32_t columns = tern_format_describe(t->target)->block_elements;
        char run[32] = "all";
        if (t->bn != 0)
            snprintf(run, sizeof run, "each row");
        else if (t->target != TERN_FORMAT_I2_S)
            snprintf(run, sizeof run, "each %" PRIu32 " columns", columns);
        return tern_fail(err, TERN_ERR_TENSOR_DATA,
                         "tensor %s (%s) is not %s with one scale for %s: %s would change it "
                         "by %.1f %% (root mean square); --force-ternary does it all the same",
                         t->name, t->origin, coarse_kind(t->target), run,
                         tern_format_describe(t->target)->name, 100.0 * error);
    }
    result->outcome = total->same ? CONVERT_LOSSLESS : CONVERT_LOSSY;
    result->error = error;
    return TERN_OK;
}

/* Rows in a piece: all of them if the format needs them together, otherwise as many as fit, at
 * least one. */
static size_t rows_of_piece(const convert_tensor *t) {
    const size_t fit = PIECE_FLOATS / t->cols > 0 ? PIECE_FLOATS / t->cols : 1;
    const bool whole = t->target == TERN_FORMAT_I2_S && t->bn == 0;
    return whole || fit > t->rows ? t->rows : fit;
}

static tern_status recode_all(piece *p, size_t step, tern_team *team, tern_gguf_writer *w,
                              row_sums *total, tern_error *err) {
    const convert_tensor *t = p->t;
    tern_status status = TERN_OK;
    for (size_t first = 0; status == TERN_OK && first < t->rows; first += step) {
        p->first = first;
        p->rows = t->rows - first < step ? t->rows - first : step;
        status = recode_piece(p, team, total, err);
        if (status == TERN_OK && t->tiled != 0) {
            status = write_tiles(t, p->out, w, err); /* the piece holds all rows */
        } else if (status == TERN_OK) {
            const size_t bytes = p->row_bytes > 0 ? p->rows * p->row_bytes : (size_t)t->bytes;
            status = tern_gguf_writer_data(w, p->out, bytes, err);
        }
        if (t->written != NULL)
            t->written(t->context, first, p->rows);
    }
    return status;
}

/* Allocates and fills the weights of the columns, which for a grid are 1 where importance is not
 * known; true also if there are none. */
static bool weigh_columns(piece *p) {
    const tern_importance_entry *e = p->t->importance;
    if (e == NULL && p->search == NULL)
        return true;
    const size_t n = convert_matrices(p->t), cols = p->t->cols;
    p->w = calloc(n, cols * sizeof *p->w);
    for (size_t i = 0; p->w != NULL && e != NULL && i < n; i++)
        tern_importance_weights(e, cols, i, p->w + i * cols);
    for (size_t i = 0; p->w != NULL && e == NULL && i < n * cols; i++)
        p->w[i] = 1.0f;
    return p->w != NULL;
}

tern_status convert_recode(const convert_tensor *t, const convert_tools *tools, tern_gguf_writer *w,
                           convert_result *result, tern_error *err) {
    if (t->sparse != NULL)
        return convert_sparse_write(t, w, result, err);
    if (t->as_is != NULL) {
        const bool same =
            !t->tiled && strcmp(t->origin, tern_format_describe(t->target)->name) == 0;
        *result = (convert_result){.outcome = same ? CONVERT_COPIED : CONVERT_LOSSLESS};
        return t->tiled ? write_tiles(t, t->as_is, w, err) : copy_bytes(t, w, err);
    }
    if (t->raw != NULL) {
        *result = (convert_result){.outcome = CONVERT_LOSSLESS};
        return copy_rows(t, w, err);
    }
    const size_t step = rows_of_piece(t);
    uint64_t row_bytes = 0, all_bytes = 0;
    if (t->target == TERN_FORMAT_INT4) {
        row_bytes = tern_int4_row_bytes(&t->int4, t->cols);
    } else if (t->bn != 0) {
        row_bytes = tern_bn_row_bytes(t->bn, t->cols);
    } else if (t->target != TERN_FORMAT_I2_S &&
               tern_format_bytes(t->target, 1, t->cols, &row_bytes) != TERN_OK) {
        return tern_fail(err, TERN_ERR_TENSOR_SHAPE, "tensor %s: %zu columns cannot be %s", t->name,
                         t->cols, tern_format_describe(t->target)->name);
    }
    if (row_bytes == 0 && tern_format_bytes(t->target, t->rows, t->cols, &all_bytes) != TERN_OK)
        return tern_fail(err, TERN_ERR_TENSOR_SHAPE, "tensor %s: %zu x %zu cannot be %s", t->name,
                         t->rows, t->cols, tern_format_describe(t->target)->name);
    row_sums total = {.same = true};
    piece p = {.t = t,
               .row_bytes = (size_t)row_bytes,
               .scale = 1.0f,
               .search = tools->searches[t->target]};
    p.x = calloc(step * t->cols, sizeof *p.x);
    p.back = calloc(tern_team_size(tools->team) * t->cols, sizeof *p.back);
    p.out = malloc(row_bytes > 0 ? step * (size_t)row_bytes : (size_t)all_bytes);
    p.sums = calloc(step, sizeof *p.sums);
    tern_status status = TERN_OK;
    if (!weigh_columns(&p) || p.x == NULL || p.back == NULL || p.out == NULL || p.sums == NULL) {
        status = tern_fail(err, TERN_ERR_NOMEM, "tensor %s: no memory for %zu of its rows", t->name,
                           step);
    } else {
        status = recode_all(&p, step, tools->team, w, &total, err);
    }
    if (status == TERN_OK)
        status = judge(t, &total, tools->force, result, err);
    free(p.x);
    free(p.back);
    free(p.out);
    free(p.sums);
    free(p.w);
    return status;
}
