/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/speed/bandwidth.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/metrics.h"
#include "base/os/os.h"
#include "tern/kernels.h"
#include "tern/team.h"

enum { PASSES = 6, LINE_WORDS = 8, PREFETCH_WORDS = 512 }; /* 64 bytes; 4 KiB ahead */
enum { COLS = 4096 };                                      /* of a piece as a matrix */
static const size_t pass_bytes = (size_t)256 << 20;        /* takes 10 ms or more */
static const size_t most_bytes = (size_t)2 << 30;

/* The buffer. Consecutive passes read consecutive pieces, so no pass finds data in a cache that an
 * earlier one has read. */
typedef struct ring {
    uint64_t *words; /* [pieces][piece]; NULL: no memory */
    float *y;        /* [rows of a piece] output of products; NULL: no memory */
    size_t piece, pieces;
    size_t next; /* piece of the next pass */
    bool filled;
} ring;

typedef struct measurement {
    ring *ring;
    const tern_kernel_row *product; /* NULL: this machine has no such kernel */
    double best;                    /* seconds of the fastest pass */
    uint64_t checksum;              /* keeps the loads from being optimised away */
} measurement;

/*
 * There are two ways to read; the faster one counts. Summing words is limited by the core rather
 * than the memory if a vector load takes 64 bytes and a word load only eight: an AMD EPYC of Zen 5
 * reads 21 GB/s that way, and 37 GB/s by the product of int8 codes, which does little more than
 * load.
 */

/* Sums words[0, n), n a multiple of LINE_WORDS. Eight separate sums keep loads from waiting. */
static uint64_t read_words(const uint64_t *words, size_t n) {
    uint64_t s[LINE_WORDS] = {0};
    for (size_t i = 0; i < n; i += LINE_WORDS) {
        __builtin_prefetch(words + i + PREFETCH_WORDS);
        for (size_t j = 0; j < LINE_WORDS; j++)
            s[j] += words[i + j];
    }
    return s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
}

static size_t piece_rows(const ring *r) {
    return r->piece * sizeof *r->words / COLS;
}

/* Multiplies rows [part.begin, part.end) of a piece, which is packed int8, by zeros. */
static void read_rows(const measurement *m, const uint64_t *words, tern_part part) {
    static const _Alignas(TERN_ALIGN) int8_t zeros[COLS];
    static const float scales[COLS / TERN_BLOCK];
    static const int32_t sums[COLS / TERN_BLOCK];
    const tern_matrix w = {.format = TERN_FORMAT_INT8,
                           .layout = m->product->layout,
                           .rows = piece_rows(m->ring),
                           .cols = COLS,
                           .scale = 1.0f,
                           .data = words};
    const tern_activations x = {.cols = COLS,
                                .q = zeros,
                                .q_stride = COLS,
                                .s = scales,
                                .sum = sums,
                                .d = scales,
                                .block_sum = sums,
                                .d_stride = COLS / TERN_BLOCK};
    const tern_tile tile = {0, 1, part.begin, part.end};
    m->product->fn.matmul(&w, &x, &tile, m->ring->y, w.rows);
}

/* Each worker writes the parts that it will read, so their pages are on its NUMA node. All pieces
 * are filled before the first one is read, which is no longer in a cache then. */
static void fill(const ring *r, tern_part part) {
    for (size_t piece = 0; piece < r->pieces; piece++)
        for (size_t i = part.begin; i < part.end; i++)
            r->words[piece * r->piece + i] = i;
}

static void measure_body(tern_worker worker, void *argument) {
    measurement *m = argument;
    const ring *r = m->ring;
    const tern_part part = tern_team_split(worker, r->piece, LINE_WORDS);
    const tern_part rows = tern_team_split(worker, piece_rows(r), TERN_ROW_GROUP);
    if (!r->filled)
        fill(r, part);
    for (size_t pass = 0; pass < PASSES; pass++) {
        const size_t piece = (r->next + pass) % r->pieces;
        const uint64_t *words = r->words + piece * r->piece;
        uint64_t sum = 0;
        tern_team_barrier(worker);
        const double begin = tern_clock_seconds();
        if (pass % 2 == 0 && m->product != NULL)
            read_rows(m, words, rows);
        else
            sum = read_words(words + part.begin, part.end - part.begin);
        tern_team_barrier(worker);
        const double seconds = tern_clock_seconds() - begin;
        (void)__atomic_fetch_add(&m->checksum, sum, __ATOMIC_RELAXED);
        if (worker.index == 0 && (pass == 0 || seconds < m->best))
            m->best = seconds;
    }
}

