/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/chat/line.h"

/* Makes the folders that lead to path's last part, private to their owner. */
static bool make_folders(char *path) {
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        const bool there = mkdir(path, 0700) == 0 || errno == EEXIST;
        *slash = '/';
        if (!there)
            return false;
    }
    return true;
}

bool history_path(char *path, size_t size) {
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    int n = -1;
    if (state != NULL && state[0] == '/') /* others are to be ignored, says the specification */
        n = snprintf(path, size, "%s/tern/history", state);
    else if (home != NULL && home[0] == '/')
        n = snprintf(path, size, "%s/.local/state/tern/history", home);
    return n > 0 && (size_t)n < size && make_folders(path);
}
