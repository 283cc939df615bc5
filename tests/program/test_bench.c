/* SPDX-License-Identifier: Apache-2.0 */
/* The calculations of tern bench: series, energy counters, work-touch, counting zeros, lists. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/peaks.h"
#include "tools/speed/bandwidth.h"
#include "tools/speed/energy.h"
#include "tools/speed/series.h"
#include "tools/speed/sparsity.h"
#include "tools/speed/speed.h"
#include "tools/touch/touch.h"

static void test_series(void **state) {
    (void)state;
    series *s = calloc(1, sizeof *s);
    assert_non_null(s);
    assert_true(series_median(s) == 0.0 && series_spread(s) == 0.0);
    assert_true(series_low(s) == 0.0 && series_high(s) == 0.0);
    series_add(s, 5.0);
    assert_true(series_median(s) == 5.0 && series_spread(s) == 0.0);
    series_add(s, 1.0);
    assert_true(series_median(s) == 3.0); /* the mean of the two middle values */
    series_add(s, 2.0);
    assert_true(series_median(s) == 2.0);
    assert_true(series_low(s) == 1.0 && series_high(s) == 5.0);
    assert_true(series_spread(s) == 200.0); /* (5 - 1) / 2 */
    assert_true(s->values[0] == 5.0);       /* the order is kept */
    for (int i = 0; i < 2 * SERIES_MAX; i++)
        series_add(s, 7.0);
    assert_int_equal(s->n, SERIES_MAX);
    free(s);
}

/* ---- energy -----------------------------------------------------------------------------------
 */

static void write_text(const char *folder, const char *file, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* Makes folder/zone with the files of a counter. */
static void make_zone(const char *folder, const char *zone, const char *name, const char *energy) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, zone);
    (void)mkdir(path, 0700);
    write_text(path, "name", name);
    write_text(path, "energy_uj", energy);
    write_text(path, "max_energy_range_uj", "1000000000\n");
}

static void remove_zone(const char *folder, const char *zone) {
    static const char *const files[] = {"name", "energy_uj", "max_energy_range_uj"};
    char path[256];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s/%s", folder, zone, files[i]);
        (void)unlink(path);
    }
    snprintf(path, sizeof path, "%s/%s", folder, zone);
    assert_int_equal(rmdir(path), 0);
}

static void test_energy(void **state) {
    (void)state;
    char folder[] = "/tmp/tern-energy-XXXXXX";
    assert_non_null(mkdtemp(folder));
    energy_meter m;
    assert_false(energy_open(&m, folder)); /* no package */
    assert_true(energy_joules(&m) < 0.0);
    make_zone(folder, "intel-rapl:0", "package-0\n", "1000000\n");
    make_zone(folder, "intel-rapl:1", "package-1\n", "999000000\n");
    make_zone(folder, "intel-rapl:0:0", "core\n", "500\n"); /* part of a package */
    assert_true(energy_open(&m, folder));
    assert_int_equal(m.n, 2);
    make_zone(folder, "intel-rapl:0", "package-0\n", "3500000\n");
    make_zone(folder, "intel-rapl:1", "package-1\n", "500000\n"); /* wraps once: 1 J + 0.5 J */
    assert_true(energy_joules(&m) > 3.999 && energy_joules(&m) == 0.0);
    make_zone(folder, "intel-rapl:0", "package-0\n", "4500000\n");
    const double joules = energy_joules(&m);
    assert_true(joules > 0.999 && joules < 1.001); /* since the last call */
    make_zone(folder, "intel-rapl:1", "package-1\n", "nothing\n");
    assert_true(energy_joules(&m) < 0.0);
    assert_false(energy_open(&m, folder)); /* a single package would be wrong */
    assert_int_equal(m.n, 0);
    remove_zone(folder, "intel-rapl:0");
    remove_zone(folder, "intel-rapl:1");
    remove_zone(folder, "intel-rapl:0:0");
    assert_int_equal(rmdir(folder), 0);
    assert_false(energy_open(&m, folder)); /* no such folder */
}

/* ---- work-touch -------------------------------------------------------------------------------
 */