/* Makes pieces that together exceed four last-level caches, and hold at least two passes. */
static ring ring_open(void) {
    const size_t wanted = 5 * tern_os_last_cache_bytes();
    const size_t bytes = wanted > most_bytes ? most_bytes : wanted;
    const size_t pieces = bytes > 2 * pass_bytes ? (bytes + pass_bytes - 1) / pass_bytes : 2;
    ring r = {.piece = pass_bytes / sizeof *r.words, .pieces = pieces};
    r.words =
        mmap(NULL, pieces * pass_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    r.words = r.words == MAP_FAILED ? NULL : r.words;
    if (r.words != NULL)
        tern_os_use_huge_pages(r.words, pieces * pass_bytes); /* fewer page faults */
    r.y = malloc(piece_rows(&r) * sizeof *r.y);
    return r;
}

/* The kernel that can read a piece as a matrix of exactly its size; NULL: none. */
static const tern_kernel_row *product_of(const ring *r) {
    uint64_t mask;
    if (r->y == NULL || tern_cpu_mask(NULL, NULL, &mask, NULL) != TERN_OK)
        return NULL;
    const tern_kernel_row *kernel = tern_kernel_select(mask, TERN_OP_GEMV, TERN_FORMAT_INT8);
    const bool fits =
        kernel != NULL && tern_packed_bytes(kernel->layout, piece_rows(r), COLS) == pass_bytes;
    return fits ? kernel : NULL;
}

/* The measurement itself, in GB/s; 0 on failure. */
static double measure_here(ring *r, uint32_t threads) {
    measurement m = {.ring = r, .product = product_of(r)};
    tern_team *team = NULL;
    double gbs = 0.0;
    if (r->words != NULL && tern_team_new(threads, &team, NULL) == TERN_OK) {
        tern_team_run(team, measure_body, &m);
        gbs = m.best > 0.0 ? (double)pass_bytes / m.best * 1e-9 : 0.0;
        r->filled = true;
        r->next = (r->next + PASSES) % r->pieces;
    }
    tern_team_free(&team);
    return gbs;
}

/* The child process: answers until the other end is closed. */
static void serve(int end) {
    ring r = ring_open();
    uint32_t threads;
    while (recv(end, &threads, sizeof threads, MSG_WAITALL) == (ssize_t)sizeof threads) {
        const double gbs = measure_here(&r, threads);
        if (send(end, &gbs, sizeof gbs, MSG_NOSIGNAL) != (ssize_t)sizeof gbs)
            break;
    }
}

bandwidth_meter bandwidth_open(void) {
    int ends[2];
    if (!tern_os_socket_pair(ends))
        return (bandwidth_meter){.socket = -1};
    const pid_t child = fork();
    if (child == 0) {
        (void)close(ends[0]);
        serve(ends[1]);
        _exit(0);
    }
    (void)close(ends[1]);
    if (child < 0) {
        (void)close(ends[0]);
        return (bandwidth_meter){.socket = -1};
    }
    return (bandwidth_meter){.child = child, .socket = ends[0]};
}

double bandwidth_measure(const bandwidth_meter *m, uint32_t threads) {
    double gbs = 0.0;
    if (m->child <= 0 ||
        send(m->socket, &threads, sizeof threads, MSG_NOSIGNAL) != (ssize_t)sizeof threads ||
        recv(m->socket, &gbs, sizeof gbs, MSG_WAITALL) != (ssize_t)sizeof gbs)
        return 0.0;
    return gbs;
}

void bandwidth_close(bandwidth_meter *m) {
    if (m->child <= 0)
        return;
    (void)close(m->socket); /* the child sees the end and exits */
    while (waitpid(m->child, NULL, 0) < 0 && errno == EINTR) {
    }
    m->child = 0;
}
