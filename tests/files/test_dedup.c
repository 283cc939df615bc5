/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared bytes in memory: the worked example of docs/dedup.md, wrong masks, an index cut at every
 * length, impossible ratios, and what happens when any single allocation fails.
 */
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

#include "authoring/dedup/dedup.h"
#include "runtime/files/gguf/dedup.h"
#include "tests/support/failing_malloc.h"

static const char list[] =
    "{\"version\":2,\"tensors\":["
    "{\"name\":\"a\",\"dtype\":\"u8\",\"shape\":[5],\"dedup\":true,\"nbytes\":5},"
    "{\"name\":\"b\",\"dtype\":\"u8\",\"shape\":[5],\"dedup\":true,\"nbytes\":5}]}";

static const char worked_index[] =
    "{\"magic\":\"DUDP\",\"version\":1,\"groups\":[{\"default\":{\"tensor_index\":0,\"nbytes\":5,"
    "\"default_off\":0},\"targets\":[{\"tensor_index\":1,\"nbytes\":5,\"mask_off\":0,"
    "\"mask_nbytes\":1,\"exc_off\":0,\"exc_nbytes\":2,\"exc_popcount\":2}]}],"
    "\"files\":{\"defaults\":\"d\",\"masks\":\"m\",\"exceptions\":\"e\"},"
    "\"totals\":{\"defaults_size\":5,\"masks_size\":1,\"exceptions_size\":2}}";

static const uint8_t defaults[] = {0x10, 0x20, 0x30, 0x40, 0x50};
static const uint8_t target[] = {0x10, 0x21, 0x30, 0x40, 0x5f};

/* A folder in memory. */
typedef struct folder {
    const char *index;
    size_t index_bytes;
    uint8_t mask, exceptions[2];
} folder;

static folder worked(void) {
    return (folder){worked_index, sizeof worked_index - 1, 0x12, {0x21, 0x5f}};
}

static tern_status open_file(void *user, const char *name, tern_gguf **out, tern_error *err) {
    const folder *f = user;
    switch (name[0]) {
    case 'd':
        return tern_gguf_raw(defaults, sizeof defaults, NULL, name, out, err);
    case 'm':
        return name[1] == '\0'
                   ? tern_gguf_raw(&f->mask, 1, NULL, name, out, err)
                   : tern_gguf_raw((const uint8_t *)f->index, f->index_bytes, NULL, name, out, err);
    default:
        return tern_gguf_raw(f->exceptions, sizeof f->exceptions, NULL, name, out, err);
    }
}

static tern_status open_folder(folder *f, tern_dedup_use use, uint64_t cache, tern_gguf **out,
                               tern_error *err) {
    const tern_dedup_params params = {.use = use, .cache_bytes = cache};
    tern_gguf *raw = NULL;
    const tern_status status =
        tern_gguf_raw((const uint8_t *)list, sizeof list - 1, NULL, "list", &raw, err);
    return status == TERN_OK ? tern_iebin_parse(raw, open_file, f, &params, out, err) : status;
}

static void check_tensors(const tern_gguf *file) {
    const tern_gguf_tensor *a = tern_gguf_find_tensor(file, "a");
    const tern_gguf_tensor *b = tern_gguf_find_tensor(file, "b");
    assert_ptr_equal(a->data, defaults); /* not a copy */
    assert_memory_equal(b->data, target, sizeof target);
    assert_int_equal(a->extent, 5);
    assert_int_equal(b->extent, 5);
}

static void test_worked(void **state) {
    (void)state;
    static const uint64_t caches[] = {0, 1, 5}; /* default, file, memory */
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
        folder f = worked();
        tern_gguf *file = NULL;
        tern_error err = {.status = TERN_OK};
        assert_int_equal(open_folder(&f, TERN_DEDUP_AUTO, caches[i], &file, &err), TERN_OK);
        check_tensors(file);
        const tern_dedup_info info = tern_gguf_dedup(file);
        assert_int_equal(info.tensors, 2);
        assert_int_equal(info.in_place, 5);
        assert_int_equal(info.in_file, caches[i] == 1 ? 5 : 0);
        assert_int_equal(info.in_memory, caches[i] == 1 ? 0 : 5);
        assert_int_equal(info.exceptions, 2);
        assert_int_equal(tern_gguf_part_count(file), 5);
        tern_gguf_drop_pages(file, tern_gguf_find_tensor(file, "b"));
        check_tensors(file);
        tern_gguf_close(&file);
    }
}

static void check_refused(folder *f, tern_status wanted, const char *words) {
    tern_gguf *file = NULL;
    tern_error err = {.status = TERN_OK};
    check_case("%s", words);
    assert_int_equal(open_folder(f, TERN_DEDUP_AUTO, 0, &file, &err), wanted);
    assert_null(file);
    assert_non_null(strstr(err.message, words));
    assert_null(strchr(err.message, '\n'));
}

