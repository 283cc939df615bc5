/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input as a file of sparse blocks. An accepted file can be read to its last value and has the
 * size that its header states; its rows hold only the stored values and zeros.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/iebs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile float sink; /* keeps the reads below from being optimised away */

/* Reads every row, except of matrices that a few bytes declare to be large. */
static void touch(const tern_iebs *m) {
    const size_t rows = m->rows < 1000 ? m->rows : 1000;
    if (m->cols > 1 << 16)
        return;
    float *row = malloc(m->cols * sizeof *row);
    for (size_t r = 0; row != NULL && r < rows; r++) {
        tern_iebs_row(m, r, row);
        sink += row[0] + row[m->cols - 1];
    }
    free(row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tern_error err = {0};
    tern_iebs m;
    uint32_t *words = malloc(size + 4); /* + 4: never empty; malloc aligns it */
    if (words == NULL)
        return 0;
    memcpy(words, data, size);
    const tern_status status = tern_iebs_check(words, size, &m, &err);
    if ((status == TERN_OK) != (err.message[0] == '\0') || (status == TERN_OK) != (m.rows > 0))
        abort();
    if (status == TERN_OK) {
        if (tern_iebs_bytes(&m) != size)
            abort();
        if (tern_iebs_values(&m, 0, tern_iebs_block_rows(&m), NULL) == TERN_OK)
            touch(&m);
    }
    free(words);
    return 0;
}
