/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/library.h"

#include "base/late_library.h"

struct http_library mhd;

#define SYMBOL(name) {"MHD_" #name, &mhd.name},
static const tern_late_symbol symbols[] = {HTTP_LIBRARY_FUNCTIONS(SYMBOL)};

tern_status http_library_load(tern_error *err) {
    return tern_late_library_load(TERN_MICROHTTPD, symbols, sizeof symbols / sizeof *symbols, err);
}
