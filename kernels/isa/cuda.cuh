/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_ISA_CUDA_CUH
#define TERN_ISA_CUDA_CUH

/*
 * The verbs for CUDA. A verb is what one thread does, or what a warp or block does together; the
 * arithmetic is that of docs/numerics.md, with the intrinsics that round to nearest and are never
 * fused, whatever flags the compiler gets. The tests compile the kernels for the processor as well;
 * they include stand-ins for CUDA's headers first (tests/cuda/rows.cc).
 */

#ifdef __CUDACC__
#include <cuda_fp16.h>
#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>
#endif

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define TERN_INLINE static __device__ inline
#define TERN_TABLE static __device__ const
#define TERN_SHARED_TABLE static __device__ const
#endif

#include "kernels/codes.h"
#include "kernels/cuda/job.h"
#include "kernels/grids.h"
#include "kernels/half.h"
#ifdef __CUDACC__
#include "kernels/grids_table.c" /* a device's own copy */
#endif

#define TERN_VERB static __device__ __forceinline__
#define TERN_FULL_WARP 0xffffffffu

/*
 * From 9.0 on a kernel may be made ready while the one before it ends: it lets the next one come
 * (grid_begin), and waits for all that was before it (grid_wait).
 */
TERN_VERB void grid_begin(void) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

TERN_VERB void grid_wait(void) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/*
 * A row of the table: blocks of `threads` threads, each of which sees the whole job. One that reads
 * weights, which no kernel writes, may begin with them: it calls grid_wait before anything else.
 */
#define TERN_KERNEL_AHEAD(threads, name)                                                           \
    TERN_VERB void name##_threads(const tern_cuda_job &job);                                       \
    extern "C" __global__ void __launch_bounds__(threads)                                          \
        name(const __grid_constant__ tern_cuda_job job) {                                          \
        grid_begin();                                                                              \
        name##_threads(job);                                                                       \
    }                                                                                              \
    TERN_VERB void name##_threads(const tern_cuda_job &job)

#define TERN_KERNEL(threads, name)                                                                 \
    TERN_VERB void name##_after(const tern_cuda_job &job);                                         \
    TERN_KERNEL_AHEAD(threads, name) {                                                             \
        grid_wait();                                                                               \
        name##_after(job);                                                                         \
    }                                                                                              \
    TERN_VERB void name##_after(const tern_cuda_job &job)

/* ---- floats -------------------------------------------------------------------------------- */

TERN_VERB float vf_add(float a, float b) {
    return __fadd_rn(a, b);
}
TERN_VERB float vf_sub(float a, float b) {
    return __fsub_rn(a, b);
}
TERN_VERB float vf_mul(float a, float b) {
    return __fmul_rn(a, b);
}
TERN_VERB float vf_div(float a, float b) {
    return __fdiv_rn(a, b);
}
TERN_VERB float vf_sqrt(float a) {
    return __fsqrt_rn(a);
}

/* b when either is NaN. */
TERN_VERB float vf_max(float a, float b) {
    return a > b ? a : b;
}
TERN_VERB float vf_min(float a, float b) {
    return a < b ? a : b;
}
TERN_VERB float vf_abs(float a) {
    return __uint_as_float(__float_as_uint(a) & 0x7fffffffu);
}

TERN_VERB float vf_copysign(float v, float sign) {
    return __uint_as_float((__float_as_uint(v) & 0x7fffffffu) |
                           (__float_as_uint(sign) & 0x80000000u));
}

/* The exponent field alone. */
TERN_VERB float vf_binade(float v) {
    return __uint_as_float(__float_as_uint(v) & 0x7f800000u);
}

/* 13 bits of v, to nearest even; 0 below 2^-100, infinite from 2^100 on. */
TERN_VERB float vf_round13(float v) {
    const uint32_t bits = __float_as_uint(v);
    if (!(vf_abs(v) < 0x1p100f))
        return vf_mul(v, __uint_as_float(0x7f800000u));
    if (vf_abs(v) < 0x1p-100f)
        return 0.0f;
    return __uint_as_float((bits + 0x3ffu + (bits >> 11 & 1u)) & ~0x7ffu);
}

