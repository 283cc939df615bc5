/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/speed/energy.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 256, NAME_BYTES = 64 };

/* Reads the first line of folder/file into text, without its newline. */
static bool read_line(const char *folder, const char *file, char *text, size_t size) {
    char path[PATH_BYTES];
    const int n = snprintf(path, sizeof path, "%s/%s", folder, file);
    if (n < 0 || (size_t)n >= sizeof path)
        return false;
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return false;
    const bool read = fgets(text, (int)size, f) != NULL;
    (void)fclose(f); /* read only: no data can be lost */
    if (read)
        text[strcspn(text, "\n")] = '\0';
    return read;
}

static bool read_count(const char *folder, const char *file, uint64_t *count) {
    char text[NAME_BYTES];
    return read_line(folder, file, text, sizeof text) && sscanf(text, "%" SCNu64, count) == 1;
}

/* True if a folder holds the counters of a package. Only packages are summed, because a package's
 * counter includes the domains inside it. */
static bool is_package(const char *folder) {
    char name[NAME_BYTES];
    return read_line(folder, "name", name, sizeof name) && strncmp(name, "package", 7) == 0;
}

/* Adds a package; false if it cannot be read. */
static bool add_package(energy_meter *m, const char *path) {
    const size_t i = m->n;
    if (i == ENERGY_PACKAGES || !read_count(path, "energy_uj", &m->last[i]) ||
        !read_count(path, "max_energy_range_uj", &m->range[i]))
        return false;
    (void)snprintf(m->path[i], sizeof m->path[i], "%s", path);
    m->n++;
    return true;
}

bool energy_open(energy_meter *m, const char *folder) {
    *m = (energy_meter){.n = 0};
    DIR *list = opendir(folder);
    if (list == NULL)
        return false;
    bool good = true;
    for (const struct dirent *entry; good && (entry = readdir(list)) != NULL;) {
        char path[sizeof m->path[0]];
        const int n = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] == '.' || n < 0 || (size_t)n >= sizeof path)
            continue;
        good = !is_package(path) || add_package(m, path);
    }
    (void)closedir(list);
    if (!good)
        m->n = 0;
    return m->n > 0;
}

double energy_joules(energy_meter *m) {
    double joules = 0.0;
    bool good = m->n > 0;
    for (size_t i = 0; i < m->n; i++) {
        uint64_t now;
        if (!read_count(m->path[i], "energy_uj", &now)) {
            good = false;
            continue;
        }
        const uint64_t more = now >= m->last[i] ? now - m->last[i] : m->range[i] - m->last[i] + now;
        joules += 1e-6 * (double)more;
        m->last[i] = now;
    }
    return good ? joules : -1.0;
}
