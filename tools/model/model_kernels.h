/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_MODEL_MODEL_KERNELS_H
#define TERN_TOOLS_MODEL_MODEL_KERNELS_H

#include "tools/cli/options.h"

/*
 * tern kernels -m MODEL: the layouts and kernels of a model's matrices on this machine and who
 * chose them, then the kernels of everything else. Reads no weights, measures nothing. The exit
 * status.
 */
int model_kernels(const options *o);

#endif
