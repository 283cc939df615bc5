/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/load/together.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/output.h"
#include "tools/load/loader.h"

static tern_ranks *own; /* of the process */
static int kept = -1;   /* standard error of a rank that follows */

tern_ranks *together_ranks(void) {
    return own;
}

bool together_follows(void) {
    return own != NULL && tern_ranks_rank(own) > 0;
}

/* Ranks that follow read and print nothing: rank 0 has the user. */
static void leave_streams(void) {
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    for (int i = STDIN_FILENO; nothing >= 0 && i <= STDERR_FILENO; i++)
        (void)dup2(nothing, i);
    if (nothing > STDERR_FILENO)
        (void)close(nothing);
}

/* The way that is asked for; NULL: the process stays alone. */
static const char *way(const options *o) {
    if (!option_applies(OPT_RANKS, o->command))
        return NULL;
    const char *how = options_text(o, OPT_RANKS);
    if (strcmp(how, "auto") == 0)
        return tern_ranks_are_started() ? "mpi" : NULL;
    return strcmp(how, "1") == 0 ? NULL : how;
}

int together_start(const options *o) {
    tern_error err = {0};
    const char *how = way(o);
    if (how == NULL)
        return EXIT_DONE;
    if (tern_ranks_open(how, (double)options_integer(o, OPT_RANKS_LIMIT), &own, &err) != TERN_OK)
        return err.status == TERN_ERR_ARG ? (complain("--%s", err.message), EXIT_USAGE)
                                          : complain_error(&err);
    if (together_follows())
        leave_streams();
    return EXIT_DONE;
}

int together_follow(tern_model *model) {
    static const char first[] = "rank 0 ";
    tern_error err = {0};
    if (tern_model_follow(model, &err) == TERN_OK)
        return EXIT_DONE;
    if (strncmp(err.message, first, sizeof first - 1) == 0 && kept >= 0)
        (void)dprintf(kept, "tern: %s\n", err.message); /* that one cannot say it */
    return EXIT_FAILED;
}

int together_follow_command(const options *o) {
    loaded l = {0};
    int status = loader_open_model(o, true, &l);
    if (status == EXIT_DONE)
        status = together_follow(l.model);
    loader_close(&l);
    return status;
}

int together_finish(int status) {
    tern_ranks_free(&own);
    return status;
}
