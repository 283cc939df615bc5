/* SPDX-License-Identifier: Apache-2.0 */

#include "threads/speed.h"

#include <stdlib.h>

enum { ROUNDS = 3 };

static int compare_falling(const void *left, const void *right) {
    const uint32_t a = *(const uint32_t *)left;
    const uint32_t b = *(const uint32_t *)right;
    return (a < b) - (a > b);
}

/* The number of the kind; speeds->n: there is none of that speed. */
static uint32_t kind_of(const tern_core_speeds *speeds, uint32_t announced) {
    uint32_t kind = 0;
    while (kind < speeds->n && speeds->announced[kind] != announced)
        kind++;
    return kind;
}

tern_core_speeds tern_core_kinds(const tern_topology *t) {
    const tern_core_speeds none = {.n = 0};
    tern_core_speeds s = none;
    for (uint32_t i = 0; i < t->n; i++) {
        if (kind_of(&s, t->processors[i].speed) < s.n)
            continue;
        if (s.n == TERN_CORE_KINDS)
            return none;
        s.announced[s.n++] = t->processors[i].speed;
    }
    qsort(s.announced, s.n, sizeof *s.announced, compare_falling);
    for (uint32_t k = 0; k < s.n; k++)
        s.measured[k] = s.announced[k];
    return s.n > 1 ? s : none;
}

bool tern_core_measure(const tern_topology *t, tern_core_clock *clock, void *user,
                       tern_core_speeds *speeds) {
    double least[TERN_CORE_KINDS] = {0};
    double fastest = 0.0;
    for (int round = 0; round < ROUNDS; round++)
        for (uint32_t k = 0; k < speeds->n; k++) {
            const double seconds = clock(user, t, speeds->announced[k]);
            if (!(seconds > 0.0))
                return false;
            least[k] = round == 0 || seconds < least[k] ? seconds : least[k];
        }
    for (uint32_t k = 0; k < speeds->n; k++)
        fastest = k == 0 || least[k] < fastest ? least[k] : fastest;
    for (uint32_t k = 0; k < speeds->n; k++)
        speeds->measured[k] =
            tern_speed_rounded((uint64_t)(fastest / least[k] * (double)TERN_FULL_SPEED + 0.5));
    return speeds->n > 0;
}

void tern_topology_set_speeds(tern_topology *t, const tern_core_speeds *speeds) {
    for (uint32_t i = 0; i < t->n; i++) {
        const uint32_t kind = kind_of(speeds, t->processors[i].speed);
        if (kind < speeds->n)
            t->processors[i].speed = speeds->measured[kind];
    }
    tern_topology_sort(t);
}
