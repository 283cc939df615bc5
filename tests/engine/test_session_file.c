/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions as files. A session that is saved here and restored there continues with the same bits.
 * A file that is cut, damaged or of something else is refused with one line, and changes nothing.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "authoring/synth.h"
#include "base/hash64.h"
#include "runtime/engine/session/session_file.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { STEP = 7 }; /* distance between the bytes that are changed */
#else
enum { STEP = 1 };
#endif
enum { SAVED = 11, MORE = 4, CONTEXT = SAVED + MORE };

static size_t vocabulary(const tern_model *model) {
    tern_model_info info;
    tern_model_describe(model, &info);
    return info.n_vocab;
}

static tern_session *open_session(const tern_model *model, uint32_t n_ctx, uint32_t threads,
                                  tern_format kv) {
    return tiny_session(
        model, (tern_session_params){.n_ctx = n_ctx, .n_batch = 8, .threads = threads, .kv = kv});
}

/* ---- round trips ----------------------------------------------------------------------------- */

/* Saved with the best instruction set and two threads, restored with another set and one thread
 * into a larger context. It must continue like a session that was never interrupted. */
static void check_round_trip(const tern_model *here, const tern_model *there, tern_format kv) {
    int32_t tokens[CONTEXT];
    char path[TINY_PATH_BYTES];
    tern_error err = {0};
    tern_session *saved = open_session(here, SAVED, 2, kv);
    tern_session *restored = open_session(there, CONTEXT + 3, 1, kv);
    tern_session *fresh = open_session(there, CONTEXT, 1, kv);
    const size_t n_vocab = vocabulary(here);
    tiny_path(path);
    tiny_prompt(here, 21, tokens, CONTEXT);
    tiny_eval(saved, tokens, 5);
    for (size_t i = 5; i < SAVED; i++)
        tiny_eval(saved, tokens + i, 1);
    if (tern_session_save(saved, path, &err) != TERN_OK)
        check_fail("%s", err.message);
    tiny_eval(restored, tokens + 3, 2); /* replaced by the restored tokens */
    if (tern_session_restore(restored, path, &err) != TERN_OK)
        check_fail("%s", err.message);
    assert_int_equal(tern_session_position(restored), SAVED);
    check_bytes("tokens", tokens, tern_session_tokens(restored), SAVED * sizeof *tokens);
    tiny_same_cache(saved, restored, SAVED);
    const float *want = tiny_eval(fresh, tokens, CONTEXT);
    const float *got = tiny_eval(restored, tokens + SAVED, MORE);
    check_floats("logits", want, got, n_vocab);
    tiny_same_cache(fresh, restored, CONTEXT);
    tern_session_free(&saved);
    tern_session_free(&restored);
    tern_session_free(&fresh);
    unlink(path);
}

static void test_round_trips(void **state) {
    static const tern_format formats[] = {TERN_FORMAT_F16, TERN_FORMAT_F32, TERN_FORMAT_Q8_0};
    const char *isas[16];
    const size_t n_isas = tiny_isas(isas, 16);
    (void)state;
    for (size_t i = 0; tiny_presets()[i] != NULL; i++) {
        tern_model *here = tiny_open(tiny_presets()[i], NULL);
        for (size_t k = 0; k<n_isas; k += n_isas> 1 ? n_isas - 1 : 1) {
            tern_model *there = tiny_open(tiny_presets()[i], isas[k]);
            assert_int_equal(tern_model_identity(here), tern_model_identity(there));
            for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
                check_case("%s, cache %s, %s to %s", tiny_presets()[i],
                           tern_format_describe(formats[f])->name, tern_model_isa(here), isas[k]);
                check_round_trip(here, there, formats[f]);
            }
            tern_model_free(&there);
        }
        tern_model_free(&here);
    }
}

/* ---- files that are refused -------------------------------------------------------------------
 */

typedef struct fixture {
    tern_model *model;
    tern_session *session; /* holds tokens 5, 6, 7 */
    char path[TINY_PATH_BYTES];
    uint8_t *bytes; /* the file of a session with tokens 1, 2, 3, 4 */
    size_t size;
} fixture;

static fixture shared;
static const int32_t held[] = {5, 6, 7};

