/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/engine/cost.h"

static const double share_of_new = 0.25;

static uint32_t size_of(uint32_t rows) {
    uint32_t size = 0;
    while (size + 1 < TERN_COST_SIZES && rows >> (size + 1) > 0)
        size++;
    return size;
}

void tern_pass_costs_add(tern_pass_costs *c, uint32_t rows, double seconds) {
    const uint32_t size = size_of(rows);
    const double now = seconds / rows;
    double *known = &c->row_seconds[size];
    *known = *known > 0.0 ? *known + share_of_new * (now - *known) : now;
    /* A larger pass never costs more a row. Otherwise a size that was slow once, because the system
     * was busy, would be avoided for good. */
    for (uint32_t larger = size + 1; larger < TERN_COST_SIZES; larger++)
        if (c->row_seconds[larger] > *known)
            c->row_seconds[larger] = *known;
}

/* Seconds a row: measured at this size, else at the next smaller one, else at the next larger one;
 * 0: nothing is known. */
static double row_seconds(const tern_pass_costs *c, uint32_t size) {
    for (uint32_t i = size + 1; i-- > 0;)
        if (c->row_seconds[i] > 0.0)
            return c->row_seconds[i];
    for (uint32_t i = size + 1; i < TERN_COST_SIZES; i++)
        if (c->row_seconds[i] > 0.0) /* that whole pass is an upper bound of this one */
            return c->row_seconds[i] * (double)(1U << (i - size));
    return 0.0;
}

uint32_t tern_pass_costs_rows(const tern_pass_costs *c, double seconds, uint32_t most) {
    for (uint32_t size = size_of(most ? most : 1) + 1; size-- > 0;) {
        const uint32_t end = size == size_of(most) ? most : (2U << size) - 1;
        const double cost = row_seconds(c, size);
        const double fit = cost > 0.0 ? seconds / cost : (double)end;
        const uint32_t rows = fit < (double)end ? (uint32_t)fit : end;
        if (rows >= 1U << size)
            return rows;
    }
    return 0;
}
