/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a server without keys: which hosts and origins it accepts, at every kind of
 * address. */
#include "serve/http/gate.h"
#include "tests/support/check.h"

static const gate local = {.listening = "http://127.0.0.1:8080"};
static const gate local6 = {.listening = "http://[::1]:8080"};
static const gate named = {.listening = "https://localhost:8443"};
static const gate all = {.listening = "http://0.0.0.0:8080"};
static const gate all6 = {.listening = "http://[::]:8080"};
static const gate outer = {.listening = "http://box.example.org:8080"};
static const gate in_files = {.listening = "unix:/run/tern"};
static const gate with_list = {.listening = "http://127.0.0.1:8080",
                               .allowed = "models.example.org,10.0.0.5:81,[fe80::1]"};
static const gate any = {.listening = "http://127.0.0.1:8080", .allowed = "x,*"};

static const struct {
    const gate *g;
    const char *host;
    bool taken;
} hosts[] = {
    {&local, "127.0.0.1:8080", true},
    {&local, "127.0.0.1", true},
    {&local, "127.9.9.9:1", true},
    {&local, "localhost:9000", true}, /* a port that leads here, as of a container */
    {&local, "LOCALHOST.", true},
    {&local, "tern.localhost:8080", true},
    {&local, "[::1]:8080", true},
    {&local, NULL, true},
    {&local, "evil.example:8080", false},
    {&local, "localhost.evil.example", false},
    {&local, "127.0.0.1.evil.example:8080", false},
    {&local, "xlocalhost", false},
    {&local, "127.0.0.1@evil.example", false},
    {&local, "127.0.0.1:8080:1", false},
    {&local, "127.0.0.1:", false},
    {&local, "[::1", false},
    {&local, "192.168.0.2:8080", false},
    {&local, "0.0.0.0:8080", false},
    {&local, "box", false},
    {&local, "box.local", false},
    {&local, "", false},
    {&local6, "localhost:8080", true},
    {&local6, "evil.example", false},
    {&named, "localhost:8443", true},
    {&named, "evil.example:8443", false},

    {&all, "192.168.0.2:8080", true},
    {&all, "[fe80::1]:8080", true},
    {&all, "[2001:db8::192.168.0.2]:8080", true},
    {&all, "localhost", true},
    {&all, "box:8080", true},
    {&all, "box.:8080", false}, /* the dot makes it a name that anybody could own */
    {&all, "box.local", true},
    {&all, "box.LOCAL.:1", true},
    {&all, "host.docker.internal:8080", true},
    {&all, "box.home.arpa", true},
    {&all, "evil.example", false},
    {&all, "local.evil.example", false},
    {&all, "xlocal.example", false},
    {&all, ".local", false},
    {&all, "192.168.0.2.evil.example", false},
    {&all6, "box", true},
    {&all6, "evil.example", false},
    {&outer, "BOX.example.org:8080", true},
    {&outer, "box.example.org.", true},
    {&outer, "example.org", false},
    {&outer, "10.0.0.1", true},

    {&in_files, "evil.example", true},
    {&in_files, "localhost", true},
    {&with_list, "models.example.org", true},
    {&with_list, "Models.Example.Org.:444", true},
    {&with_list, "10.0.0.5:81", true},
    {&with_list, "10.0.0.5", false},
    {&with_list, "10.0.0.5:82", false},
    {&with_list, "[fe80::1]:7", true},
    {&with_list, "example.org", false},
    {&with_list, "xmodels.example.org", false},
    {&any, "evil.example", true},
    {&any, "user@evil.example", false},
};

static void test_hosts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        if (gate_takes_host(hosts[i].g, hosts[i].host) != hosts[i].taken)
            check_fail("%s, asked as %s", hosts[i].g->listening, hosts[i].host);
}

static const gate shared = {.listening = "http://127.0.0.1:8080", .origin = "https://app.example"};
static const gate shared_with_all = {.listening = "http://127.0.0.1:8080", .origin = "*"};
static const gate shared_with_app = {.listening = "http://127.0.0.1:8080",
                                     .origin = "chrome-extension://abcdef"};

static void test_origins(void **state) {
    (void)state;
    static const struct {
        const gate *g;
        const char *host, *origin;
        bool taken;
    } rows[] = {
        {&local, "localhost:8080", NULL, true},
        {&local, "localhost:8080", "http://localhost:8080", true},
        {&local, "localhost:8080", "https://localhost:8080", true}, /* TLS that ends at a proxy */
        {&local, "localhost", "http://localhost", true},
        {&local, "localhost", "https://localhost", true},
        {&local, "localhost:443", "https://LOCALHOST", true},
        {&local, "[::1]:8080", "http://[::1]:8080", true},
        {&local, NULL, "http://localhost:8080", false},
        {&local, "localhost:8080", "null", false},
        {&local, "localhost:8080", "", false},
        {&local, "localhost:8080", "http://localhost", false},
        {&local, "localhost:8080", "http://localhost:3000", false},
        {&local, "localhost:8080", "http://127.0.0.1:8080", false},
        {&local, "localhost:8080", "http://evil.example", false},
        {&local, "localhost:8080", "http://localhost:8080.evil.example", false},
        {&local, "localhost:8080", "http://localhost:8080@evil.example", false},
        {&local, "localhost:8080", "http://localhost:8080/", false},
        {&local, "localhost:8080", "http://localhost:8080 http://x", false},
        {&local, "localhost:8080", "localhost:8080", false},
        {&local, "localhost:8080", "file://", false},
        {&in_files, "localhost", "http://evil.example", false},
        {&in_files, "localhost", "http://localhost", true},
        {&with_list, "127.0.0.1:8080", "https://models.example.org", true}, /* a proxy's own Host */
        {&with_list, "127.0.0.1:8080", "https://example.org", false},
        {&any, "localhost:8080", "http://evil.example", false},
        {&shared, "localhost:8080", "https://app.example", true},
        {&shared, "localhost:8080", "https://APP.example:443", true},
        {&shared, "localhost:8080", "http://app.example", false},
        {&shared, "localhost:8080", "https://app.example.evil", false},
        {&shared, "localhost:8080", "null", false},
        {&shared, "localhost:8080", "http://localhost:8080", true},
        {&shared_with_all, "localhost:8080", "null", true},
        {&shared_with_all, "localhost:8080", "http://evil.example", true},
        {&shared_with_app, "localhost:8080", "chrome-extension://abcdef", true},
        {&shared_with_app, "localhost:8080", "chrome-extension://abcdefg", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (gate_takes_origin(rows[i].g, rows[i].host, rows[i].origin) != rows[i].taken)
            check_fail("%s, asked as %s by %s", rows[i].g->listening,
                       rows[i].host != NULL ? rows[i].host : "nobody",
                       rows[i].origin != NULL ? rows[i].origin : "no page");
}

static void test_lists(void **state) {
    (void)state;
    static const char *const sound[] = {"x", "*", "x,y:80", "x,*", "[::1]:80", "10.0.0.1"};
    static const char *const wrong[] = {"",         ",",  "x,",      ",x",  "x,,y", "x y", "x, y",
                                        "http://x", "x/", "x:99999", "*.x", "u@x",  "::1", "[::1"};
    for (size_t i = 0; i < sizeof sound / sizeof *sound; i++)
        if (!gate_list_is_sound(sound[i]))
            check_fail("'%s' is a list", sound[i]);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (gate_list_is_sound(wrong[i]))
            check_fail("'%s' is none", wrong[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_origins),
        cmocka_unit_test(test_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
