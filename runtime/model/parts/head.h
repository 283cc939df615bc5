/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_PARTS_HEAD_H
#define TERN_RUNTIME_MODEL_PARTS_HEAD_H

/*
 * The certified output head. A float head is most of what a small model reads for a token, and
 * nearly all of it only to learn that a token is not the likeliest. So the head is kept a second
 * time in int8, at half the bytes of f16 or less. A scan of that image gives each logit within a
 * proven bound, and a caller that needs a logit's exact bits asks for the rows that matter
 * (logit_source.h): those are the canonical products of the float rows, so nothing that is decided
 * with them differs from what the whole float head decides.
 *
 * The bound. Row w, hidden state x; w' = scale * codes is the row's image, x' = codes * d the
 * quantized state, y the canonical float sum of w*x, a the scan's float result.
 *   |y - a| <= |y - w.x| + |(w - w').x| + |w'.(x - x')| + |w'.x' - a|
 *           <= g_n |w||x| + |w - w'||x| + |w'||x - x'| + g_b |w'||x'|
 * by Cauchy and Schwarz, |.| being Euclidean norms. g_k = k u / (1 - k u) with u = 2^-24 bounds
 * what k roundings can do to a sum of products (Higham, Accuracy and Stability of Numerical
 * Algorithms, 2nd ed., section 3.1): k is a product's rounding and the longest chain of additions
 * after it. Of these, |w - w'| + g_n |w| and |w'| are kept for each row, rounded up.
 */

#include "runtime/model/parts/linear.h"

/* At least u / (1 - k u) for all k that occur: k u < 2^-11. */
#define TERN_HEAD_ROUNDING (1.001 * 0x1p-24)

/* Factor of floats that bound real numbers from above: more than any rounding on their way. */
#define TERN_HEAD_UPWARDS (1.0 + 0x1p-20)

typedef struct tern_head_image {
    tern_linear scan;   /* INT8R16 with a scale a row, of the rows that the rank has. No tensor: no
                           image */
    const float *error; /* of each row of `scan`, at least |w - w'| + g_n |w| */
    const float *norm;  /* likewise, at least |w'| */
    float largest;      /* the largest error + norm of all ranks; infinite if a row's squares are */
} tern_head_image;

/* True if the head has an image, or in a model without weights would have one. */
static inline bool tern_head_is_imaged(const tern_head_image *image) {
    return image->scan.tensor != NULL;
}

/* How far the scan of one hidden state may be off: row r by error[r] * x + norm[r] * y. */
typedef struct tern_head_slack {
    float x, y;
    bool certain; /* false: numbers are so large that no bound holds */
} tern_head_slack;

/* The slack for a hidden state x[cols] and its form for the scan: q[cols], d[ceil(cols / 32)]. */
tern_head_slack tern_head_slack_of(const tern_head_image *image, const float *x, const int8_t *q,
                                   const float *d);

/* Bounds the logits of rows [r0, r1). `lower` holds the scan's results and becomes lower bounds;
 * `upper` gets upper bounds. Both are indexed by row. */
void tern_head_bounds(const tern_head_image *image, tern_head_slack slack, size_t r0, size_t r1,
                      float *lower, float *upper);

#endif
