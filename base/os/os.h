/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_OS_OS_H
#define TERN_BASE_OS_OS_H

/*
 * The portability layer: tern takes this of a system beyond C11 and POSIX.1-2008. Each system has a
 * file that defines all of it: linux.c, macos.c. No other room asks which system it is built for.
 *
 * Functions that return bool or int set errno when they fail, unless it says otherwise.
 */

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

/* ---- memory: advice, without effect where the system does not take it ------------------------ */

/* The range begins at a page. */
void tern_os_use_huge_pages(void *first, size_t bytes);
void tern_os_use_small_pages(void *first, size_t bytes);
/* Gives pages back. Those of a private file map are read again when they are met, and others are
 * zero or what they were. */
void tern_os_drop_pages(void *first, size_t bytes);

/* Bytes of the last-level cache; 0: not known. */
size_t tern_os_last_cache_bytes(void);

/* ---- files ----------------------------------------------------------------------------------- */

/* When a file was read, when its bytes were changed, and when anything of it was. */
struct timespec tern_os_read_time(const struct stat *info);
struct timespec tern_os_write_time(const struct stat *info);
struct timespec tern_os_change_time(const struct stat *info);

/* A descriptor of a file to write in a folder. It has no name and is gone when it is closed. -1:
 * failed, or the system has no such files. */
int tern_os_open_nameless(const char *folder, mode_t permissions);
/* Gives it a name. */
bool tern_os_name_file(int file, const char *path);

/* Renames to a name that does not exist; errno is EEXIST if it does, EINVAL or ENOSYS if the file
 * system has no such call. */
bool tern_os_rename_to_new(const char *from, const char *to);

/* Takes room for a file of so many bytes. Returns 0 or the errno. */
int tern_os_reserve(int file, size_t bytes);

/* A descriptor that can be neither read nor written, at the lowest free number. */
int tern_os_open_nothing(void);

/* The file of the running program, for opening and starting it. Always the same string. */
const char *tern_os_program(void);

/* Drops what was printed to a stream and not yet written. */
void tern_os_discard(FILE *stream);

/* Fills from the system's source of random numbers. False: there is none. */
bool tern_os_random_bytes(void *bytes, size_t size);

/* ---- sockets and pipes: programs that are started do not inherit them ------------------------ */

int tern_os_socket(int family, int type, bool waits);
/* Accepts a client, whose socket does not wait. */
int tern_os_accept(int listening);
bool tern_os_socket_pair(int ends[2]);
bool tern_os_pipe(int ends[2]);

/* Rung by any thread, heard by one that polls `hears`. */
typedef struct tern_os_bell {
    int hears, rings;
} tern_os_bell;
bool tern_os_bell_open(tern_os_bell *bell);
void tern_os_bell_ring(const tern_os_bell *bell);
void tern_os_bell_hush(const tern_os_bell *bell); /* does not wait */
void tern_os_bell_close(const tern_os_bell *bell);

/* poll's event of a client that sends no more; 0 where there is none: reading tells. */
#ifdef POLLRDHUP
#define TERN_OS_HALF_CLOSED POLLRDHUP
#else
#define TERN_OS_HALF_CLOSED 0
#endif

/* ---- threads and processes: without effect where the system refuses -------------------------- */

/* The thread runs only when a processor is free, or like every other. */
void tern_os_run_idle(pthread_t thread, bool idle);
/* Lowers the priority of the calling thread alone: a busy core still gives it about a tenth. */
void tern_os_give_way(void);
/* The process ends when the one that started it does. */
void tern_os_end_with_parent(void);

/* ---- processors ------------------------------------------------------------------------------ */

/* The numbers of those that the process may use, rising. The caller frees the list. errno is ENOMEM
 * without memory. */
bool tern_os_allowed_processors(uint32_t **list, uint32_t *n);

/* A set of processors, with room for number `most` and all that the system has. NULL: no memory. */
typedef struct tern_os_set tern_os_set;
tern_os_set *tern_os_set_new(uint32_t most);
void tern_os_set_add(tern_os_set *set, uint32_t processor);
void tern_os_set_free(tern_os_set *set);

/* Return 0 or the errno; ENOTSUP: the system binds no threads. */
int tern_os_bind_thread(pthread_t thread, const tern_os_set *set);
int tern_os_bind_self(const tern_os_set *set);
int tern_os_own_set(tern_os_set *set); /* takes the calling thread's */

/* Asks for the tile registers of AMX. False: the system does not give them. */
bool tern_os_allow_tiles(void);

/* The two words in which Linux tells the features of an ARM processor (AT_HWCAP, AT_HWCAP2). */
void tern_os_arm_features(unsigned long words[2]);

#endif