/* Nearest integer, ties to even, for |v| < 2^22. */
TERN_VERB float vf_rne(float v) {
    return vf_sub(vf_add(v, 0x1.8p23f), 0x1.8p23f);
}

/* 2^n for integral n in [-126, 127]: the exponent field of a float. */
TERN_VERB float vf_pow2(float n) {
    return __uint_as_float((uint32_t)(__float2int_rn(n) + 127) << 23);
}

/* exp as docs/numerics.md defines it. */
TERN_VERB float vf_exp(float x) {
    x = vf_min(vf_max(x, -104.0f), 89.0f);
    const float n = vf_rne(vf_mul(x, 0x1.715476p+0f));
    float r = vf_sub(x, vf_mul(n, 0x1.62e4p-1f));
    r = vf_sub(r, vf_mul(n, 0x1.7f7d1cp-20f));
    float q = 1.0f / 5040.0f;
    q = vf_add(vf_mul(q, r), 1.0f / 720.0f);
    q = vf_add(vf_mul(q, r), 1.0f / 120.0f);
    q = vf_add(vf_mul(q, r), 1.0f / 24.0f);
    q = vf_add(vf_mul(q, r), 1.0f / 6.0f);
    q = vf_add(vf_mul(q, r), 0.5f);
    const float p = vf_add(vf_add(vf_mul(q, vf_mul(r, r)), r), 1.0f);
    const float h = vf_rne(vf_mul(n, 0.5f));
    return vf_mul(vf_mul(p, vf_pow2(h)), vf_pow2(vf_sub(n, h)));
}

/* clamp(rne(v), low, 127); NaN gives low. |low| <= 128, so the rounding trick is exact. */
TERN_VERB int32_t vi_quantize(float v, float low) {
    return __float2int_rn(vf_min(vf_max(v, low), 127.0f));
}

/* ---- vectors of one lane, for templates that processors share ------------------------------ */

typedef float vf;
typedef int32_t vi;

TERN_VERB vf vf_set1(float v) {
    return v;
}
TERN_VERB vf vi_to_f(vi v) {
    return (float)v;
}
TERN_VERB vi vi_load_i8(const int8_t *p) {
    return *p;
}
TERN_VERB void vf_store(float *p, vf v) {
    *p = v;
}

/* ---- elements in memory -------------------------------------------------------------------- */

TERN_VERB float vf_widen(float x) {
    return x;
}

/* binary16; exact. */
TERN_VERB float vf_f16(uint16_t half) {
    return __half2float(__ushort_as_half(half));
}

TERN_VERB float vf_bf16(uint16_t brain) {
    return __uint_as_float((uint32_t)brain << 16);
}

