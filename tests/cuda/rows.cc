/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA rows of the kernel table as C++ for the processor. */

#include "tests/cuda/emulator.h" /* replaces CUDA's headers, so it comes before the rows */

#include "gen/cuda/kernels.cu"
