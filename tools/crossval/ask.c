/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/crossval/ask.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/cli/output.h"
#include "tools/cli/whole_file.h"

enum { NOBODY_IS_INSTALLED = 3 }; /* exit status of the script if no engine is installed */

extern char **environ;

int crossval_read(const char *path, reference **out) {
    char *json = NULL;
    size_t size = 0;
    tern_error err = {0};
    int status = file_read(path, REFERENCE_MAX_BYTES, &json, &size);
    if (status == EXIT_DONE && reference_parse(path, json, size, out, &err) != TERN_OK)
        status = complain_error(&err);
    free(json);
    return status;
}

/* The exit status of the script; -1 if it could not be run or was killed. */
static int run_script(const char *model, const char *prompt, const char *file) {
    char *const words[] = {(char *)(uintptr_t) "python3",
                           (char *)(uintptr_t)TERN_CROSSVAL_REFERENCE,
                           (char *)(uintptr_t)model,
                           (char *)(uintptr_t) "--installed",
                           (char *)(uintptr_t) "-p",
                           (char *)(uintptr_t)prompt,
                           (char *)(uintptr_t) "--golden",
                           (char *)(uintptr_t)file,
                           NULL};
    pid_t child;
    int status;
    if (posix_spawnp(&child, words[0], NULL, NULL, words, environ) != 0)
        return -1;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int crossval_ask(const char *model, const char *prompt, reference **out) {
    const char *folder = getenv("TMPDIR");
    char file[PATH_MAX];
    if (access(TERN_CROSSVAL_REFERENCE, R_OK) != 0) {
        complain("nobody to ask: %s is not there; use --reference FILE", TERN_CROSSVAL_REFERENCE);
        return EXIT_USAGE;
    }
    (void)snprintf(file, sizeof file, "%s/tern-crossval-XXXXXX",
                   folder != NULL && folder[0] == '/' ? folder : "/tmp");
    const int made = mkstemp(file);
    if (made < 0) {
        complain("%s: cannot be created: %s", file, strerror(errno));
        return EXIT_FAILED;
    }
    (void)close(made); /* empty: no data can be lost */
    const int answer = run_script(model, prompt, file);
    int status = EXIT_FAILED;
    if (answer == EXIT_DONE) {
        status = crossval_read(file, out);
    } else if (answer == NOBODY_IS_INSTALLED) {
        complain("no other engine is installed to compare with: use --reference FILE, or `%s %s -p "
                 "PROMPT --output FOLDER`, which installs one",
                 TERN_CROSSVAL_REFERENCE, model);
        status = EXIT_USAGE;
    } else {
        complain("%s could not ask another engine", TERN_CROSSVAL_REFERENCE);
    }
    (void)unlink(file);
    return status;
}
