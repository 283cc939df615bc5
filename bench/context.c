/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/context.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/os/os.h"
#include "base/sha256.h"
#include "bench/commit.h"
#include "bench/gbench.h"
#include "bench/roofs.h"
#include "dispatch/cpu.h"

static void add_figure(const char *key, double value) {
    char text[32];
    (void)snprintf(text, sizeof text, "%.2f", value * 1e-9);
    tern_bench_context(key, text);
}

/* Identifies the program that measured, for comparisons with another build. */
static void describe_program(void) {
    uint8_t piece[1 << 14];
    char hex[65];
    tern_sha256 h;
    tern_bench_context("tern_version", TERN_VERSION);
    tern_bench_context("tern_commit", TERN_COMMIT);
    tern_bench_context("compiler", TERN_COMPILER);
    FILE *file = fopen(tern_os_program(), "rb");
    if (file == NULL)
        return;
    tern_sha256_start(&h);
    for (size_t n; (n = fread(piece, 1, sizeof piece, file)) > 0;)
        tern_sha256_add(&h, piece, n);
    tern_sha256_finish(&h, hex);
    if (!ferror(file))
        tern_bench_context("program_sha256", hex);
    (void)fclose(file);
}

static void describe_system(void) {
    struct utsname name;
    char os[sizeof name.sysname + sizeof name.release + 1];
    if (uname(&name) != 0)
        return;
    (void)snprintf(os, sizeof os, "%s %.*s", name.sysname, (int)strspn(name.release, "0123456789."),
                   name.release);
    tern_bench_context("architecture", name.machine);
    tern_bench_context("os", os);
}

void tern_bench_describe_machine(uint64_t features) {
    char sets[256] = "";
    char key[64];
    size_t count = 0;
    const tern_probe *const *probes = tern_probes(&count);
    describe_program();
    describe_system();
    tern_bench_context("processor", tern_cpu_name());
    for (tern_level level = 0; level < TERN_LEVEL_COUNT; level++) {
        (void)snprintf(key, sizeof key, "read %s", tern_level_name(level));
        add_figure(key, tern_roof_read(level, 0, 1));
    }
    for (size_t i = 0; i < count; i++) {
        if ((probes[i]->needs & ~features) != 0)
            continue;
        const size_t used = strlen(sets);
        (void)snprintf(sets + used, sizeof sets - used, "%s%s", used ? " " : "", probes[i]->isa);
        for (tern_unit unit = 0; unit < TERN_UNIT_COUNT; unit++) {
            if (probes[i]->mac[unit] == NULL)
                continue;
            (void)snprintf(key, sizeof key, "peak %s %s", probes[i]->isa, tern_unit_name(unit));
            add_figure(key, tern_roof_macs(probes[i]->isa, unit));
        }
    }
    tern_bench_context("isas", sets);
}
