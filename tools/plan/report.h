/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_PLAN_REPORT_H
#define TERN_TOOLS_PLAN_REPORT_H

/* The report of a plan: for people with every step of the arithmetic, for programs as JSON. */

#include "base/json_tree/value.h"
#include "tools/plan/predict.h"

typedef struct plan_report {
    plan_model model;
    plan_machine machine;
    bool measured;     /* the speed of the memory, on this machine */
    uint64_t position; /* tokens before the one that is planned for */
    uint64_t users;    /* sequences at once */
} plan_report;

void plan_print(const plan_report *r);
json_t *plan_json(const plan_report *r);

#endif