static uint8_t *read_file(const char *path, size_t *size) {
    struct stat info;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &info), 0);
    *size = (size_t)info.st_size;
    uint8_t *bytes = malloc(*size + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

static int open_fixture(void **state) {
    static const int32_t tokens[] = {1, 2, 3, 4};
    shared.model = tiny_open("bitnet-tiny", NULL);
    shared.session = open_session(shared.model, 4, 1, TERN_FORMAT_F16);
    tiny_path(shared.path);
    tiny_eval(shared.session, tokens, 4);
    assert_int_equal(tern_session_save(shared.session, shared.path, NULL), TERN_OK);
    shared.bytes = read_file(shared.path, &shared.size);
    assert_int_equal(tern_session_rewind(shared.session, 0, NULL), TERN_OK);
    tiny_eval(shared.session, held, 3);
    *state = &shared;
    return 0;
}

static int close_fixture(void **state) {
    (void)state;
    unlink(shared.path);
    free(shared.bytes);
    tern_session_free(&shared.session);
    tern_model_free(&shared.model);
    return 0;
}

/* Restoring these bytes must fail with this status and text. The session must stay as it was. */
static void check_refused(tern_session *s, const uint8_t *bytes, size_t size, tern_status expected,
                          const char *text) {
    tern_error err = {0};
    const uint32_t before = tern_session_position(s);
    /* fmemopen(3) refuses a buffer of no bytes */
    FILE *in = size > 0 ? fmemopen((void *)(uintptr_t)bytes, size, "rb") : fopen("/dev/null", "rb");
    assert_non_null(in);
    const tern_status status = tern_session_read(s, in, "NAME", &err);
    fclose(in);
    if (status != expected || strstr(err.message, text) == NULL ||
        strncmp(err.message, "NAME: ", 6) != 0)
        check_fail("status %d, message: %s", (int)status, err.message);
    assert_int_equal(tern_session_position(s), before);
    check_bytes("tokens", held, tern_session_tokens(s), before * sizeof *held);
}

/* A file that another program writes to as soon as it was read once. */
typedef struct changing {
    uint8_t *bytes;
    size_t size, at, later_size; /* later_size: when it is read again */
    size_t change;               /* the byte that is another one then; size: none is */
    unsigned readings;
} changing;

static ssize_t changing_read(void *cookie, char *out, size_t n) {
    changing *c = cookie;
    const size_t size = c->readings > 1 ? c->later_size : c->size;
    const size_t left = c->at < size ? size - c->at : 0, take = n < left ? n : left;
    memcpy(out, c->bytes + c->at, take);
    c->at += take;
    return (ssize_t)take;
}

static int changing_seek(void *cookie, off64_t *offset, int whence) {
    changing *c = cookie;
    if (whence != SEEK_SET)
        return -1;
    c->at = (size_t)*offset;
    if (c->at == 0 && ++c->readings == 2 && c->change < c->size)
        c->bytes[c->change] ^= 1;
    return 0;
}

/* Whatever changes between the two readings of a file is told, and the session is empty then. */
static void test_changes_between_readings(void **state) {
    static const cookie_io_functions_t calls = {.read = changing_read, .seek = changing_seek};
    const fixture *f = *state;
    const size_t last_row = f->size - 9, places[] = {8, 44, 63, 64, 79, 80, last_row, f->size};
    uint8_t *bytes = malloc(f->size);
    for (size_t i = 0; i <= sizeof places / sizeof *places; i++) {
        const bool cut = i == sizeof places / sizeof *places;
        changing c = {.bytes = bytes,
                      .size = f->size,
                      .later_size = cut ? last_row : f->size,
                      .change = cut ? f->size : places[i]};
        tern_session *s = open_session(f->model, 4, 1, TERN_FORMAT_F16);
        tern_error err = {0};
        memcpy(bytes, f->bytes, f->size);
        FILE *in = fopencookie(&c, "rb", calls);
        assert_non_null(in);
        assert_int_equal(setvbuf(in, NULL, _IONBF, 0), 0);
        const bool same = !cut && places[i] == f->size;
        check_case("byte %zu, %s", c.change, cut ? "cut" : "whole");
        assert_int_equal(tern_session_read(s, in, "NAME", &err), same ? TERN_OK : TERN_ERR_SESSION);
        assert_int_equal(tern_session_position(s), same ? 4 : 0);
        if (!same && !cut)
            assert_string_equal(err.message, "NAME: changed while it was read");
        fclose(in);
        tern_session_free(&s);
    }
    free(bytes);
}

static void put_hashes(uint8_t *bytes, size_t size) {
    tern_session_header header;
    memcpy(&header, bytes, sizeof header);
    header.hash = tern_session_header_hash(&header);
    memcpy(bytes, &header, sizeof header);
    const uint64_t hash = tern_hash64_of(bytes, size - sizeof(uint64_t));
    memcpy(bytes + size - sizeof hash, &hash, sizeof hash);
}

/* Every number is where docs/sessions.md says. */
static void test_layout(void **state) {
    const fixture *f = *state;
    static const int32_t tokens[] = {1, 2, 3, 4};
    const size_t row_bytes = 64 * 2;
    const uint32_t numbers[] = {3, 1, 2, 2, 64, 515, 4, 4}; /* from version on, except identity */
    const uint64_t identity = tern_model_identity(f->model);
    check_case("the bytes of a file");
    check_bytes("magic", "TERNSES\n", f->bytes, 8);
    check_bytes("version, format", numbers, f->bytes + 8, 8);
    check_bytes("identity", &identity, f->bytes + 16, 8);
    check_bytes("geometry", numbers + 2, f->bytes + 24, 24);
    check_bytes("tokens", tokens, f->bytes + 64, sizeof tokens);
    assert_int_equal(f->size, 64 + sizeof tokens + 2 * 2 * 2 * 4 * row_bytes + 8);
    tern_session *s = open_session(f->model, 4, 1, TERN_FORMAT_F16);
    tiny_eval(s, tokens, 4);
    const uint8_t *row = f->bytes + 64 + sizeof tokens;
    for (uint32_t layer = 0; layer < 2; layer++)
        for (int value = 0; value < 2; value++)
            for (uint32_t head = 0; head < 2; head++)
                for (uint32_t i = 0; i < 4; i++, row += row_bytes)
                    check_bytes("row", tern_session_kv(s, value, layer, head, i), row, row_bytes);
    tern_session_free(&s);
}

/* The file with one 4-byte field of the header changed, and correct hashes. */
static void check_field(const fixture *f, size_t offset, uint32_t value, tern_status expected,
                        const char *text) {
    uint8_t *bytes = malloc(f->size);
    assert_non_null(bytes);
    memcpy(bytes, f->bytes, f->size);
    memcpy(bytes + offset, &value, sizeof value);
    put_hashes(bytes, f->size);
    check_case("field at %zu is %u", offset, value);
    check_refused(f->session, bytes, f->size, expected, text);
    free(bytes);
}

#define FIELD(name) offsetof(tern_session_header, name)

static void test_wrong_headers(void **state) {
    const fixture *f = *state;
    check_field(f, FIELD(magic), 0x46554747, TERN_ERR_SESSION, "not a session file");
    check_field(f, FIELD(version), 2, TERN_ERR_SESSION,
                "version 2, this tern reads versions 3 and 4");
    check_field(f, FIELD(kept), 64, TERN_ERR_SESSION, "header of the session file is damaged");
    check_field(f, FIELD(precision), 2, TERN_ERR_SESSION_MODEL, "activations in fp8, this session");
    check_field(f, FIELD(precision), 99, TERN_ERR_SESSION_MODEL, "a precision that is not known");
    check_field(f, FIELD(identity), 7, TERN_ERR_SESSION_MODEL, "another model: identity");
    check_field(f, FIELD(n_layer), 3, TERN_ERR_SESSION_MODEL, "another model: 3 layers, 2 kv");
    check_field(f, FIELD(n_head_kv), UINT32_MAX, TERN_ERR_SESSION_MODEL, "4294967295 kv heads");
    check_field(f, FIELD(head_dim), 0, TERN_ERR_SESSION_MODEL, "kv heads of 0");
    check_field(f, FIELD(n_vocab), 1, TERN_ERR_SESSION_MODEL, "vocabulary 1; this one has 2");
    check_field(f, FIELD(kv), 0, TERN_ERR_SESSION_MODEL, "values as f32, this session as f16");
    check_field(f, FIELD(kv), 999, TERN_ERR_SESSION_MODEL, "unknown numbers");
    check_field(f, FIELD(position), 5, TERN_ERR_CONTEXT, "holds 5 positions, the context has 4");
    check_field(f, FIELD(position), UINT32_MAX, TERN_ERR_CONTEXT, "4294967295");
    check_field(f, FIELD(position), 3, TERN_ERR_SESSION, "goes on after its end at");
    check_field(f, sizeof(tern_session_header) + 8, (uint32_t)-1, TERN_ERR_TOKEN_RANGE,
                "token -1 at position 2, outside the vocabulary of 515");
    check_field(f, sizeof(tern_session_header) + 4, 515, TERN_ERR_TOKEN_RANGE, "token 515");
}

/* The file is cut at every length, every bit of every byte is changed, and a byte follows. */
static void test_damage(void **state) {
    const fixture *f = *state;
    uint8_t *bytes = malloc(f->size + 1);
    char text[64];
    assert_non_null(bytes);
    memcpy(bytes, f->bytes, f->size);
    for (size_t n = 0; n < f->size; n += STEP) {
        check_case("%zu of %zu bytes", n, f->size);
        snprintf(text, sizeof text,
                 n < sizeof(tern_session_header) ? "not a session file: %zu bytes"
                                                 : "ends after %zu of 4",
                 n);
        check_refused(f->session, bytes, n, TERN_ERR_SESSION, text);
    }
    for (size_t n = 0; n < f->size; n += STEP) {
        check_case("byte %zu has another bit %zu", n, n % 8);
        bytes[n] ^= (uint8_t)(1u << n % 8);
        check_refused(f->session, bytes, f->size, TERN_ERR_SESSION, "session file");
        bytes[n] = f->bytes[n];
    }
    check_case("one byte more");
    bytes[f->size] = 0;
    check_refused(f->session, bytes, f->size + 1, TERN_ERR_SESSION, "goes on after its end");
    free(bytes);
}

/* A file with a refused name, to be restored into a session of f->model. */
static void check_file_refused(const fixture *f, const char *path, tern_status expected,
                               const char *text) {
    tern_error err = {0};
    const tern_status status = tern_session_restore(f->session, path, &err);
    if (status != expected || strstr(err.message, text) == NULL)
        check_fail("status %d, message: %s", (int)status, err.message);
    assert_int_equal(tern_session_position(f->session), 3);
}

static void test_wrong_files(void **state) {
    const fixture *f = *state;
    char path[TINY_PATH_BYTES];
    tiny_path(path);
    check_case("files that are none");
    check_file_refused(f, path, TERN_ERR_SESSION, "not a session file: 0 bytes");
    unlink(path);
    check_file_refused(f, path, TERN_ERR_IO, "No such file");
    check_file_refused(f, "/tmp", TERN_ERR_IO, "/tmp: is a directory");
    assert_int_equal(mkfifo(path, 0600), 0);
    check_file_refused(f, path, TERN_ERR_IO, "not a regular file");
    unlink(path);
    assert_int_equal(tern_session_restore(NULL, path, NULL), TERN_ERR_NULL);
    assert_int_equal(tern_session_restore(f->session, NULL, NULL), TERN_ERR_NULL);
    assert_int_equal(tern_session_save(NULL, path, NULL), TERN_ERR_NULL);
    assert_int_equal(tern_session_save(f->session, NULL, NULL), TERN_ERR_NULL);
}

/* A model of the same geometry with other weights. */
static void test_other_model(void **state) {
    const fixture *f = *state;
    tern_error err = {0};
    tern_model *other = NULL;
    char path[TINY_PATH_BYTES];
    tiny_path(path);
    check_case("another model");
    assert_int_equal(tern_synth("bitnet-tiny", path, TERN_OUT_REPLACE, 2, NULL, NULL, NULL),
                     TERN_OK);
    assert_int_equal(tern_model_open(path, NULL, &other, NULL), TERN_OK);
    unlink(path);
    tern_session *s = open_session(other, 4, 1, TERN_FORMAT_F16);
    assert_int_equal(tern_session_restore(s, f->path, &err), TERN_ERR_SESSION_MODEL);
    assert_non_null(strstr(err.message, "another model: identity"));
    tern_session_free(&s);
    tern_model_free(&other);
}

static void test_contexts(void **state) {
    const fixture *f = *state;
    tern_error err = {0};
    check_case("contexts that are smaller, as large, larger");
    for (uint32_t n_ctx = 3; n_ctx <= 5; n_ctx++) {
        tern_session *s = open_session(f->model, n_ctx, 1, TERN_FORMAT_F16);
        const tern_status status = tern_session_restore(s, f->path, &err);
        assert_int_equal(status, n_ctx < 4 ? TERN_ERR_CONTEXT : TERN_OK);
        assert_int_equal(tern_session_position(s), n_ctx < 4 ? 0 : 4);
        tern_session_free(&s);
    }
    assert_non_null(strstr(err.message, "holds 4 positions, the context has 3"));
}

/* A session without tokens can be saved, too. */
static void test_empty_session(void **state) {
    const fixture *f = *state;
    char path[TINY_PATH_BYTES];
    tern_session *empty = open_session(f->model, 1, 1, TERN_FORMAT_F16);
    tiny_path(path);
    check_case("an empty session");
    assert_int_equal(tern_session_save(empty, path, NULL), TERN_OK);
    assert_int_equal(tern_session_restore(f->session, path, NULL), TERN_OK);
    assert_int_equal(tern_session_position(f->session), 0);
    tiny_eval(f->session, held, 3);
    tern_session_free(&empty);
    unlink(path);
}

/* ---- files that cannot be written -------------------------------------------------------------
 */

/* A limit on the size of files stands for a full disk. The old file stays, and nothing new is
 * left. */
static void test_full_disk(void **state) {
    const fixture *f = *state;
    char folder[] = "/tmp/tern-session-XXXXXX";
    char path[64];
    struct rlimit before;
    tern_error err = {0};
    size_t size;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/kept", folder);
    assert_int_equal(tern_session_save(f->session, path, NULL), TERN_OK);
    uint8_t *kept = read_file(path, &size);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    for (rlim_t limit = 0; limit < size; limit += 64) {
        check_case("a disk with room for %u bytes", (unsigned)limit);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = limit,
                                                                  .rlim_max = before.rlim_max}),
                         0);
        const tern_status status = tern_session_save(f->session, path, &err);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(status, TERN_ERR_IO);
        assert_non_null(strstr(err.message, strerror(EFBIG)));
        size_t now;
        uint8_t *bytes = read_file(path, &now);
        assert_int_equal(now, size);
        check_bytes("the old file", kept, bytes, size);
        free(bytes);
    }
    (void)signal(SIGXFSZ, handler);
    free(kept);
    assert_int_equal(unlink(path), 0);
    if (rmdir(folder) != 0) /* it is not empty */
        check_fail("something is left in %s", folder);
    assert_int_equal(tern_session_save(f->session, path, &err), TERN_ERR_IO); /* no such folder */
}

