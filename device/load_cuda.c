/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the CUDA module. The library does not link it: a program that is built where nvcc is runs
 * where neither CUDA nor a driver is, and one that never asks for a device never reads the module.
 * A module stays loaded, because its devices may outlive any one use.
 */
#include <dlfcn.h>
#include <limits.h>
#include <string.h>

#include "base/module.h"
#include "device/internal.h"

tern_status tern_cuda_device_open(tern_device **device, tern_error *err) {
    static const char *const places[] = {"libtern-cuda.so", TERN_CUDA_FROM_PROGRAM};
    char path[PATH_MAX];

    *device = NULL;
    if (!tern_module_find("TERN_CUDA_MODULE", places, sizeof places / sizeof *places, path,
                          sizeof path))
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
