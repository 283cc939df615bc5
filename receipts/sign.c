/* SPDX-License-Identifier: Apache-2.0 */
#include "receipts/sign.h"

#ifdef TERN_HAVE_SODIUM

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/in_file.h"
#include "base/out_file.h"

enum {
    KEY_BYTES = 32, /* of a seed and of a public key */
    KEY_HEX = 2 * KEY_BYTES + 1,
    SIGNATURE_HEX = 2 * crypto_sign_BYTES + 1,
    LINE_BYTES = 256 /* longer than the line of a key file */
};

static const char secret_label[] = "tern-ed25519-secret-key ";
static const char public_label[] = "tern-ed25519-public-key ";

/* ---- key files ------------------------------------------------------------------------------- */

/* Begins a key file with label and key; the file must not exist. */
static tern_status write_key(const char *path, tern_out_mode mode, const char *label,
                             const unsigned char key[KEY_BYTES], tern_out_file **file,
                             tern_error *err) {
    char line[sizeof secret_label + KEY_HEX + 1];
    char hex[KEY_HEX];
    tern_status status = tern_out_file_create(path, mode, file, err);
    if (status != TERN_OK)
        return status;
    sodium_bin2hex(hex, sizeof hex, key, KEY_BYTES);
    const int n = snprintf(line, sizeof line, "%s%s\n", label, hex);
    status = tern_out_file_write(*file, line, (size_t)n, err);
    sodium_memzero(line, sizeof line);
    sodium_memzero(hex, sizeof hex);
    return status;
}

/* Writes both files or neither. */
static tern_status write_pair(const char *path, const unsigned char seed[KEY_BYTES],
                              const char *public_path, const unsigned char public[KEY_BYTES],
                              tern_error *err) {
    tern_out_file *secret_file = NULL;
    tern_out_file *public_file = NULL;
    tern_status status = write_key(path, TERN_OUT_SECRET, secret_label, seed, &secret_file, err);
    if (status == TERN_OK)
        status = write_key(public_path, TERN_OUT_NEW, public_label, public, &public_file, err);
    if (status == TERN_OK)
        status = tern_out_file_commit(&secret_file, err);
    if (status == TERN_OK) {
        status = tern_out_file_commit(&public_file, err);
        if (status != TERN_OK)
            (void)unlink(path); /* half a pair is useless */
    }
    tern_out_file_discard(&secret_file);
    tern_out_file_discard(&public_file);
    return status;
}

/* Reads a key file with that label. */
static tern_status read_key(const char *path, const char *label, unsigned char key[KEY_BYTES],
                            tern_error *err) {
    char line[LINE_BYTES] = "";
    size_t n = 0;
    FILE *f = NULL;
    const tern_status status = tern_in_file_open(path, TERN_IN_FILE, &f, err);
    if (status != TERN_OK)
        return status;
    const bool read = fgets(line, sizeof line, f) != NULL;
    (void)fclose(f); /* read only: nothing can be lost */
    line[strcspn(line, "\r\n")] = '\0';
    const size_t skip = strlen(label);
    const bool good =
        read && strncmp(line, label, skip) == 0 && strlen(line + skip) == 2 * KEY_BYTES &&
        sodium_hex2bin(key, KEY_BYTES, line + skip, 2 * KEY_BYTES, NULL, &n, NULL) == 0 &&
        n == KEY_BYTES;
    sodium_memzero(line, sizeof line);
    return good ? TERN_OK
                : tern_fail(err, TERN_ERR_ARG,
                            "%s: no key: one line '%s' and 64 hexadecimal digits", path, label);
}

/* Initialises the library. */
static tern_status start(tern_error *err) {
    return sodium_init() < 0 ? tern_fail(err, TERN_ERR_STATE, "no random numbers for signatures")
                             : TERN_OK;
}

tern_status sign_check_secret(const char *path, tern_error *err) {
    unsigned char seed[KEY_BYTES];
    const tern_status status = read_key(path, secret_label, seed, err);
    sodium_memzero(seed, sizeof seed);
    return status;
}

tern_status sign_make_keys(const char *path, tern_error *err) {
    unsigned char seed[KEY_BYTES];
    unsigned char secret[crypto_sign_SECRETKEYBYTES];
    unsigned char public[KEY_BYTES];
    char *public_path = NULL;
    if (sodium_init() < 0 || asprintf(&public_path, "%s.pub", path) < 0)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no random numbers or no memory for a key", path);
    randombytes_buf(seed, sizeof seed);
    (void)crypto_sign_seed_keypair(public, secret, seed); /* always 0 */
    const tern_status status = write_pair(path, seed, public_path, public, err);
    sodium_memzero(seed, sizeof seed);
    sodium_memzero(secret, sizeof secret);
    free(public_path);
    return status;
}

