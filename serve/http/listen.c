/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets that listen, at an address or at a path in the file system. */

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/os/os.h"
#include "base/out_file.h"
#include "serve/http/internal.h"

enum { BACKLOG = 128 };

/* True if a path is the socket of a server that ended without removing it: nobody answers there. */
static bool is_left_over(const struct sockaddr_un *name) {
    struct stat st;
    if (lstat(name->sun_path, &st) != 0 || !S_ISSOCK(st.st_mode))
        return false;
    const int fd = tern_os_socket(AF_UNIX, SOCK_STREAM, true);
    const bool refused = fd >= 0 && connect(fd, (const struct sockaddr *)name, sizeof *name) != 0 &&
                         errno == ECONNREFUSED;
    if (fd >= 0)
        (void)close(fd);
    return refused;
}

static int listen_unix(const char *path, char *address, size_t size, tern_error *err) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const size_t length = strlen(path);
    if (length == 0 || length >= sizeof name.sun_path) {
        (void)tern_fail(err, TERN_ERR_IO, "%s: a socket's path has 1 to %zu bytes", path,
                        sizeof name.sun_path - 1);
        return -1;
    }
    memcpy(name.sun_path, path, length + 1);
    if (is_left_over(&name))
        (void)unlink(path);
    const int fd = tern_os_socket(AF_UNIX, SOCK_STREAM, false);
    const mode_t mask = umask(S_IRWXG | S_IRWXO); /* only this user may connect */
    const bool bound = fd >= 0 && bind(fd, (const struct sockaddr *)&name, sizeof name) == 0 &&
                       listen(fd, BACKLOG) == 0;
    const int why = errno;
    (void)umask(mask);
    if (!bound) {
        (void)tern_fail(err, TERN_ERR_IO, "unix:%s: cannot listen: %s", path, strerror(why));
        if (fd >= 0)
            (void)close(fd);
        return -1;
    }
    tern_temporary_list(path); /* removed even if a signal ends the server */
    (void)snprintf(address, size, "unix:%s", path);
    return fd;
}

static int listen_on(const struct addrinfo *a) {
    const int fd = tern_os_socket(a->ai_family, a->ai_socktype, false);
    const int yes = 1;
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    const int why = errno;
    (void)close(fd);
    errno = why;
    return -1;
}

static uint16_t port_of(int fd) {
    struct sockaddr_storage name = {0};
    socklen_t size = sizeof name;
    if (getsockname(fd, (struct sockaddr *)&name, &size) != 0)
        return 0;
    return ntohs(name.ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)&name)->sin6_port
                                            : ((const struct sockaddr_in *)&name)->sin_port);
}

static void write_address(const http_config *c, const char *host, int fd, char *address,
                          size_t size) {
    const bool v6 = strchr(host, ':') != NULL;
    (void)snprintf(address, size, "http%s://%s%.200s%s:%u", c->tls ? "s" : "", v6 ? "[" : "", host,
                   v6 ? "]" : "", (unsigned)port_of(fd));
}

/* Sets what sockets of this program have: they do not wait, and no child gets them. */
static bool keep_to_itself(int fd) {
    const int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
           fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

/* Listens on a socket that another program has opened, such as systemd. */
static int listen_handed(const http_config *c, char *address, size_t size, tern_error *err) {
    const int fd = c->handed;
    int listens = 0;
    socklen_t n = sizeof listens;
    struct sockaddr_storage name = {0};
    socklen_t length = sizeof name;
    char host[INET6_ADDRSTRLEN];
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) != 0 || listens == 0 ||
        getsockname(fd, (struct sockaddr *)&name, &length) != 0 || !keep_to_itself(fd)) {
        (void)tern_fail(err, TERN_ERR_IO, "descriptor %d is not a socket that listens", fd);
        return -1;
    }
    if (name.ss_family == AF_UNIX) {
        (void)snprintf(address, size, "unix:%s", ((const struct sockaddr_un *)&name)->sun_path);
        return fd;
    }
    if (getnameinfo((struct sockaddr *)&name, length, host, sizeof host, NULL, 0, NI_NUMERICHOST) !=
        0)
        host[0] = '\0';
    write_address(c, host, fd, address, size);
    return fd;
}

int http_listen(const http_config *c, char *address, size_t size, tern_error *err) {
    if (c->handed != 0)
        return listen_handed(c, address, size, err);
    if (c->unix_path != NULL)
        return listen_unix(c->unix_path, address, size, err);
    char port[8];
    (void)snprintf(port, sizeof port, "%u", (unsigned)c->port);
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    const int failed = getaddrinfo(c->host, port, &hints, &found);
    if (failed != 0) {
        (void)tern_fail(err, TERN_ERR_IO, "%s: no such host to listen on: %s", c->host,
                        gai_strerror(failed));
        return -1;
    }
    int fd = -1;
    for (const struct addrinfo *a = found; a != NULL && fd < 0; a = a->ai_next)
        fd = listen_on(a);
    const int why = errno;
    freeaddrinfo(found);
    if (fd < 0) {
        (void)tern_fail(err, TERN_ERR_IO, "%s port %s: cannot listen: %s%s", c->host, port,
                        strerror(why),
                        why == EADDRINUSE ? "; --port takes another, and 0 one that is free" : "");
        return -1;
    }
    write_address(c, c->host, fd, address, size);
    return fd;
}