static void test_masks(void **state) {
    (void)state;
    folder f = worked();
    f.mask = 0x32; /* a bit for byte 5, which does not exist */
    check_refused(&f, TERN_ERR_TENSOR_DATA, "after its 5 bytes");
    f.mask = 0x13;
    check_refused(&f, TERN_ERR_TENSOR_DATA, "the mask has 3 bits");
    f.mask = 0x02;
    check_refused(&f, TERN_ERR_TENSOR_DATA, "the mask has 1 bits");
}

/* Two targets with the same bytes for mask and exceptions, and many targets of one default. */
static void test_overlaps_and_ratios(void **state) {
    (void)state;
    static const char shared[] =
        "{\"magic\":\"DUDP\",\"version\":1,\"groups\":[{\"default\":{\"nbytes\":5,\"file\":"
        "\"base\","
        "\"default_off\":0},\"targets\":[{\"tensor_index\":%d,\"nbytes\":5,\"mask_off\":0,"
        "\"mask_nbytes\":1,\"exc_off\":0,\"exc_nbytes\":2},{\"tensor_index\":1,\"nbytes\":5,"
        "\"mask_off\":0,\"mask_nbytes\":1,\"exc_off\":0,\"exc_nbytes\":2}]}],\"files\":{"
        "\"base\":\"d\",\"masks\":\"m\",\"exceptions\":\"e\"},\"totals\":{\"defaults_size\":0,"
        "\"masks_size\":1,\"exceptions_size\":2,\"base_size\":5}}";
    char text[sizeof shared];
    folder f = worked();
    (void)snprintf(text, sizeof text, shared, 0);
    f.index = text;
    f.index_bytes = strlen(text);
    check_refused(&f, TERN_ERR_TENSOR_OVERLAP, "'mask_off' is 0, inside");
}

static void test_cut(void **state) {
    (void)state;
    for (size_t n = 1; n + 1 < sizeof worked_index; n++) {
        folder f = worked();
        tern_gguf *file = NULL;
        tern_error err = {.status = TERN_OK};
        f.index_bytes = n;
        assert_int_equal(open_folder(&f, TERN_DEDUP_AUTO, 0, &file, &err), TERN_ERR_JSON);
        assert_null(file);
    }
}

/* Strict mode refuses an index without checksums. With dedup switched off, tensors without bytes
 * are refused. */
static void test_uses(void **state) {
    (void)state;
    folder f = worked();
    tern_gguf *file = NULL;
    tern_error err = {.status = TERN_OK};
    assert_int_equal(open_folder(&f, TERN_DEDUP_STRICT, 0, &file, &err), TERN_ERR_STRICT);
    assert_int_equal(open_folder(&f, TERN_DEDUP_OFF, 0, &file, &err), TERN_ERR_TENSOR_MISSING);
    assert_int_equal(open_folder(&f, TERN_DEDUP_ON, 0, &file, &err), TERN_OK);
    check_tensors(file);
    tern_gguf_close(&file);
}

static void test_no_memory(void **state) {
    (void)state;
    if (!ALLOCATIONS_CAN_FAIL)
        check_skip("a sanitizer has allocations of its own");
    tern_status status = TERN_ERR_NOMEM;
    for (size_t fails = 1; status != TERN_OK; fails++) {
        folder f = worked();
        tern_gguf *file = NULL;
        tern_error err = {.status = TERN_OK};
        const long before = allocations_live;
        allocations_asked = 0;
        allocation_that_fails = fails;
        status = open_folder(&f, TERN_DEDUP_ON, 0, &file, &err);
        allocation_that_fails = 0;
        assert_true(status == TERN_OK || status == TERN_ERR_NOMEM);
        tern_gguf_close(&file);
        assert_int_equal(allocations_live, before);
        assert_true(fails < 1000);
    }
}

/* ---- finding --------------------------------------------------------------------------------- */

/* Finds shared bytes in a model and returns their sizes. Any allocation may fail. */
static tern_status count_sizes(const tern_gguf *model, const tern_gguf *base, dedup_sizes *sizes) {
    dedup_plan plan = {.n = 0};
    tern_error err = {.status = TERN_OK};
    tern_status status = dedup_find(model, base, &plan, &err);
    if (status == TERN_OK)
        status = dedup_write(&plan, NULL, TERN_OUT_NEW, sizes, &err);
    dedup_plan_free(&plan);
    return status;
}

enum { WIDTH = 5000, BYTES = 4 * WIDTH };

/* The tensors of a list, whose bytes are in memory. */
static tern_gguf *tensors_of(const char *text, const uint8_t *bytes, size_t size) {
    tern_gguf *raw = NULL, *file = NULL;
    tern_error err = {.status = TERN_OK};
    assert_int_equal(tern_gguf_raw((const uint8_t *)text, strlen(text), NULL, "list", &raw, &err),
                     TERN_OK);
    tern_gguf *data = NULL;
    assert_int_equal(tern_gguf_raw(bytes, size, NULL, "d", &data, &err), TERN_OK);
    raw->others = malloc(sizeof(tern_gguf *)); /* the file that the list names is open */
    assert_non_null(raw->others);
    raw->others[raw->n_others++] = data;
    assert_int_equal(tern_iebin_parse(raw, open_file, NULL, NULL, &file, &err), TERN_OK);
    return file;
}

