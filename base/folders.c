/* SPDX-License-Identifier: Apache-2.0 */
#include "base/folders.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

bool tern_make_parents(char *path) {
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        const bool there = mkdir(path, 0700) == 0 || errno == EEXIST;
        *slash = '/';
        if (!there)
            return false;
    }
    return true;
}
