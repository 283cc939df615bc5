/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/tls.h"

#ifdef TERN_HAVE_GNUTLS

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/in_file.h"
#include "base/late_library.h"

enum { MOST_CERTIFICATES = 16, KEY_ID_BYTES = 64, MOST_FILE_BYTES = 1 << 20 };

typedef struct identity {
    struct identity *before; /* the one before this: handshakes that began with it may still use
                                it */
    gnutls_pcert_st chain[MOST_CERTIFICATES];
    unsigned n;
    gnutls_privkey_t key;
} identity;

/* The functions of GnuTLS that are used. The library is loaded with the first certificate. */
#define FUNCTIONS(X)                                                                               \
    X(alert_send_appropriate)                                                                      \
    X(bye)                                                                                         \
    X(certificate_allocate_credentials)                                                            \
    X(certificate_free_credentials)                                                                \
    X(certificate_set_retrieve_function2)                                                          \
    X(credentials_set)                                                                             \
    X(deinit)                                                                                      \
    X(handshake)                                                                                   \
    X(init)                                                                                        \
    X(pcert_deinit)                                                                                \
    X(pcert_list_import_x509_raw)                                                                  \
    X(priority_set_direct)                                                                         \
    X(privkey_deinit)                                                                              \
    X(privkey_import_x509_raw)                                                                     \
    X(privkey_init)                                                                                \
    X(pubkey_deinit)                                                                               \
    X(pubkey_get_key_id)                                                                           \
    X(pubkey_import_privkey)                                                                       \
    X(pubkey_init)                                                                                 \
    X(record_get_direction)                                                                        \
    X(record_recv)                                                                                 \
    X(record_send)                                                                                 \
    X(strerror)                                                                                    \
    X(transport_set_int2)

#define FIELD(name) __typeof__(gnutls_##name) *name;
static struct { FUNCTIONS(FIELD) } gnutls;

#define SYMBOL(name) {"gnutls_" #name, &gnutls.name},
static const tern_late_symbol symbols[] = {FUNCTIONS(SYMBOL)};

/* GnuTLS calls `retrieve` without a pointer of ours, so a process has only one identity. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static identity *current;
static gnutls_certificate_credentials_t credentials; /* NULL: no identity was loaded yet */

static void free_identity(identity *i) {
    for (unsigned k = 0; k < i->n; k++)
        gnutls.pcert_deinit(&i->chain[k]);
    if (i->key != NULL)
        gnutls.privkey_deinit(i->key);
    free(i);
}

static tern_status fail(tern_error *err, const char *path, const char *what, int code) {
    return tern_fail(err, TERN_ERR_IO, "%s: %s: %s", path, what, gnutls.strerror(code));
}

static tern_status read_file(const char *path, gnutls_datum_t *out, tern_error *err) {
    char *bytes;
    size_t size;
    const tern_status status = tern_in_file_read(path, MOST_FILE_BYTES, &bytes, &size, err);
    if (status == TERN_OK)
        *out = (gnutls_datum_t){(unsigned char *)bytes, (unsigned)size};
    return status;
}

static void forget(gnutls_datum_t *bytes) {
    tern_in_file_forget((char *)bytes->data, bytes->size);
}

static tern_status read_chain(identity *i, const char *path, tern_error *err) {
    gnutls_datum_t bytes;
    const tern_status status = read_file(path, &bytes, err);
    if (status != TERN_OK)
        return status;
    unsigned n = MOST_CERTIFICATES;
    const int code =
        gnutls.pcert_list_import_x509_raw(i->chain, &n, &bytes, GNUTLS_X509_FMT_PEM, 0);
    forget(&bytes);
    if (code != GNUTLS_E_SUCCESS)
        return fail(err, path, "is not a chain of certificates", code);
    i->n = n;
    return TERN_OK;
}

