/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random weights. Integers come from xoshiro256** (Blackman and Vigna, "Scrambled linear
 * pseudorandom number generators", 2018), seeded by splitmix64. The few floats are computed by
 * single, correctly rounded operations, so every machine makes the same bytes.
 */
#include <math.h>
#include <string.h>

#include "authoring/synth_internal.h"
#include "kernels/codes.h"
#include "kernels/facts.h"
#include "kernels/grids.h"
#include "kernels/half.h"
#include "kernels/ternary.h"

/* Marks a stream of norm weights: no weights have this deviation. */
static const float NORM_SD = -1.0f;

static uint64_t rotate_left(uint64_t x, int bits) {
    return x << bits | x >> (64 - bits);
}

static inline uint64_t next(uint64_t s[4]) {
    const uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    const uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

static uint64_t splitmix(uint64_t *x) {
    uint64_t z = (*x += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Mixes the seed before the index is added, so that (seed, index + 1) is not (seed + 1, index). */
static void seed_stream(uint64_t state[4], uint64_t seed, uint64_t index) {
    uint64_t x = splitmix(&seed) + index;
    for (int i = 0; i < 4; i++)
        state[i] = splitmix(&x);
}

/* ---- float formats: a sum of four bytes is close to normal, and one table turns it into bits --
 */

static uint32_t encode(tern_format format, float value) {
    switch (format) {
    case TERN_FORMAT_F16:
        return tern_f32_to_f16(value);
    case TERN_FORMAT_BF16:
        return tern_f32_to_bf16(value);
    default:
        return tern_f32_to_bits(value);
    }
}

/* The sum of four uniform bytes has mean 510 and variance 4 * (256^2 - 1) / 12 = 147.80^2. */
static void init_values(tern_synth_stream *s) {
    const float step = s->sd / 147.80f;
    for (int i = 0; i < TERN_SYNTH_VALUES; i++)
        s->values[i] = encode(s->format, (float)(i - 510) * step);
}

/* Two sums of four bytes from 64 random bits. */
static inline void two_sums(uint64_t r, uint32_t sums[2]) {
    const uint64_t even = UINT64_C(0x00ff00ff00ff00ff);
    const uint64_t pairs = (r & even) + (r >> 8 & even); /* four lanes of 16 bits, each <= 510 */
    sums[0] = (uint32_t)((pairs & 0xffff) + (pairs >> 16 & 0xffff));
    sums[1] = (uint32_t)((pairs >> 32 & 0xffff) + (pairs >> 48));
}

static void fill_16(tern_synth_stream *s, uint8_t *out, size_t n) {
    for (size_t i = 0; i < n; i += 2) {
        uint32_t sums[2];
        two_sums(next(s->state), sums);
        const uint32_t pair = s->values[sums[0]] | s->values[sums[1]] << 16;
        memcpy(out + 2 * i, &pair, i + 1 < n ? 4 : 2);
    }
}

static void fill_32(tern_synth_stream *s, uint8_t *out, size_t n) {
    for (size_t i = 0; i < n; i += 2) {
        uint32_t sums[2];
        two_sums(next(s->state), sums);
        const uint32_t pair[2] = {s->values[sums[0]], s->values[sums[1]]};
        memcpy(out + 4 * i, pair, i + 1 < n ? 8 : 4);
    }
}

static void fill_norm(tern_synth_stream *s, uint8_t *out, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const float value = (float)(896 + (next(s->state) >> 56)) / 1024.0f; /* exact */
        memcpy(out + 4 * i, &value, sizeof value);
    }
}

/* ---- ternary ------------------------------------------------------------------------------- */

/* The 81 ways to put four codes 0, 1, 2 into a byte. */
static void init_codes(tern_synth_stream *s) {
    for (int i = 0; i < 81; i++)
        s->codes[i] = (uint8_t)(i / 27 << 6 | i / 9 % 3 << 4 | i / 3 % 3 << 2 | i % 3);
}

/*
 * Bytes of four codes, exactly uniform: 16 random bits times 81 give the byte's number in the upper
 * half; the 2^16 mod 81 = 7 smallest lower halves are drawn once too often and are thrown away.
 */
static void fill_ternary(tern_synth_stream *s, uint8_t *out, size_t n) {
    for (size_t i = 0; i < n / 4;) {
        uint64_t r = next(s->state);
        for (int lane = 0; lane < 4 && i < n / 4; lane++, r >>= 16) {
            const uint32_t product = (uint32_t)(r & 0xffff) * 81;
            if ((product & 0xffff) >= 7)
                out[i++] = s->codes[product >> 16];
        }
    }
}

void tern_synth_stream_trailer(const tern_synth_stream *s, uint8_t *out) {
    /* -1, 0, +1 have variance 2/3: the scale is sd * sqrt(3/2). */
    const float scale = s->sd * 1.2247449f;
    memset(out, 0, TERN_SYNTH_TRAILER);
    memcpy(out, &scale, sizeof scale);
}

/* ---- blocks: random codes, a scale that varies by a quarter --------------------------- */

static void random_bytes(tern_synth_stream *s, uint8_t *out, size_t n) {
    for (size_t i = 0; i < n; i += 8) {
        const uint64_t r = next(s->state);
        memcpy(out + i, &r, 8);
    }
}

/* [0.75, 1.25) in steps of 1/512. */
static float variation(uint64_t r) {
    return (float)(384 + (r & 255)) / 512.0f;
}

static float deviation_of(const tern_plain *p) {
    float squares = 0.0f;
    if (p->levels == NULL)
        return p->bits == 5 ? 9.23f : 4.61f;
    for (int i = 0; i < 16; i++)
        squares += (float)(p->levels[i] * p->levels[i]);
    return sqrtf(squares / 16.0f);
}

/* The exponent of one of the two powers of two around d, whose square is that of d on average. */
static int random_power(float d, uint64_t r) {
    int exponent;
    const float fraction = 2.0f * frexpf(d, &exponent);
    const float upper = (fraction * fraction - 1.0f) / 3.0f; /* share of the greater power */
    return exponent - 1 + ((float)(r & 0xffff) < upper * 65536.0f);
}

/*
 * Plain blocks of nibbles or fives. With a bias the mean of their codes is -1/2, which cancels, as
 * d has either sign; with a minimum this lies within half a step of the mean.
 */
static void make_plain(tern_synth_stream *s, uint8_t *block) {
    const tern_plain *p = &tern_format_facts_of(s->format)->plain;
    const uint64_t r = next(s->state);
    const float d = s->sd / deviation_of(p) * variation(r);
    const unsigned below_mean = (1u << (p->bits - 1)) - 1;
    const uint32_t high = (uint32_t)(r >> 8);
    if (p->power)
        block[0] = (uint8_t)(128 + random_power(d, r >> 8));
    else
        tern_f16_store(block, r >> 63 && !p->minimum ? -d : d);
    if (p->minimum)
        tern_f16_store(block + 2, -d * ((float)(below_mean * 256 + (r >> 56)) / 256.0f));
    if (p->bits == 5)
        memcpy(block + p->codes_at - 4, &high, sizeof high);
    random_bytes(s, block + p->codes_at, 16);
}

/* Codes -127..127 have deviation 73.6; quantizers never write -128. */
static void make_q8_0(tern_synth_stream *s, uint8_t *block) {
    const uint64_t r = next(s->state);
    tern_f16_store(block, s->sd / 73.6f * variation(r));
    random_bytes(s, block + 2, 32);
    for (int i = 2; i < 34; i++)
        block[i] = block[i] == 0x80 ? 0x81 : block[i];
}

/* Uniform in [0, n), except for a bias of n / 2^32. */
static unsigned below(tern_synth_stream *s, uint32_t n) {
    return (unsigned)((next(s->state) >> 32) * n >> 32);
}

/* Five ternary codes, or four and a 0, as a base-3 fraction in the form of TQ1_0. */
static uint8_t five_codes(tern_synth_stream *s, bool four) {
    const unsigned v = four ? 3 * below(s, 81) : below(s, 243);
    return (uint8_t)((256 * v + 242) / 243);
}

/* Codes -1, 0, +1 have variance 2/3, see above. */
static void make_tq(tern_synth_stream *s, uint8_t *block) {
    const float vary = variation(next(s->state));
    const size_t n = s->format == TERN_FORMAT_TQ1_0 ? 52 : 64; /* bytes of codes */
    for (size_t i = 0; i < n; i++)
        block[i] = n == 64 ? s->codes[below(s, 81)] : five_codes(s, i >= 48);
    tern_f16_store(block + n, s->sd * 1.2247449f * (s->varied ? vary : 1.0f));
}

/* ---- super-blocks of 256: random codes, scales that vary by two --------------------------------
 */

/*
 * Scales 32..63 have a root mean square of 48.4, and minima differ from them by at most one. dmin
 * is d times the mean of the codes, which makes the mean of the weights 0. `deviation` and `mean`
 * are those of the codes.
 */
static void make_minima(tern_synth_stream *s, uint8_t *block, float deviation, float mean) {
    const float d = s->sd / (deviation * 48.4f) * variation(next(s->state));
    uint8_t scale[8], min[8];
    uint64_t r = next(s->state);

    for (int i = 0; i < 8; i++, r >>= 8) {
        scale[i] = (uint8_t)(32 | (r & 31));
        min[i] = (uint8_t)(scale[i] ^ (r >> 7 & 1));
    }
    tern_f16_store(block, d);
    tern_f16_store(block + 2, d * mean);
    tern_k_put_scales(scale, min, block + TERN_K_SCALES);
}

static void make_q4_k(tern_synth_stream *s, uint8_t *block) {
    make_minima(s, block, 4.61f, 7.5f);
    random_bytes(s, block + TERN_Q4_K_NIBBLES, 128);
}

static void make_q5_k(tern_synth_stream *s, uint8_t *block) {
    make_minima(s, block, 9.23f, 15.5f);
    random_bytes(s, block + TERN_Q5_K_HIGH, 160);
}

/* Codes -4 .. 3 have deviation 2.345; scales of magnitude 16 .. 31, of either sign, 23.95. */
static void make_q3_k(tern_synth_stream *s, uint8_t *block) {
    random_bytes(s, block, TERN_Q3_K_SCALES);
    uint64_t r[2] = {next(s->state), next(s->state)};
    memset(block + TERN_Q3_K_SCALES, 0, 12);
    for (size_t i = 0; i < 16; i++, r[i / 8] >>= 8) {
        const int magnitude = 16 | (int)(r[i / 8] & 15);
        tern_q3_k_put_scale(block, i, (r[i / 8] & 128) != 0 ? -magnitude : magnitude);
    }
    tern_f16_store(block + TERN_Q3_K_D, s->sd / (2.345f * 23.95f) * variation(next(s->state)));
}

/* Codes 0 .. 3 have deviation 1.118 and mean 1.5; scales 8 .. 15, of 11.73, are the minima too. */
static void make_q2_k(tern_synth_stream *s, uint8_t *block) {
    random_bytes(s, block, TERN_Q2_K_D);
    for (size_t r = 0; r < 16; r++)
        block[r] = (uint8_t)((8 | (block[r] & 7)) * 0x11);
    const float d = s->sd / (1.118f * 11.73f) * variation(next(s->state));
    tern_f16_store(block + TERN_Q2_K_D, d);
    tern_f16_store(block + TERN_Q2_K_D + 2, 1.5f * d);
}

/* Levels have deviation 68.4 about their mean; signs of scales make it 0. */
static void make_iq4_xs(tern_synth_stream *s, uint8_t *block) {
    random_bytes(s, block, 136);
    uint64_t r = next(s->state);
    memset(block, 0, TERN_IQ4_XS_NIBBLES);
    for (size_t i = 0; i < 8; i++, r >>= 8) {
        const int magnitude = 16 | (int)(r & 15);
        tern_iq4_xs_put_scale(block, i, (r & 128) != 0 ? -magnitude : magnitude);
    }
    tern_f16_store(block, s->sd / (68.4f * 23.95f) * variation(next(s->state)));
}

/* Levels have the RMS 5.86, scales of 8 .. 15 times a power of two 11.73. */
static void make_nvfp4(tern_synth_stream *s, uint8_t *block) {
    for (size_t run = 0; run < TERN_NVFP4_NIBBLES; run++) {
        const uint64_t r = next(s->state);
        const int power = random_power(s->sd / (5.86f * 11.73f), r >> 8);
        block[run] = (uint8_t)(8 * (11 + power) + (int)(r & 7));
    }
    random_bytes(s, block + TERN_NVFP4_NIBBLES, 32);
}

/* Codes -32..31 have deviation 18.5; scales of either sign and magnitude 64..127 have 97.3. */
static void make_q6_k(tern_synth_stream *s, uint8_t *block) {
    random_bytes(s, block, TERN_Q6_K_D);
    for (int i = TERN_Q6_K_SCALES; i < TERN_Q6_K_D; i++) {
        const int magnitude = 64 | (block[i] & 63);
        block[i] = (uint8_t)(block[i] & 0x80 ? -magnitude : magnitude);
    }
    tern_f16_store(block + TERN_Q6_K_D, s->sd / (18.5f * 97.3f) * variation(next(s->state)));
}

/*
 * Weights of random bytes have a mean of 0: signs are random. Their RMS is that of the levels times
 * that of odd factors, 18.47 for those of 1 .. 31 and 9.22 for 1 .. 15, times d and unit. IQ2_S has
 * so 24.43 * 18.47 / 8 = 56.39.
 */
static void make_grid(tern_synth_stream *s, uint8_t *block) {
    static const float rms[TERN_FORMAT_COUNT] = {
        [TERN_FORMAT_IQ1_S] = 7.2f,   [TERN_FORMAT_IQ1_M] = 7.2f,   [TERN_FORMAT_IQ2_XXS] = 53.36f,
        [TERN_FORMAT_IQ2_XS] = 55.9f, [TERN_FORMAT_IQ2_S] = 56.39f, [TERN_FORMAT_IQ3_XXS] = 142.4f,
        [TERN_FORMAT_IQ3_S] = 140.2f,
    };
    const float d = s->sd / rms[s->format] * variation(next(s->state));
    const size_t from = s->format == TERN_FORMAT_IQ1_M ? 0 : 2; /* its d lies among other bits */
    random_bytes(s, block + from, tern_format_describe(s->format)->block_bytes - from);
    tern_grid_put_d(s->format, tern_f32_to_f16(d), block);
}

/* Q1_0: half of the weights are -d. Each block of a model has its own scale. */
static void make_q1_0(tern_synth_stream *s, uint8_t *block) {
    tern_f16_store(block, s->sd * variation(next(s->state)));
    random_bytes(s, block + 2, 16);
}

/* Codes -1, 0, +1 as in make_tq. */
static void make_q2_0(tern_synth_stream *s, uint8_t *block) {
    const size_t n = s->format == TERN_FORMAT_Q2_0 ? 16 : 32; /* bytes of codes */
    tern_f16_store(block, s->sd * 1.2247449f * variation(next(s->state)));
    for (size_t i = 0; i < n; i++)
        block[2 + i] = s->codes[below(s, 81)];
}

static void make_ptq1_0(tern_synth_stream *s, uint8_t *block) {
    for (size_t i = 0; i < TERN_PTQ1_0_D; i++)
        block[i] = five_codes(s, i >= 24);
    tern_f16_store(block + TERN_PTQ1_0_D, s->sd * 1.2247449f * variation(next(s->state)));
}

/* Three of four weights are d or -d. */
static void make_stq1_0(tern_synth_stream *s, uint8_t *block) {
    random_bytes(s, block, TERN_STQ1_0_D);
    tern_f16_store(block + TERN_STQ1_0_D, s->sd * 1.1547005f * variation(next(s->state)));
}

static void fill_blocks(tern_synth_stream *s, uint8_t *out, size_t n) {
    static void (*const make[TERN_FORMAT_COUNT])(tern_synth_stream *, uint8_t *) = {
        [TERN_FORMAT_Q8_0] = make_q8_0,     [TERN_FORMAT_Q4_K] = make_q4_k,
        [TERN_FORMAT_Q5_K] = make_q5_k,     [TERN_FORMAT_Q6_K] = make_q6_k,
        [TERN_FORMAT_TQ1_0] = make_tq,      [TERN_FORMAT_TQ2_0] = make_tq,
        [TERN_FORMAT_IQ2_S] = make_grid,    [TERN_FORMAT_IQ1_S] = make_grid,
        [TERN_FORMAT_IQ1_M] = make_grid,    [TERN_FORMAT_IQ2_XXS] = make_grid,
        [TERN_FORMAT_IQ2_XS] = make_grid,   [TERN_FORMAT_IQ3_XXS] = make_grid,
        [TERN_FORMAT_IQ3_S] = make_grid,    [TERN_FORMAT_Q1_0] = make_q1_0,
        [TERN_FORMAT_Q2_0] = make_q2_0,     [TERN_FORMAT_PQ2_0] = make_q2_0,
        [TERN_FORMAT_PTQ1_0] = make_ptq1_0, [TERN_FORMAT_STQ1_0] = make_stq1_0,
        [TERN_FORMAT_Q2_K] = make_q2_k,     [TERN_FORMAT_Q3_K] = make_q3_k,
        [TERN_FORMAT_IQ4_XS] = make_iq4_xs, [TERN_FORMAT_NVFP4] = make_nvfp4,
    };
    const tern_format_info *info = tern_format_describe(s->format);
    for (size_t i = 0; i < n / info->block_elements; i++, out += info->block_bytes)
        (make[s->format] != NULL ? make[s->format] : make_plain)(s, out);
}

/* ---- streams ------------------------------------------------------------------------------- */

void tern_synth_stream_weights(tern_synth_stream *s, tern_format format, float sd, uint64_t seed,
                               uint64_t index) {
    seed_stream(s->state, seed, index);
    s->format = format;
    s->sd = sd;
    init_values(s);
    init_codes(s);
    s->varied = index % 2 != 0; /* both kinds of TQ matrices in one model */
}

void tern_synth_stream_norm(tern_synth_stream *s, uint64_t seed, uint64_t index) {
    seed_stream(s->state, seed, index);
    s->format = TERN_FORMAT_F32;
    s->sd = NORM_SD;
}

size_t tern_synth_stream_fill(tern_synth_stream *s, uint8_t *out, size_t n) {
    const tern_format_info *info = tern_format_describe(s->format);
    switch (s->format) {
    case TERN_FORMAT_F32:
        if (s->sd == NORM_SD)
            fill_norm(s, out, n);
        else
            fill_32(s, out, n);
        break;
    case TERN_FORMAT_F16:
    case TERN_FORMAT_BF16:
        fill_16(s, out, n);
        break;
    case TERN_FORMAT_I2_S:
        fill_ternary(s, out, n);
        break;
    default:
        fill_blocks(s, out, n);
        break;
    }
    return n / info->block_elements * info->block_bytes;
}
