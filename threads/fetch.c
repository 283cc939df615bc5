/* SPDX-License-Identifier: Apache-2.0 */
#include "threads/fetch.h"

tern_status tern_fetch_check(const tern_fetch *wish, tern_error *err) {
    if ((unsigned)wish->hint > TERN_FETCH_AUTO)
        return tern_fail(err, TERN_ERR_ARG, "fetch: unknown hint %d", (int)wish->hint);
    if (!(wish->kept_percent >= 0.0 && wish->kept_percent <= 100.0)) /* not a number is neither */
        return tern_fail(err, TERN_ERR_ARG, "fetch: kept_percent %g is not in 0 .. 100",
                         wish->kept_percent);
    return TERN_OK;
}

tern_fetch tern_fetch_settle(const tern_fetch *wish, uint64_t weights, uint64_t caches) {
    tern_fetch settled = *wish;
    if (wish->hint == TERN_FETCH_AUTO)
        settled.hint = caches > 0 && weights > caches ? TERN_FETCH_PASSING : TERN_FETCH_KEPT;
    return settled;
}

tern_fetching tern_fetching_of(const tern_fetch *settled) {
    const double passing =
        settled->hint == TERN_FETCH_PASSING ? 1.0 - settled->kept_percent / 100.0 : 0.0;
    return (tern_fetching){.ahead = settled->ahead,
                           .passing = (uint64_t)(passing * (double)TERN_FETCH_WHOLE)};
}

size_t tern_fetch_ask(const tern_fetching *f, const void *begin, size_t bytes, uint64_t *due) {
    const size_t wanted = bytes < f->ahead ? bytes : f->ahead;
    const size_t before = (uintptr_t)begin % TERN_FETCH_LINE; /* of the first line */
    const size_t lines = wanted > 0 ? (before + wanted + TERN_FETCH_LINE - 1) / TERN_FETCH_LINE : 0;
    const char *line = (const char *)begin - before;
    for (size_t i = 0; i < lines; i++, line += TERN_FETCH_LINE) {
        *due += f->passing;
        if (*due >= TERN_FETCH_WHOLE)
            __builtin_prefetch(line, 0, 0);
        else
            __builtin_prefetch(line, 0, 3);
        *due %= TERN_FETCH_WHOLE;
    }
    return lines;
}
