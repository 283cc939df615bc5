/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tools/cli/streams.h"

/* open returns the lowest free descriptor. A descriptor of a path alone (O_PATH) can be neither
 * read nor written, and / exists even without /dev. */
bool streams_take(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/", O_PATH) != fd)
            return false;
    return true;
}
