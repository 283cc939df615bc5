/* SPDX-License-Identifier: Apache-2.0 */
/* Pages and their users: promises, sharing, what is found again, and what is evicted first. */
#include <stdlib.h>
#include <string.h>

#include "runtime/engine/cache/pages.h"
#include "tests/support/check.h"

enum { PAGES = 6 };

static const uint8_t everybody[TERN_SPACE_BYTES];
static const uint8_t somebody[TERN_SPACE_BYTES] = {1};

static tern_pages *open_pages(uint32_t n) {
    tern_pages *p = NULL;
    assert_int_equal(tern_pages_new(n, &p, NULL), TERN_OK);
    return p;
}

static void expect(const tern_pages *p, uint32_t free, uint32_t used, uint32_t cached,
                   uint32_t reserved) {
    const tern_page_counts c = tern_pages_count(p);
    assert_int_equal(c.all, PAGES);
    assert_int_equal(c.free, free);
    assert_int_equal(c.used, used);
    assert_int_equal(c.cached, cached);
    assert_int_equal(c.reserved, reserved);
    assert_int_equal(tern_pages_available(p), free + cached - reserved);
    assert_true(tern_pages_sound(p));
}

static uint32_t take(tern_pages *p) {
    assert_true(tern_pages_reserve(p, 1));
    return tern_pages_take(p);
}

/* 64 tokens of which `number` is one. */
static const int32_t *tokens_of(int32_t number) {
    static int32_t tokens[8][TERN_PAGE];
    int32_t *t = tokens[number % 8];
    for (int32_t i = 0; i < TERN_PAGE; i++)
        t[i] = i == 40 ? number : i;
    return t;
}

static tern_page_key key_of(uint64_t after, int32_t number) {
    return (tern_page_key){.after = after, .space = everybody, .tokens = tokens_of(number)};
}

/* Takes a page, makes it known by its number, and releases it again. */
static uint32_t cache(tern_pages *p, uint64_t after, int32_t number) {
    const tern_page_key key = key_of(after, number);
    const uint32_t page = take(p);
    assert_int_equal(tern_pages_know(p, page, &key), page);
    tern_pages_release(p, page);
    return page;
}

static void test_promises(void **state) {
    (void)state;
    tern_pages *p = open_pages(PAGES);
    expect(p, 6, 0, 0, 0);
    assert_true(tern_pages_reserve(p, 5));
    assert_false(tern_pages_reserve(p, 2));
    expect(p, 6, 0, 0, 5);
    const uint32_t a = tern_pages_take(p), b = tern_pages_take(p);
    assert_int_not_equal(a, b);
    expect(p, 4, 2, 0, 3);
    tern_pages_unreserve(p, 3);
    tern_pages_release(p, a);
    expect(p, 5, 1, 0, 0);
    tern_pages_release(p, b);
    expect(p, 6, 0, 0, 0);
    check_freed(tern_pages_free, p);
    assert_null(p);
}

static void test_found_again(void **state) {
    (void)state;
    tern_pages *p = open_pages(PAGES);
    const tern_page_key first = key_of(0, 1);
    const uint32_t a = cache(p, 0, 1);
    assert_int_equal(tern_pages_find(p, &first), a);
    const uint64_t serial = tern_pages_serial(p, a);
    const uint32_t b = cache(p, serial, 2);
    expect(p, 4, 0, 2, 0);
    tern_page_key key = key_of(serial, 2);
    assert_int_equal(tern_pages_find(p, &key), b);
    key = key_of(0, 2); /* the same tokens in another place */
    assert_int_equal(tern_pages_find(p, &key), TERN_NO_PAGE);
    key = key_of(0, 3); /* one token differs */
    assert_int_equal(tern_pages_find(p, &key), TERN_NO_PAGE);
    key = first;
    key.space = somebody;
    assert_int_equal(tern_pages_find(p, &key), TERN_NO_PAGE);
    for (int32_t i = 3; i < 500; i++) { /* many of these have the page's hash */
        uint8_t space[TERN_SPACE_BYTES] = {(uint8_t)i, (uint8_t)(i >> 8)};
        int32_t tokens[TERN_PAGE];
        memcpy(tokens, first.tokens, sizeof tokens);
        tokens[i % TERN_PAGE] += i;
        key = (tern_page_key){.space = space, .tokens = first.tokens};
        assert_int_equal(tern_pages_find(p, &key), TERN_NO_PAGE);
        key = (tern_page_key){.space = everybody, .tokens = tokens};
        assert_int_equal(tern_pages_find(p, &key), TERN_NO_PAGE);
        key = (tern_page_key){.after = (uint64_t)i, .space = everybody, .tokens = first.tokens};
        assert_int_equal(tern_pages_find(p, &key), TERN_NO_PAGE);
    }
    assert_true(tern_pages_share(p, a));
    assert_true(tern_pages_share(p, a));
    assert_int_equal(tern_pages_users(p, a), 2);
    expect(p, 4, 1, 1, 0);
    tern_pages_release(p, a);
    expect(p, 4, 1, 1, 0);
    tern_pages_release(p, a);
    expect(p, 4, 0, 2, 0);
    tern_pages_forget(p);
    expect(p, 6, 0, 0, 0);
    assert_int_equal(tern_pages_find(p, &first), TERN_NO_PAGE);
    tern_pages_free(&p);
}

