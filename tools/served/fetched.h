/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_SERVED_FETCHED_H
#define TERN_TOOLS_SERVED_FETCHED_H

/*
 * The folder of the models that a server's clients fetch. It is a cache of the Hub
 * (tools/hub/hub_cache.h) of its own, which `tern pull` fills and `tern rm` empties, each as a
 * process of its own: so a download has no part in the server's memory, and ends when it is told
 * to. Beside the cache there are links:
 *
 *     FOLDER/names/NAME    to the model that was asked for by this name; '/' is written as %2F
 */

#include "serve/server.h"

/* Makes the folder, if need be, and hands each name to `add` with its path. False from it is the
 * end: TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status fetched_list(const char *folder,
                                         bool (*add)(void *user, const char *name,
                                                     const char *path),
                                         void *user, tern_error *err);

/* Fetches and removes models of the folder, whose name must outlive it. */
model_fetcher fetched_fetcher(const char *folder);

#endif
