/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_COMMANDS_COMMANDS_H
#define TERN_TOOLS_COMMANDS_COMMANDS_H

#include "tools/cli/options.h"

/* One function per command, in <name>.c; each returns the exit status. */
#define COMMAND_PROTOTYPE(id, name) int cmd_##name(const options *o);
COMMAND_LIST(COMMAND_PROTOTYPE)
#undef COMMAND_PROTOTYPE

#endif
