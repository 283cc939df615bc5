/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_TLS_H
#define TERN_SERVE_HTTP_TLS_H

/* TLS of a server: what it shows of itself, a chain of certificates and its key, and the sessions
 * of its clients. */

#include <stdbool.h>
#include <stddef.h>

#include "tern/status.h"

/*
 * Reads both files (PEM), and makes what they hold that of this process: handshakes from now on use
 * it, those that have begun go on with what was there before. TERN_ERR_IO names the file and what
 * is wrong with it, or that this build has no TLS; what was there before stays then.
 */
TERN_MUST_CHECK tern_status http_tls_load(const char *certificate_path, const char *key_path,
                                          tern_error *err);

/* When no server uses it any more. */
void http_tls_free(void);

/* ---- a session, whose socket never waits ----------------------------------------------------- */

typedef struct http_tls http_tls;

/* With a client at a socket, once http_tls_load has succeeded. NULL: there is no memory. */
http_tls *http_tls_open(int fd);
void http_tls_close(http_tls *t); /* NULL is fine */

/* In place of a number of bytes. */
enum { HTTP_LATER = -1 /* when the socket has news */, HTTP_BROKEN = -2 };

/* Shakes hands: 0 when that is done. */
int http_tls_shake(http_tls *t);

/* As recv and send; 0 from receiving: the client has ended. Bytes that HTTP_LATER did not take are
 * to be sent next, and no others before them. */
long http_tls_receive(http_tls *t, char *bytes, size_t size);
long http_tls_send(http_tls *t, const char *bytes, size_t size);

/* Tells the client that nothing more comes. */
void http_tls_bye(http_tls *t);

/* True if it goes on when its socket can be written to, not when it can be read. */
bool http_tls_writes(const http_tls *t);

#endif
