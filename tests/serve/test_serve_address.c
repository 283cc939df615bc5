/* SPDX-License-Identifier: Apache-2.0 */
/* Host lines that may be shown to others, and the lines to paste that are made of them. */
#include <string.h>

#include "serve/http/own_address.h"
#include "tests/support/check.h"

static const char listening[] = "http://127.0.0.1:8080";

static void test_sound_hosts(void **state) {
    (void)state;
    static const char *const sound[] = {
        "x",
        "localhost",
        "localhost:8080",
        "127.0.0.1",
        "127.0.0.1:1",
        "A-b_c.example.org:65535",
        "xn--a.b.:0",
        "[::1]",
        "[::1]:8080",
        "[::ffff:127.0.0.1]:80",
        "[2001:DB8::a]",
    };
    for (size_t i = 0; i < sizeof sound / sizeof *sound; i++)
        if (!own_address_is_sound(sound[i]))
            check_fail("%s is refused", sound[i]);
}

static void test_what_is_never_shown(void **state) {
    (void)state;
    static const char *const unsound[] = {
        "",        ":",        ":80",         "x:",       "x:y",
        "x:65536", "x:123456", "x:+1",        "x:-1",     "x: 1",
        "x:1 ",    "x:1:2",    " x",          "x ",       "x y",
        "x\ty",    "x\ny",     "x\r",         "x/",       "x/v1",
        "/x",      "u@x",      "x?y",         "x#y",      "x%41",
        "x'y",     "x\"y",     "x;y",         "x&y",      "x|y",
        "$x",      "x`y`",     "x(y)",        "x<y>",     "x\\y",
        "x*",      "x,y",      "x=y",         "~x",       "!x",
        "{x}",     "\x7f",     "h\xc3\xb6st", "\x1b[31m", "[]",
        "[:]x",    "[::1",     "::1",         "::1]",     "[::1]8080",
        "[::1]:",  "[::1]:x",  "[::1]:99999", "[::g]",    "[::1%eth0]",
        "[[::1]]",
    };
    for (size_t i = 0; i < sizeof unsound / sizeof *unsound; i++)
        if (own_address_is_sound(unsound[i]))
            check_fail("%s is taken", unsound[i]);
    assert_false(own_address_is_sound(NULL));
}

static void test_the_longest(void **state) {
    (void)state;
    char name[257];
    memset(name, 'a', sizeof name);
    name[256] = '\0';
    assert_false(own_address_is_sound(name));
    name[255] = '\0';
    assert_true(own_address_is_sound(name));
}

static void shows(const own_address *a, const char *url, const char *curl) {
    text shown = {0};
    own_address_url(a, "/v1", &shown);
    assert_string_equal(shown.bytes, url);
    text_clear(&shown);
    own_address_curl(a, "/v1", &shown);
    assert_string_equal(shown.bytes, curl);
    text_free(&shown);
}

static void test_lines(void **state) {
    (void)state;
    shows(&(own_address){listening, "box.example:81", NULL}, "http://box.example:81/v1",
          "curl 'http://box.example:81/v1'");
    shows(&(own_address){"https://0.0.0.0:8443", "[::1]:8443", NULL}, "https://[::1]:8443/v1",
          "curl 'https://[::1]:8443/v1'");
    shows(&(own_address){listening, NULL, NULL}, "http://127.0.0.1:8080/v1",
          "curl 'http://127.0.0.1:8080/v1'");
    shows(&(own_address){listening, "x'; reboot #", NULL}, "http://127.0.0.1:8080/v1",
          "curl 'http://127.0.0.1:8080/v1'");
}

/* A socket's address does not depend on what a client says, and its name is one word. */
static void test_sockets(void **state) {
    (void)state;
    const own_address a = {"unix:/run/it's here", "box.example", NULL};
    assert_string_equal(own_address_socket(&a), "/run/it's here");
    shows(&a, "http://localhost/v1",
          "curl --unix-socket '/run/it'\\''s here' 'http://localhost/v1'");
    shows(&(own_address){listening, "box.example", "/models"}, "http://box.example/models/v1",
          "curl 'http://box.example/models/v1'");
    assert_null(own_address_socket(&(own_address){listening, "unix:/run/x", NULL}));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound_hosts), cmocka_unit_test(test_what_is_never_shown),
        cmocka_unit_test(test_the_longest), cmocka_unit_test(test_lines),
        cmocka_unit_test(test_sockets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
