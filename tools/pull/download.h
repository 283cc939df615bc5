/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_PULL_DOWNLOAD_H
#define TERN_TOOLS_PULL_DOWNLOAD_H

/* Downloads one file, in as many pieces as the connection needs, and checks it. */

#include <stdint.h>

#include "tools/remote/exchange.h"

typedef struct download {
    exchange *server;
    const char *url;    /* URL of the file, like exchange_request's path */
    const char *name;   /* its name, for messages */
    const char *place;  /* name of the server, for messages */
    const char *path;   /* destination; path.incomplete until the file is complete */
    uint64_t bytes;     /* size of the file */
    const char *sha256; /* 64 digits; NULL: only the size is checked */
    bool verbose;       /* shows progress even if standard error is not a terminal */
    /* Told the bytes that have come, some ten times a second, and all at the end. False ends the
     * download. NULL: nobody is told. */
    bool (*told)(const struct download *d, uint64_t have);
    const void *user; /* of told */
} download;

/*
 * Downloads the file. If the connection or the disk fails, the received bytes stay in
 * path.incomplete and are not requested again; with a wrong hash nothing is kept. If the server is
 * too busy or the reply breaks off it asks again, at most five times in a row without a new byte.
 * Returns the exit status: EXIT_FAILED after a complaint, or silently if a signal asked for the
 * end.
 */
int download_file(const download *d);

/* Waits; false: a signal asks for the end. */
bool download_wait(double seconds);

/*
 * True if a reply says that the server is too busy and should be asked again; *seconds says when.
 */
bool download_again(const exchange_reply *reply, unsigned attempt, double *seconds);

#endif
