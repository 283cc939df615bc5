/* SPDX-License-Identifier: Apache-2.0 */
/* Headers that say where a body ends, and headers that two readers could understand differently. */
#include "serve/http/framing.h"
#include "tests/support/check.h"

enum { MOST_FIELDS = 3 };

typedef struct field {
    const char *name, *value;
} field;

typedef struct header {
    const char *what;
    field fields[MOST_FIELDS];
    bool sound;      /* by HTTP/1.1 */
    bool sound_once; /* by HTTP/1.0 */
    uint64_t length;
} header;

static const header headers[] = {
    {"no body", {{"Host", "x"}}, true, true, 0},
    {"nothing", {{NULL, NULL}}, true, true, 0},
    {"a length", {{"Content-Length", "12"}}, true, true, 12},
    {"in other letters", {{"cOnTeNt-lEnGtH", "0012"}}, true, true, 12},
    {"18 digits", {{"Content-Length", "999999999999999999"}}, true, true, 999999999999999999},
    {"chunks", {{"Transfer-Encoding", "chunked"}}, true, false, 0},
    {"chunks in other letters", {{"transfer-encoding", "Chunked"}}, true, false, 0},
    {"other fields", {{"Content-Lengths", "x"}, {"X-Transfer-Encoding", "gzip"}}, true, true, 0},

    {"both", {{"Content-Length", "12"}, {"Transfer-Encoding", "chunked"}}, false, false, 12},
    {"both, turned",
     {{"Transfer-Encoding", "chunked"}, {"Content-Length", "12"}},
     false,
     false,
     12},
    {"two lengths", {{"Content-Length", "12"}, {"Content-Length", "13"}}, false, false, 13},
    {"one twice", {{"Content-Length", "12"}, {"content-length", "12"}}, false, false, 12},
    {"apart", {{"Content-Length", "1"}, {"Host", "x"}, {"Content-Length", "1"}}, false, false, 1},
    {"two codings",
     {{"Transfer-Encoding", "chunked"}, {"Transfer-Encoding", "chunked"}},
     false,
     false,
     0},
    {"the second is sound", {{"Content-Length", "x"}, {"Content-Length", "5"}}, false, false, 5},

    {"a list", {{"Content-Length", "12, 12"}}, false, false, 0},
    {"a sign", {{"Content-Length", "+12"}}, false, false, 0},
    {"less than none", {{"Content-Length", "-1"}}, false, false, 0},
    {"hexadecimal", {{"Content-Length", "0x12"}}, false, false, 0},
    {"a blank before", {{"Content-Length", " 12"}}, false, false, 0},
    {"a blank after", {{"Content-Length", "12 "}}, false, false, 0},
    {"a point", {{"Content-Length", "1.0"}}, false, false, 0},
    {"an empty length", {{"Content-Length", ""}}, false, false, 0},
    {"no length", {{"Content-Length", NULL}}, false, false, 0},
    {"19 digits", {{"Content-Length", "1000000000000000000"}}, false, false, 0},
    {"more than 64 bits", {{"Content-Length", "18446744073709551628"}}, false, false, 0},

    {"another coding", {{"Transfer-Encoding", "gzip"}}, false, false, 0},
    {"no coding at all", {{"Transfer-Encoding", "identity"}}, false, false, 0},
    {"two in one", {{"Transfer-Encoding", "gzip, chunked"}}, false, false, 0},
    {"chunked twice", {{"Transfer-Encoding", "chunked, chunked"}}, false, false, 0},
    {"nearly", {{"Transfer-Encoding", "xchunked"}}, false, false, 0},
    {"more than that", {{"Transfer-Encoding", "chunked;q=1"}}, false, false, 0},
    {"a tab", {{"Transfer-Encoding", "\tchunked"}}, false, false, 0},
    {"an empty coding", {{"Transfer-Encoding", ""}}, false, false, 0},
    {"no value", {{"Transfer-Encoding", NULL}}, false, false, 0},

    {"a blank in a name", {{"Content-Length ", "12"}}, false, false, 0},
    {"a name of nothing", {{"", "12"}}, false, false, 0},
    {"a tab in another name", {{"Ho\tst", "x"}, {"Content-Length", "3"}}, false, false, 3},
    {"a name with a colon", {{"Host:", "x"}}, false, false, 0},
    {"a name with a byte above 127", {{"H\xc3\xb6st", "x"}}, false, false, 0},
    {"a name of marks", {{"!#$%&'*+-.^_`|~9z", "x"}}, true, true, 0},
};

