/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_TLS_H
#define TERN_SERVE_HTTP_TLS_H

/* TLS for a server: its identity, which is a certificate chain and a key, and the sessions of its
 * clients. */

#include <stdbool.h>
#include <stddef.h>

#include "tern/status.h"

/*
 * Reads both files (PEM) and makes them the identity of this process. Handshakes from now on use
 * it; those that have begun continue with the one before. TERN_ERR_IO names the file and what is
 * wrong with it, or says that this build has no TLS; then the identity does not change.
 * TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status http_tls_load(const char *certificate_path, const char *key_path,
                                          tern_error *err);

/* Frees the identity. No server may use it any more. */
void http_tls_free(void);

/* ---- a session, whose socket never waits ----------------------------------------------------- */

typedef struct http_tls http_tls;

/* Opens a session with the client at a socket. http_tls_load must have succeeded. NULL: there is no
 * memory. */
http_tls *http_tls_open(int fd);
void http_tls_close(http_tls *t); /* NULL is fine */

/* Results in place of a number of bytes. */
enum { HTTP_LATER = -1 /* try again when the socket is ready */, HTTP_BROKEN = -2 };

/* Does what is possible of the handshake: 0 when it is complete, else HTTP_LATER or HTTP_BROKEN. */
int http_tls_shake(http_tls *t);

/* Like recv and send; 0 from receiving: the client has closed the session. After HTTP_LATER the
 * same bytes must be sent next. */
long http_tls_receive(http_tls *t, char *bytes, size_t size);
long http_tls_send(http_tls *t, const char *bytes, size_t size);

/* Tells the client that nothing more comes. */
void http_tls_bye(http_tls *t);

/* True if the session waits until its socket can be written to, not until it can be read. */
bool http_tls_writes(const http_tls *t);

#endif
