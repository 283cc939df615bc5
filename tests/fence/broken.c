/* SPDX-License-Identifier: Apache-2.0 */
/* Does with a block of memory what the argument says: test_fence.py sees which end it comes to. */
#include <stdlib.h>
#include <string.h>

int main(int n, char **words) {
    const char *word = n > 1 ? words[1] : "";
    volatile char *block = n > 2 ? aligned_alloc(64, (size_t)atoi(words[2])) : malloc(24);
    const size_t size = n > 2 ? (size_t)atoi(words[2]) : 24;
    if (block == NULL)
        return 1;
    if (strcmp(word, "unset") == 0)
        return (unsigned char)block[0] == 0xa5 ? 65 : 0;
    if (strcmp(word, "read") == 0)
        return block[size];
    if (strcmp(word, "write") == 0)
        block[size] = 0;
    if (strcmp(word, "grow") == 0)
        block = realloc((void *)block, 2 * size);
    if (strcmp(word, "leave") == 0)
        return 0;
    if (strcmp(word, "fail") == 0)
        return 3;
    free((void *)block);
    if (strcmp(word, "twice") == 0)
        free((void *)block);
    return strcmp(word, "after") == 0 ? block[0] : 0;
}
