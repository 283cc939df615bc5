/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CLI_JSON_LINE_H
#define TERN_TOOLS_CLI_JSON_LINE_H

/* JSON on standard output. */

#include "base/json_tree/value.h"

/* Prints root as one line and frees it; returns the exit status. NULL (no memory) is a failure. */
int json_print(json_t *root);

#endif