/* Nearest binary16; a NaN keeps its sign and the payload that fits, as on the processor. */
TERN_VERB uint16_t vf_to_f16(float x) {
    const uint32_t bits = __float_as_uint(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((bits >> 16 & 0x8000u) | 0x7e00u | (bits >> 13 & 0x3ffu));
    return __half_as_ushort(__float2half_rn(x));
}

/* The f16 at p, an even address. */
TERN_VERB float vf_load_f16(const void *p) {
    return vf_f16(*(const uint16_t *)p);
}

/* 4, 8 or 16 bytes at once; p is a multiple of that. */
TERN_VERB uint32_t load4(const void *p) {
    return *(const uint32_t *)p;
}
TERN_VERB uint2 load8(const void *p) {
    return *(const uint2 *)p;
}
TERN_VERB uint4 load16(const void *p) {
    return *(const uint4 *)p;
}

/* One, two or four words, of rows that are neighbours; as many bytes. p is a multiple of the size.
 */
TERN_VERB void load_words(const void *p, uint32_t (&to)[1]) {
    to[0] = load4(p);
}
TERN_VERB void load_words(const void *p, uint32_t (&to)[2]) {
    const uint2 v = load8(p);
    to[0] = v.x, to[1] = v.y;
}
TERN_VERB void load_words(const void *p, uint32_t (&to)[4]) {
    const uint4 v = load16(p);
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}
TERN_VERB void load_bytes(const uint8_t *p, uint8_t (&to)[2]) {
    const unsigned v = *(const uint16_t *)p;
    to[0] = (uint8_t)v, to[1] = (uint8_t)(v >> 8);
}
TERN_VERB void load_bytes(const uint8_t *p, uint8_t (&to)[4]) {
    const uint32_t v = load4(p);
    to[0] = (uint8_t)v, to[1] = (uint8_t)(v >> 8), to[2] = (uint8_t)(v >> 16),
    to[3] = (uint8_t)(v >> 24);
}

TERN_VERB size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

TERN_VERB bool is_aligned(const void *p, size_t bytes) {
    return (uintptr_t)p % bytes == 0;
}

/*
 * Copies from global to shared memory that go on while the thread does. A commit closes the group
 * of those since the last one; a wait returns when at most `groups` later groups are under way. The
 * block's other threads see the bytes after a barrier. Before compute capability 8.0 each copy is
 * done at once. Both addresses are multiples of 16.
 */
TERN_VERB void copy16_begin(void *shared, const void *global) {
    __pipeline_memcpy_async(shared, global, 16);
}
TERN_VERB void copies_commit(void) {
    __pipeline_commit();
}
TERN_VERB void copies_wait(size_t groups) {
    __pipeline_wait_prior(groups);
}

/* ---- integer products ---------------------------------------------------------------------- */

/*
 * Sixteen ternary codes of one row (a word of a T2R16 chunk) and the sixteen activations they
 * meet. Codes 0..3 are the same signed, so dp4a's signed form fits; 32-bit sums cannot wrap below
 * 65,535 columns (docs/numerics.md).
 */
TERN_VERB int32_t vi_dot_ternary(int32_t sum, uint32_t codes, uint4 x) {
    sum = __dp4a((int32_t)(codes & 0x03030303u), (int32_t)x.x, sum);
    sum = __dp4a((int32_t)(codes >> 2 & 0x03030303u), (int32_t)x.y, sum);
    sum = __dp4a((int32_t)(codes >> 4 & 0x03030303u), (int32_t)x.z, sum);
    return __dp4a((int32_t)(codes >> 6 & 0x03030303u), (int32_t)x.w, sum);
}

/* Eight nibbles and the eight activations of a Q4 chunk: the low ones meet x.x. */
TERN_VERB int32_t vi_dot_nibbles(uint32_t codes, uint2 x) {
    const int32_t low = __dp4a((int32_t)(codes & 0x0f0f0f0fu), (int32_t)x.x, 0);
    return __dp4a((int32_t)(codes >> 4 & 0x0f0f0f0fu), (int32_t)x.y, low);
}

/*
 * Like vi_dot_nibbles; bit 0 of each byte of `high` is the low nibble's fifth bit, bit 1 that of the
 * high one.
 */
TERN_VERB int32_t vi_dot_fives(uint32_t codes, uint32_t high, uint2 x) {
    const uint32_t low = (codes & 0x0f0f0f0fu) | (high << 4 & 0x10101010u);
    const uint32_t top = (codes >> 4 & 0x0f0f0f0fu) | (high << 3 & 0x10101010u);
    return __dp4a((int32_t)top, (int32_t)x.y, __dp4a((int32_t)low, (int32_t)x.x, 0));
}

/* Like vi_dot_nibbles; bits 1:0 of each byte of `high` are the low nibble's fifth and sixth bit,
 * bits 3:2 the high one's. */
TERN_VERB int32_t vi_dot_sixes(uint32_t codes, uint32_t high, uint2 x) {
    const uint32_t low = (codes & 0x0f0f0f0fu) | (high << 4 & 0x30303030u);
    const uint32_t top = (codes >> 4 & 0x0f0f0f0fu) | (high << 2 & 0x30303030u);
    return __dp4a((int32_t)top, (int32_t)x.y, __dp4a((int32_t)low, (int32_t)x.x, 0));
}

/*
 * Sixteen codes of three bits as nibbles, from a word of two bits each, as vi_dot_ternary reads
 * them, and one of third bits, bits 3:0 of each byte of `high`. x has the first and third four
 * codes in its low and high nibbles, y the others.
 */
TERN_VERB uint2 vi_join3(uint32_t codes, uint32_t high) {
    return make_uint2((codes & 0x33333333u) | (high << 2 & 0x04040404u) | (high << 4 & 0x40404040u),
                      (codes >> 2 & 0x33333333u) | (high << 1 & 0x04040404u) |
                          (high << 3 & 0x40404040u));
}

/* Codes from vi_join3 and sixteen activations. */
TERN_VERB int32_t vi_dot_octals(uint2 codes, uint4 x) {
    return vi_dot_nibbles(codes.x, make_uint2(x.x, x.z)) +
           vi_dot_nibbles(codes.y, make_uint2(x.y, x.w));
}

/* Sixteen bits, as vi_dot_ternary reads codes: bits 3:0 of each byte. */
TERN_VERB int32_t vi_dot_bits(uint32_t codes, uint4 x) {
    int32_t sum = __dp4a((int32_t)(codes & 0x01010101u), (int32_t)x.x, 0);
    sum = __dp4a((int32_t)(codes >> 1 & 0x01010101u), (int32_t)x.y, sum);
    sum = __dp4a((int32_t)(codes >> 2 & 0x01010101u), (int32_t)x.z, sum);
    return __dp4a((int32_t)(codes >> 3 & 0x01010101u), (int32_t)x.w, sum);
}

/* The sum of signed bytes. */
TERN_VERB int32_t vi_sum(uint2 x) {
    return __dp4a((int32_t)x.y, 0x01010101, __dp4a((int32_t)x.x, 0x01010101, 0));
}
TERN_VERB int32_t vi_sum(uint4 x) {
    return vi_sum(make_uint2(x.x, x.y)) + vi_sum(make_uint2(x.z, x.w));
}

/* The entries of a table of sixteen bytes that the nibbles of two bytes choose, each byte's low one first. */
TERN_VERB uint32_t vi_levels4(uint4 table, uint32_t codes) {
    const uint32_t below = __byte_perm(table.x, table.y, codes & 0x7777u);
    const uint32_t above = __byte_perm(table.z, table.w, codes & 0x7777u);
    return __byte_perm(below, above, 0x3210u | (codes & 0x8888u) >> 1); /* bit 3 of a nibble chooses */
}

/* Likewise of a table of eight bytes: nibbles are at most 7. */
TERN_VERB uint32_t vi_levels4(uint2 table, uint32_t codes) {
    return __byte_perm(table.x, table.y, codes & 0xffffu);
}

/* Like vi_dot_nibbles, of nibbles that stand for the signed bytes of a table. */
template <typename table_of>
TERN_VERB int32_t vi_dot_levels(table_of table, uint32_t codes, uint2 x) {
    const uint32_t first = vi_levels4(table, codes), last = vi_levels4(table, codes >> 16);
    const int32_t low = __dp4a((int32_t)__byte_perm(first, last, 0x6420), (int32_t)x.x, 0);
    return __dp4a((int32_t)__byte_perm(first, last, 0x7531), (int32_t)x.y, low);
}

/* Like vi_dot_octals, of codes that stand for the signed bytes of a table. */
TERN_VERB int32_t vi_dot_threes(uint2 table, uint2 codes, uint4 x) {
    return vi_dot_levels(table, codes.x, make_uint2(x.x, x.z)) +
           vi_dot_levels(table, codes.y, make_uint2(x.y, x.w));
}

/* The signed byte that a nibble stands for. */
TERN_VERB int32_t vi_level(uint4 table, uint32_t nibble) {
    const uint32_t word = nibble < 8 ? nibble < 4 ? table.x : table.y : nibble < 12 ? table.z : table.w;
    return (int8_t)(word >> 8 * (nibble & 3));
}
TERN_VERB int32_t vi_level(uint2 table, uint32_t code) {
    return (int8_t)((code < 4 ? table.x : table.y) >> 8 * (code & 3));
}

/* Codes of two weights of the patterns of STQ1_0 whose sign is clear (kernels/quads.h), by slot. */
typedef struct quad_tables {
    uint4 first, last;
} quad_tables;

/* Half 0 is weights 0 and 1, half 1 the others. */
TERN_VERB quad_tables load_quad_tables(size_t half) {
    return quad_tables{load16(tern_quad_weights(2 * half)),
                       load16(tern_quad_weights(2 * half + 1))};
}

/* 2 - code where bit 1 of its byte of `signs` is set. */
TERN_VERB uint32_t vi_turn(uint32_t codes, uint32_t signs) {
    return codes ^ (signs & 0x02020202u & ~(codes << 1));
}

/*
 * Two codes of the patterns that eight nibbles and their signs stand for: bit 0 of each byte of
 * `signs` is the low nibble's, bit 1 the high one's. The first codes of the low nibbles meet x.x,
 * of the high ones x.y.
 */
TERN_VERB int32_t vi_dot_quads(quad_tables tables, uint32_t codes, uint32_t signs, uint2 x,
                               uint2 x_last) {
    int32_t sum = 0;
#pragma unroll
    for (unsigned i = 0; i < 2; i++) {
        const uint4 table = i == 0 ? tables.first : tables.last;
        const uint2 meets = i == 0 ? x : x_last;
        const uint32_t low = vi_levels4(table, codes), high = vi_levels4(table, codes >> 16);
        sum = __dp4a((int32_t)vi_turn(__byte_perm(low, high, 0x6420), signs << 1), (int32_t)meets.x,
                     sum);
        sum =
            __dp4a((int32_t)vi_turn(__byte_perm(low, high, 0x7531), signs), (int32_t)meets.y, sum);
    }
    return sum;
}

/* Four signed bytes each. */
TERN_VERB int32_t vi_dot_bytes(uint32_t codes, uint32_t x) {
    return __dp4a((int32_t)codes, (int32_t)x, 0);
}

/*
 * Four bytes of layout T5R16 as unsigned base-3 fractions in 16-bit halves: x has bytes 0 and 2,
 * y bytes 1 and 3.
 */
TERN_VERB uint2 base3_split(uint32_t codes) {
    codes ^= 0x80808080u; /* 128 more */
    return make_uint2(codes & 0x00ff00ffu, codes >> 8 & 0x00ff00ffu);
}

/*
 * The next digit of all four, a code 0, 1 or 2 in each byte, and the fractions without it. Three
 * times a fraction is at most 765: what exceeds eight bits is the digit.
 */
TERN_VERB uint32_t base3_next(uint2 &rest) {
    const uint32_t even = rest.x * 3;
    const uint32_t odd = rest.y * 3;
    rest = make_uint2(even & 0x00ff00ffu, odd & 0x00ff00ffu);
    return __byte_perm(even, odd, 0x7351); /* their bytes 1 and 3 in turn */
}

/* The factor of products over a layout with no scales of its own, applied at the end. */
TERN_VERB float outer_scale(const tern_matrix &w, size_t row) {
    return w.row_scale != NULL ? w.row_scale[row] : w.scale;
}

/* The ternary product of a row and token from its exact sum of codes x activations. */
TERN_VERB float ternary_y(const tern_cuda_matmul &m, size_t row, size_t t, int32_t raw) {
    const float difference = vf_sub((float)raw, (float)m.x.sum[t]);
    return vf_mul(vf_div(difference, m.x.s[t]), outer_scale(m.w, row));
}

/* ---- numbers that grew --------------------------------------------------------------------- */

/* True if rmsnorm can add up a row's squares, although some are large; false for a NaN. The order
 * is that of device/finite.c. */
TERN_VERB bool squares_fit(const tern_device_rows &x, size_t row) {
    double sum = 0.0;
    for (size_t i = 0; i < x.n; i++) {
        const double v = (double)x.data[row * x.stride + i];
        sum = __dadd_rn(sum, __dmul_rn(v, v));
    }
    return sum < 0x1.ffp127;
}

/* Notes the row, one of w.a.x, if v, an element of it, is not below the limit. Magnitudes order as
 * their bits do, NaNs last. The row must be as it was. */
TERN_VERB void watch(const tern_cuda_watch &w, size_t row, float v) {
    if (w.a.notes == NULL || (__float_as_uint(v) & 0x7fffffffu) < __float_as_uint(w.limit))
        return;
    if (!w.a.squares || !squares_fit(w.a.x, row))
        atomicMin(&w.a.notes[w.a.at[row / w.a.group].sequence], w.a.code);
}

/* ---- warps --------------------------------------------------------------------------------- */

/* v of the lanes whose numbers agree in the bits that are not in [first, last]: their sum. */
TERN_VERB int32_t warp_sum(int32_t v, int first, int last) {
    for (int bit = first; bit <= last; bit *= 2)
        v += __shfl_xor_sync(TERN_FULL_WARP, v, bit);
    return v;
}

/*
 * c += a x b over the whole warp: 16 rows of 32 signed bytes times 8 columns of them. Lane 4g + j
 * holds bytes 4j .. 4j+3 of row g (a[0]), of row g + 8 (a[1]) and of column g (b[0]); the bytes 16
 * further are a[2], a[3] and b[1]. Its sums are those of row g (c[0], c[1]) and row g + 8 with
 * columns 2j and 2j + 1.
 */
TERN_VERB void warp_multiply(int32_t (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 750
#pragma unroll
    for (unsigned i = 0; i < 4; i++) /* 8 rows of 16 bytes each */
        asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+r"(c[i % 2 * 2]), "+r"(c[i % 2 * 2 + 1])
            : "r"(a[i]), "r"(i < 2 ? b0 : b1));
#else
    const unsigned lane = threadIdx.x % TERN_CUDA_WARP;
    for (unsigned i = 0; i < 4; i++) {
        const unsigned row = lane / 4 * 4 + i, column = lane % 4 * 8 + i;
#pragma unroll
        for (unsigned half = 0; half < 2; half++) {
            const uint32_t b = half == 0 ? b0 : b1;
            const int32_t low = __shfl_sync(TERN_FULL_WARP, (int32_t)a[2 * half], row);
            const int32_t high = __shfl_sync(TERN_FULL_WARP, (int32_t)a[2 * half + 1], row);
            const int32_t left = __shfl_sync(TERN_FULL_WARP, (int32_t)b, column);
            const int32_t right = __shfl_sync(TERN_FULL_WARP, (int32_t)b, column + 4);
            c[0] = __dp4a(low, left, c[0]);
            c[1] = __dp4a(low, right, c[1]);
            c[2] = __dp4a(high, left, c[2]);
            c[3] = __dp4a(high, right, c[3]);
        }
    }
#endif
}

/* The largest v of the warp, for every lane. */
TERN_VERB float warp_max(float v) {
    for (int bit = 16; bit >= 1; bit /= 2)
        v = vf_max(__shfl_xor_sync(TERN_FULL_WARP, v, bit), v);
    return v;
}

/*
 * The sixteen virtual lanes, one in each thread of half a warp, folded as docs/numerics.md orders
 * it; the total is thread 0's of each half. The whole warp calls this.
 */
TERN_VERB float fold16(float p) {
    for (int s = 8; s >= 1; s /= 2)
        p = vf_add(p, __shfl_down_sync(TERN_FULL_WARP, p, (unsigned)s, 16));
    return p;
}

/* ---- blocks -------------------------------------------------------------------------------- */

enum { TERN_CUDA_WARPS = TERN_CUDA_THREADS / TERN_CUDA_WARP };

/* The block's largest v, for every thread. `shared`: one float a warp. Ends with a barrier. */
TERN_VERB float block_max(float v, float *shared) {
    v = warp_max(v);
    if (threadIdx.x % TERN_CUDA_WARP == 0)
        shared[threadIdx.x / TERN_CUDA_WARP] = v;
    __syncthreads();
    v = shared[0];
    for (int w = 1; w < TERN_CUDA_WARPS; w++)
        v = vf_max(shared[w], v);
    __syncthreads();
    return v;
}

/* The block's sum of v, for every thread. As block_max. */
TERN_VERB int32_t block_sum(int32_t v, int32_t *shared) {
    v = warp_sum(v, 1, 16);
    if (threadIdx.x % TERN_CUDA_WARP == 0)
        shared[threadIdx.x / TERN_CUDA_WARP] = v;
    __syncthreads();
    v = 0;
    for (int w = 0; w < TERN_CUDA_WARPS; w++)
        v += shared[w];
    __syncthreads();
    return v;
}

enum { TERN_CUDA_TERMS = 2048 }; /* terms of a sum that are in shared memory at a time; 8 KB */

/* Adds n terms to virtual lane `lane`; a term's index in the row is a multiple of 16 off. */
TERN_VERB float lanes_add(float p, const float *terms, size_t n, unsigned lane) {
#pragma unroll 8
    for (size_t i = lane; i < n; i += TERN_LANES) /* terms are read ahead of the sum */
        p = vf_add(p, terms[i]);
    return p;
}

#endif
