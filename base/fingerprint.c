/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fingerprint.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/sha256.h"
#include "tern/tern.h"

void tern_fingerprint(uint64_t identity, const char *kv, char out[TERN_FINGERPRINT]) {
    char line[128], hex[65];
    tern_sha256 h;
    const int n =
        snprintf(line, sizeof line, "%016" PRIx64 " %s %d", identity, kv, TERN_NUMERICS_VERSION);
    tern_sha256_start(&h);
    tern_sha256_add(&h, line, (size_t)n);
    tern_sha256_finish(&h, hex);
    (void)snprintf(out, TERN_FINGERPRINT, "b%.16s", hex);
}
