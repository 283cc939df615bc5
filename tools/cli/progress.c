/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/progress.h"

#include <stdio.h>

#include "base/metrics.h"
#include "tools/cli/output.h"

progress progress_start(bool verbose) {
    return (progress){.begin = tern_clock_seconds(), .shown = wants_remarks(verbose)};
}

void progress_update(uint64_t done, uint64_t total, void *user) {
    progress *p = user;
    const double now = tern_clock_seconds();
    if (!p->shown || (now - p->printed < 0.1 && done < total))
        return;
    p->printed = now;
    const double share = total > 0 ? (double)done / (double)total : 1.0;
    const double speed = now > p->begin ? (double)done / (now - p->begin) : 0.0;
    (void)fprintf(stderr, "\r%5.1f %%  %.1f of %.1f MiB  %.0f MB/s ", 100.0 * share,
                  (double)done / 1048576.0, (double)total / 1048576.0, speed * 1e-6);
}

void progress_end(const progress *p) {
    if (p->shown)
        (void)fputc('\n', stderr);
}
