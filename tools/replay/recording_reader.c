/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/replay/recording_reader.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/read.h"
#include "receipts/document.h"
#include "tools/cli/output.h"
#include "tools/cli/whole_file.h"

int recording_reader_open(const char *path, recording_reader *r) {
    *r = (recording_reader){.path = file_shown(path), .file = file_open_text(path)};
    return r->file != NULL ? EXIT_DONE : EXIT_FAILED;
}

void recording_reader_close(recording_reader *r) {
    if (r->file != NULL && r->file != stdin)
        (void)fclose(r->file);
    free(r->line);
    *r = (recording_reader){0};
}

/* True for the line that says that the recording was full. */
static bool is_end(const json_t *line) {
    const char *schema = json_string_value(json_object_get(line, "$schema"));
    return schema != NULL && strcmp(schema, RECORD_END_SCHEMA) == 0;
}

/* True if the line is one of an answer, or else after a complaint. */
static bool is_sound(const recording_reader *r, const json_t *line) {
    receipt_findings found = {0};
    const bool sound = receipt_check_record(line, &found);
    for (size_t i = 0; i < found.n; i++)
        complain("%s: line %u: %s", r->path, r->number, found.lines[i]);
    if (found.out_of_memory)
        complain("%s: line %u: no memory to check it", r->path, r->number);
    receipt_findings_free(&found);
    return sound;
}

/* Reads a line with its end; false: there are no more. */
static bool next_line(recording_reader *r, size_t *size, int *status) {
    errno = 0;
    const ssize_t n = getline(&r->line, &r->capacity, r->file);
    if (n <= 0) {
        if (!feof(r->file)) {
            complain("%s: %s", r->path, strerror(errno));
            *status = EXIT_FAILED;
        }
        return false;
    }
    r->number++;
    *size = (size_t)n;
    if (r->line[n - 1] == '\n')
        return true;
    remark("%s: line %u is a part and is left out\n", r->path, r->number);
    return false;
}

json_t *recording_reader_next(recording_reader *r, int *status) {
    size_t size;
    *status = EXIT_DONE;
    while (next_line(r, &size, status)) {
        tern_error err = {0};
        json_t *line = json_read_lines(r->line, size, r->path, r->number, &err);
        if (line == NULL) {
            *status = complain_error(&err);
            return NULL;
        }
        if (is_end(line)) {
            remark("%s: line %u: the recording was full, later answers are not in it\n", r->path,
                   r->number);
        } else if (is_sound(r, line)) {
            return line;
        } else {
            *status = EXIT_FAILED;
        }
        json_decref(line);
        if (*status != EXIT_DONE)
            return NULL;
    }
    return NULL;
}