static void touch_and_check(size_t bytes, size_t stride, unsigned tokens) {
    touch t;
    assert_true(
        touch_open(&t, &(touch_plan){.bytes = bytes, .stride = stride, .cache = (size_t)1 << 30}));
    for (unsigned i = 0; i < tokens; i++)
        touch_token(&t);
    assert_int_equal(t.tokens, tokens);
    assert_true(t.steps * stride >= bytes);
    assert_true(touch_is_complete(&t));
    t.sum -= t.words[0]; /* as if one word were left out */
    assert_false(touch_is_complete(&t));
    touch_free(&t);
}

static void test_touch(void **state) {
    (void)state;
    touch_and_check(1, 8, 3);          /* less than a word */
    touch_and_check(4096, 64, 5);      /* around the ring of two tokens */
    touch_and_check(100000, 256, 7);   /* not a multiple of the stride */
    touch_and_check(1000, 1 << 20, 9); /* less than a stride */
    touch_and_check(12345, 24, 11);
}

static bool open_hinted(touch *t, size_t bytes, touch_hint hint, size_t cache) {
    const touch_plan plan = {
        .bytes = bytes, .stride = 64, .hint = hint, .cache = cache, .keep_not = 100.0};
    return touch_open(t, &plan);
}

static void test_touch_hint(void **state) {
    (void)state;
    touch t;
    assert_true(open_hinted(&t, 1 << 20, TOUCH_HINT_AUTO, 4 << 20)); /* a ring of 2 MiB */
    assert_false(t.non_temporal);                                    /* it belongs in the cache */
    touch_free(&t);
    assert_true(open_hinted(&t, 1 << 20, TOUCH_HINT_AUTO, 1 << 20));
    assert_true(t.non_temporal);
    touch_token(&t);
    assert_true(touch_is_complete(&t));
    touch_free(&t);
    assert_true(open_hinted(&t, 1 << 20, TOUCH_HINT_OFF, 1 << 20));
    assert_false(t.non_temporal);
    touch_free(&t);
    assert_true(open_hinted(&t, 64, TOUCH_HINT_ON, 1 << 20));
    assert_true(t.non_temporal);
    touch_free(&t);
}

/* Distance and share of words with a hint are as requested, and no word is left out. */
static void test_touch_ahead(void **state) {
    (void)state;
    touch t;
    const touch_plan far = {.bytes = 1 << 20,
                            .stride = 64,
                            .hint = TOUCH_HINT_ON,
                            .ahead_is_given = true,
                            .ahead = 1 << 20,
                            .keep_not = 30.0};
    touch_plan none = far;
    none.ahead = 0;
    assert_true(touch_open(&t, &far));
    assert_int_equal(t.ahead, (1 << 20) / 8);
    touch_token(&t);
    assert_true(touch_is_complete(&t));
    assert_true(t.part / (TOUCH_WHOLE / 1000) == 300);
    assert_int_equal(t.due, (1 << 20) / 64 * t.part % TOUCH_WHOLE);
    touch_free(&t);
    assert_true(touch_open(&t, &none));
    assert_int_equal(t.ahead, 0);
    touch_token(&t);
    assert_true(touch_is_complete(&t) && t.due == 0);
    touch_free(&t);
    assert_true(open_hinted(&t, 1 << 20, TOUCH_HINT_OFF, 0)); /* unless requested */
    assert_true(t.ahead == 0 && t.part == 0);
    touch_free(&t);
    assert_true(open_hinted(&t, 1 << 20, TOUCH_HINT_ON, 0));
    assert_true(t.part == TOUCH_WHOLE);
    assert_int_equal(t.ahead, TOUCH_AHEAD / 8);
    touch_free(&t);
}

/* ---- zeros ------------------------------------------------------------------------------------
 */

static void test_zeros(void **state) {
    (void)state;
    int8_t q[130] = {0};
    sparsity_layer l = {.values = 0};
    sparsity_count(&l, q, 130); /* two groups of 64, eight of 16, 32 of 4; two columns remain */
    assert_int_equal(l.values, 130);
    assert_int_equal(l.zeros, 130);
    assert_int_equal(l.groups[0], 32);
    assert_int_equal(l.groups[1], 8);
    assert_int_equal(l.groups[2], 2);
    assert_int_equal(l.zero_groups[2], 2);
    q[63] = -1; /* the last of a group of each size */
    q[128] = 5; /* outside the groups */
    sparsity_count(&l, q, 130);
    assert_int_equal(l.zeros, 130 + 128);
    assert_int_equal(l.zero_groups[0], 32 + 31);
    assert_int_equal(l.zero_groups[1], 8 + 7);
    assert_int_equal(l.zero_groups[2], 2 + 1);
    q[63] = 0;
    q[64] = 1; /* the first of a group of each size */
    sparsity_count(&l, q, 130);
    assert_int_equal(l.zero_groups[0], 32 + 31 + 31);
    assert_int_equal(l.zero_groups[2], 2 + 1 + 1);
    sparsity_layer layers[2] = {l, l};
    const sparsity s = {.layers = layers, .n_layer = 2};
    const sparsity_layer total = sparsity_total(&s);
    assert_int_equal(total.values, 780);
    assert_int_equal(total.zero_groups[1], 2 * (8 + 7 + 7));
}

