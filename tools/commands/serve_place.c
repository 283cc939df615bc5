/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/commands/serve_place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "serve/http/paths.h"
#include "tools/cli/output.h"

enum { OLLAMA_PORT = 11434, FIRST_HANDED = 3, MOST_PORT = 65535 };

/* Reads a number in decimal; false if the text is none, or the number is too large. */
static bool read_number(const char *text, unsigned long most, unsigned long *out) {
    char *end;
    *out = strtoul(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && *out <= most;
}

/* Reads [http://]HOST[:PORT]. What is missing stays as it is. */
static bool read_host(const char *text, serve_place *p) {
    static const char scheme[] = "http://";
    unsigned long port;
    text += strncmp(text, scheme, sizeof scheme - 1) == 0 ? sizeof scheme - 1 : 0;
    const bool bracket = text[0] == '[';
    const char *begin = text + bracket;
    const size_t n = strcspn(begin, bracket ? "]" : ":/");
    const char *rest = begin + n + (bracket && begin[n] == ']');
    if (n >= sizeof p->host || strstr(text, "://") != NULL)
        return false;
    if (n > 0)
        (void)snprintf(p->host, sizeof p->host, "%.*s", (int)n, begin);
    char digits[8];
    (void)snprintf(digits, sizeof digits, "%.*s", (int)strcspn(rest, "/"), rest);
    if (digits[0] == '\0')
        return true;
    if (digits[0] != ':' || !read_number(digits + 1, MOST_PORT, &port))
        return false;
    p->port = (uint16_t)port;
    return true;
}

/* Takes Ollama's place where no option names another one. */
static int read_ollama(const options *o, serve_place *p) {
    const char *said = getenv("OLLAMA_HOST");
    serve_place asked = *p;
    asked.port = OLLAMA_PORT;
    if (said != NULL && !read_host(said, &asked)) {
        complain("OLLAMA_HOST: '%.100s' is not HOST, HOST:PORT or http://HOST:PORT", said);
        return EXIT_USAGE;
    }
    if (!options_given(o, OPT_HOST))
        (void)snprintf(p->host, sizeof p->host, "%s", asked.host);
    if (!options_given(o, OPT_PORT))
        p->port = asked.port;
    return EXIT_DONE;
}

/* Takes the socket that systemd hands over (sd_listen_fds): LISTEN_PID says for which process. */
static int read_handed(serve_place *p) {
    const char *process = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    unsigned long id, n;
    if (process == NULL || count == NULL || !read_number(process, INT32_MAX, &id) ||
        id != (unsigned long)getpid())
        return EXIT_DONE;
    if (!read_number(count, INT32_MAX, &n) || n != 1) {
        complain("LISTEN_FDS: '%.20s' sockets were handed over; a server takes one", count);
        return EXIT_USAGE;
    }
    (void)unsetenv("LISTEN_PID"); /* it is not meant for programs that this one starts */
    (void)unsetenv("LISTEN_FDS");
    p->handed = FIRST_HANDED;
    return EXIT_DONE;
}

int serve_place_read(const options *o, serve_place *place, http_config *http) {
    const char *host = options_text(o, OPT_HOST), *prefix = options_text(o, OPT_API_PREFIX);
    *place = (serve_place){.port = (uint16_t)options_integer(o, OPT_PORT)};
    if (strlen(host) >= sizeof place->host || (prefix != NULL && !path_prefix_is_sound(prefix))) {
        complain(prefix == NULL ? "--host: '%.100s...' is too long for a name"
                                : "--api-prefix: '%.100s' is not a path such as /llm",
                 prefix == NULL ? host : prefix);
        return EXIT_USAGE;
    }
    (void)snprintf(place->host, sizeof place->host, "%s", host);
    int status = options_switch(o, OPT_OLLAMA) ? read_ollama(o, place) : EXIT_DONE;
    if (status == EXIT_DONE)
        status = read_handed(place);
    http->host = place->host;
    http->port = place->port;
    http->handed = place->handed;
    http->prefix = prefix;
    return status;
}
