/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/load/load.h"

static void *grow(void *data, size_t size) {
    void *grown = realloc(data, size);
    if (grown == NULL) {
        (void)fprintf(stderr, "load: no memory for %zu bytes\n", size);
        exit(1);
    }
    return grown;
}

void bytes_add(bytes *b, const char *data, size_t size) {
    if (b->size + size + 1 > b->capacity) {
        b->capacity = 2 * (b->size + size) + 256;
        b->data = grow(b->data, b->capacity);
    }
    if (size > 0)
        memcpy(b->data + b->size, data, size);
    b->size += size;
    b->data[b->size] = '\0';
}

void bytes_print(bytes *b, const char *format, ...) {
    char line[1024];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    bytes_add(b, line, n > 0 && (size_t)n < sizeof line ? (size_t)n : 0);
}

void bytes_drop(bytes *b, size_t size) {
    if (size > 0) {
        memmove(b->data, b->data + size, b->size - size + 1);
        b->size -= size;
    }
}

void bytes_free(bytes *b) {
    free(b->data);
    *b = (bytes){0};
}

uint32_t random_below(uint64_t *state, uint32_t n) {
    uint64_t z = *state += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return (uint32_t)(((z ^ (z >> 31)) >> 32) * n >> 32);
}

void samples_add(samples *s, double value) {
    if (s->n == s->capacity) {
        s->capacity = 2 * s->capacity + 1024;
        s->values = grow(s->values, s->capacity * sizeof *s->values);
    }
    s->values[s->n++] = value;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double samples_at(samples *s, double share) {
    if (s->n == 0)
        return 0.0;
    qsort(s->values, s->n, sizeof *s->values, compare);
    const size_t at = (size_t)(share * (double)s->n);
    return s->values[at < s->n ? at : s->n - 1];
}

void samples_free(samples *s) {
    free(s->values);
    *s = (samples){0};
}
