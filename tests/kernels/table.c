/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/cpu.h"

/* This machine's features. If the kernels of avxvnni are compiled in EVEX encoding, they need those
 * features in place of AVXVNNI. */
static uint64_t features(void) {
    const uint64_t mask = tern_cpu_features();
#ifdef TERN_TEST_AVXVNNI_AS_EVEX
    const uint64_t evex =
        TERN_CPU_MASK(AVX512F) | TERN_CPU_MASK(AVX512VL) | TERN_CPU_MASK(AVX512VNNI);
    return (mask & evex) == evex ? mask | TERN_CPU_MASK(AVXVNNI) : mask & ~TERN_CPU_MASK(AVXVNNI);
#else
    return mask;
#endif
}

bool table_runnable(const tern_kernel_row *kernel) {
    const char *filter = getenv("TERN_TEST_FILTER");

    if (kernel->fn.any == NULL || (kernel->needs & ~features()) != 0)
        return false;
    return filter == NULL || strstr(kernel->name, filter) != NULL;
}

static unsigned long number_of(const char *variable) {
    const char *text = getenv(variable);
    return text != NULL ? strtoul(text, NULL, 10) : 0;
}

static unsigned long every(void) {
    return number_of("TERN_TEST_EVERY");
}

bool table_left_out(void) {
    static unsigned long shapes;
    return every() > 1 && (shapes++ + number_of("TERN_TEST_FIRST")) % every() != 0;
}

size_t table_thinned(size_t n) {
    return every() > 1 ? n / 4 : n;
}

void table_report(void) {
    size_t count;
    size_t runnable = 0;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);

    for (size_t i = 0; i < count; i++)
        if (table_runnable(&kernels[i]))
            runnable++;
        else
            printf("skipped: %s\n", kernels[i].name);
    printf("%zu of %zu kernels run on this machine\n", runnable, count);
    if (runnable == 0) {
        printf("skipped: none of these kernels can run on this machine\n");
        exit(TABLE_SKIPPED);
    }
}
