/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_INTERRUPT_H
#define TERN_TOOLS_INTERRUPT_H

/* Ctrl-C (SIGINT) as something to ask for, so that work ends where it may end. */

#include <stdbool.h>

/* From now on the next SIGINT is noted, and the one behind it ends the process. */
void interrupt_catch(void);

/* Whether one came since interrupt_catch. */
bool interrupt_seen(void);

#endif
