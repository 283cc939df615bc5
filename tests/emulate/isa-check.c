/*
 * Checks the AVX-512 instructions that kernels rest on against plain C, to
 * show that the emulated CPU has them and computes them rightly. Build with
 *   cc -O2 -mavx512f -mavx512bw -mavx512vl -mavx512vnni -mavx512vbmi -mgfni \
 *      -mf16c -mfma
 * and run it with bochs-run; ./check does both. With an argument N it also runs
 * N rounds of 8 dependent vpdpbusd, to time them.
 */
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 64, FLOATS = 16 };

static uint32_t seed = 1;
static int failures;

static uint8_t random_byte(void) {
    seed = seed * 1664525u + 1013904223u;
    return (uint8_t)(seed >> 24);
}

static void fill(void *to, size_t n) {
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)to)[i] = random_byte();
}

static void report(const char *what, const void *got, const void *wanted, size_t n) {
    int same = memcmp(got, wanted, n) == 0;
    failures += !same;
    printf("%-24s %s\n", what, same ? "ok" : "WRONG");
}

/* Bochs 2.7 computes the inverted parity of each row, so that every bit is wrong. This defect of
 * the emulator is distinguished from any other result. */
static void report_affine(const char *what, const uint8_t *got, const uint8_t *wanted) {
    int inverted = 0;
    for (int i = 0; i < BYTES; i++)
        inverted += got[i] == (uint8_t)~wanted[i];
    if (inverted == BYTES)
        printf("%-24s INVERTED, which is a known defect of Bochs 2.7\n", what);
    else
        report(what, got, wanted, BYTES);
}

static void check_vpdpbusd(void) {
    uint8_t a[BYTES];
    int8_t b[BYTES];
    int32_t sum[FLOATS], got[FLOATS];
    fill(a, sizeof a);
    fill(b, sizeof b);
    for (int i = 0; i < FLOATS; i++)
        sum[i] = i * 1000 - 7000;
    __m512i r =
        _mm512_dpbusd_epi32(_mm512_loadu_si512(sum), _mm512_loadu_si512(a), _mm512_loadu_si512(b));
    _mm512_storeu_si512(got, r);
    for (int i = 0; i < BYTES; i++)
        sum[i / 4] += a[i] * b[i];
    report("vpdpbusd zmm", got, sum, sizeof sum);
}

static void check_vpermb(void) {
    uint8_t table[BYTES], index[BYTES], got[BYTES], wanted[BYTES];
    fill(table, sizeof table);
    fill(index, sizeof index);
    _mm512_storeu_si512(
        got, _mm512_permutexvar_epi8(_mm512_loadu_si512(index), _mm512_loadu_si512(table)));
    for (int i = 0; i < BYTES; i++)
        wanted[i] = table[index[i] & 63];
    report("vpermb zmm", got, wanted, sizeof got);
}

static void check_vpermi2b(void) {
    uint8_t table[2 * BYTES], index[BYTES], got[BYTES], wanted[BYTES];
    fill(table, sizeof table);
    fill(index, sizeof index);
    _mm512_storeu_si512(got, _mm512_permutex2var_epi8(_mm512_loadu_si512(table),
                                                      _mm512_loadu_si512(index),
                                                      _mm512_loadu_si512(table + BYTES)));
    for (int i = 0; i < BYTES; i++)
        wanted[i] = table[index[i] & 127];
    report("vpermi2b zmm", got, wanted, sizeof got);
}

static uint8_t affine(uint64_t matrix, uint8_t x, uint8_t constant) {
    uint8_t y = 0;
    for (int bit = 0; bit < 8; bit++) {
        uint8_t row = (uint8_t)(matrix >> (8 * (7 - bit)));
        y |= (uint8_t)(__builtin_parity(row & x) << bit);
    }
    return y ^ constant;
}

static void check_gf2p8affineqb(void) {
    uint8_t x[BYTES], got[BYTES], wanted[BYTES];
    uint64_t matrix[8];
    fill(x, sizeof x);
    fill(matrix, sizeof matrix);
    _mm512_storeu_si512(got, _mm512_gf2p8affine_epi64_epi8(_mm512_loadu_si512(x),
                                                           _mm512_loadu_si512(matrix), 0x5a));
    for (int i = 0; i < BYTES; i++)
        wanted[i] = affine(matrix[i / 8], x[i], 0x5a);
    report_affine("gf2p8affineqb zmm", got, wanted);
}

static uint8_t multiply(uint8_t a, uint8_t b) {
    unsigned product = 0;
    for (int bit = 0; bit < 8; bit++)
        product ^= b >> bit & 1 ? (unsigned)a << bit : 0;
    for (int bit = 15; bit >= 8; bit--)
        product ^= product >> bit & 1 ? 0x11bu << (bit - 8) : 0;
    return (uint8_t)product;
}

