/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the module with MPI. The library does not link it, so a program that is built where MPI is
 * runs where it is not. The module stays loaded until the process ends.
 */
#include <dlfcn.h>
#include <limits.h>
#include <string.h>

#include "base/module.h"
#include "ranks/ranks.h"

tern_status tern_ranks_open_mpi(double limit, tern_ranks_opened *out, tern_error *err) {
    static const char *const places[] = {"libtern-mpi.so", TERN_MPI_FROM_PROGRAM};
    char path[PATH_MAX];
    if (!tern_module_find("TERN_MPI_MODULE", places, sizeof places / sizeof *places, path,
                          sizeof path))
        return tern_fail(err, TERN_ERR_DEVICE, "mpi: the module libtern-mpi is not installed");
    void *module = dlopen(path, RTLD_NOW | RTLD_GLOBAL); /* MPI opens parts that need its symbols */
    if (module == NULL)
        return tern_fail(err, TERN_ERR_DEVICE, "mpi: %s", dlerror());
    const tern_ranks_module *info = dlsym(module, TERN_RANKS_MODULE_SYMBOL);
    if (info == NULL)
        return tern_fail(err, TERN_ERR_DEVICE, "mpi: %s is not a module of tern", path);
    if (strcmp(info->version, TERN_VERSION) != 0)
        return tern_fail(err, TERN_ERR_DEVICE, "mpi: %s belongs to version %s of tern, this is %s",
                         path, info->version, TERN_VERSION);
    return info->open(limit, out, err);
}
