/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/head.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/model/load/weight_check.h"

/* ---- the image ----------------------------------------------------------------------------- */

/* At least u / (1 - k u) for all k that are met here: k u < 2^-11. */
#define ROUNDING (1.001 * 0x1p-24)

/* Floats that stand for real numbers from above are made larger than any rounding on their way. */
#define UPWARDS (1.0 + 0x1p-20)

/* Squares below 2^-149 vanish: numbers below 2^-74, 2^16 of them have a norm of 2^-66. */
#define UNDERFLOW 0x1p-64

/* Beyond it sums of float squares could be off by more than is allowed for. No model is as wide. */
enum { MAX_COLS = 1 << 16 };

/* One image in the making, shared by the team. */
typedef struct imaging {
    tern_load_job job; /* its memory: scratch */
    tern_matrix head;
    const tern_kernel_row *widen;    /* a row of the head to floats */
    const tern_kernel_row *quantize; /* floats to codes, with one scale */
    tern_matrix image;
    uint8_t *data;
    float *scale, *error, *norm;
} imaging;

/* Of one worker: 16 rows of codes and one of floats, both padded. */
static size_t codes_stride(size_t cols) {
    return (cols + TERN_Q_PAD - 1) / TERN_Q_PAD * TERN_Q_PAD;
}

static size_t scratch_size(size_t cols) {
    return codes_stride(cols) * (TERN_ROW_GROUP + 1 + sizeof(float));
}

/*
 * Sums of squares of w - scale * q, w and q. Sixteen lanes of floats each, for the compiler to make
 * vectors of; cols / 16 additions and a few more round each sum by less than 2^-10 of it.
 */
typedef struct squares {
    double difference, weights;
    uint64_t codes;
} squares;

enum { LANES = 16 };

static double sum_lanes(const float *lanes) {
    double sum = 0.0;
    for (size_t j = 0; j < LANES; j++)
        sum += (double)lanes[j];
    return sum * (1.0 + 0x1p-10);
}

static squares add_squares(const float *restrict w, const int8_t *restrict q, float scale,
                           size_t padded) {
    float d2[LANES] = {0}, w2[LANES] = {0};
    int32_t q2[LANES] = {0}; /* at most 127^2 * 2^16 columns < 2^31 */
    for (size_t i = 0; i < padded; i += LANES)
        for (size_t j = 0; j < LANES; j++) {
            const float d = w[i + j] - scale * (float)q[i + j];
            d2[j] += d * d;
            w2[j] += w[i + j] * w[i + j];
            q2[j] += q[i + j] * q[i + j];
        }
    squares s = {.difference = sum_lanes(d2), .weights = sum_lanes(w2)};
    for (size_t j = 0; j < LANES; j++)
        s.codes += (uint64_t)q2[j];
    return s;
}

/* Codes, scale and norms of row r, with x and q as scratch. */
static void image_row(const imaging *m, size_t r, float *x, int8_t *q) {
    const tern_matrix *w = &m->head;
    const size_t cols = w->cols;
    float s;
    int32_t sum;
    m->widen->fn.embed(tern_float_row(w, r), cols, x);
    m->quantize->fn.quantize_token(x, cols, q, &s, &sum);
    const float scale = 1.0f / s;
    const squares n = add_squares(x, q, scale, codes_stride(cols));
    /* scale * q was rounded, to 2^-24 of itself, and so was the difference. */
    const double codes = (double)scale * sqrt((double)n.codes);
    const double weights = sqrt(n.weights);
    const double difference = sqrt(n.difference) + 0x1p-22 * (codes + weights) + UNDERFLOW;
    const double chain = (double)(cols / TERN_LANES + 8); /* a product, its lane, the tree */
    m->scale[r] = scale;
    m->error[r] = (float)((difference + chain * ROUNDING * weights) * UPWARDS);
    m->norm[r] = (float)(codes * UPWARDS);
    if (!isfinite(m->error[r]) || !isfinite(m->norm[r])) { /* squares beyond the largest float */
        memset(q, 0, cols);
        m->scale[r] = 0.0f;
        m->error[r] = INFINITY;
        m->norm[r] = 0.0f;
    }
}

