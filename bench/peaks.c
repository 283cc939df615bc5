/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/peaks.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#define TERN_PROBE(isa) extern const tern_probe tern_probe_##isa;
#include "gen/probes.inc"
#undef TERN_PROBE

enum { MAC_CALLS = 40 };

static tern_probe_input input; /* filled once */
static pthread_once_t once = PTHREAD_ONCE_INIT;

const tern_probe *const *tern_probes(size_t *count) {
    static const tern_probe *const all[] = {
#define TERN_PROBE(isa) &tern_probe_##isa,
#include "gen/probes.inc"
#undef TERN_PROBE
    };
    *count = sizeof all / sizeof *all;
    return all;
}

tern_unit tern_unit_of_kernel(const char *kernel_name) {
    static const struct {
        const char *kernel;
        tern_unit unit;
    } units[] = {
#define TERN_KERNEL_UNIT(kernel, unit) {#kernel, TERN_UNIT_##unit},
#include "gen/units.inc"
#undef TERN_KERNEL_UNIT
    };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(units[i].kernel, kernel_name) == 0)
            return units[i].unit;
    return TERN_UNIT_NONE;
}

const char *tern_unit_name(tern_unit unit) {
    static const char *const names[] = {
#define TERN_UNIT_TEXT(name, text) text,
        TERN_UNIT_LIST(TERN_UNIT_TEXT)
#undef TERN_UNIT_TEXT
    };
    return names[unit];
}

double tern_thread_seconds(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fill(void) {
    for (size_t i = 0; i < TERN_PROBE_ELEMENTS; i++)
        input.codes[i] = (uint8_t)(i * i / 3 % 3);
    for (size_t i = 0; i < TERN_PROBE_ELEMENTS / 4; i++)
        input.floats[i] = (float)(i * i / 5 % 3);
    for (size_t i = 0; i < sizeof input.x; i++)
        input.x[i] = (int8_t)(i * i / 3 % 3) - 1;
    for (size_t i = 0; i < TERN_PROBE_INPUTS; i++)
        input.fx[i] = (float)(i % 3) - 1.0f;
}

static int times_in_call(tern_unit unit) {
    return unit == TERN_UNIT_TILES ? TERN_PROBE_TILED : 1;
}

/* The result that tern_probe.mac[unit] must return, by plain arithmetic. */
static int64_t expected_total(const tern_probe *probe, tern_unit unit) {
    const size_t elements = TERN_PROBE_VECTORS * probe->lanes * (unit == TERN_UNIT_FLOAT ? 1 : 4);
    int64_t total = 0;
    for (size_t i = 0; i < elements; i++) {
        for (size_t j = 0; j < probe->inputs; j++) {
            const int32_t bias = unit == TERN_UNIT_SIGNED ? probe->signed_bias : 0;
            total += unit == TERN_UNIT_FLOAT ? (int64_t)(input.floats[i] * input.fx[j])
                                             : (input.codes[i] + bias) * input.x[4 * j + i % 4];
        }
    }
    return total * (TERN_PROBE_STEPS / TERN_PROBE_VECTORS) * times_in_call(unit);
}

double tern_roof_macs(const char *isa, tern_unit unit) {
    size_t count = 0;
    (void)pthread_once(&once, fill);
    const tern_probe *const *all = tern_probes(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(all[i]->isa, isa) != 0 || all[i]->mac[unit] == NULL)
            continue;
        const int64_t expected = expected_total(all[i], unit);
        const size_t width = all[i]->lanes * (unit == TERN_UNIT_FLOAT ? 1 : 4);
        const double macs =
            (double)TERN_PROBE_STEPS * (double)(all[i]->inputs * width) * times_in_call(unit);
        double best = 0.0;
        for (int call = 0; call < MAC_CALLS; call++) {
            const double begin = tern_thread_seconds();
            const int64_t total = all[i]->mac[unit](&input);
            const double seconds = tern_thread_seconds() - begin;
            if (total != expected)
                return 0.0;
            if (seconds > 0.0 && macs / seconds > best)
                best = macs / seconds;
        }
        return best;
    }
    return 0.0;
}
