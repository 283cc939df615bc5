/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random_bytes.h"

#include <stdlib.h>

#include "base/os/os.h"

void tern_random_bytes(void *bytes, size_t size) {
    if (!tern_os_random_bytes(bytes, size))
        abort();
}
