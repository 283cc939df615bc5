/* SPDX-License-Identifier: Apache-2.0 */
/* The program: finds the command, reads its options and calls it. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/word_list.h"
#include "tern/tern.h"
#include "tools/cli/options.h"
#include "tools/cli/output.h"
#include "tools/cli/signals.h"
#include "tools/cli/streams.h"
#include "tools/cli/targets.h"
#include "tools/commands/commands.h"
#include "tools/load/together.h"
#include "tools/manual/manual.h"

static int (*const functions[COMMAND_COUNT])(const options *) = {
#define COMMAND_FUNCTION(id, name) [COMMAND_##id] = cmd_##name,
    COMMAND_LIST(COMMAND_FUNCTION)
#undef COMMAND_FUNCTION
};

static int unknown_command(const char *name) {
    const char *nearest = command_nearest(name);
    const size_t n = strlen(name);
    if (name[0] == '-')
        complain("options come after a command, as in `tern run %.60s`; see `tern help`", name);
    else if (n > 5 && strcmp(name + n - 5, ".gguf") == 0)
        complain("a model comes after a command, as in `tern chat %.200s`; see `tern help`", name);
    else if (nearest != NULL)
        complain("unknown command '%.60s', did you mean '%s'?", name, nearest);
    else
        complain("unknown command '%.60s', see `tern help`", name);
    return EXIT_USAGE;
}

static int help(const char *topic) {
    command_id command;
    if (topic == NULL || strcmp(topic, "help") == 0)
        help_print_program(stdout);
    else if (strcmp(topic, "environment") == 0)
        help_print_environment(stdout);
    else if (strcmp(topic, "environment.md") == 0)
        page_print_environment(stdout);
    else if (strcmp(topic, "man") == 0)
        page_print_man(stdout);
    else if (page_print_schema(stdout, topic))
        return EXIT_DONE;
    else if (command_find(topic, &command))
        help_print_command(stdout, command);
    else
        return unknown_command(topic);
    return EXIT_DONE;
}

/*
 * True if the system gives a thread as much stack as commands need: products of many tokens keep up
 * to 37 KiB of unpacked codes and sums there, and their callers and the system need as much again.
 */
static bool has_stack(void) {
    const rlim_t least = 128 << 10;
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= least)
        return true;
    complain("stacks are limited to %llu KiB (ulimit -s), tern needs %llu",
             (unsigned long long)limit.rlim_cur >> 10, (unsigned long long)least >> 10);
    return false;
}

static int run_command(const options *o) {
    if (options_switch(o, OPT_HELP)) {
        help_print_command(stdout, o->command);
        return EXIT_DONE;
    }
    const char *ignored = options_ignored_strictly(o);
    if (ignored != NULL) {
        complain("strict: --%s would have no effect", ignored);
        return EXIT_USAGE;
    }
    options_print_remarks(o, stderr);
    if (!has_stack())
        return EXIT_FAILED;
    int status = targets_check(o);
    if (status == EXIT_DONE)
        status = together_start(o);
    if (status != EXIT_DONE)
        return status;
    /* this one opens many models, one after another */
    const bool opens_many = o->command == COMMAND_VERIFY_DETERMINISM;
    return together_follows() && !opens_many ? together_follow_command(o)
                                             : functions[o->command](o);
}

/*
 * True if the program was called by the name `inference-engine` (or `inference-engine.cuda`) with
 * options and no command, as a harness does.
 */
static bool is_engine(int argc, char *const *argv) {
    const char *name = argc > 0 ? file_base_name(argv[0]) : "";
    if (strcmp(name, "inference-engine") != 0 && strcmp(name, "inference-engine.cuda") != 0)
        return false;
    return argc < 2 || (argv[1][0] == '-' && strcmp(argv[1], "--version") != 0);
}

/* Runs `tern run` for a harness: prints one line of JSON, with figures of all answers. */
static int run_engine(int argc, char *const *argv) {
    options o;
    tern_error err = {0};
    if (options_parse(&o, COMMAND_RUN, argc > 0 ? argc - 1 : 0, argv + 1, &err) != TERN_OK) {
        complain("%s", err.message);
        return EXIT_USAGE;
    }
    options_default(&o, OPT_JSON, "1");
    options_default(&o, OPT_SUMMARY, "1");
    if (text_ends_with(argv[0], ".cuda"))
        options_default(&o, OPT_DEVICE, "cuda");
    return run_command(&o);
}

static int dispatch(int argc, char *const *argv) {
    if (is_engine(argc, argv))
        return run_engine(argc, argv);
    if (argc < 2) {
        help_print_program(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 ||
        strcmp(argv[1], "-h") == 0)
        return help(argc > 2 ? argv[2] : NULL);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
        out_print("tern %s\n", tern_version());
        return EXIT_DONE;
    }
    command_id command;
    if (!command_find(argv[1], &command))
        return unknown_command(argv[1]);
    options o;
    tern_error err = {0};
    if (options_parse(&o, command, argc - 2, argv + 2, &err) != TERN_OK) {
        complain("%s: %s", argv[1], err.message);
        return EXIT_USAGE;
    }
    return run_command(&o);
}

/* Without /sys hwloc would complain; tern continues with what is known. */
static void quieten_hwloc(void) {
    if (access("/sys/bus/cpu/devices/cpu0/topology", F_OK) != 0 &&
        access("/sys/devices/system/cpu/cpu0/topology", F_OK) != 0)
        (void)setenv("HWLOC_HIDE_ERRORS", "2", 0);
}

int main(int argc, char **argv) {
    if (!streams_take())
        return EXIT_FAILED; /* the error cannot be reported */
    signals_install();
    quieten_hwloc();
    return together_finish(out_finish(dispatch(argc, argv)));
}