/* ---- memory and processor ---------------------------------------------------------------------
 */

static void test_bandwidth(void **state) {
    (void)state;
    bandwidth_meter m = bandwidth_open();
    assert_true(m.child > 0);
    for (uint32_t threads = 1; threads <= 2; threads++) { /* the same child answers again */
        const double gbs = bandwidth_measure(&m, threads);
        assert_true(gbs > 0.01 && gbs < 1e5);
    }
    bandwidth_close(&m);
    assert_int_equal(m.child, 0);
    assert_true(bandwidth_measure(&m, 1) == 0.0);
    bandwidth_close(&m); /* twice is fine */
}

/* Every instruction set of this machine has a probe with the right sum, or no speed is reported. */
static void test_peaks(void **state) {
    (void)state;
    assert_true(tern_roof_macs("scalar", TERN_UNIT_CODES) > 1e6);
    assert_true(tern_roof_macs("none", TERN_UNIT_CODES) == 0.0);
    assert_true(tern_roof_macs("scalar", TERN_UNIT_NONE) == 0.0);
    assert_int_equal(tern_unit_of_kernel("no such row"), TERN_UNIT_NONE);
}

/* ---- lists ------------------------------------------------------------------------------------
 */

static int list_from(uint64_t least, const char *text, uint64_t *list, size_t *n) {
    options *o = calloc(1, sizeof *o);
    assert_non_null(o);
    o->command = COMMAND_BENCH;
    o->values[OPT_DEPTHS] = (option_value){.source = OPTION_FLAG, .text = text};
    const int status = bench_list(o, OPT_DEPTHS, least, 4096, list, n);
    free(o);
    return status;
}

static int list_of(const char *text, uint64_t *list, size_t *n) {
    return list_from(0, text, list, n);
}

static void test_lists(void **state) {
    (void)state;
    uint64_t list[BENCH_LIST_MAX];
    size_t n = 1;
    assert_int_equal(list_of(NULL, list, &n), EXIT_DONE);
    assert_int_equal(n, 0);
    assert_int_equal(list_of("0,512,4096", list, &n), EXIT_DONE);
    assert_int_equal(n, 3);
    assert_int_equal(list[0], 0);
    assert_int_equal(list[2], 4096);
    static const char *const bad[] = {"",
                                      ",",
                                      "1,",
                                      ",1",
                                      "1,,2",
                                      "-1",
                                      "4097",
                                      "1 ,2",
                                      "1x",
                                      "0x10",
                                      "1.5",
                                      "+1",
                                      "99999999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(list_of(bad[i], list, &n), EXIT_USAGE);
    assert_int_equal(list_from(1, "1,2", list, &n), EXIT_DONE);
    assert_int_equal(list_from(2, "2,1", list, &n), EXIT_USAGE);
    char long_list[2 * BENCH_LIST_MAX + 4] = "1";
    for (int i = 1; i < BENCH_LIST_MAX; i++)
        strcat(long_list, ",1");
    assert_int_equal(list_of(long_list, list, &n), EXIT_DONE);
    assert_int_equal(n, BENCH_LIST_MAX);
    strcat(long_list, ",1");
    assert_int_equal(list_of(long_list, list, &n), EXIT_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_series),      cmocka_unit_test(test_energy),
        cmocka_unit_test(test_touch),       cmocka_unit_test(test_touch_hint),
        cmocka_unit_test(test_touch_ahead), cmocka_unit_test(test_zeros),
        cmocka_unit_test(test_bandwidth),   cmocka_unit_test(test_peaks),
        cmocka_unit_test(test_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
