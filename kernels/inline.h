/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_INLINE_H
#define TERN_KERNELS_INLINE_H

/*
 * Headers and templates that kernels for CUDA use, too, write TERN_INLINE before a function,
 * TERN_TABLE before an array of their own and TERN_SHARED_TABLE before one that other files see.
 * kernels/isa/cuda.cuh defines them as what nvcc compiles for the device.
 */
#ifndef TERN_INLINE
#define TERN_INLINE static inline
#define TERN_TABLE static const
#define TERN_SHARED_TABLE const
#endif

#endif
