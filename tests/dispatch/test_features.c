/* SPDX-License-Identifier: Apache-2.0 */
/* From the registers of a processor to features: forged processors, this machine in two ways, and
 * TERN_PROCESSOR. */
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "dispatch/cpu.h"
#include "dispatch/features.h"
#include "dispatch/own_cpu.h"
#include "dispatch/processors.h"
#include "dispatch/select.h"

#define M(name) TERN_CPU_MASK(name)
#define BIT(n) (UINT32_C(1) << (n))

enum { OS_SSE = 3, OS_AVX = 7, OS_AVX512 = 0xE7, OS_TILES = 0x602E7 };

/* Bits by their names in Intel's manual. Every processor since Haswell has `old` and `leaf7`. */
enum { OLD = 1 << 19, FMA3 = 1 << 12, HALVES = 1 << 29, AVX2 = 1 << 5 };
#define AVX512_SKYLAKE (BIT(16) | BIT(17) | BIT(30) | BIT(31))
#define AVX512_FOUNDATION BIT(16)
#define VBMI BIT(1)
#define GALOIS BIT(8)
#define VNNI512 BIT(11)
#define VNNI256 BIT(4)
#define AMX (BIT(24) | BIT(25))

typedef struct forged {
    const char *name; /* a name of dispatch/processors.c; "=" begins a remark */
    tern_x86_words words;
    uint64_t features; /* 0: those that the name has */
} forged;

static const forged processors[] = {
    {"scalar", {0, 0, 0, 0, 0, OS_AVX}, 0},
    {"nehalem", {OLD, 0, 0, 0, 0, 0}, 0},
    {"sandy-bridge", {OLD | BIT(28), 0, 0, 0, 0, OS_AVX}, 0},
    {"ivy-bridge", {OLD | BIT(28) | HALVES, 0, 0, 0, 0, OS_AVX}, 0},
    {"tremont", {OLD, 0, GALOIS, 0, 0, OS_SSE}, 0},
    {"haswell", {OLD | FMA3 | HALVES, AVX2, 0, 0, 0, OS_AVX}, 0},
    {"knights-landing", {OLD | FMA3 | HALVES, AVX2 | AVX512_FOUNDATION, 0, 0, 0, OS_AVX512}, 0},
    {"skylake-x", {OLD | FMA3 | HALVES, AVX2 | AVX512_SKYLAKE, 0, 0, 0, OS_AVX512}, 0},
    {"cascade-lake", {OLD | FMA3 | HALVES, AVX2 | AVX512_SKYLAKE, VNNI512, 0, 0, OS_AVX512}, 0},
    {"ice-lake",
     {OLD | FMA3 | HALVES, AVX2 | AVX512_SKYLAKE, VBMI | GALOIS | VNNI512, 0, 0, OS_AVX512},
     0},
    {"alder-lake", {OLD | FMA3 | HALVES, AVX2, GALOIS, 0, VNNI256, OS_AVX}, 0},
    {"sapphire-rapids",
     {OLD | FMA3 | HALVES, AVX2 | AVX512_SKYLAKE, VBMI | GALOIS | VNNI512, AMX, VNNI256, OS_TILES},
     0},
    {"zen3", {OLD | FMA3 | HALVES, AVX2, 0, 0, 0, OS_AVX}, 0},
    {"zen4",
     {OLD | FMA3 | HALVES, AVX2 | AVX512_SKYLAKE, VBMI | GALOIS | VNNI512, 0, 0, OS_AVX512},
     0},
    {"zen5",
     {OLD | FMA3 | HALVES, AVX2 | AVX512_SKYLAKE, VBMI | GALOIS | VNNI512, 0, VNNI256, OS_AVX512},
     0},
    {"=Sapphire Rapids, and a system that saves no tiles",
     {OLD | FMA3 | HALVES, AVX2 | AVX512_SKYLAKE, VBMI | GALOIS | VNNI512, AMX, VNNI256, OS_AVX512},
     M(SSE41) | M(AVX2) | M(F16C) | M(FMA) | M(AVXVNNI) | M(AVX512F) | M(AVX512BW) | M(AVX512VL) |
         M(AVX512DQ) | M(AVX512VNNI) | M(AVX512VBMI) | M(GFNI)},
    {"=Sapphire Rapids, and a system that saves no ZMM registers",
     {OLD | FMA3 | HALVES, AVX2 | AVX512_SKYLAKE, VBMI | GALOIS | VNNI512, 0, VNNI256, OS_AVX},
     M(SSE41) | M(AVX2) | M(F16C) | M(FMA) | M(AVXVNNI) | M(GFNI)},
    {"=Sapphire Rapids, and a system that saves no AVX registers",
     {OLD | FMA3 | HALVES, AVX2 | AVX512_SKYLAKE, VBMI | GALOIS | VNNI512, 0, VNNI256, OS_SSE},
     M(SSE41) | M(GFNI)},
    {"=every bit set, and no state but ZMM's upper halves",
     {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, 0xE0},
     M(SSE41) | M(GFNI)},
};