static http_framing read_header(const header *h, size_t n) {
    http_framing f = {0};
    for (size_t i = 0; i < n && h->fields[i].name != NULL; i++)
        http_framing_note(&f, h->fields[i].name, h->fields[i].value);
    return f;
}

static void test_table(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        const header *h = &headers[i];
        const http_framing f = read_header(h, MOST_FIELDS);
        if (http_framing_is_sound(&f, false) != h->sound ||
            http_framing_is_sound(&f, true) != h->sound_once || f.length != h->length)
            check_fail("%s: 1.1 %d, 1.0 %d, %llu bytes", h->what, http_framing_is_sound(&f, false),
                       http_framing_is_sound(&f, true), (unsigned long long)f.length);
    }
}

/* A bad header does not become sound through any later field. */
static void test_nothing_mends_it(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        for (size_t j = 0; j < sizeof headers / sizeof *headers; j++) {
            http_framing f = read_header(&headers[i], MOST_FIELDS);
            for (size_t k = 0; k < MOST_FIELDS && headers[j].fields[k].name != NULL; k++)
                http_framing_note(&f, headers[j].fields[k].name, headers[j].fields[k].value);
            if (!headers[i].sound || !headers[j].sound)
                assert_false(http_framing_is_sound(&f, false));
        }
}

typedef struct asked {
    const char *what;
    field fields[MOST_FIELDS];
    bool sound;
} asked;

static const asked askeds[] = {
    {"nobody", {{"Accept", "x"}}, true},
    {"one", {{"Host", "localhost:8080"}}, true},
    {"in other letters, with its page", {{"hOST", "[::1]:1"}, {"Origin", "null"}}, true},
    {"two", {{"Host", "x"}, {"Host", "x"}}, false},
    {"two, apart", {{"Host", "x"}, {"Accept", "y"}, {"host", "z"}}, false},
    {"an empty one", {{"Host", ""}}, false},
    {"no value", {{"Host", NULL}}, false},
    {"a user", {{"Host", "user@x"}}, false},
    {"a list", {{"Host", "x, y"}}, false},
    {"a path", {{"Host", "x/y"}}, false},
    {"a blank", {{"Host", "x y"}}, false},
    {"a port of nothing", {{"Host", "x:"}}, false},
    {"a large port", {{"Host", "x:65536"}}, false},
    {"an address without brackets", {{"Host", "::1"}}, false},
    {"a wrong one before a sound one", {{"Host", "x@y"}, {"Accept", "y"}}, false},
    {"two pages", {{"Host", "x"}, {"Origin", "null"}, {"origin", "null"}}, false},
};

static void test_who_is_asked(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof askeds / sizeof *askeds; i++) {
        http_framing f = {0};
        for (size_t k = 0; k < MOST_FIELDS && askeds[i].fields[k].name != NULL; k++)
            http_framing_note(&f, askeds[i].fields[k].name, askeds[i].fields[k].value);
        if (http_framing_has_one_host(&f, true) != askeds[i].sound ||
            http_framing_has_one_host(&f, false) != (askeds[i].sound && f.hosts == 1))
            check_fail("%s", askeds[i].what);
        assert_true(http_framing_is_sound(&f, false)); /* a body's end is checked apart */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_nothing_mends_it),
        cmocka_unit_test(test_who_is_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
