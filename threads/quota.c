/* SPDX-License-Identifier: Apache-2.0 */

#include "threads/quota.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "threads/topology.h"

uint32_t tern_quota_parse(const char *text) {
    unsigned long long quota;
    unsigned long long period;
    if (sscanf(text, "%llu %llu", &quota, &period) != 2 || quota == 0 || period == 0)
        return 0;
    const unsigned long long processors = quota / period;
    if (processors == 0)
        return 1;
    return processors < UINT32_MAX ? (uint32_t)processors : 0;
}

/* The smaller limit, where 0 stands for none. */
static uint32_t tighter(uint32_t a, uint32_t b) {
    if (a == 0 || b == 0)
        return a + b;
    return a < b ? a : b;
}

/* cgroup 2: cpu.max of the group at root/path and of every group above it. */
static uint32_t unified_limit(const char *root, const char *path) {
    char folder[PATH_MAX];
    char name[PATH_MAX + sizeof "/cpu.max"];
    char text[64];
    uint32_t limit = 0;
    const int n = snprintf(folder, sizeof folder, "%s%s", root, path);
    if (n < 0 || (size_t)n >= sizeof folder)
        return 0;
    for (;;) {
        (void)snprintf(name, sizeof name, "%s/cpu.max", folder);
        tern_read_line(name, text, sizeof text);
        limit = tighter(limit, tern_quota_parse(text));
        char *slash = strrchr(folder, '/');
        if (strlen(folder) <= strlen(root) || slash == NULL)
            return limit;
        *slash = '\0';
    }
}

/* cgroup 1: two files, in the controller's folder; inside a container its own group is there. */
static uint32_t separate_limit(const char *root) {
    char name[PATH_MAX];
    char text[64];
    char quota[32];
    char period[32];
    (void)snprintf(name, sizeof name, "%s/cpu/cpu.cfs_quota_us", root);
    tern_read_line(name, quota, sizeof quota);
    (void)snprintf(name, sizeof name, "%s/cpu/cpu.cfs_period_us", root);
    tern_read_line(name, period, sizeof period);
    if (quota[0] == '-')
        return 0; /* -1: no limit */
    (void)snprintf(text, sizeof text, "%.31s %.31s", quota, period);
    return tern_quota_parse(text);
}

uint32_t tern_quota_find(const char *root, const char *groups) {
    uint32_t limit = separate_limit(root);
    const char *line = strstr(groups, "0::/");
    if (line != NULL && (line == groups || line[-1] == '\n')) {
        char path[PATH_MAX];
        const size_t size = strcspn(line + 3, "\n");
        if (size < sizeof path) {
            memcpy(path, line + 3, size);
            path[size] = '\0';
            limit = tighter(limit, unified_limit(root, path));
        }
    }
    return limit;
}

uint32_t tern_processor_quota(void) {
    char groups[4096];
    const int file = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
    const ssize_t n = file < 0 ? 0 : read(file, groups, sizeof groups - 1);
    groups[n > 0 ? n : 0] = '\0';
    if (file >= 0)
        (void)close(file);
    return tern_quota_find("/sys/fs/cgroup", groups);
}
