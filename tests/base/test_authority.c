/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts, ports and origins, compared whole. */
#include <string.h>

#include "base/authority.h"
#include "tests/support/check.h"

static bool reads(const char *text, tern_authority *out) {
    return tern_authority_read(text, strlen(text), out);
}

static void test_parts(void **state) {
    (void)state;
    static const struct {
        const char *text, *host;
        uint32_t port;
    } rows[] = {{"x", "x", TERN_NO_PORT},   {"x:0", "x", 0},
                {"x.:65535", "x.", 65535},  {"[::1]", "[::1]", TERN_NO_PORT},
                {"[::1]:080", "[::1]", 80}, {"127.0.0.1:8080", "127.0.0.1", 8080},
                {"A_b-c:00001", "A_b-c", 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tern_authority a;
        if (!reads(rows[i].text, &a) || a.size != strlen(rows[i].host) ||
            memcmp(a.host, rows[i].host, a.size) != 0 || a.port != rows[i].port)
            check_fail("%s is not read as it is", rows[i].text);
    }
}

/* Bytes beyond the given size are not read. */
static void test_sizes(void **state) {
    (void)state;
    tern_authority a;
    assert_true(tern_authority_read("x:80/y", 4, &a));
    assert_int_equal(a.port, 80);
    assert_true(tern_authority_read("[::1]x", 5, &a));
    assert_false(tern_authority_read("[::1]", 4, &a));
    assert_false(tern_authority_read("x", 0, &a));
    assert_false(tern_authority_read("x:8\0"
                                     "0",
                                     5, &a));
    assert_false(tern_authority_read("x\0y", 3, &a));
    assert_false(tern_authority_read("[::\0]", 5, &a));
}

static void test_loopback(void **state) {
    (void)state;
    static const char *const here[] = {"localhost",     "LocalHost:80",   "localhost.",
                                       "a.localhost",   "a.b.localhost.", "127.0.0.1",
                                       "127.255.0.9:1", "[::1]:5",        "127.0.0.1."};
    static const char *const elsewhere[] = {
        "xlocalhost",
        ".localhost",
        "localhost.evil",
        "localhost..",
        "127.0.0.1.evil",
        "127.0.0.256",
        "127.0.0",
        "127.0.0.1.1",
        "127.1",
        "128.0.0.1",
        "1127.0.0.1",
        "127.0.0.0001",
        "127..0.1",
        "0.0.0.0",
        "[::2]",
        "[0::1]",
        "[::ffff:127.0.0.1]",
        "example.org",
        "10.0.0.1",
        "127.0.0.1a",
        "127.0.0.x",
    };
    for (size_t i = 0; i < sizeof here / sizeof *here; i++) {
        tern_authority a;
        if (!reads(here[i], &a) || !tern_authority_is_loopback(&a))
            check_fail("%s is this machine", here[i]);
    }
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
        tern_authority a;
        if (!reads(elsewhere[i], &a) || tern_authority_is_loopback(&a))
            check_fail("%s is another machine", elsewhere[i]);
    }
}

static void test_same_host(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {{"x", "X:1", true},       {"x.", "x", true},      {"x", "xy", false},
                {"x", "x.y", false},      {"x..", "x", false},    {".", ".", true},
                {"[::1]", "[::1]", true}, {"[::1]", "::1", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tern_authority a, b;
        const bool same =
            reads(rows[i].a, &a) && reads(rows[i].b, &b) && tern_authority_same_host(&a, &b);
        if (same != rows[i].same)
            check_fail("%s and %s", rows[i].a, rows[i].b);
    }
}

static void test_origins(void **state) {
    (void)state;
    static const char own[] = "https://hub.example";
    static const char *const same[] = {"https://hub.example",      "https://hub.example/x/y?z#w",
                                       "HTTPS://HUB.example:443/", "https://hub.example.:443",
                                       "https://hub.example?x",    "https://hub.example#x"};
    static const char *const other[] = {
        "http://hub.example",
        "https://hub.example:444",
        "https://hub.example.evil",
        "https://hub.example@evil",
        "https://hub.example:443@evil/",
        "https://u@hub.example",
        "https://hub.example\\@evil",
        "https://hub.exampl",
        "https://xhub.example",
        "https:/hub.example",
        "https:hub.example",
        "//hub.example",
        "hub.example",
        "",
        "null",
        "https://",
        "https://hub.example:",
        "https://hub.example:x",
        "https://hub.example:65979",
        "https://hub.example:4430",
        "https://hub.example ",
        " https://hub.example",
        "https://hub%2eexample",
        "ftp://hub.example:443",
        "https://hub.example\t/",
        "https://hub.example..",
        "https://hub.example:-443",
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (!tern_origin_is_same(own, same[i]) || !tern_origin_is_same(same[i], own))
            check_fail("%s is the same", same[i]);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (tern_origin_is_same(own, other[i]) || tern_origin_is_same(other[i], own))
            check_fail("%s is another", other[i]);
    assert_false(tern_origin_is_same("null", "null")); /* an opaque origin equals nothing */
    assert_true(tern_origin_is_same("http://[::1]:80", "http://[::1]/"));
    assert_false(tern_origin_is_same("http://x:80", "https://x:80"));
}

static void test_hosts_of_origins(void **state) {
    (void)state;
    static const struct {
        const char *origin, *host;
        bool same;
    } rows[] = {{"http://x", "x", true},
                {"http://x", "X.:80", true},
                {"https://x", "x:443", true},
                {"https://x", "x", true},
                {"https://x", "x:80", false},
                {"http://x:81", "x", false},
                {"http://x:81/p", "x:81", true},
                {"http://x", "xx", false},
                {"http://[::1]:9", "[::1]:9", true},
                {"http://x", "x:", false},
                {"http://x", "", false},
                {"http://x", "u@x", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tern_origin o;
        if (!tern_origin_read(rows[i].origin, &o) ||
            tern_origin_is_of(&o, rows[i].host) != rows[i].same)
            check_fail("%s and %s", rows[i].origin, rows[i].host);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),    cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_loopback), cmocka_unit_test(test_same_host),
        cmocka_unit_test(test_origins),  cmocka_unit_test(test_hosts_of_origins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
