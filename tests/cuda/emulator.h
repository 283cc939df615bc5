/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_CUDA_EMULATOR_H
#define TERN_TESTS_CUDA_EMULATOR_H

/*
 * Enough of CUDA C++ to run the kernels of the table on the processor, thread by thread. The
 * generated .cu files are compiled as C++ with this in place of CUDA's headers (see rows.cc). A
 * block's threads are fibers that run until they reach a barrier or a shuffle; tern_emulate chooses
 * the order. Undefined behaviour on a GPU is an error here: a barrier that not all threads reach, a
 * shuffle with threads that have returned, a misaligned vector load. Shared memory holds a pattern
 * before each block.
 */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/cuda/job.h"
#include "kernels/half.h"

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __grid_constant__
#define __shared__ static __attribute__((section("tern_shared")))

/* ---- indices -------------------------------------------------------------------------------- */

typedef struct tern_emulated_index {
    unsigned x, y, z;
} tern_emulated_index;

/* The indices of the running thread. The emulator sets them before it resumes a thread. */
extern tern_emulated_index threadIdx, blockIdx, blockDim, gridDim;

/* ---- vectors -------------------------------------------------------------------------------- */

struct alignas(8) uint2 {
    uint32_t x, y;
};
static inline uint2 make_uint2(uint32_t x, uint32_t y) {
    return uint2{x, y};
}
struct alignas(8) int2 {
    int32_t x, y;
};
static inline int2 make_int2(int32_t x, int32_t y) {
    return int2{x, y};
}
struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};
static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) {
    return uint4{x, y, z, w};
}
struct alignas(8) float2 {
    float x, y;
};
static inline float2 make_float2(float x, float y) {
    return float2{x, y};
}
struct alignas(16) float4 {
    float x, y, z, w;
};
static inline float4 make_float4(float x, float y, float z, float w) {
    return float4{x, y, z, w};
}

/* ---- arithmetic: the processor's own is IEEE's, and this is compiled without contraction --------
 */

static inline float __fadd_rn(float a, float b) {
    return a + b;
}
static inline float __fsub_rn(float a, float b) {
    return a - b;
}
static inline float __fmul_rn(float a, float b) {
    return a * b;
}
static inline float __fdiv_rn(float a, float b) {
    return a / b;
}
static inline float __fsqrt_rn(float a) {
    return sqrtf(a);
}
static inline double __ddiv_rn(double a, double b) {
    return a / b;
}
static inline double __dadd_rn(double a, double b) {
    return a + b;
}
static inline double __dmul_rn(double a, double b) {
    return a * b;
}
static inline uint32_t __float_as_uint(float x) {
    return tern_f32_to_bits(x);
}
static inline float __uint_as_float(uint32_t bits) {
    return tern_f32_from_bits(bits);
}

/* Saturates; NaN gives 0, as in the instruction. */
static inline int32_t __float2int_rn(float x) {
    if (!(x >= -2147483648.0f))
        return isnan(x) ? 0 : INT32_MIN;
    return x < 2147483648.0f ? (int32_t)nearbyintf(x) : INT32_MAX;
}

/* ---- halves --------------------------------------------------------------------------------- */

struct __half {
    uint16_t bits;
};

static inline __half __ushort_as_half(uint16_t bits) {
    return __half{bits};
}
static inline uint16_t __half_as_ushort(__half h) {
    return h.bits;
}
static inline float __half2float(__half h) {
    return tern_f16_to_f32(h.bits);
}

/* NaN has one representation on the device. */
static inline __half __float2half_rn(float x) {
    return __half{isnan(x) ? (uint16_t)0x7fff : tern_f32_to_f16(x)};
}

/* ---- integers ------------------------------------------------------------------------------- */

/* The sum of four products of signed bytes. It wraps, as it does on the device. */
static inline int32_t __dp4a(int32_t a, int32_t b, int32_t sum) {
    uint32_t total = (uint32_t)sum;
    for (int shift = 0; shift < 32; shift += 8)
        total += (uint32_t)((int8_t)(a >> shift) * (int8_t)(b >> shift));
    return (int32_t)total;
}

/* Nibble i of `selector` chooses byte i of the result from the bytes of b:a; a's are 0 .. 3. */
static inline uint32_t __byte_perm(uint32_t a, uint32_t b, uint32_t selector) {
    const uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t result = 0;
    for (int i = 0; i < 4; i++)
        result |= (uint32_t)(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
    return result;
}

static inline uint32_t atomicMin(uint32_t *at, uint32_t v) {
    const uint32_t old = *at;
    *at = v < old ? v : old;
    return old;
}

/* ---- synchronisation ------------------------------------------------------------------------ */

/* A barrier for all threads of the block. */
void __syncthreads(void);

/*
 * Asynchronous copies to shared memory. Depending on tern_emulate's order, each is done as early as
 * allowed, as late as allowed, or either.
 */
void __pipeline_memcpy_async(void *shared, const void *global, size_t bytes);
void __pipeline_commit(void);
void __pipeline_wait_prior(size_t groups);

/* Exchange among all threads of the warp: publishes `bits` and returns those of lane `from`. */
uint32_t tern_emulated_exchange(uint32_t bits, unsigned from);

static inline unsigned tern_emulated_lane(void) {
    return threadIdx.x % TERN_CUDA_WARP;
}

static inline void __syncwarp(void) {
    (void)tern_emulated_exchange(0, 0);
}

static inline int32_t __shfl_sync(unsigned, int32_t v, unsigned from) {
    return (int32_t)tern_emulated_exchange((uint32_t)v, from);
}
static inline int32_t __shfl_xor_sync(unsigned, int32_t v, int mask) {
    return (int32_t)tern_emulated_exchange((uint32_t)v, tern_emulated_lane() ^ (unsigned)mask);
}
static inline float __shfl_xor_sync(unsigned, float v, int mask) {
    return tern_f32_from_bits(
        tern_emulated_exchange(tern_f32_to_bits(v), tern_emulated_lane() ^ (unsigned)mask));
}

static inline float __shfl_sync(unsigned, float v, int from) {
    return tern_f32_from_bits(
        tern_emulated_exchange(tern_f32_to_bits(v), (unsigned)from % TERN_CUDA_WARP));
}

/* Lanes whose source lies outside their segment of `width` keep their own value. */
static inline float __shfl_down_sync(unsigned, float v, unsigned delta, int width) {
    const unsigned lane = tern_emulated_lane();
    const unsigned within = lane % (unsigned)width + delta;
    return tern_f32_from_bits(tern_emulated_exchange(
        tern_f32_to_bits(v), within < (unsigned)width ? lane + delta : lane));
}

#endif