static uint64_t features_of(const char *name) {
    size_t count;
    const tern_known_processor *known = tern_known_processors(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].features;
    fail_msg("%s is not in the list of processors", name);
    return 0;
}

/* The features whose bits the forged processors can have. tern may come to know more. */
#define FORGED                                                                                     \
    (M(SSE41) | M(AVX2) | M(F16C) | M(FMA) | M(AVXVNNI) | M(AVX512F) | M(AVX512BW) | M(AVX512VL) | \
     M(AVX512DQ) | M(AVX512VNNI) | M(AVX512VBMI) | M(GFNI) | M(AMXTILE) | M(AMXINT8))

static void forged_processors(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof processors / sizeof *processors; i++) {
        const forged *p = &processors[i];
        const uint64_t wanted = p->name[0] == '=' ? p->features : features_of(p->name);
        const uint64_t found = tern_features_of_x86(&p->words) & FORGED;
        if (found != wanted)
            fail_msg("%s: %#llx, not %#llx", p->name, (unsigned long long)found,
                     (unsigned long long)wanted);
    }
}

/* Each feature depends on a bit of its own: without it, that feature alone is lost. */
static void every_bit_counts(void **state) {
    (void)state;
    const tern_x86_words all = {UINT32_MAX, UINT32_MAX, UINT32_MAX,
                                UINT32_MAX, UINT32_MAX, UINT64_MAX};
    const uint64_t every = tern_features_of_x86(&all);
    uint64_t lost = 0;
    for (size_t bit = 0; bit < 5 * 32; bit++) {
        tern_x86_words words = all;
        uint32_t *const leaves[] = {&words.leaf1_ecx, &words.leaf7_ebx, &words.leaf7_ecx,
                                    &words.leaf7_1_eax, &words.leaf7_edx};
        *leaves[bit / 32] &= ~BIT(bit % 32);
        const uint64_t missing = every & ~tern_features_of_x86(&words);
        assert_int_equal(missing & (missing - 1), 0); /* at most one */
        assert_int_equal(missing & lost, 0);
        lost |= missing;
    }
    assert_true(lost == every);
    assert_true((every & (M(NEON) | M(DOTPROD) | M(I8MM))) == 0);
    assert_true((every & FORGED) == FORGED);
}

static void arm_processors(void **state) {
    (void)state;
    assert_true(tern_features_of_arm(0, 0) == 0);
    assert_true(tern_features_of_arm(0xFF, 0) == features_of("cortex-a53"));
    assert_true(tern_features_of_arm(0x1007FF, 0) == features_of("neoverse-n1"));
    assert_true(tern_features_of_arm(0x1007FF, 1 << 13) == features_of("neoverse-v1"));
}

/* NULL in a build without cpuinfo. */
bool __attribute__((weak)) cpuinfo_initialize(void);

/* Without cpuinfo, tern reports a subset: its own answer less the features that need cpuinfo. */
static void two_words_of_this_machine(void **state) {
    (void)state;
    uint64_t features, silent;
    const bool answers = tern_cpu_cpuinfo_word(&features, &silent);
    if (cpuinfo_initialize != NULL)
        assert_true(answers == cpuinfo_initialize());
    if (!answers)
        check_skip("cpuinfo cannot start here");
    assert_true(features == (tern_cpu_own_word() & ~silent));
    unsetenv("TERN_PROCESSOR");
    assert_true(tern_cpu_announced() == tern_cpu_own_word());
}

