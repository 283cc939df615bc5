/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/out.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <unistd.h>

static int write_error; /* errno of the first failed write to standard output, or 0 */

/* Nothing is written behind a gap, so what was kept for a later try is dropped. */
static bool note(bool written) {
    if (!written && write_error == 0) {
        write_error = errno != 0 ? errno : EIO;
        __fpurge(stdout);
    }
    return write_error == 0;
}

bool out_write(const char *bytes, size_t size) {
    errno = 0;
    return write_error == 0 && note(fwrite(bytes, 1, size, stdout) == size);
}

bool out_print(const char *format, ...) {
    if (write_error != 0) {
        return false;
    }
    va_list args;
    va_start(args, format);
    errno = 0;
    const int n = vprintf(format, args);
    va_end(args);
    return note(n >= 0);
}

bool out_flush(void) {
    errno = 0;
    return write_error == 0 && note(fflush(stdout) == 0);
}

int out_finish(int status) {
    if (out_flush()) {
        return status;
    }
    if (write_error != EPIPE) {
        complain("standard output: %s", strerror(write_error));
    }
    return status == EXIT_DONE ? EXIT_FAILED : status;
}

/* Control characters (from arguments and files) become '?', so that a line stays a line. */
void complain(const char *format, ...) {
    char line[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    for (char *c = line; *c != '\0'; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f) {
            *c = '?';
        }
    }
    fprintf(stderr, "tern: %s\n", line);
}

int complain_error(const tern_error *err) {
    complain("%s", err->message[0] != '\0' ? err->message : tern_status_str(err->status));
    const bool usage = err->status == TERN_ERR_ISA || err->status == TERN_ERR_EXISTS;
    return usage ? EXIT_USAGE : EXIT_FAILED;
}

bool wants_remarks(bool verbose) {
    return verbose || isatty(STDERR_FILENO) == 1;
}