static tern_status image_rows(tern_load_job *job, tern_worker worker, size_t begin, size_t end,
                              tern_error *err) {
    const imaging *m = (const imaging *)(const void *)job;
    const size_t cols = m->image.cols;
    const size_t stride = codes_stride(cols);
    const size_t group_bytes = tern_packed_bytes(m->image.layout, TERN_ROW_GROUP, cols);
    uint8_t *scratch = (uint8_t *)job->memory + worker.index * scratch_size(cols);
    float *x = (float *)(void *)scratch;
    int8_t *q = (int8_t *)scratch + stride * sizeof(float);
    int8_t *codes = q + stride;
    tern_status status = TERN_OK;
    for (size_t r0 = begin; r0 < end && status == TERN_OK; r0 += TERN_ROW_GROUP) {
        const size_t rows = end - r0 < TERN_ROW_GROUP ? end - r0 : TERN_ROW_GROUP;
        status = tern_weight_check(m->head.format, m->head.data, cols, r0, r0 + rows, err);
        if (status != TERN_OK)
            return status;
        for (size_t i = 0; i < rows; i++) {
            image_row(m, r0 + i, x, q);
            memcpy(codes + i * cols, q, cols);
        }
        status = tern_pack_rows(TERN_FORMAT_INT8, codes, rows, cols, m->image.layout, 0, rows,
                                m->data + r0 / TERN_ROW_GROUP * group_bytes, err);
    }
    return status;
}

static tern_status no_kernels(const tern_loader *l, tern_error *err) {
    return l->guard->no_memory
               ? tern_fail(err, TERN_ERR_NOMEM, "no memory to try kernels of the output head")
               : tern_fail(err, TERN_ERR_KERNEL, "no kernels for an int8 head");
}

/* Notes down that the image is to be made. */
static tern_status note_imaging(tern_loader *l, const tern_linear *head, const imaging *wanted,
                                tern_error *err) {
    const size_t bytes = tern_team_size(l->team) * scratch_size(wanted->image.cols);
    imaging *m = malloc(sizeof *m);
    void *scratch = aligned_alloc(TERN_ALIGN, bytes);
    if (m == NULL || scratch == NULL) {
        free(m);
        free(scratch);
        return tern_fail(err, TERN_ERR_NOMEM, "no memory to make the int8 image of the head");
    }
    memset(scratch, 0, bytes); /* what lies after cols in x stays 0 */
    *m = *wanted;
    m->widen =
        tern_guard_operation(l->guard, TERN_OP_EMBED, m->head.format, m->head.data, m->head.cols);
    if (m->widen != NULL)
        m->quantize =
            tern_guard_operation(l->guard, TERN_OP_QUANTIZE_TOKEN, TERN_FORMAT_NONE, NULL, 0);
    if (m->widen == NULL || m->quantize == NULL) {
        free(m);
        free(scratch);
        return no_kernels(l, err);
    }
    const size_t row_bytes = (size_t)(tern_float_row(&m->head, 1) - tern_float_row(&m->head, 0));
    m->job = (tern_load_job){.make = image_rows,
                             .rows = m->image.rows,
                             .row_bytes = row_bytes,
                             .memory = scratch,
                             .file = l->file,
                             .tensor = head->tensor};
    if (m->head.data == head->tensor->data) /* its float rows will be read rarely */
        m->job.source = head->tensor->data;
    tern_load_jobs_add(&l->jobs, &m->job);
    return TERN_OK;
}

static float largest_of(const tern_head_image *image) {
    float largest = 0.0f;
    for (size_t r = 0; r < image->scan.matrix.rows; r++) {
        const float bound = image->error[r] + image->norm[r];
        largest = bound > largest ? bound : largest;
    }
    return largest;
}

/* Memory for the parts of an image. */
static tern_status place(tern_loader *l, imaging *m, tern_error *err) {
    const size_t rows = m->image.rows;
    const size_t bytes = tern_packed_bytes(m->image.layout, rows, m->image.cols);
    void *memory[4] = {NULL};
    tern_status status = tern_loader_take(l, "head codes", bytes, 1, &memory[0], err);
    for (size_t i = 1; status == TERN_OK && i < 4; i++)
        status = tern_loader_take(l, "head norms", rows, sizeof(float), &memory[i], err);
    m->data = memory[0];
    m->scale = memory[1];
    m->error = memory[2];
    m->norm = memory[3];
    return status;
}

