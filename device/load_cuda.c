/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the CUDA module. The library does not link it: a program that is built where nvcc is runs
 * where neither CUDA nor a driver is, and one that never asks for a device never reads the module.
 * A module stays loaded, because its devices may outlive any one use.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/internal.h"

/*
 * The module's place relative to the file that holds this code: beside a library, and beside the
 * program in a build; where an installed program has its libraries. So the tree may be moved.
 */
static const char *const places[] = {"libtern-cuda.so", TERN_CUDA_FROM_PROGRAM};

/* Writes the directory of the library or program that holds this code, not that of a link to it. */
static bool own_directory(char path[PATH_MAX]) {
    Dl_info info;
    /* a program may have any name for itself */
    const bool told = dladdr(places, &info) != 0 && info.dli_fname[0] == '/';

    if (realpath(told ? info.dli_fname : "/proc/self/exe", path) == NULL)
        return false;
    char *slash = strrchr(path, '/');
    if (slash != NULL)
        *slash = '\0';
    return slash != NULL;
}

/* TERN_CUDA_MODULE where it is set, else the first of the places that exists. */
static bool find_module(char *path, size_t size) {
    const char *wanted = getenv("TERN_CUDA_MODULE");
    char directory[PATH_MAX];

    if (wanted != NULL && *wanted != '\0')
        return snprintf(path, size, "%s", wanted) < (int)size;
    if (!own_directory(directory))
        return false;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (snprintf(path, size, "%s/%s", directory, places[i]) < (int)size &&
            access(path, F_OK) == 0)
            return true;
    return false;
}

tern_status tern_cuda_device_open(tern_device **device, tern_error *err) {
    char path[PATH_MAX];

    *device = NULL;
    if (!find_module(path, sizeof path))
        return tern_fail(err, TERN_ERR_DEVICE, "cuda: the module libtern-cuda is not installed");
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL)
        return tern_fail(err, TERN_ERR_DEVICE, "cuda: %s", dlerror());
    const tern_cuda_module_info *info = dlsym(module, TERN_CUDA_MODULE_SYMBOL);
    if (info == NULL)
        return tern_fail(err, TERN_ERR_DEVICE, "cuda: %s is not a module of tern", path);
    if (strcmp(info->version, TERN_VERSION) != 0 || info->ops_bytes != sizeof(tern_device_ops))
        return tern_fail(err, TERN_ERR_DEVICE, "cuda: %s belongs to version %s of tern, this is %s",
                         path, info->version, TERN_VERSION);
    return info->open(device, err);
}
