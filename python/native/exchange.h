/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_PYTHON_NATIVE_EXCHANGE_H
#define TERN_PYTHON_NATIVE_EXCHANGE_H

/*
 * An http_exchange without HTTP: what is replied is kept as bytes. It has those functions of
 * serve/http/http.h that answers call, so a library that links this file has no server.
 */

#include "base/json_tree/text.h"
#include "serve/http/http.h"

/* Kept once; NULL: no memory. */
http_exchange *exchange_new(void);

/* All that was replied since the last call; the caller owns it. `failed` where memory was short. */
text exchange_take(http_exchange *x);

#endif