static void check_gf2p8mulb(void) {
    uint8_t a[BYTES], b[BYTES], got[BYTES], wanted[BYTES];
    fill(a, sizeof a);
    fill(b, sizeof b);
    _mm512_storeu_si512(got, _mm512_gf2p8mul_epi8(_mm512_loadu_si512(a), _mm512_loadu_si512(b)));
    for (int i = 0; i < BYTES; i++)
        wanted[i] = multiply(a[i], b[i]);
    report("gf2p8mulb zmm", got, wanted, sizeof got);
}

/* Every half but the NaNs, whose payload the standard leaves open here. */
static float half_to_float(uint16_t half) {
    int exponent = half >> 10 & 31, fraction = half & 1023;
    float size = exponent == 31  ? __builtin_inff()
                 : exponent == 0 ? __builtin_ldexpf((float)fraction, -24)
                                 : __builtin_ldexpf((float)(fraction + 1024), exponent - 25);
    return half & 0x8000 ? -size : size;
}

static void check_vcvtph2ps(void) {
    static float got[65536], wanted[65536];
    for (int base = 0; base < 65536; base += FLOATS) {
        uint16_t halves[FLOATS];
        for (int i = 0; i < FLOATS; i++) {
            int is_nan = ((base + i) & 0x7fff) > 0x7c00;
            halves[i] = is_nan ? 0 : (uint16_t)(base + i);
            wanted[base + i] = half_to_float(halves[i]);
        }
        __m256i in = _mm256_loadu_si256((const __m256i *)halves);
        _mm512_storeu_ps(got + base, _mm512_cvtph_ps(in));
    }
    report("vcvtph2ps zmm, all", got, wanted, sizeof got);
}

static void check_vcvtps2ph(void) {
    uint16_t got[FLOATS], wanted[FLOATS];
    float in[FLOATS];
    for (int i = 0; i < FLOATS; i++) {
        wanted[i] = (uint16_t)(0x3c00 + 37 * i);
        in[i] = half_to_float(wanted[i]) * (1 + 0x1p-13f); /* rounds back */
    }
    _mm256_storeu_si256((__m256i *)got, _mm512_cvtps_ph(_mm512_loadu_ps(in), 0));
    report("vcvtps2ph zmm", got, wanted, sizeof got);
}

static void check_masks(void) {
    uint8_t from[BYTES], got[BYTES], wanted[BYTES];
    fill(from, sizeof from);
    for (int n = 0; n <= BYTES; n++) {
        __mmask64 mask = n == 64 ? ~0ull : (1ull << n) - 1;
        memset(got, 0xee, sizeof got);
        memset(wanted, 0xee, sizeof wanted);
        memcpy(wanted, from, (size_t)n);
        _mm512_mask_storeu_epi8(got, mask, _mm512_maskz_loadu_epi8(mask, from));
        if (memcmp(got, wanted, sizeof got) != 0)
            break;
    }
    report("masked byte load, store", got, wanted, sizeof got);
}

static void check_fma(void) {
    float a[FLOATS], b[FLOATS], c[FLOATS], got[FLOATS], wanted[FLOATS];
    for (int i = 0; i < FLOATS; i++) {
        a[i] = 1 + (float)random_byte() * 0x1p-20f;
        b[i] = 1 - (float)random_byte() * 0x1p-20f;
        c[i] = -1 + (float)random_byte() * 0x1p-30f;
        wanted[i] = __builtin_fmaf(a[i], b[i], c[i]);
    }
    _mm512_storeu_ps(got,
                     _mm512_fmadd_ps(_mm512_loadu_ps(a), _mm512_loadu_ps(b), _mm512_loadu_ps(c)));
    report("vfmadd zmm", got, wanted, sizeof got);
}

static void spin(long rounds) {
    __m512i sum = _mm512_setzero_si512(), a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(-2);
    for (long i = 0; i < rounds; i++)
        for (int j = 0; j < 8; j++)
            __asm__ volatile("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    printf("%ld rounds, sum %d\n", rounds, _mm512_reduce_add_epi32(sum));
}

int main(int argc, char **argv) {
    check_vpdpbusd();
    check_vpermb();
    check_vpermi2b();
    check_gf2p8affineqb();
    check_gf2p8mulb();
    check_vcvtph2ps();
    check_vcvtps2ph();
    check_masks();
    check_fma();
    if (argc > 1)
        spin(atol(argv[1]));
    printf("%d failures\n", failures);
    return failures != 0;
}
