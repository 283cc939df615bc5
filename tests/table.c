/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/cpu.h"

bool table_runnable(const tern_kernel_row *row) {
    const char *filter = getenv("TERN_TEST_FILTER");

    if (row->fn.any == NULL || (row->needs & ~tern_cpu_features()) != 0)
        return false;
    return filter == NULL || strstr(row->name, filter) != NULL;
}

void table_report(void) {
    size_t count;
    size_t runnable = 0;
    const tern_kernel_row *rows = tern_kernel_rows(&count);

    for (size_t i = 0; i < count; i++) {
        if (table_runnable(&rows[i]))
            runnable++;
        else
            printf("skipped: %s\n", rows[i].name);
    }
    printf("%zu of %zu kernel rows run on this machine\n", runnable, count);
}
