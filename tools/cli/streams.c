/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tools/cli/streams.h"

/* The lowest number that is free is the one that open gives. A path alone (O_PATH) is neither
 * readable nor writable, and / is there without /dev too. */
bool streams_take(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/", O_PATH) != fd)
            return false;
    return true;
}
