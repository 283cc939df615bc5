/* SPDX-License-Identifier: Apache-2.0 */
/* Heads and bodies of requests, correct by RFC 9112 and not. They give the same result, whatever
 * pieces the bytes come in. */
#include <stdio.h>
#include <string.h>

#include "serve/http/chunks.h"
#include "serve/http/head.h"
#include "tests/support/check.h"

#define LINE "GET /a HTTP/1.1\r\n"

/* Bytes that may include a zero. */
#define TEXT(literal) literal, sizeof literal - 1

typedef struct head_case {
    const char *what;
    const char *bytes;
    size_t size;
    http_head_verdict verdict;
    const char *said; /* METHOD TARGET and name=value; for each field; NULL: not checked */
} head_case;

static const head_case heads[] = {
    {"a request", TEXT(LINE "Host: x\r\n\r\n"), HTTP_HEAD_WHOLE, "GET /a Host=x;"},
    {"no field", TEXT(LINE "\r\n"), HTTP_HEAD_WHOLE, "GET /a "},
    {"HTTP/1.0", TEXT("GET / HTTP/1.0\r\n\r\n"), HTTP_HEAD_WHOLE, "GET / "},
    {"an empty line before it", TEXT("\r\n" LINE "A: b\r\n\r\n"), HTTP_HEAD_WHOLE, "GET /a A=b;"},
    {"blanks around values", TEXT(LINE "A: \t b c \t\r\nB:d\r\nC:\r\nD: \r\n\r\n"), HTTP_HEAD_WHOLE,
     "GET /a A=b c;B=d;C=;D=;"},
    {"colons in a value", TEXT(LINE "Host: x:8080\r\n\r\n"), HTTP_HEAD_WHOLE,
     "GET /a Host=x:8080;"},
    {"bytes above 127 in a value", TEXT(LINE "A: \xc3\xb6\xff\r\n\r\n"), HTTP_HEAD_WHOLE,
     "GET /a A=\xc3\xb6\xff;"},
    {"a method and a name of marks",
     TEXT("!#$%&'*+-.^_`|~9z / HTTP/1.1\r\n!#$%&'*+-.^_`|~: x\r\n\r\n"), HTTP_HEAD_WHOLE,
     "!#$%&'*+-.^_`|~9z / !#$%&'*+-.^_`|~=x;"},
    {"an absolute address", TEXT("GET http://x:1/a?b=c HTTP/1.1\r\n\r\n"), HTTP_HEAD_WHOLE,
     "GET http://x:1/a?b=c "},
    {"a star", TEXT("OPTIONS * HTTP/1.1\r\n\r\n"), HTTP_HEAD_WHOLE, "OPTIONS * "},

    {"nothing", TEXT(""), HTTP_HEAD_MORE, NULL},
    {"half a line", TEXT("GET /a HT"), HTTP_HEAD_MORE, NULL},
    {"no empty line", TEXT(LINE "A: b\r\n"), HTTP_HEAD_MORE, NULL},
    {"half an end", TEXT(LINE "A: b\r\n\r"), HTTP_HEAD_MORE, NULL},

    {"empty lines", TEXT("\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a line feed", TEXT("GET / HTTP/1.1\nHost: x\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a line feed behind a field", TEXT(LINE "Host: x\nA: b\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a line feed for the empty line", TEXT(LINE "Host: x\r\n\n"), HTTP_HEAD_WRONG, NULL},
    {"a line feed before it", TEXT("\n" LINE "\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a return in the first line", TEXT("GET /a\r HTTP/1.1\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a return in a value", TEXT(LINE "A: b\rc\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"two returns", TEXT(LINE "A: b\r\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a zero in a value", TEXT(LINE "Content-Length: 29\0 30\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a zero behind a value", TEXT(LINE "Transfer-Encoding: chunked\0x\r\n\r\n"), HTTP_HEAD_WRONG,
     NULL},
    {"a zero in a name", TEXT(LINE "A\0B: c\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a zero in the first line", TEXT("GET /a\0b HTTP/1.1\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a bell in a value", TEXT(LINE "A: \a\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a DEL in a value", TEXT(LINE "A: \177\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a vertical tab before a value", TEXT(LINE "Transfer-Encoding:\vchunked\r\n\r\n"),
     HTTP_HEAD_WRONG, NULL},
    {"a folded line", TEXT(LINE "A: b\r\n c\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a line folded by a tab", TEXT(LINE "A: b\r\n\tc\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a blank before the first field", TEXT(LINE " A: b\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a blank before the colon", TEXT(LINE "A : b\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a tab before the colon", TEXT(LINE "A\t: b\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a blank in a name", TEXT(LINE "A B: c\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"no name", TEXT(LINE ": b\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"no colon", TEXT(LINE "Host x\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a byte above 127 in a name", TEXT(LINE "H\xc3\xb6st: x\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"brackets in a name", TEXT(LINE "A[0]: x\r\n\r\n"), HTTP_HEAD_WRONG, NULL},

    {"no version", TEXT("GET /a\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"no target", TEXT("GET HTTP/1.1\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"an empty target", TEXT("GET  HTTP/1.1\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"no method", TEXT(" /a HTTP/1.1\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"two blanks", TEXT("GET  /a HTTP/1.1\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a tab for a blank", TEXT("GET\t/a HTTP/1.1\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a blank behind it", TEXT("GET /a HTTP/1.1 \r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a blank in the target", TEXT("GET /a b HTTP/1.1\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a byte above 127 in the target", TEXT("GET /\xc3\xb6 HTTP/1.1\r\n\r\n"), HTTP_HEAD_WRONG,
     NULL},
    {"a method with a colon", TEXT("GET: /a HTTP/1.1\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a path without a slash", TEXT("GET a HTTP/1.1\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a fragment", TEXT("GET /a#b HTTP/1.1\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"another scheme", TEXT("GET ftp://x/ HTTP/1.1\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a user in an address", TEXT("GET http://u@x/ HTTP/1.1\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a star of GET", TEXT("GET * HTTP/1.1\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a host alone", TEXT("CONNECT x:443 HTTP/1.1\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"letters of another case", TEXT("GET /a http/1.1\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a long version", TEXT("GET /a HTTP/1.10\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"no digits", TEXT("GET /a HTTP/x.y\r\n\r\n"), HTTP_HEAD_WRONG, NULL},
    {"a hello by TLS", TEXT("\x16\x03\x01\x00\xc8"), HTTP_HEAD_WRONG, NULL},
    {"HTTP/2", TEXT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), HTTP_HEAD_VERSION, NULL},
    {"HTTP/0.9", TEXT("GET /a HTTP/0.9\r\n\r\n"), HTTP_HEAD_VERSION, NULL},
    {"HTTP/1.2", TEXT("GET /a HTTP/1.2\r\n\r\n"), HTTP_HEAD_VERSION, NULL},
};

/* Reads a head that comes in pieces. */
static http_head_verdict read_in_pieces(const head_case *h, size_t piece, char *copy,
                                        http_head *out) {
    http_scan s = {0};
    http_head_verdict verdict = HTTP_HEAD_MORE;
    for (size_t n = 0; n < h->size && verdict == HTTP_HEAD_MORE;) {
        n = n + piece < h->size ? n + piece : h->size;
        verdict = http_head_scan(&s, h->bytes, n);
        assert_true(s.at <= n);
    }
    if (verdict != HTTP_HEAD_WHOLE)
        return verdict;
    memcpy(copy, h->bytes, s.at);
    return http_head_read(copy, s.at, out);
}

static void write_head(const http_head *h, char *out, size_t size) {
    const char *at = NULL, *name, *value;
    size_t n = (size_t)snprintf(out, size, "%s %s ", h->method, h->target);
    while (http_head_next(h, &at, &name, &value))
        n += (size_t)snprintf(out + n, size - n, "%s=%s;", name, value);
}

static void test_heads(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        for (size_t piece = 1; piece <= heads[i].size; piece++) {
            char copy[256], said[256];
            http_head head;
            check_case("%s, in pieces of %zu", heads[i].what, piece);
            assert_int_equal(read_in_pieces(&heads[i], piece, copy, &head), heads[i].verdict);
            if (heads[i].said == NULL)
                continue;
            write_head(&head, said, sizeof said);
            assert_string_equal(said, heads[i].said);
            assert_int_equal(head.old, strcmp(heads[i].what, "HTTP/1.0") == 0);
        }
}

/* Every byte in every place of a sound request. Accepted bytes are printable, and the end does not
 * move, unless the byte makes an end. */
static void test_every_byte_at_every_place(void **state) {
    (void)state;
    static const char sound[] = "GET /a HTTP/1.1\r\nHost: x\r\nLength: 12\r\n\r\n";
    const size_t size = sizeof sound - 1;
    unsigned wrong = 0;
    for (size_t at = 0; at < size; at++)
        for (int byte = 0; byte < 256; byte++) {
            char bytes[sizeof sound];
            http_scan s = {0};
            memcpy(bytes, sound, size);
            bytes[at] = (char)byte;
            const http_head_verdict verdict = http_head_scan(&s, bytes, size);
            const bool ends = sound[at] == '\r' || sound[at] == '\n';
            const bool control = (byte < ' ' && byte != '\t') || byte == 127;
            check_case("byte %d at %zu", byte, at);
            if ((ends || control) && byte != sound[at] && byte != '\r')
                assert_int_equal(verdict, HTTP_HEAD_WRONG);
            if (verdict == HTTP_HEAD_WHOLE)
                assert_int_equal(s.at, size);
            wrong += verdict == HTTP_HEAD_WRONG;
        }
    assert_true(wrong > 8 * 256);
}

static void test_fields_are_found(void **state) {
    (void)state;
    char bytes[] = LINE "Host: x\r\nAccept: a\r\naccept: b\r\nEmpty:\r\n\r\n";
    http_scan s = {0};
    http_head h;
    assert_int_equal(http_head_scan(&s, bytes, sizeof bytes - 1), HTTP_HEAD_WHOLE);
    assert_int_equal(http_head_read(bytes, s.at, &h), HTTP_HEAD_WHOLE);
    assert_string_equal(http_head_find(&h, "ACCEPT"), "a");
    assert_string_equal(http_head_find(&h, "Empty"), "");
    assert_null(http_head_find(&h, "Hos"));
    assert_null(http_head_find(&h, "x"));
}

/* Bytes after a head are left alone. */
static void test_a_head_has_an_end(void **state) {
    (void)state;
    static const char two[] = LINE "\r\n" LINE "\r\n";
    http_scan s = {0};
    assert_int_equal(http_head_scan(&s, two, sizeof two - 1), HTTP_HEAD_WHOLE);
    assert_int_equal(s.at, (sizeof two - 1) / 2);
}

/* ---- chunks ---------------------------------------------------------------------------------- */

typedef struct chunks_case {
    const char *what;
    const char *bytes;
    size_t size;
    http_chunks_state state; /* the final state; SIZE: there is more to come */
    const char *body;
} chunks_case;

static const chunks_case bodies[] = {
    {"a chunk", TEXT("3\r\nabc\r\n0\r\n\r\n"), HTTP_CHUNKS_DONE, "abc"},
    {"two", TEXT("3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n"), HTTP_CHUNKS_DONE, "abcd"},
    {"none", TEXT("0\r\n\r\n"), HTTP_CHUNKS_DONE, ""},
    {"zeros before", TEXT("0003\r\nabc\r\n000\r\n\r\n"), HTTP_CHUNKS_DONE, "abc"},
    {"letters", TEXT("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n"), HTTP_CHUNKS_DONE,
     "01234567890123456789"},
    {"line ends in it", TEXT("4\r\n\r\n\r\n\r\n0\r\n\r\n"), HTTP_CHUNKS_DONE, "\r\n\r\n"},
    {"an extension", TEXT("3;a=b\r\nabc\r\n0;c\r\n\r\n"), HTTP_CHUNKS_DONE, "abc"},
    {"a quoted one", TEXT("3;a=\"b c\"\r\nabc\r\n0\r\n\r\n"), HTTP_CHUNKS_DONE, "abc"},
    {"a trailer", TEXT("1\r\na\r\n0\r\nA: b\r\nC:\r\n\r\n"), HTTP_CHUNKS_DONE, "a"},
    {"what follows", TEXT("1\r\na\r\n0\r\n\r\nGET / HTTP/1.1\r\n"), HTTP_CHUNKS_DONE, "a"},
    {"half a chunk", TEXT("3\r\nab"), HTTP_CHUNKS_SIZE, "ab"},
    {"no last line", TEXT("3\r\nabc\r\n0\r\n"), HTTP_CHUNKS_SIZE, "abc"},

    {"no size", TEXT("\r\nabc\r\n"), HTTP_CHUNKS_WRONG, ""},
    {"a line feed behind a size", TEXT("3\nabc\r\n0\r\n\r\n"), HTTP_CHUNKS_WRONG, ""},
    {"a line feed behind a chunk", TEXT("3\r\nabc\n0\r\n\r\n"), HTTP_CHUNKS_WRONG, "abc"},
    {"a line feed behind an extension", TEXT("3;a\nabc\r\n0\r\n\r\n"), HTTP_CHUNKS_WRONG, ""},
    {"a line feed at the end", TEXT("0\r\n\n"), HTTP_CHUNKS_WRONG, ""},
    {"a return alone", TEXT("3\rabc"), HTTP_CHUNKS_WRONG, ""},
    {"a return alone in an extension", TEXT("3;a\rb\r\nabc\r\n"), HTTP_CHUNKS_WRONG, ""},
    {"longer than it says", TEXT("3\r\nabcd\r\n0\r\n\r\n"), HTTP_CHUNKS_WRONG, "abc"},
    {"shorter than it says", TEXT("4\r\nabc\r\n0\r\n\r\n"), HTTP_CHUNKS_WRONG, "abc\r"},
    {"a sign", TEXT("+3\r\nabc\r\n"), HTTP_CHUNKS_WRONG, ""},
    {"less than none", TEXT("-3\r\nabc\r\n"), HTTP_CHUNKS_WRONG, ""},
    {"0x", TEXT("0x3\r\nabc\r\n"), HTTP_CHUNKS_WRONG, ""},
    {"a blank before a size", TEXT(" 3\r\nabc\r\n"), HTTP_CHUNKS_WRONG, ""},
    {"a blank behind a size", TEXT("3 \r\nabc\r\n"), HTTP_CHUNKS_WRONG, ""},
    {"a blank before an extension", TEXT("3 ;a\r\nabc\r\n"), HTTP_CHUNKS_WRONG, ""},
    {"a letter that is no digit", TEXT("g\r\nabc\r\n"), HTTP_CHUNKS_WRONG, ""},
    {"a zero byte behind a size", TEXT("3\0\r\nabc\r\n"), HTTP_CHUNKS_WRONG, ""},
    {"a zero byte in an extension", TEXT("3;\0\r\nabc\r\n"), HTTP_CHUNKS_WRONG, ""},
    {"a byte above 127 in an extension", TEXT("3;\xff\r\nabc\r\n"), HTTP_CHUNKS_WRONG, ""},
    {"16 digits", TEXT("0000000000000003\r\nabc\r\n"), HTTP_CHUNKS_WRONG, ""},
    {"more than 64 bits", TEXT("10000000000000003\r\nabc\r\n"), HTTP_CHUNKS_WRONG, ""},
    {"a folded trailer", TEXT("0\r\nA: b\r\n c\r\n\r\n"), HTTP_CHUNKS_WRONG, ""},
    {"a trailer without a colon", TEXT("0\r\nA\r\n\r\n"), HTTP_CHUNKS_WRONG, ""},
    {"a trailer without a name", TEXT("0\r\n: b\r\n\r\n"), HTTP_CHUNKS_WRONG, ""},
    {"a zero byte in a trailer", TEXT("0\r\nA: \0\r\n\r\n"), HTTP_CHUNKS_WRONG, ""},
    {"a line feed behind a trailer", TEXT("0\r\nA: b\n\r\n"), HTTP_CHUNKS_WRONG, ""},
};

/* Takes a body in pieces. Returns its bytes, and how many bytes were used in all. */
static size_t take_in_pieces(const chunks_case *b, size_t piece, http_chunks *c, char *out) {
    size_t at = 0, n_out = 0;
    while (at < b->size && c->state != HTTP_CHUNKS_DONE && c->state != HTTP_CHUNKS_WRONG) {
        const size_t size = at + piece < b->size ? piece : b->size - at;
        const char *body;
        size_t n;
        const size_t taken = http_chunks_take(c, b->bytes + at, size, &body, &n);
        assert_true(taken > 0 && taken <= size);
        if (n > 0)
            memcpy(out + n_out, body, n);
        n_out += n;
        at += taken;
    }
    out[n_out] = '\0';
    return at;
}

static void test_chunks(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        for (size_t piece = 1; piece <= bodies[i].size; piece++) {
            const chunks_case *b = &bodies[i];
            char body[64];
            http_chunks c = {0};
            check_case("%s, in pieces of %zu", b->what, piece);
            const size_t taken = take_in_pieces(b, piece, &c, body);
            const bool ends = c.state == HTTP_CHUNKS_DONE || c.state == HTTP_CHUNKS_WRONG;
            assert_int_equal(ends ? c.state : HTTP_CHUNKS_SIZE, b->state);
            assert_string_equal(body, b->body);
            if (c.state == HTTP_CHUNKS_DONE)
                assert_memory_equal(b->bytes + taken - 4, "\r\n\r\n", 4);
        }
}

/* Extensions and trailers may take a limited number of bytes in a whole body. */
static void test_extras_have_a_limit(void **state) {
    (void)state;
    for (int more = 0; more < 2; more++) {
        http_chunks c = {0};
        const char *body;
        size_t n;
        for (int i = 0; i < HTTP_CHUNK_EXTRA / 8; i++) {
            static const char chunk[] = "1;12345678\r\n";
            assert_int_equal(http_chunks_take(&c, chunk, sizeof chunk - 1, &body, &n),
                             sizeof chunk - 1);
            assert_int_equal(http_chunks_take(&c, "a", 1, &body, &n), 1);
            assert_int_equal(http_chunks_take(&c, "\r\n", 2, &body, &n), 2);
        }
        const char *last = more ? "0;x\r\n\r\n" : "0\r\n\r\n";
        (void)http_chunks_take(&c, last, strlen(last), &body, &n);
        assert_int_equal(c.state, more ? HTTP_CHUNKS_WRONG : HTTP_CHUNKS_DONE);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_every_byte_at_every_place),
        cmocka_unit_test(test_fields_are_found),
        cmocka_unit_test(test_a_head_has_an_end),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_extras_have_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
