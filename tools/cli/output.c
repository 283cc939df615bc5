/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/output.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os/os.h"
#include "tools/cli/visible.h"

enum { PIECE_BYTES = 4096 };

static int write_error; /* errno of the first failed write to standard output, or 0 */

/* Notes a failed write. Nothing is written after a gap, so buffered output is dropped. */
static bool note(bool written) {
    if (!written && write_error == 0) {
        write_error = errno != 0 ? errno : EIO;
        tern_os_discard(stdout);
    }
    return write_error == 0;
}

static bool write_all(const char *bytes, size_t size) {
    errno = 0;
    return note(fwrite(bytes, 1, size, stdout) == size);
}

static bool is_terminal(void) {
    static int known = -1;
    if (known < 0)
        known = isatty(STDOUT_FILENO) == 1;
    return known == 1;
}

/* Writes in pieces that end at character boundaries. */
static bool write_visible(const char *bytes, size_t size) {
    char piece[PIECE_BYTES];
    bool good = true;
    for (size_t at = 0; good && at < size;) {
        size_t n = size - at < sizeof piece ? size - at : sizeof piece;
        while (at + n < size && n > 1 && ((unsigned char)bytes[at + n] & 0xc0) == 0x80)
            n--;
        good = write_all(piece, visible_copy(bytes + at, n, true, piece));
        at += n;
    }
    return good;
}

bool out_write(const char *bytes, size_t size) {
    return write_error == 0 && (is_terminal() ? write_visible : write_all)(bytes, size);
}

bool out_control(const char *bytes, size_t size) {
    return write_error == 0 && write_all(bytes, size);
}

bool out_print(const char *format, ...) {
    if (write_error != 0)
        return false;
    char line[PIECE_BYTES];
    char *longer = NULL;
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int n = vsnprintf(line, sizeof line, format, args);
    const bool fits = n >= 0 && (size_t)n < sizeof line;
    errno = ENOMEM;
    const bool made = fits || vasprintf(&longer, format, again) >= 0;
    va_end(again);
    va_end(args);
    if (!made)
        return note(false);
    const bool written = write_visible(fits ? line : longer, (size_t)n);
    free(longer);
    return written;
}

bool out_flush(void) {
    errno = 0;
    return write_error == 0 && note(fflush(stdout) == 0);
}

int out_finish(int status) {
    if (out_flush())
        return status;
    if (write_error != EPIPE)
        complain("standard output: %s", strerror(write_error));
    return status == EXIT_DONE ? EXIT_FAILED : status;
}

void complain(const char *format, ...) {
    char line[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    const size_t n = visible_copy(line, strlen(line), false, line);
    fprintf(stderr, "tern: %.*s\n", (int)n, line);
}

void remark(const char *format, ...) {
    char line[PIECE_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    const size_t n = visible_copy(line, strlen(line), true, line);
    (void)fprintf(stderr, "%.*s", (int)n, line);
}

int complain_error(const tern_error *err) {
    complain("%s", err->message[0] != '\0' ? err->message : tern_status_str(err->status));
    const bool usage = err->status == TERN_ERR_ISA || err->status == TERN_ERR_EXISTS;
    return usage ? EXIT_USAGE : EXIT_FAILED;
}

bool wants_remarks(bool verbose) {
    return verbose || isatty(STDERR_FILENO) == 1;
}
