/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CLI_STREAMS_H
#define TERN_TOOLS_CLI_STREAMS_H

#include <stdbool.h>

/*
 * Occupies the descriptors 0, 1 and 2 if the caller closed them, so that no file opened later
 * becomes standard input or output; reading and writing them fails. Call it once at the program's
 * start, before anything is opened. False: one of them cannot be occupied.
 */
bool streams_take(void);

#endif
