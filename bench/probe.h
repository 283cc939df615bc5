/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BENCH_PROBE_H
#define TERN_BENCH_PROBE_H

/*
 * Probes of the peak speed of an instruction set: how fast it multiplies and how fast it reads. One
 * file for each set is generated from bench/probe.c.j2 with the verbs that the set's kernels use,
 * so that the speed of a kernel can be compared with it. Probes are not kernels of the table: they
 * are not operations of a model, so the library, its header and its tests need not know them.
 */

#include <stddef.h>
#include <stdint.h>

/* The ways in which a kernel multiplies: X(NAME, text). codegen/gen.py says which kernel uses
 * which. */
#define TERN_UNIT_LIST(X)                                                                          \
    X(TILES, "int8 tiles")   /* tile_multiply: int8 times int8, 16 x 16 sums at once */            \
    X(CODES, "int8 codes")   /* vp_mac: unsigned codes times int8 */                               \
    X(SIGNED, "int8 signed") /* vi_mac_ss: int8 times int8 */                                      \
    X(FLOAT, "f32")          /* vf_add(vf_mul()) */                                                \
    X(NONE, "none")

typedef enum tern_unit {
#define TERN_UNIT_ENUM(name, text) TERN_UNIT_##name,
    TERN_UNIT_LIST(TERN_UNIT_ENUM)
#undef TERN_UNIT_ENUM
        TERN_UNIT_COUNT
} tern_unit;

enum {
    /*
     * Vectors that a call multiplies with each x. Half of them go into one sum: to a 16-bit partial
     * sum each step adds two products of at most 2 in magnitude, 4 * 2048 = 2^13 in all. Tiles
     * multiply so fast that a call does all of it TERN_PROBE_TILED times.
     */
    TERN_PROBE_STEPS = 4096,
    TERN_PROBE_TILED = 16,
    TERN_PROBE_INPUTS = 6,   /* at most */
    TERN_PROBE_VECTORS = 64, /* of up to 64 bytes: the operands stay in the first-level cache */
    TERN_PROBE_ELEMENTS = TERN_PROBE_VECTORS * 64
};

/* Small integers, so that every sum is exact in every type. */
typedef struct tern_probe_input {
    uint8_t codes[TERN_PROBE_ELEMENTS]; /* 0 .. 2 */
    float floats[TERN_PROBE_ELEMENTS / 4];
    int8_t x[4 * TERN_PROBE_INPUTS]; /* -1 .. 1, four columns for each input */
    float fx[TERN_PROBE_INPUTS];
} tern_probe_input;

/* The sum of all TERN_PROBE_STEPS * inputs vectors of products, TERN_PROBE_TILED times with tiles.
 */
typedef int64_t tern_probe_mac_fn(const tern_probe_input *in);

/*
 * Sum of p[0, n), n a multiple of 128, read `passes` times. `ahead`: floats between the load and a
 * prefetch. It has 8 * lanes partial sums, all floats, each exact up to 2^24 ones.
 */
typedef double tern_probe_read_fn(const float *p, size_t n, size_t passes, size_t ahead);

typedef struct tern_probe {
    const char *isa;
    uint64_t needs; /* bits of dispatch/cpu.h */
    size_t lanes;
    size_t inputs;
    int32_t signed_bias;                     /* the number that vi_mac_ss adds to each weight */
    tern_probe_mac_fn *mac[TERN_UNIT_COUNT]; /* NULL: no kernel of the set multiplies in this way */
    tern_probe_read_fn *read;                /* leaves prefetching to the hardware */
    tern_probe_read_fn *read_ahead;
} tern_probe;

/* Probes of the instruction sets that are built, weakest first. */
const tern_probe *const *tern_probes(size_t *count);

/* The way in which the row of that name multiplies. */
tern_unit tern_unit_of_kernel(const char *name);

const char *tern_unit_name(tern_unit unit);

#endif
