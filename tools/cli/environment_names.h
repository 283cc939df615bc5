/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CLI_ENVIRONMENT_NAMES_H
#define TERN_TOOLS_CLI_ENVIRONMENT_NAMES_H

/*
 * Names of environment variables beside those of the options: what else reads them, and which
 * nothing reads. A name that begins with TERN_ and that nothing reads is a mistake.
 */

#include <stddef.h>

#include "tools/cli/options.h"

/* A variable that belongs to no flag. */
typedef struct environment_name {
    const char *name, *values, *meaning;
} environment_name;

/* Number i of these; NULL after the last. */
const environment_name *environment_other(size_t i);

/*
 * Looks at all variables: TERN_ERR_ARG for a name that begins with TERN_ and is not known.
 * Empty variables count as not set, and what a container platform sets for a service of the name
 * "tern" (TERN_PORT=tcp://...) as not there.
 */
TERN_MUST_CHECK tern_status environment_check(tern_error *err);

#endif
