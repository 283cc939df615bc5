/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_COMMANDS_MODEL_KERNELS_H
#define TERN_TOOLS_COMMANDS_MODEL_KERNELS_H

#include "tools/cli/options.h"

/*
 * tern kernels -m MODEL: prints the layouts and kernels of a model's matrices on this machine and
 * what chose them, then the kernels of all other operations. Reads no weights and measures nothing.
 * Returns the exit status.
 */
int model_kernels(const options *o);

#endif
