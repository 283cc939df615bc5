/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_SESSION_SESSION_FILE_H
#define TERN_RUNTIME_ENGINE_SESSION_SESSION_FILE_H

/* A session as a file, in the format of runtime/engine/cache/sequence_file.h. */

#include "runtime/engine/cache/sequence_file.h"
#include "runtime/engine/session.h"

/*
 * tern_session_restore from an open stream that can be read twice: it is checked to its end before
 * anything in the session changes. `name` is for messages.
 */
TERN_MUST_CHECK tern_status tern_session_read(tern_session *s, FILE *in, const char *name,
                                              tern_error *err);

#endif
