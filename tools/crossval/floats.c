/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/crossval/floats.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/in_file.h"
#include "tern/tern.h"

tern_status float_file_open(float_file *f, const char *folder, const char *name, size_t width,
                            tern_error *err) {
    if (asprintf(&f->path, "%s/%s", folder, name) < 0) {
        f->path = NULL;
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a file name");
    }
    struct stat st;
    const tern_status status = tern_in_file_open(f->path, TERN_IN_FILE, &f->file, err);
    if (status != TERN_OK)
        return status;
    if (fstat(fileno(f->file), &st) != 0)
        return tern_fail(err, TERN_ERR_IO, "%s: %s", f->path, strerror(errno));
    const size_t size = (size_t)st.st_size;
    const size_t row = width * sizeof(float); /* a vocabulary's or a head's: far from overflow */
    if (size == 0 || size % row != 0) {
        return tern_fail(err, TERN_ERR_TRUNCATED, "%s: %zu bytes are not rows of %zu floats",
                         f->path, size, width);
    }
    f->width = width;
    f->rows = size / row;
    return TERN_OK;
}

tern_status float_file_next(float_file *f, float *row, tern_error *err) {
    errno = 0;
    if (fread(row, sizeof *row, f->width, f->file) != f->width) {
        return tern_fail(err, TERN_ERR_TRUNCATED, "%s: row %zu of %zu cannot be read%s%s", f->path,
                         f->read, f->rows, errno != 0 ? ": " : "",
                         errno != 0 ? strerror(errno) : "");
    }
    for (size_t i = 0; i < f->width; i++) {
        uint8_t b[4];
        memcpy(b, &row[i], sizeof b);
        const uint32_t bits =
            (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
        memcpy(&row[i], &bits, sizeof bits);
        if (!isfinite(row[i])) {
            return tern_fail(err, TERN_ERR_NONFINITE, "%s: number %zu of row %zu is %g", f->path, i,
                             f->read, (double)row[i]);
        }
    }
    f->read++;
    return TERN_OK;
}

void float_file_close(float_file *f) {
    if (f->file != NULL)
        (void)fclose(f->file); /* was only read */
    free(f->path);
    *f = (float_file){0};
}