/* The parts of a finished image. */
static void take_over(imaging *m, const tern_head_image *shared) {
    m->data = (uint8_t *)(uintptr_t)shared->scan.matrix.data; /* read-only from here on */
    m->scale = (float *)(uintptr_t)shared->scan.matrix.row_scale;
    m->error = (float *)(uintptr_t)shared->error;
    m->norm = (float *)(uintptr_t)shared->norm;
}

tern_status tern_load_head_image(tern_loader *l, const tern_linear *head,
                                 const tern_head_image *shared, tern_head_image *out,
                                 tern_error *err) {
    *out = (tern_head_image){.largest = INFINITY};
    if (head->matrix.layout != TERN_LAYOUT_ROWS || tern_matrix_is_decoded(&head->matrix) ||
        head->matrix.cols > MAX_COLS)
        return TERN_OK;
    tern_head_image image = {.scan = {.form = TERN_INPUT_BLOCK, .tensor = head->tensor}};
    imaging m = {.head = head->matrix};
    image.scan.matrix = (tern_matrix){.format = TERN_FORMAT_INT8,
                                      .layout = TERN_LAYOUT_INT8R16,
                                      .rows = head->matrix.rows,
                                      .cols = head->matrix.cols};
    tern_loader_choose(l, &image.scan);
    m.image = image.scan.matrix;
    const bool is_made = shared != NULL && shared->scan.matrix.layout == m.image.layout;
    tern_status status = TERN_OK;
    if (is_made)
        take_over(&m, shared);
    else
        status = place(l, &m, err);
    if (status == TERN_OK && l->stage == TERN_LOAD_FILL && !is_made)
        status = note_imaging(l, head, &m, err);
    if (status != TERN_OK || l->stage != TERN_LOAD_USE) {
        *out = image; /* of a plan: what there would be */
        return status;
    }
    image.scan.matrix.data = m.data;
    image.scan.matrix.row_scale = m.scale;
    image.error = m.error;
    image.norm = m.norm;
    image.largest = largest_of(&image);
    image.scan.gemv = tern_guard_product(l->guard, TERN_OP_GEMV, &image.scan.matrix,
                                         image.scan.gemv, "output head");
    image.scan.gemm = tern_guard_product(l->guard, TERN_OP_GEMM, &image.scan.matrix,
                                         image.scan.gemm, "output head");
    *out = image;
    return image.scan.gemv != NULL && image.scan.gemm != NULL ? TERN_OK : no_kernels(l, err);
}

/* ---- bounds -------------------------------------------------------------------------------- */

tern_head_slack tern_head_slack_of(const tern_head_image *image, const float *x, const int8_t *q,
                                   const float *d) {
    const size_t cols = image->scan.matrix.cols;
    double x2 = 0.0, difference2 = 0.0;
    for (size_t i = 0; i < cols; i++) {
        const double rounded = (double)q[i] * (double)d[i / TERN_BLOCK];
        const double difference = (double)x[i] - rounded;
        x2 += (double)x[i] * (double)x[i];
        difference2 += difference * difference;
    }
    const double norm = sqrt(x2);
    const double difference = sqrt(difference2);
    /* The scan: a product and an addition a block, the scale; then the rounding of a -+ bound. */
    const double chain = (double)((cols + TERN_BLOCK - 1) / TERN_BLOCK + 8);
    const double y = difference + chain * ROUNDING * (norm + difference);
    return (tern_head_slack){.x = (float)(norm * UPWARDS),
                             .y = (float)(y * UPWARDS),
                             /* Neither x and y nor a sum of products on its way can overflow;
                              * false for NaN too. */
                             .certain = norm + y < 0x1p120 &&
                                        (double)image->largest * (norm + y) < 0x1p120};
}

/* Far above what denormal products can lose, 2^-149 each, far below what matters. */
static const float denormals = 0x1p-100f;

void tern_head_bounds(const tern_head_image *image, tern_head_slack slack, size_t r0, size_t r1,
                      float *lower, float *upper) {
    const float *restrict error = image->error;
    const float *restrict norm = image->norm;
    float *restrict low = lower;
    float *restrict high = upper;
    for (size_t r = r0; r < r1; r++) {
        const float bound = (error[r] * slack.x + norm[r] * slack.y) * (float)UPWARDS + denormals;
        const float middle = low[r];
        low[r] = middle - bound;
        high[r] = middle + bound;
    }
}
