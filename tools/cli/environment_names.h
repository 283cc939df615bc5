/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CLI_ENVIRONMENT_NAMES_H
#define TERN_TOOLS_CLI_ENVIRONMENT_NAMES_H

/*
 * Environment variables that are not options: the known ones, and the check for unknown ones. An
 * unknown name that begins with TERN_ is a mistake.
 */

#include <stddef.h>

#include "tools/cli/options.h"

/* A variable that belongs to no flag. */
typedef struct environment_name {
    const char *name, *values, *meaning;
} environment_name;

/* Variable i of these; NULL after the last. */
const environment_name *environment_other(size_t i);

/*
 * Checks all variables: TERN_ERR_ARG for an unknown name that begins with TERN_. Empty variables
 * count as not set. Variables that a container platform sets for a service named "tern"
 * (TERN_PORT=tcp://...) are ignored.
 */
TERN_MUST_CHECK tern_status environment_check(tern_error *err);

#endif
