/* SPDX-License-Identifier: Apache-2.0 */
#include "base/grow.h"

#include <stdlib.h>

bool tern_grow(void **items, size_t *capacity, size_t n, size_t size, size_t most) {
    if (n < *capacity)
        return true;
    size_t wanted = *capacity > 0 ? 2 * *capacity : 16;
    while (wanted <= n)
        wanted *= 2;
    if (n >= most)
        return false;
    void *grown = realloc(*items, wanted * size);
    if (grown == NULL)
        return false;
    *items = grown;
    *capacity = wanted;
    return true;
}
