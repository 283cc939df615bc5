/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_THREADS_QUOTA_H
#define TERN_THREADS_QUOTA_H

/* How much processor time the process's control group allows, as containers limit it. */

#include <stdint.h>

/*
 * Whole processors that "QUOTA PERIOD" (cpu.max of cgroup 2, microseconds) stands for: rounded
 * down, at least 1, since threads beyond it would be stopped in the middle of every period. 0: no
 * limit ("max"), or no such text.
 */
uint32_t tern_quota_parse(const char *text);

/*
 * The tightest limit of the process's group and those above it. root is where cgroup file systems
 * are mounted, groups the text of /proc/self/cgroup. 0: no limit.
 */
uint32_t tern_quota_find(const char *root, const char *groups);

/* The quota of this process. */
uint32_t tern_processor_quota(void);

#endif