/* b is a except for every 50th byte, c equals a, d resembles none. */
static tern_gguf *four_tensors(uint8_t *bytes) {
    static const char text[] =
        "{\"tensors\":["
        "{\"name\":\"a\",\"dtype\":\"u8\",\"shape\":[5000],\"file\":\"d\",\"offset\":0},"
        "{\"name\":\"b\",\"dtype\":\"u8\",\"shape\":[5000],\"file\":\"d\",\"offset\":5000},"
        "{\"name\":\"c\",\"dtype\":\"u8\",\"shape\":[5000],\"file\":\"d\",\"offset\":10000},"
        "{\"name\":\"d\",\"dtype\":\"u8\",\"shape\":[5000],\"file\":\"d\",\"offset\":15000}]}";
    uint32_t random = 1;
    for (size_t i = 0; i < WIDTH; i++) {
        random = random * 1664525u + 1013904223u;
        bytes[i] = bytes[WIDTH + i] = bytes[2 * WIDTH + i] = (uint8_t)(random >> 24);
        bytes[WIDTH + i] ^= i % 50 == 49;
        bytes[3 * WIDTH + i] = (uint8_t)(random >> 16);
    }
    return tensors_of(text, bytes, BYTES);
}

static void test_found(void **state) {
    (void)state;
    static uint8_t bytes[BYTES];
    tern_gguf *model = four_tensors(bytes);
    dedup_sizes sizes;
    assert_int_equal(count_sizes(model, NULL, &sizes), TERN_OK);
    assert_int_equal(sizes.shared_tensors, 3);
    assert_int_equal(sizes.equal, WIDTH);
    assert_int_equal(sizes.near, WIDTH);
    assert_int_equal(sizes.defaults, WIDTH);
    assert_int_equal(sizes.masks, WIDTH / 8);
    assert_int_equal(sizes.exceptions, WIDTH / 50);
    assert_int_equal(count_sizes(model, model, &sizes), TERN_OK); /* a model as its own base */
    assert_int_equal(sizes.shared_tensors, 4);
    assert_int_equal(sizes.equal, BYTES);
    assert_int_equal(sizes.after, sizes.index);
    tern_gguf_close(&model);
}

/* A tensor is compared with that of the base whole, also where a shorter one comes first: the last
 * byte differs. */
static void test_last_byte_differs(void **state) {
    enum { SHORT = 1000, LONG = 7000 };
    static const char text[] =
        "{\"tensors\":["
        "{\"name\":\"s\",\"dtype\":\"u8\",\"shape\":[1000],\"file\":\"d\",\"offset\":0},"
        "{\"name\":\"a\",\"dtype\":\"u8\",\"shape\":[7000],\"file\":\"d\",\"offset\":1000}]}";
    static uint8_t bytes[SHORT + LONG], others[SHORT + LONG];
    check_rng rng = {5};
    dedup_sizes sizes;
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = others[i] = (uint8_t)check_below(&rng, 256);
    tern_gguf *model = tensors_of(text, bytes, sizeof bytes);
    tern_gguf *base = tensors_of(text, others, sizeof others);
    assert_int_equal(count_sizes(model, base, &sizes), TERN_OK);
    assert_int_equal(sizes.equal, LONG); /* what is short is left alone */
    others[SHORT + LONG - 1] ^= 1;
    assert_int_equal(count_sizes(model, base, &sizes), TERN_OK);
    assert_int_equal(sizes.equal, 0);
    assert_int_equal(sizes.near, LONG);
    assert_int_equal(sizes.exceptions, 1);
    tern_gguf_close(&base);
    tern_gguf_close(&model);
}

static void test_finding_without_memory(void **state) {
    (void)state;
    static uint8_t bytes[BYTES];
    if (!ALLOCATIONS_CAN_FAIL)
        check_skip("a sanitizer has allocations of its own");
    tern_gguf *model = four_tensors(bytes);
    tern_status status = TERN_ERR_NOMEM;
    for (size_t fails = 1; status != TERN_OK; fails++) {
        dedup_sizes sizes;
        const long before = allocations_live;
        allocations_asked = 0;
        allocation_that_fails = fails;
        status = count_sizes(model, NULL, &sizes);
        allocation_that_fails = 0;
        assert_true(status == TERN_OK || status == TERN_ERR_NOMEM);
        assert_int_equal(allocations_live, before);
        assert_true(fails < 1000);
    }
    tern_gguf_close(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worked),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_overlaps_and_ratios),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_uses),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_found),
        cmocka_unit_test(test_last_byte_differs),
        cmocka_unit_test(test_finding_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
