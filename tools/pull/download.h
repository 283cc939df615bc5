/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_PULL_DOWNLOAD_H
#define TERN_TOOLS_PULL_DOWNLOAD_H

/* One file from a server to the disk: in as many pieces as the connection needs, checked. */

#include <stdint.h>

#include "tools/remote/exchange.h"

typedef struct download {
    exchange *server;
    const char *url;    /* of the file, as exchange_request's path */
    const char *name;   /* of it, for messages */
    const char *place;  /* of the server, for messages */
    const char *path;   /* where it goes; path.incomplete until it is whole */
    uint64_t bytes;     /* that it has */
    const char *sha256; /* 64 digits; NULL: only the number of bytes is checked */
    bool verbose;       /* progress is shown even if standard error is not a terminal */
} download;

/*
 * Fetches it. What has come stays in path.incomplete when the connection or the disk fails, and is
 * not asked for again; with a wrong hash nothing stays. A server that is too busy or breaks off is
 * asked again, five times in a row without a new byte at most. The exit status; EXIT_FAILED after a
 * complaint, or silently when a signal asked for the end.
 */
int download_file(const download *d);

/* Waits; false: a signal asks for the end. */
bool download_wait(double seconds);

/* Whether a reply asks to be asked again, and after how many seconds: when the server is too busy.
 */
bool download_again(const exchange_reply *reply, unsigned attempt, double *seconds);

#endif
