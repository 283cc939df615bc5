/* SPDX-License-Identifier: Apache-2.0 */
/* The place of a Level Zero device: it cannot be opened, and every entry says so. */

#include "device/internal.h"

static tern_status unimplemented(const char *entry, tern_error *err) {
    return tern_fail(err, TERN_ERR_UNIMPLEMENTED, "level-zero: %s is not implemented", entry);
}

tern_status tern_level_zero_device_open(tern_device **device, tern_error *err) {
    *device = NULL;
    return unimplemented("open", err);
}

/* The parameters of an entry have names, of which only err is used. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define ENTRY(name, parameters)                                                                    \
    static tern_status entry_##name parameters {                                                   \
        return unimplemented(#name, err);                                                          \
    }
TERN_DEVICE_OPS(ENTRY)
#undef ENTRY

static void entry_close(tern_device *device) {}

const tern_device_ops tern_level_zero_ops = {
#define ENTRY(name, parameters) .name = entry_##name,
    TERN_DEVICE_OPS(ENTRY)
#undef ENTRY
        .close = entry_close,
};