static tern_status read_key(identity *i, const char *path, tern_error *err) {
    gnutls_datum_t bytes;
    const tern_status status = read_file(path, &bytes, err);
    if (status != TERN_OK)
        return status;
    int code = gnutls.privkey_init(&i->key);
    if (code == GNUTLS_E_SUCCESS)
        code = gnutls.privkey_import_x509_raw(i->key, &bytes, GNUTLS_X509_FMT_PEM, NULL, 0);
    forget(&bytes);
    return code == GNUTLS_E_SUCCESS ? TERN_OK : fail(err, path, "is not a private key", code);
}

static bool belongs_together(const identity *i) {
    gnutls_pubkey_t of_key;
    unsigned char a[KEY_ID_BYTES], b[KEY_ID_BYTES];
    size_t a_size = sizeof a, b_size = sizeof b;
    if (gnutls.pubkey_init(&of_key) != GNUTLS_E_SUCCESS)
        return false;
    const bool same =
        gnutls.pubkey_import_privkey(of_key, i->key, 0, 0) == GNUTLS_E_SUCCESS &&
        gnutls.pubkey_get_key_id(of_key, GNUTLS_KEYID_USE_SHA256, a, &a_size) == GNUTLS_E_SUCCESS &&
        gnutls.pubkey_get_key_id(i->chain[0].pubkey, GNUTLS_KEYID_USE_SHA256, b, &b_size) ==
            GNUTLS_E_SUCCESS &&
        a_size == b_size && memcmp(a, b, a_size) == 0;
    gnutls.pubkey_deinit(of_key);
    return same;
}

static int retrieve(gnutls_session_t session, const gnutls_datum_t *names, int n_names,
                    const gnutls_pk_algorithm_t *algorithms, int n_algorithms,
                    gnutls_pcert_st **chain, unsigned *n, gnutls_privkey_t *key) {
    (void)session, (void)names, (void)n_names, (void)algorithms, (void)n_algorithms;
    (void)pthread_mutex_lock(&lock);
    *chain = current->chain;
    *n = current->n;
    *key = current->key;
    (void)pthread_mutex_unlock(&lock);
    return 0;
}

/* Handshakes from now on use this identity. Needs the lock. */
static bool adopt(identity *i) {
    if (credentials == NULL) {
        if (gnutls.certificate_allocate_credentials(&credentials) != GNUTLS_E_SUCCESS) {
            credentials = NULL;
            return false;
        }
        gnutls.certificate_set_retrieve_function2(credentials, retrieve);
    }
    i->before = current;
    current = i;
    return true;
}

static tern_status read_identity(identity *i, const char *certificate_path, const char *key_path,
                                 tern_error *err) {
    tern_status status = read_chain(i, certificate_path, err);
    if (status == TERN_OK)
        status = read_key(i, key_path, err);
    if (status == TERN_OK && !belongs_together(i)) {
        status = tern_fail(err, TERN_ERR_IO, "%s: is not the key of the certificate in %s",
                           key_path, certificate_path);
    }
    return status;
}

