/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/near_word.h"

#include <string.h>

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Optimal string alignment, three rows of the table at a time. */
size_t word_distance(const char *a, const char *b) {
    const size_t na = strnlen(a, WORD_BYTES);
    const size_t nb = strnlen(b, WORD_BYTES);
    size_t rows[3][WORD_BYTES + 1];
    for (size_t j = 0; j <= nb; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i - 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            row[j] = least(above[j - 1] + (a[i - 1] != b[j - 1]), least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], rows[(i - 2) % 3][j - 2] + 1);
        }
    }
    return rows[na % 3][nb];
}

bool word_is_near(size_t distance, const char *word) {
    return distance <= 1 + strlen(word) / 4 && distance < strlen(word);
}
