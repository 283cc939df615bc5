/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CROSSVAL_CACHE_H
#define TERN_TOOLS_CROSSVAL_CACHE_H

#include "tools/crossval/run.h"

/*
 * Compares keys and values of the case's tokens, which the session's cache holds, with the
 * reference's files, if it has both. Fills n_layer, keys and values of *out. A file whose size is
 * not layers x key/value heads x tokens x head width floats is refused with these numbers.
 */
TERN_MUST_CHECK tern_status crossval_compare_cache(const tern_session *session,
                                                   const reference *all, const reference_case *c,
                                                   case_result *out, tern_error *err);

#endif