/* ---- what a model's identity depends on --------------------------------------------------------
 */

static uint64_t identity_of(const tiny_file *file, tern_i2s_order order) {
    const tern_model_params params = {.threads = 1, .i2s_order = order, .no_weights = true};
    tern_model *model = NULL;
    tern_error err = {0};
    char path[TINY_PATH_BYTES];
    tiny_path(path);
    tiny_write(file, path);
    if (tern_model_open(path, &params, &model, &err) != TERN_OK)
        check_fail("%s", err.message);
    unlink(path);
    const uint64_t identity = tern_model_identity(model);
    assert_int_equal(identity, tern_model_identity(model));
    tern_model_free(&model);
    return identity;
}

static void test_identity(void **state) {
    (void)state;
    tiny_file file = tiny_read("llama-tiny-q8_0");
    const uint64_t identity = identity_of(&file, TERN_I2S_UNITS_128);
    check_case("what does not matter");
    file.filler = "some more metadata";
    assert_int_equal(identity_of(&file, TERN_I2S_UNITS_128), identity);
    const tiny_tensor first = file.tensors[0];
    file.tensors[0] = file.tensors[1];
    file.tensors[1] = first;
    assert_int_equal(identity_of(&file, TERN_I2S_UNITS_128), identity);
    check_case("what matters");
    for (size_t i = 0; i < file.n; i += 3) {
        tiny_tensor *t = &file.tensors[i];
        t->data[t->bytes - 1 - i] ^= 1;
        const uint64_t other = identity_of(&file, TERN_I2S_UNITS_128);
        t->data[t->bytes - 1 - i] ^= 1;
        assert_int_not_equal(other, identity);
    }
    assert_int_not_equal(identity_of(&file, TERN_I2S_SEQUENTIAL), identity);
    tiny_file_free(&file);
}

