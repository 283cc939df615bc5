/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/reference_fill.h"

enum { CANARY = 0xa5, DUMP_MAX = 8 };

/* TERN_TEST_FUNCTION in the environment limits the run to functions of that name (* and ? work). */
__attribute__((constructor)) static void choose_functions(void) {
    const char *names = getenv("TERN_TEST_FUNCTION");
    if (names != NULL)
        cmocka_set_test_filter(names);
}

static char current_case[512] = "(no case named)";

void check_case(const char *format, ...) {
    va_list args;

    va_start(args, format);
    vsnprintf(current_case, sizeof current_case, format, args);
    va_end(args);
}

void check_fail(const char *format, ...) {
    char message[512];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    fail_msg("%s: %s", current_case, message);
}

void check_skip(const char *reason) {
    print_message("skipped: %s\n", reason);
    skip();
}

void check_until(bool (*holds)(void)) {
    while (!holds())
        (void)usleep(1000);
}

/* ---- random numbers ------------------------------------------------------------------------ */

uint64_t check_random(check_rng *rng) {
    return tern_ref_random(&rng->state);
}

uint32_t check_below(check_rng *rng, uint32_t n) {
    return tern_ref_below(&rng->state, n);
}

float check_normal(check_rng *rng) {
    return tern_ref_normal(&rng->state);
}

float check_any_finite(check_rng *rng) {
    return tern_ref_any_finite(&rng->state);
}

/* ---- buffers ------------------------------------------------------------------------------- */

static size_t page_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

void check_canary_fill(void *p, size_t bytes) {
    memset(p, CANARY, bytes);
}

bool check_canary_intact(const void *p, size_t bytes) {
    const uint8_t *byte = p;

    return bytes == 0 || (byte[0] == CANARY && memcmp(byte, byte + 1, bytes - 1) == 0);
}

/*
 * Mappings for reuse, by their number of pages. Asking the system for each buffer would take longer
 * than most tests use it.
 */
enum { KEPT_PAGES = 32, KEPT_OF_A_SIZE = 8 };
static _Thread_local struct {
    uint8_t *map[KEPT_OF_A_SIZE];
    size_t n;
} kept[KEPT_PAGES];

/* `usable` bytes between two inaccessible pages. */
static uint8_t *guarded(size_t usable, size_t page) {
    const size_t pages = usable / page, bytes = usable + 2 * page;

    if (pages < KEPT_PAGES && kept[pages].n > 0)
        return kept[pages].map[--kept[pages].n];
    uint8_t *map = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        check_fail("cannot map %zu bytes", bytes);
    if (mprotect(map + page, usable, PROT_READ | PROT_WRITE) != 0)
        check_fail("cannot make %zu bytes accessible", usable);
    return map;
}

static void give_back(uint8_t *map, size_t bytes, size_t page) {
    const size_t pages = bytes / page - 2;

    if (pages < KEPT_PAGES && kept[pages].n < KEPT_OF_A_SIZE)
        kept[pages].map[kept[pages].n++] = map;
    else
        munmap(map, bytes);
}

check_buffer check_buffer_new(size_t bytes, size_t align, check_place place) {
    const size_t page = page_bytes();
    const size_t usable = (bytes + page - 1) / page * page + (bytes == 0 ? page : 0);
    check_buffer buffer = {.bytes = bytes, .map_bytes = usable + 2 * page};

    buffer.map = guarded(usable, page);
    check_canary_fill(buffer.map + page, usable);
    const size_t offset = place == CHECK_START ? 0 : (usable - bytes) & ~(align - 1);
    buffer.data = buffer.map + page + offset;
    return buffer;
}

void check_buffer_free(check_buffer *buffer) {
    if (buffer->map == NULL)
        return;

    const size_t page = page_bytes();
    const uint8_t *first = buffer->map + page;
    const uint8_t *last = buffer->map + buffer->map_bytes - page;
    const uint8_t *data = buffer->data;
    if (!check_canary_intact(first, (size_t)(data - first)))
        check_fail("bytes before a buffer of %zu were overwritten", buffer->bytes);
    if (!check_canary_intact(data + buffer->bytes, (size_t)(last - data) - buffer->bytes))
        check_fail("bytes after a buffer of %zu were overwritten", buffer->bytes);
    give_back(buffer->map, buffer->map_bytes, page);
    memset(buffer, 0, sizeof *buffer);
}

