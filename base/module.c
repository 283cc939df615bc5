/* SPDX-License-Identifier: Apache-2.0 */

#include "base/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os/os.h"

static const char here; /* an address of this code's file */

/* Writes the directory of the library or program that holds this code, not that of a link to it. */
static bool own_directory(char path[PATH_MAX]) {
    Dl_info info;
    /* a program may have any name for itself */
    const bool told = dladdr(&here, &info) != 0 && info.dli_fname[0] == '/';

    if (realpath(told ? info.dli_fname : tern_os_program(), path) == NULL)
        return false;
    char *slash = strrchr(path, '/');
    if (slash != NULL)
        *slash = '\0';
    return slash != NULL;
}

bool tern_module_find(const char *variable, const char *const *places, size_t n, char *path,
                      size_t size) {
    const char *wanted = getenv(variable);
    char directory[PATH_MAX];

    if (wanted != NULL && *wanted != '\0')
        return snprintf(path, size, "%s", wanted) < (int)size;
    if (!own_directory(directory))
        return false;
    for (size_t i = 0; i < n; i++)
        if (snprintf(path, size, "%s/%s", directory, places[i]) < (int)size &&
            access(path, F_OK) == 0)
            return true;
    return false;
}
