/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CLI_STREAMS_H
#define TERN_TOOLS_CLI_STREAMS_H

#include <stdbool.h>

/*
 * Takes the descriptors 0, 1 and 2 where the caller closed them, so that no file which is opened
 * later becomes standard input or output: reading and writing them fails. Once, at the program's
 * start, before anything is opened. False: there is one that cannot be taken.
 */
bool streams_take(void);

#endif
