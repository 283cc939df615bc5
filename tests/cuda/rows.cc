/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA rows of the kernel table as C++ for the processor. */

#include "gen/cuda/rows.cu"
