/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_TLS_H
#define TERN_SERVE_HTTP_TLS_H

/* What a server shows its clients of itself by TLS: a chain of certificates, and its key. */

#include "tern/status.h"

/* What is spoken, as GnuTLS writes it: TLS 1.2 and 1.3. What is older has been broken or given up.
 */
#define HTTP_TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

/*
 * Reads both files (PEM), and makes what they hold that of this process: handshakes from now on use
 * it, those that have begun go on with what was there before. TERN_ERR_IO names the file and what
 * is wrong with it, or that this build has no TLS; what was there before stays then.
 */
TERN_MUST_CHECK tern_status http_tls_load(const char *certificate_path, const char *key_path,
                                          tern_error *err);

/* As gnutls_certificate_retrieve_function2, for the library; NULL: this build has no TLS. */
void *http_tls_callback(void);

/* When no server uses it any more. */
void http_tls_free(void);

#endif
