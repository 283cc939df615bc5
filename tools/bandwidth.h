/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_BANDWIDTH_H
#define TERN_TOOLS_BANDWIDTH_H

#include <stdint.h>

/*
 * How fast `threads` threads can read memory together, in GB/s (1e9 bytes): each reads its own part
 * of a buffer of more than four last-level caches, once, forwards; the best of several passes. It
 * is measured in a child process, so that the buffer is not part of this process's peak memory;
 * call it while this process has no other threads. 0 when it could not be measured.
 */
double bandwidth_measure(uint32_t threads);

#endif