size_t check_resident(void *memory, size_t bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), n = (bytes + page - 1) / page;
    unsigned char *there = malloc(n);
    size_t count = 0;
    assert_non_null(there);
    assert_int_equal(mincore(memory, bytes, there), 0);
    for (size_t i = 0; i < n; i++)
        count += there[i] & 1;
    free(there);
    return count * page;
}

/* ---- comparison ---------------------------------------------------------------------------- */

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

bool check_same_float(float a, float b) {
    return bits_of(a) == bits_of(b) || (isnan(a) && isnan(b));
}

/* The index of the element that TERN_TEST_MUTATE spoils, among n; n: none. */
static size_t spoiled(size_t n) {
    const char *which = getenv("TERN_TEST_MUTATE");
    if (which == NULL || n == 0)
        return n;
    return strcmp(which, "last") == 0 ? n - 1 : 0;
}

/* x with its lowest bit flipped. */
static float spoil(float x) {
    uint32_t bits = bits_of(x) ^ 1;
    memcpy(&x, &bits, sizeof x);
    return x;
}

void check_floats(const char *what, const float *expected, const float *got, size_t n) {
    const size_t mutant = spoiled(n);
    size_t wrong = 0;

    for (size_t i = 0; i < n; i++) {
        const float value = i == mutant ? spoil(got[i]) : got[i];
        if (check_same_float(expected[i], value))
            continue;
        if (wrong++ < DUMP_MAX)
            print_error("  %s[%zu]: expected %.9g (%08x), got %.9g (%08x)\n", what, i,
                        (double)expected[i], bits_of(expected[i]), (double)value, bits_of(value));
    }
    if (wrong != 0)
        check_fail("%zu of %zu %s differ", wrong, n, what);
}

void check_bytes(const char *what, const void *expected, const void *got, size_t n) {
    const uint8_t *a = expected;
    const uint8_t *b = got;
    const size_t mutant = spoiled(n);
    size_t wrong = 0;

    for (size_t i = 0; i < n; i++) {
        const uint8_t value = i == mutant ? b[i] ^ 1 : b[i];
        if (a[i] != value && wrong++ < DUMP_MAX)
            print_error("  %s[%zu]: expected %02x, got %02x\n", what, i, a[i], value);
    }
    if (wrong != 0)
        check_fail("%zu of %zu bytes of %s differ", wrong, n, what);
}

/* ---- SHA-256 (FIPS 180-4) ------------------------------------------------------------------ */

/* The first 32 bits of the fractional part of a root of `prime`, with exponent 1/2 or 1/3. */
static uint32_t root_fraction(unsigned prime, bool cube) {
    const long double root = cube ? cbrtl((long double)prime) : sqrtl((long double)prime);
    return (uint32_t)((root - floorl(root)) * 4294967296.0L);
}

static uint32_t rotate(uint32_t x, unsigned n) {
    return x >> n | x << (32 - n);
}

static void sha_constants(uint32_t k[64], uint32_t h[8]) {
    unsigned count = 0;

    for (unsigned n = 2; count < 64; n++) {
        bool prime = true;
        for (unsigned f = 2; f * f <= n; f++)
            prime = prime && n % f != 0;
        if (!prime)
            continue;
        if (count < 8)
            h[count] = root_fraction(n, false);
        k[count++] = root_fraction(n, true);
    }
}

static void sha_block(const uint8_t *block, const uint32_t k[64], uint32_t h[8]) {
    uint32_t w[64];
    uint32_t v[8];

    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        const uint32_t a = w[i - 15];
        const uint32_t b = w[i - 2];
        w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    memcpy(v, h, sizeof v);
    for (int i = 0; i < 64; i++) {
        const uint32_t t1 = v[7] + (rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25)) +
                            ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i];
        const uint32_t t2 = (rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22)) +
                            ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        h[i] += v[i];
}

const char *check_hash(const void *bytes, size_t n) {
    static char text[17];
    const uint8_t *p = bytes;
    uint8_t last[128] = {0};
    uint32_t k[64];
    uint32_t h[8];
    size_t i = 0;

    sha_constants(k, h);
    for (; i + 64 <= n; i += 64)
        sha_block(p + i, k, h);
    memcpy(last, p + i, n - i);
    last[n - i] = 0x80;
    const size_t padded = n - i < 56 ? 64 : 128;
    for (size_t b = 0; b < 8; b++)
        last[padded - 1 - b] = (uint8_t)((uint64_t)n * 8 >> 8 * b);
    for (size_t b = 0; b < padded; b += 64)
        sha_block(last + b, k, h);
    snprintf(text, sizeof text, "%08x%08x", h[0], h[1]);
    return text;
}
