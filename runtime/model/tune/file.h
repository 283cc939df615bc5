/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_TUNE_FILE_H
#define TERN_RUNTIME_MODEL_TUNE_FILE_H

/*
 * Choices on disk: one file in the cache folder for each processor, set of features that may be
 * used, number of cores, and build. Files of other machines and builds have other names and stay as
 * they are. A file that is damaged, or says that it belongs elsewhere, counts as missing and is
 * soon overwritten. docs/tuning.md describes its contents.
 */

#include "base/cache_folder.h"
#include "runtime/model/tune/tune.h"

/* The machine and build that choices on disk are for. */
typedef struct tern_tune_machine {
    char processor[96];
    uint64_t features; /* that kernels may use: bits of dispatch/cpu.h */
    uint32_t cores;    /* that this process may use */
    char version[32];  /* of tern */
    uint64_t table;    /* a hash of the kernel table, names and tiles */
} tern_tune_machine;

enum { TERN_TUNE_NAME_BYTES = 32, TERN_TUNE_FILE_LIMIT = 1 << 20, TERN_TUNE_FILE_CHOICES = 4096 };

/* This machine, with the table and the features of the guard. */
tern_tune_machine tern_tune_this_machine(const tern_guard *guard);

/* Name of the machine's file in the cache folder. */
void tern_tune_name(const tern_tune_machine *machine, char name[TERN_TUNE_NAME_BYTES]);

/*
 * Reads the text of such a file. Takes over and frees bytes[size], which comes from malloc. Leaves
 * out choices that this guard has no kernels for. TERN_ERR_JSON: it is damaged, or of another
 * machine or build; TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_tune_parse(char *bytes, size_t size, const char *name,
                                            const tern_tune_machine *machine,
                                            const tern_guard *guard, tern_tuning *out,
                                            tern_error *err);

/* The text of the file, terminated; the caller frees it. NULL without memory. */
char *tern_tune_text(const tern_tune_machine *machine, const tern_tuning *tuning, size_t *size);

/* Adds what the folder has for this machine to an empty *tuning; nothing when that cannot be read.
 */
void tern_tune_load(const tern_cache_folder *folder, const tern_guard *guard, tern_tuning *tuning);

/*
 * Writes the choices, and those that other processes have written meanwhile. If a choice changes,
 * the times of runs with the old one are forgotten. The status need not be checked: what is not
 * kept is measured again.
 */
tern_status tern_tune_save(const tern_cache_folder *folder, const tern_guard *guard,
                           const tern_tuning *tuning, tern_error *err);

#endif
