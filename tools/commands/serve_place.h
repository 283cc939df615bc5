/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_COMMANDS_SERVE_PLACE_H
#define TERN_TOOLS_COMMANDS_SERVE_PLACE_H

/* The place where `tern serve` listens: by its options, by OLLAMA_HOST, or on a socket of
 * systemd's. */

#include "serve/http/http.h"
#include "tools/cli/options.h"

enum { PLACE_HOST_BYTES = 256 };

typedef struct serve_place {
    char host[PLACE_HOST_BYTES];
    uint16_t port;
    int handed; /* as in http_config */
} serve_place;

/* Reads it, and sets it in the config, which points to `place` from then on. Returns the exit
 * status, after a complaint unless it is EXIT_DONE. */
int serve_place_read(const options *o, serve_place *place, http_config *http);

#endif
