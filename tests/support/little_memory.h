/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_SUPPORT_LITTLE_MEMORY_H
#define TERN_TESTS_SUPPORT_LITTLE_MEMORY_H

/* Sessions opened where the system gives no more memory. Not under sanitizers that map memory
 * themselves: see LITTLE_MEMORY_WORKS. */

#include "tern/tern.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define LITTLE_MEMORY_WORKS
#endif

/*
 * What tern_session_new gives while this process may map `more` bytes beside what it has; the limit
 * is as it was afterwards. A session that could be opened is freed again; one that could not is
 * NULL, or the test fails.
 */
tern_status opened_within(const tern_model *model, const tern_session_params *params, uint64_t more,
                          tern_error *err);

#endif
