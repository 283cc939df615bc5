/* SPDX-License-Identifier: Apache-2.0 */
#include "base/late_library.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* A pointer to a function is copied byte by byte, since C does not convert one to void *. */
static bool is_filled(const tern_late_symbol *symbol) {
    void *value;
    memcpy(&value, symbol->place, sizeof value);
    return value != NULL;
}

static tern_status fail(const char *library, tern_error *err) {
    const char *why = dlerror();
    const tern_status status = tern_fail(err, TERN_ERR_IO, "%s cannot be loaded: %s", library,
                                         why != NULL ? why : "no reason was given");
    (void)dlerror(); /* gives the memory of the last one back */
    return status;
}

tern_status tern_late_library_load(const char *library, const tern_late_symbol *symbols, size_t n,
                                   tern_error *err) {
    size_t filled = 0;
    while (filled < n && is_filled(&symbols[filled]))
        filled++;
    if (filled == n)
        return TERN_OK;
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return fail(library, err);
    for (size_t i = 0; i < n; i++)
        if (dlsym(handle, symbols[i].name) == NULL)
            return fail(library, err);
    for (size_t i = 0; i < n; i++) {
        void *value = dlsym(handle, symbols[i].name);
        memcpy(symbols[i].place, &value, sizeof value);
    }
    return TERN_OK;
}