tern_status http_tls_load(const char *certificate_path, const char *key_path, tern_error *err) {
    tern_status status =
        tern_late_library_load(TERN_GNUTLS, symbols, sizeof symbols / sizeof *symbols, err);
    if (status != TERN_OK)
        return status;
    identity *i = calloc(1, sizeof *i);
    if (i == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a certificate");
    status = read_identity(i, certificate_path, key_path, err);
    (void)pthread_mutex_lock(&lock);
    if (status == TERN_OK && !adopt(i))
        status = tern_fail(err, TERN_ERR_NOMEM, "no memory for a certificate");
    (void)pthread_mutex_unlock(&lock);
    if (status != TERN_OK)
        free_identity(i);
    return status;
}

void http_tls_free(void) {
    (void)pthread_mutex_lock(&lock);
    while (current != NULL) {
        identity *before = current->before;
        free_identity(current);
        current = before;
    }
    if (credentials != NULL)
        gnutls.certificate_free_credentials(credentials);
    credentials = NULL;
    (void)pthread_mutex_unlock(&lock);
}

/* ---- sessions -------------------------------------------------------------------------------- */

/* The versions allowed, as a GnuTLS priority string: TLS 1.2 and 1.3. Older versions are broken or
 * deprecated. */
#define PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

struct http_tls {
    gnutls_session_t session;
    bool unsent; /* GnuTLS holds a record that the socket did not take */
};

http_tls *http_tls_open(int fd) {
    http_tls *t = calloc(1, sizeof *t);
    const unsigned kind = GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL;
    if (t == NULL || gnutls.init(&t->session, kind) != GNUTLS_E_SUCCESS) {
        free(t);
        return NULL;
    }
    if (gnutls.priority_set_direct(t->session, PRIORITIES, NULL) != GNUTLS_E_SUCCESS ||
        gnutls.credentials_set(t->session, GNUTLS_CRD_CERTIFICATE, credentials) !=
            GNUTLS_E_SUCCESS) {
        http_tls_close(t);
        return NULL;
    }
    gnutls.transport_set_int2(t->session, fd, fd);
    return t;
}

void http_tls_close(http_tls *t) {
    if (t == NULL)
        return;
    gnutls.deinit(t->session);
    free(t);
}

static bool is_later(ssize_t code) {
    return code == GNUTLS_E_AGAIN || code == GNUTLS_E_INTERRUPTED;
}

int http_tls_shake(http_tls *t) {
    const int code = gnutls.handshake(t->session);
    if (code == GNUTLS_E_SUCCESS)
        return 0;
    if (is_later(code))
        return HTTP_LATER;
    (void)gnutls.alert_send_appropriate(t->session, code); /* the client hears why */
    return HTTP_BROKEN;
}

/* A client that asks for renegotiation is disconnected: nobody needs that. */
long http_tls_receive(http_tls *t, char *bytes, size_t size) {
    const ssize_t n = gnutls.record_recv(t->session, bytes, size);
    if (n >= 0)
        return n;
    return is_later(n) ? HTTP_LATER : HTTP_BROKEN;
}

long http_tls_send(http_tls *t, const char *bytes, size_t size) {
    const ssize_t n = t->unsent ? gnutls.record_send(t->session, NULL, 0)
                                : gnutls.record_send(t->session, bytes, size);
    t->unsent = is_later(n);
    if (n >= 0)
        return n;
    return t->unsent ? HTTP_LATER : HTTP_BROKEN;
}

void http_tls_bye(http_tls *t) {
    (void)gnutls.bye(t->session, GNUTLS_SHUT_WR);
}

bool http_tls_writes(const http_tls *t) {
    return gnutls.record_get_direction(t->session) == 1;
}

#else

tern_status http_tls_load(const char *certificate_path, const char *key_path, tern_error *err) {
    (void)certificate_path, (void)key_path;
    return tern_fail(err, TERN_ERR_IO,
                     "this build has no TLS: it was made without gnutls; scripts/install-deps "
                     "installs it (Debian: libgnutls28-dev), then build again");
}

void http_tls_free(void) {}

http_tls *http_tls_open(int fd) {
    (void)fd;
    return NULL;
}

void http_tls_close(http_tls *t) {
    (void)t;
}

int http_tls_shake(http_tls *t) {
    (void)t;
    return HTTP_BROKEN;
}

long http_tls_receive(http_tls *t, char *bytes, size_t size) {
    (void)t, (void)bytes, (void)size;
    return HTTP_BROKEN;
}

long http_tls_send(http_tls *t, const char *bytes, size_t size) {
    (void)t, (void)bytes, (void)size;
    return HTTP_BROKEN;
}

void http_tls_bye(http_tls *t) {
    (void)t;
}

bool http_tls_writes(const http_tls *t) {
    (void)t;
    return false;
}

#endif
