/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool read_file(void *bytes, size_t size) {
    const int file = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    const bool whole = file >= 0 && read(file, bytes, size) == (ssize_t)size;
    if (file >= 0)
        close(file);
    return whole;
}

/* The system call and not getrandom(), which C libraries before glibc 2.25 do not have. */
void tern_random_bytes(void *bytes, size_t size) {
    long n;
    do
        n = syscall(SYS_getrandom, bytes, size, 0);
    while (n < 0 && errno == EINTR);
    if (n != (long)size && !read_file(bytes, size))
        abort();
}
