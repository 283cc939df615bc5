/* SPDX-License-Identifier: Apache-2.0 */

/* Lets a caller observe and measure a session while it works. */

#include "runtime/engine/session.h"

tern_status tern_session_watch(tern_session *s, tern_stages *stages, tern_error *err) {
    if (s == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_session_watch needs a session");
    const uint32_t threads = tern_session_threads(s);
    if (stages != NULL && stages->count != threads)
        return tern_fail(err, TERN_ERR_ARG, "stages of %u threads for a session of %u",
                         stages->count, threads);
    tern_runner_measure(s->runner, stages);
    return TERN_OK;
}

void tern_session_observe(tern_session *s, tern_product_observer *observer, void *user) {
    tern_runner_observe(s->runner, observer, user);
}
