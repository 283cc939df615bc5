/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_SUPPORT_LITTLE_MEMORY_H
#define TERN_TESTS_SUPPORT_LITTLE_MEMORY_H

/* Opens sessions when the system gives no more memory. Not under sanitizers that map memory
 * themselves: see LITTLE_MEMORY_WORKS. */

#include "tern/tern.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define LITTLE_MEMORY_WORKS
#endif

/*
 * The status of tern_session_new while this process may map only `more` bytes beyond what it has.
 * The limit is restored afterwards. An opened session is freed. A session that could not be opened
 * must be NULL, or the test fails.
 */
tern_status opened_within(const tern_model *model, const tern_session_params *params, uint64_t more,
                          tern_error *err);

#endif
