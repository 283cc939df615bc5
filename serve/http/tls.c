/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/tls.h"

#include <stddef.h>

#ifdef TERN_HAVE_GNUTLS

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/in_file.h"
#include "base/late_library.h"
#include "serve/http/library.h"

enum { MOST_CERTIFICATES = 16, KEY_ID_BYTES = 64, MOST_FILE_BYTES = 1 << 20 };

typedef struct identity {
    struct identity *before; /* handshakes that began with it may still use it */
    gnutls_pcert_st chain[MOST_CERTIFICATES];
    unsigned n;
    gnutls_privkey_t key;
} identity;

/* What is used of GnuTLS, which is loaded with the first certificate. */
#define FUNCTIONS(X)                                                                               \
    X(pcert_deinit)                                                                                \
    X(pcert_list_import_x509_raw)                                                                  \
    X(privkey_deinit)                                                                              \
    X(privkey_import_x509_raw)                                                                     \
    X(privkey_init)                                                                                \
    X(pubkey_deinit)                                                                               \
    X(pubkey_get_key_id)                                                                           \
    X(pubkey_import_privkey)                                                                       \
    X(pubkey_init)                                                                                 \
    X(strerror)

#define FIELD(name) __typeof__(gnutls_##name) *name;
static struct { FUNCTIONS(FIELD) } gnutls;

#define SYMBOL(name) {"gnutls_" #name, &gnutls.name},
static const tern_late_symbol symbols[] = {FUNCTIONS(SYMBOL)};

static tern_status load_libraries(tern_error *err) {
    const tern_status status = http_library_load(err);
    if (status != TERN_OK)
        return status;
    if (mhd.is_feature_supported(MHD_FEATURE_TLS) != MHD_YES ||
        mhd.is_feature_supported(MHD_FEATURE_HTTPS_CERT_CALLBACK) != MHD_YES) {
        return tern_fail(err, TERN_ERR_IO,
                         "the libmicrohttpd of this machine was made without TLS");
    }
    return tern_late_library_load(TERN_GNUTLS, symbols, sizeof symbols / sizeof *symbols, err);
}

/* The library's callback has no word of its own, so there is one identity in a process. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static identity *current;

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

tern_status http_tls_load(const char *certificate_path, const char *key_path, tern_error *err) {
    tern_status status = load_libraries(err);
    if (status != TERN_OK)
        return status;
    identity *i = calloc(1, sizeof *i);
    if (i == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a certificate");
    status = read_chain(i, certificate_path, err);
    if (status == TERN_OK)
        status = read_key(i, key_path, err);
    if (status == TERN_OK && !belongs_together(i)) {
        status = tern_fail(err, TERN_ERR_IO, "%s: is not the key of the certificate in %s",
                           key_path, certificate_path);
    }
    if (status != TERN_OK) {
        free_identity(i);
        return status;
    }
    (void)pthread_mutex_lock(&lock);
    i->before = current;
    current = i;
    (void)pthread_mutex_unlock(&lock);
    return TERN_OK;
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

void *http_tls_callback(void) {
    return (void *)retrieve;
}

void http_tls_free(void) {
    (void)pthread_mutex_lock(&lock);
    while (current != NULL) {
        identity *before = current->before;
        free_identity(current);
        current = before;
    }
    (void)pthread_mutex_unlock(&lock);
}

#else

tern_status http_tls_load(const char *certificate_path, const char *key_path, tern_error *err) {
    (void)certificate_path, (void)key_path;
    return tern_fail(err, TERN_ERR_IO,
                     "this build has no TLS: it was made without gnutls; scripts/install-deps "
                     "installs it (Debian: libgnutls28-dev), then build again");
}

void *http_tls_callback(void) {
    return NULL;
}

void http_tls_free(void) {}

#endif