/* Metadata that the forward pass reads: the same model with another rope base. */
static void test_identity_of_metadata(void **state) {
    (void)state;
    tiny_file file = tiny_read("llama-tiny-q8_0");
    const uint64_t identity = identity_of(&file, TERN_I2S_UNITS_128);

    char path[TINY_PATH_BYTES];
    tern_model *model = NULL;
    size_t size;
    tiny_path(path);
    tiny_write(&file, path);
    uint8_t *bytes = read_file(path, &size);
    uint8_t *key = memmem(bytes, size, "llama.rope.freq_base", 20);
    assert_non_null(key);
    key[20 + 4] ^= 1; /* after the key and the type of its value */
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    fclose(out);
    const tern_model_params params = {.threads = 1, .no_weights = true};
    assert_int_equal(tern_model_open(path, &params, &model, NULL), TERN_OK);
    assert_int_not_equal(tern_model_identity(model), identity);
    tern_model_free(&model);
    unlink(path);
    free(bytes);
    tiny_file_free(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_wrong_headers),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_changes_between_readings),
        cmocka_unit_test(test_wrong_files),
        cmocka_unit_test(test_other_model),
        cmocka_unit_test(test_contexts),
        cmocka_unit_test(test_empty_session),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_identity_of_metadata),
    };
    return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
