/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_RECORD_SELFTEST_H
#define TERN_TOOLS_RECORD_SELFTEST_H

/* The tests that a run makes for its receipt, and their results as "test_results". */

#include "tools/record/receipt.h"

/*
 * Runs the tests: accuracy of the products on the model's weights; the run's first tokens twice
 * more, once with the same settings and once with other threads and batches; its prompt and first
 * tokens in one call, whose logits, keys and values must be those of the run. NULL after a
 * complaint if a test could not run. Failed tests are in the result, without a complaint.
 */
json_t *selftest_results(const receipt_run *run, double kv_hit_rate);

/* "accuracy_tests": of the products on the model's weights. NULL after a complaint. */
json_t *selftest_accuracy(const tern_model *model);

/* The share of positions, of those that passes worked with, whose keys and values were already in
 * the cache. */
double selftest_hit_rate(const tern_session_work *before, const tern_session_work *after);

#endif