/* Writes the file of a cache of a forged machine, "cpu3/cache/index0/size", and the folders above
 * it. */
static void put(const char *root, const char *name, const char *text) {
    char path[256];
    for (const char *slash = strchr(name, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        (void)snprintf(path, sizeof path, "%s/%.*s", root, (int)(slash - name), name);
        (void)mkdir(path, 0700);
    }
    (void)snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void put_cache(const char *root, int processor, int index, const char *level,
                      const char *size, const char *shared) {
    char name[64];
    const char *const files[][2] = {{"level", level}, {"size", size}, {"shared_cpu_list", shared}};
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof name, "cpu%d/cache/index%d/%s", processor, index, files[i][0]);
        put(root, name, files[i][1]);
    }
}

/* Each cache counts once, by the first processor that shares it; those of the last level count. */
static void own_caches(void **state) {
    (void)state;
    char root[] = "/tmp/tern-caches-XXXXXX", command[64];
    assert_non_null(mkdtemp(root));
    assert_true(tern_cpu_own_cache_bytes(root) == 0);
    for (int i = 0; i < 4; i++) {
        put_cache(root, i, 0, "1\n", "32K\n", i < 2 ? "0-1\n" : "2-3\n");
        put_cache(root, i, 1, "2\n", "512K\n", i < 2 ? "0-1\n" : "2-3\n");
    }
    assert_true(tern_cpu_own_cache_bytes(root) == 1 << 20);
    for (int i = 0; i < 4; i++)
        put_cache(root, i, 2, "3\n", i < 2 ? "8M\n" : "16384K\n", i < 2 ? "0-1\n" : "2,3\n");
    assert_true(tern_cpu_own_cache_bytes(root) == 24 << 20);
    put(root, "cpu2/cache/index2/size", "");
    assert_true(tern_cpu_own_cache_bytes(root) == 8 << 20);
    (void)snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

/* Linux tells the same name, with the blanks between its words made one. */
static void own_name(void **state) {
    (void)state;
    const char *name = tern_cpu_own_name();
    assert_true(name == tern_cpu_own_name());
    assert_true(strlen(name) > 3 && strlen(name) <= 48 && name[0] != ' ');
#ifdef __x86_64__
    char line[256], first[64] = "";
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file != NULL && first[0] == '\0' && fgets(line, sizeof line, file) != NULL)
        (void)sscanf(line, "model name : %63s", first);
    if (file != NULL)
        assert_int_equal(fclose(file), 0);
    assert_string_not_equal(name, "unknown processor");
    assert_memory_equal(name, first, strlen(first));
#else
    assert_string_equal(name, "unknown processor");
#endif
}

static void believed_processors(void **state) {
    (void)state;
    size_t count;
    bool known;
    const tern_known_processor *list = tern_known_processors(&count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(setenv("TERN_PROCESSOR", list[i].name, 1), 0);
        assert_true(tern_believed_features(&known) == list[i].features && known);
        assert_true(tern_cpu_announced() == (tern_cpu_own_word() & list[i].features));
    }
    setenv("TERN_PROCESSOR", "", 1);
    assert_true(tern_believed_features(&known) == UINT64_MAX && known);
}

static void unknown_processor(void **state) {
    (void)state;
    uint64_t mask = 99;
    tern_error err = {0};
    setenv("TERN_PROCESSOR", "haswel", 1);
    assert_int_equal(tern_cpu_announced(), 0);
    assert_int_equal(tern_cpu_mask(NULL, NULL, &mask, &err), TERN_ERR_ISA);
    assert_true(mask == 99);
    assert_non_null(strstr(err.message, "unknown processor 'haswel' (valid: scalar, nehalem, "));
    assert_non_null(strstr(err.message, ", apple-m2)"));
    unsetenv("TERN_PROCESSOR");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forged_processors),   cmocka_unit_test(every_bit_counts),
        cmocka_unit_test(arm_processors),      cmocka_unit_test(two_words_of_this_machine),
        cmocka_unit_test(own_caches),          cmocka_unit_test(own_name),
        cmocka_unit_test(believed_processors), cmocka_unit_test(unknown_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