/* ---- signatures ------------------------------------------------------------------------------ */

/* Builds the text that is signed; returns its length. */
static size_t message(const json_t *receipt, char text[LINE_BYTES]) {
    char hex[RECEIPT_HEX];
    receipt_digest_of(receipt, hex);
    return (size_t)snprintf(text, LINE_BYTES, "tern receipt %s\n%s", RECEIPT_VERSION, hex);
}

tern_status sign_receipt(json_t *receipt, const char *path, tern_error *err) {
    unsigned char seed[KEY_BYTES];
    unsigned char secret[crypto_sign_SECRETKEYBYTES];
    unsigned char public[KEY_BYTES];
    unsigned char signature[crypto_sign_BYTES];
    char text[LINE_BYTES], key_hex[KEY_HEX], signature_hex[SIGNATURE_HEX];
    tern_status status = start(err);
    if (status == TERN_OK)
        status = read_key(path, secret_label, seed, err);
    if (status != TERN_OK)
        return status;
    const size_t n = message(receipt, text);
    (void)crypto_sign_seed_keypair(public, secret, seed); /* always 0 */
    (void)crypto_sign_detached(signature, NULL, (const unsigned char *)text, n, secret);
    sodium_memzero(seed, sizeof seed);
    sodium_memzero(secret, sizeof secret);
    sodium_bin2hex(key_hex, sizeof key_hex, public, sizeof public);
    sodium_bin2hex(signature_hex, sizeof signature_hex, signature, sizeof signature);
    json_object_set_new(receipt, "signature",
                        json_pack("{s:s, s:s, s:s}", "algorithm", "ed25519", "public_key", key_hex,
                                  "value", signature_hex));
    return TERN_OK;
}

/* Parses hexadecimal text of exactly `size` bytes. */
static bool parse_hex(const json_t *receipt, const char *path, unsigned char *out, size_t size) {
    const char *text = json_string_value(receipt_at(receipt, path));
    size_t n = 0;
    return text != NULL && strlen(text) == 2 * size &&
           sodium_hex2bin(out, size, text, 2 * size, NULL, &n, NULL) == 0 && n == size;
}

tern_status sign_check(const json_t *receipt, const char *path, receipt_findings *f,
                       tern_error *err) {
    unsigned char wanted[KEY_BYTES];
    unsigned char public[KEY_BYTES];
    unsigned char signature[crypto_sign_BYTES];
    char text[LINE_BYTES];
    tern_status status = start(err);
    if (status == TERN_OK && path != NULL)
        status = read_key(path, public_label, wanted, err);
    if (status != TERN_OK)
        return status;
    if (json_object_get(receipt, "signature") == NULL) {
        if (path != NULL)
            receipt_find(f, "signature: is missing, must be by the key in %s", path);
        return TERN_OK;
    }
    const size_t n = message(receipt, text);
    if (!parse_hex(receipt, "signature.public_key", public, sizeof public) ||
        !parse_hex(receipt, "signature.value", signature, sizeof signature) ||
        crypto_sign_verify_detached(signature, (const unsigned char *)text, n, public) != 0) {
        receipt_find(f, "signature.value: is not a signature of this content by "
                        "signature.public_key");
    } else if (path != NULL && memcmp(public, wanted, sizeof public) != 0) {
        receipt_find(f, "signature.public_key: is not the key in %s", path);
    }
    return TERN_OK;
}

#else

static tern_status missing(tern_error *err) {
    return tern_fail(err, TERN_ERR_UNIMPLEMENTED,
                     "this build of tern cannot sign or check signatures (library sodium)");
}

tern_status sign_check_secret(const char *path, tern_error *err) {
    (void)path;
    return missing(err);
}

tern_status sign_make_keys(const char *path, tern_error *err) {
    (void)path;
    return missing(err);
}

tern_status sign_receipt(json_t *receipt, const char *path, tern_error *err) {
    (void)receipt;
    (void)path;
    return missing(err);
}

tern_status sign_check(const json_t *receipt, const char *path, receipt_findings *f,
                       tern_error *err) {
    (void)f;
    const bool nothing = path == NULL && json_object_get(receipt, "signature") == NULL;
    return nothing ? TERN_OK : missing(err);
}

#endif
