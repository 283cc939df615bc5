/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stops.h"

#include <stdlib.h>
#include <string.h>

size_t tern_stops_match(const tern_stops *s, const char *text, size_t size) {
    size_t longest = 0;
    for (size_t i = 0; i < s->n; i++) {
        const size_t n = strlen(s->texts[i]);
        if (n > longest && n <= size && memcmp(text + size - n, s->texts[i], n) == 0)
            longest = n;
    }
    return longest;
}

/* The longest suffix of text[size] that is a proper beginning of stop, if longer than known. */
static size_t held_by(const char *stop, const char *text, size_t size, size_t known) {
    const size_t n = strlen(stop);
    for (size_t k = n - 1 < size ? n - 1 : size; k > known; k--)
        if (memcmp(text + size - k, stop, k) == 0)
            return k;
    return known;
}

size_t tern_stops_held(const tern_stops *s, const char *text, size_t size) {
    size_t longest = 0;
    for (size_t i = 0; i < s->n; i++)
        longest = held_by(s->texts[i], text, size, longest);
    return longest;
}

/* ---- byte by byte ---------------------------------------------------------------------------- */

/*
 * A tree of the beginnings of all stop strings (Aho and Corasick): node 0 is the empty one. The
 * node where a text stands is its longest end that is in the tree.
 */
typedef struct node {
    uint32_t first, next; /* child, sibling; 0: there is none */
    uint32_t shorter;     /* the longest end of this beginning that is in the tree, too */
    uint32_t size;        /* of this beginning */
    uint32_t stop;        /* 1 + the stop string that it is or ends with; 0: none */
    unsigned char byte;   /* its last one */
} node;

struct tern_stop_finder {
    uint32_t at;
    uint32_t n;
    uint32_t *sizes; /* of stop strings */
    node nodes[];
};

static uint32_t child_of(const tern_stop_finder *f, uint32_t at, unsigned char byte) {
    uint32_t child = f->nodes[at].first;
    while (child != 0 && f->nodes[child].byte != byte)
        child = f->nodes[child].next;
    return child;
}

static void add_text(tern_stop_finder *f, const char *text, uint32_t which) {
    uint32_t at = 0;
    for (; *text != '\0'; text++) {
        const unsigned char byte = (unsigned char)*text;
        uint32_t child = child_of(f, at, byte);
        if (child == 0) {
            child = f->n++;
            f->nodes[child] =
                (node){.next = f->nodes[at].first, .size = f->nodes[at].size + 1, .byte = byte};
            f->nodes[at].first = child;
        }
        at = child;
    }
    if (f->nodes[at].stop == 0)
        f->nodes[at].stop = which + 1;
}

/* From a node with one more byte: the longest end that is in the tree. */
static uint32_t step(const tern_stop_finder *f, uint32_t at, unsigned char byte) {
    uint32_t child = child_of(f, at, byte);
    while (child == 0 && at != 0) {
        at = f->nodes[at].shorter;
        child = child_of(f, at, byte);
    }
    return child;
}

/* Shorter beginnings first, so that what a node refers to is known. queue[f->n]. */
static void link_ends(tern_stop_finder *f, uint32_t *queue) {
    uint32_t n = 1;
    queue[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t at = queue[i];
        for (uint32_t child = f->nodes[at].first; child != 0; child = f->nodes[child].next) {
            node *c = &f->nodes[child];
            c->shorter = at == 0 ? 0 : step(f, f->nodes[at].shorter, c->byte);
            if (c->stop == 0)
                c->stop = f->nodes[c->shorter].stop;
            queue[n++] = child;
        }
    }
}

tern_stop_finder *tern_stop_finder_new(const tern_stops *s) {
    size_t bytes = 1;
    for (size_t i = 0; i < s->n; i++)
        bytes += strlen(s->texts[i]);
    tern_stop_finder *f = malloc(sizeof *f + bytes * sizeof(node));
    uint32_t *queue = malloc(bytes * sizeof *queue), *sizes = malloc((s->n + 1) * sizeof *sizes);
    if (f == NULL || queue == NULL || sizes == NULL) {
        free(f);
        free(queue);
        free(sizes);
        return NULL;
    }
    *f = (tern_stop_finder){.n = 1, .sizes = sizes};
    f->nodes[0] = (node){0};
    for (size_t i = 0; i < s->n; i++) {
        sizes[i] = (uint32_t)strlen(s->texts[i]);
        add_text(f, s->texts[i], (uint32_t)i);
    }
    link_ends(f, queue);
    free(queue);
    return f;
}

void tern_stop_finder_free(tern_stop_finder *f) {
    if (f != NULL)
        free(f->sizes);
    free(f);
}

bool tern_stop_finder_add(tern_stop_finder *f, char byte, size_t *size, size_t *which) {
    f->at = step(f, f->at, (unsigned char)byte);
    const uint32_t stop = f->nodes[f->at].stop;
    if (stop == 0)
        return false;
    *which = stop - 1;
    *size = f->sizes[stop - 1];
    return true;
}

size_t tern_stop_finder_held(const tern_stop_finder *f) {
    return f->nodes[f->at].size;
}