/* A cached page that is promised to somebody cannot be shared, because it may be taken. */
static void test_promised_pages_are_not_shared(void **state) {
    (void)state;
    tern_pages *p = open_pages(PAGES);
    const uint32_t a = cache(p, 0, 1);
    assert_true(tern_pages_reserve(p, PAGES));
    assert_false(tern_pages_share(p, a));
    expect(p, 5, 0, 1, 6);
    tern_pages_unreserve(p, 1);
    assert_true(tern_pages_share(p, a));
    assert_true(tern_pages_share(p, a)); /* it is in use: another user takes nothing away */
    expect(p, 5, 1, 0, 5);
    tern_pages_free(&p);
}

/* The least recently used cached page is evicted first. A serial is never used again. */
static void test_eviction(void **state) {
    (void)state;
    tern_pages *p = open_pages(PAGES);
    uint32_t pages[PAGES];
    for (int32_t i = 0; i < PAGES; i++)
        pages[i] = cache(p, 0, i);
    expect(p, 0, 0, 6, 0);
    const uint64_t serial = tern_pages_serial(p, pages[1]);
    assert_true(tern_pages_share(p, pages[0])); /* now the most recent */
    tern_pages_release(p, pages[0]);
    assert_int_equal(take(p), pages[1]);
    expect(p, 0, 1, 5, 0);
    tern_page_key key = key_of(0, 1);
    assert_int_equal(tern_pages_find(p, &key), TERN_NO_PAGE);
    assert_int_equal(tern_pages_know(p, pages[1], &key), pages[1]);
    assert_int_not_equal(tern_pages_serial(p, pages[1]), serial);
    key = key_of(0, 0);
    assert_int_equal(tern_pages_find(p, &key), pages[0]);
    tern_pages_free(&p);
}

/* Two sequences that computed the same content continue with one page. */
static void test_same_content(void **state) {
    (void)state;
    tern_pages *p = open_pages(PAGES);
    const tern_page_key key = key_of(0, 7);
    const uint32_t a = take(p), b = take(p);
    assert_int_equal(tern_pages_know(p, a, &key), a);
    assert_int_equal(tern_pages_know(p, b, &key), a);
    assert_int_equal(tern_pages_users(p, a), 2);
    expect(p, 5, 1, 0, 0);
    tern_pages_release(p, a);
    tern_pages_release(p, a);
    expect(p, 5, 0, 1, 0);
    const uint32_t c = take(p);
    assert_true(tern_pages_reserve(p, 5)); /* everything left, including the cached page */
    assert_int_equal(tern_pages_know(p, c, &key), a);
    expect(p, 5, 1, 0, 5);
    tern_pages_free(&p);
}

static void test_refusals(void **state) {
    (void)state;
    tern_pages *p = NULL;
    tern_error err = {0};
    assert_int_equal(tern_pages_new(0, &p, &err), TERN_ERR_ARG);
    assert_string_equal(err.message, "a cache of 0 pages");
    assert_int_equal(tern_pages_new(UINT32_MAX, &p, &err), TERN_ERR_ARG);
    assert_int_equal(tern_pages_new(1, NULL, &err), TERN_ERR_NULL);
    assert_null(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_promises),
        cmocka_unit_test(test_found_again),
        cmocka_unit_test(test_promised_pages_are_not_shared),
        cmocka_unit_test(test_eviction),
        cmocka_unit_test(test_same_content),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
