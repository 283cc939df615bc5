/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/tune/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash64.h"
#include "base/json.h"
#include "dispatch/cpu.h"
#include "kernels/facts.h"
#include "threads/team.h"

/* ---- the machine ----------------------------------------------------------------------------- */

/* Copies a text, with '?' for everything but printable characters that JSON need not escape. */
static void copy_plain(const char *text, char *out, size_t size) {
    size_t n = 0;
    for (; text[n] != '\0' && n + 1 < size; n++)
        out[n] =
            text[n] >= ' ' && text[n] <= '~' && text[n] != '"' && text[n] != '\\' ? text[n] : '?';
    out[n] = '\0';
}

static uint64_t hash_table(const tern_guard *guard) {
    tern_hash64 h;
    tern_hash64_start(&h);
    for (size_t i = 0; i < guard->count; i++) {
        const tern_kernel_row *kernel = &guard->table[i];
        const uint64_t facts[] = {kernel->op,    kernel->format,    kernel->layout,
                                  kernel->needs, kernel->rows_tile, kernel->tokens_tile};
        tern_hash64_add(&h, kernel->name, strlen(kernel->name) + 1);
        tern_hash64_add(&h, facts, sizeof facts);
    }
    return tern_hash64_value(&h);
}

tern_tune_machine tern_tune_this_machine(const tern_guard *guard) {
    tern_tune_machine m = {
        .features = guard->mask, .cores = tern_processor_count(), .table = hash_table(guard)};
    copy_plain(tern_cpu_name(), m.processor, sizeof m.processor);
    copy_plain(tern_version(), m.version, sizeof m.version);
    return m;
}

/* Prints the members that tell machines apart, as they stand in the file and as they are hashed. */
static int describe(const tern_tune_machine *m, char *text, size_t size) {
    return snprintf(text, size,
                    "\"kind\":\"tern tuning 2\",\"processor\":\"%s\",\"features\":\"%" PRIx64
                    "\",\"cores\":%u,\"version\":\"%s\",\"table\":\"%016" PRIx64 "\"",
                    m->processor, m->features, m->cores, m->version, m->table);
}

void tern_tune_name(const tern_tune_machine *m, char name[TERN_TUNE_NAME_BYTES]) {
    char text[512];
    const int n = describe(m, text, sizeof text);
    (void)snprintf(name, TERN_TUNE_NAME_BYTES, "tuning-%016" PRIx64,
                   tern_hash64_of(text, (size_t)n));
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The end of the file: the hash of everything before it. */
#define CHECK_FORMAT ",\"check\":\"%016" PRIx64 "\"}\n"
enum { CHECK_BYTES = 10 + 16 + 3 };

static bool is_whole(const char *bytes, size_t size) {
    char expected[CHECK_BYTES + 1];
    if (size < CHECK_BYTES)
        return false;
    (void)snprintf(expected, sizeof expected, CHECK_FORMAT,
                   tern_hash64_of(bytes, size - CHECK_BYTES));
    return memcmp(bytes + size - CHECK_BYTES, expected, CHECK_BYTES) == 0;
}

static bool number(const tern_json_value *v, const char *key, int64_t most, int64_t *out) {
    return tern_json_integer(tern_json_get(v, key), out) && *out >= 1 && *out <= most;
}

/* The kernel of that name; NULL for anything else. */
static const tern_kernel_row *kernel_named(const tern_guard *guard, const tern_json_value *v) {
    for (size_t i = 0; i < guard->count; i++)
        if (tern_json_is_string(v, guard->table[i].name))
            return &guard->table[i];
    return NULL;
}

/* Reads a choice. False: the guard's kernels do not allow it; another build may have meant it. */
static bool read_choice(const tern_guard *guard, const tern_json_value *v, tern_tune_choice *out) {
    int64_t rows, cols, threads, stream;
    if (!number(v, "rows", INT64_C(1) << 40, &rows) ||
        !number(v, "cols", INT64_C(1) << 40, &cols) ||
        !number(v, "threads", UINT32_MAX, &threads) || !number(v, "stream", INT64_MAX, &stream))
        return false;
    int format = 0;
    while (format < TERN_FORMAT_COUNT &&
           !tern_json_is_string(tern_json_get(v, "format"),
                                tern_format_describe((tern_format)format)->name))
        format++;
    *out = (tern_tune_choice){.key = {.format = (tern_format)format,
                                      .rows = (size_t)rows,
                                      .cols = (size_t)cols,
                                      .threads = (uint32_t)threads,
                                      .stream = (uint64_t)stream},
                              .gemv = kernel_named(guard, tern_json_get(v, "gemv")),
                              .gemm = kernel_named(guard, tern_json_get(v, "gemm"))};
    int64_t noise;
    if (number(v, "noise", TERN_LAYOUT_RATIO_LIMIT, &noise))
        out->noise = (uint32_t)noise;
    if (format == TERN_FORMAT_COUNT || out->gemv == NULL || out->gemm == NULL)
        return false;
    out->layout = out->gemv->layout;
    return tern_tune_is_possible(guard, out);
}

/* True if the document is of this machine and build. */
static bool is_of(const tern_json_value *v, const tern_tune_machine *m) {
    char features[20], table[20];
    int64_t cores;
    (void)snprintf(features, sizeof features, "%" PRIx64, m->features);
    (void)snprintf(table, sizeof table, "%016" PRIx64, m->table);
    return tern_json_is_string(tern_json_get(v, "kind"), "tern tuning 2") &&
           tern_json_is_string(tern_json_get(v, "processor"), m->processor) &&
           tern_json_is_string(tern_json_get(v, "features"), features) &&
           number(v, "cores", UINT32_MAX, &cores) && (uint32_t)cores == m->cores &&
           tern_json_is_string(tern_json_get(v, "version"), m->version) &&
           tern_json_is_string(tern_json_get(v, "table"), table);
}

static tern_status read_choices(const tern_guard *guard, const tern_json_value *list,
                                tern_tuning *out, tern_error *err) {
    tern_status status = TERN_OK;
    const tern_json_value *v = list + 1;
    const uint32_t n = list->count < TERN_TUNE_FILE_CHOICES ? list->count : TERN_TUNE_FILE_CHOICES;
    for (uint32_t i = 0; status == TERN_OK && i < n; i++, v += v->size) {
        tern_tune_choice choice;
        if (read_choice(guard, v, &choice))
            status = tern_tuning_set(out, &choice, err);
    }
    return status;
}

/* Reads the speeds of kinds of cores, in falling order of the announced ones. None if the list is
 * anything else. */
static tern_core_speeds read_cores(const tern_json_value *list) {
    const tern_core_speeds none = {.n = 0};
    tern_core_speeds s = none;
    if (list == NULL || list->type != TERN_JSON_ARRAY || list->count > TERN_CORE_KINDS)
        return none;
    const tern_json_value *v = list + 1;
    for (; s.n < list->count; s.n++, v += v->size) {
        int64_t announced, measured;
        if (!number(v, "announced", s.n > 0 ? s.announced[s.n - 1] - 1 : TERN_FULL_SPEED,
                    &announced) ||
            !number(v, "measured", TERN_FULL_SPEED, &measured))
            return none;
        s.announced[s.n] = (uint32_t)announced;
        s.measured[s.n] = (uint32_t)measured;
    }
    return s;
}

/* Reads a number that may be 0. */
static bool count(const tern_json_value *v, const char *key, int64_t most, int64_t *out) {
    return tern_json_integer(tern_json_get(v, key), out) && *out >= 0 && *out <= most;
}

/* Reads the figures of passes of several tokens, from few to many. Any other list is ignored. */
static void read_passes(const tern_json_value *list, tern_layout_probe *out) {
    int64_t ratio[TERN_LAYOUT_PASSES];
    if (list == NULL || list->type != TERN_JSON_ARRAY || list->count != TERN_LAYOUT_PASSES)
        return;
    const tern_json_value *v = list + 1;
    for (size_t i = 0; i < TERN_LAYOUT_PASSES; i++, v += v->size)
        if (!tern_json_integer(v, &ratio[i]) || ratio[i] < 0 || ratio[i] > TERN_LAYOUT_RATIO_LIMIT)
            return;
    for (size_t i = 0; i < TERN_LAYOUT_PASSES; i++)
        out->passes[i] = (uint32_t)ratio[i];
}

/* A dense layout by its name; TERN_LAYOUT_NONE for other names. */
static tern_layout dense_layout(const tern_json_value *v) {
    for (int i = 0; i < TERN_LAYOUT_COUNT; i++)
        if (tern_layout_facts_of((tern_layout)i)->dense &&
            tern_json_is_string(v, tern_layout_name((tern_layout)i)))
            return (tern_layout)i;
    return TERN_LAYOUT_NONE;
}

/* Reads probes of layouts, and leaves out invalid ones. */
static void read_layouts(const tern_json_value *list, tern_layout_probes *out) {
    if (list == NULL || list->type != TERN_JSON_ARRAY)
        return;
    const tern_json_value *v = list + 1;
    for (uint32_t i = 0; i < list->count && i < TERN_LAYOUT_PROBES; i++, v += v->size) {
        int64_t threads, stream, ratio, noise;
        const tern_layout dense = dense_layout(tern_json_get(v, "dense"));
        if (dense == TERN_LAYOUT_NONE || !number(v, "threads", UINT32_MAX, &threads) ||
            !number(v, "stream", INT64_MAX, &stream) ||
            !number(v, "ratio", TERN_LAYOUT_RATIO_LIMIT, &ratio) ||
            !number(v, "noise", TERN_LAYOUT_RATIO_LIMIT, &noise))
            continue;
        tern_layout_probe probe = {.threads = (uint32_t)threads,
                                   .stream = (uint64_t)stream,
                                   .dense = dense,
                                   .ratio = (uint32_t)ratio,
                                   .noise = (uint32_t)noise};
        read_passes(tern_json_get(v, "passes"), &probe);
        tern_layout_keep(out, &probe);
    }
}

/* Reads the times of runs, and leaves out invalid ones. */
static void read_paces(const tern_json_value *list, tern_tune_paces *out) {
    if (list == NULL || list->type != TERN_JSON_ARRAY)
        return;
    const tern_json_value *v = list + 1;
    for (uint32_t i = 0; i < list->count && i < TERN_TUNE_PACES; i++, v += v->size) {
        int64_t threads, shape, table, chosen, runs, rechecks;
        if (!number(v, "threads", UINT32_MAX, &threads) || !count(v, "shape", INT64_MAX, &shape) ||
            !count(v, "table_ns", TERN_TUNE_PACE_LIMIT, &table) ||
            !count(v, "chosen_ns", TERN_TUNE_PACE_LIMIT, &chosen) ||
            !count(v, "runs", TERN_TUNE_PACE_RUNS, &runs) ||
            !count(v, "rechecks", TERN_TUNE_RECHECKS, &rechecks))
            continue;
        const tern_tune_pace pace = {.threads = (uint32_t)threads,
                                     .shape = (uint64_t)shape,
                                     .table_ns = (uint64_t)table,
                                     .chosen_ns = (uint64_t)chosen,
                                     .runs = (uint32_t)runs,
                                     .rechecks = (uint32_t)rechecks};
        tern_tune_pace_keep(out, &pace);
    }
}

tern_status tern_tune_parse(char *bytes, size_t size, const char *name,
                            const tern_tune_machine *machine, const tern_guard *guard,
                            tern_tuning *out, tern_error *err) {
    tern_json json = {0};
    if (!is_whole(bytes, size)) {
        free(bytes);
        return tern_fail(err, TERN_ERR_JSON, "%s: %zu bytes that do not end with their hash", name,
                         size);
    }
    tern_status status = tern_json_parse(bytes, size, name, &json, err);
    if (status != TERN_OK)
        return status;
    const tern_json_value *list = tern_json_get(json.values, "choices");
    if (!is_of(json.values, machine) || list == NULL || list->type != TERN_JSON_ARRAY)
        status = tern_fail(err, TERN_ERR_JSON, "%s: of another machine or build", name);
    else
        status = read_choices(guard, list, out, err);
    if (status == TERN_OK) {
        out->cores = read_cores(tern_json_get(json.values, "speeds"));
        read_layouts(tern_json_get(json.values, "layouts"), &out->layouts);
        read_paces(tern_json_get(json.values, "paces"), &out->paces);
    }
    tern_json_free(&json);
    return status;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Bytes of the longest choice: five numbers, a format, names of two kernels. The list of speeds, of
 * at most 8 kinds, also fits. */
enum { CHOICE_BYTES = 512 };

static int print_choice(const tern_tune_choice *c, char *text, size_t size) {
    return snprintf(
        text, size,
        "{\"format\":\"%s\",\"rows\":%zu,\"cols\":%zu,\"threads\":%u,\"stream\":%" PRIu64
        ",\"gemv\":\"%s\",\"gemm\":\"%s\",\"noise\":%u}",
        tern_format_describe(c->key.format)->name, c->key.rows, c->key.cols, c->key.threads,
        c->key.stream, c->gemv->name, c->gemm->name, c->noise);
}

static size_t print_cores(const tern_core_speeds *s, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "],\"speeds\":[");
    for (uint32_t k = 0; k < s->n; k++)
        used += (size_t)snprintf(text + used, size - used, "%s{\"announced\":%u,\"measured\":%u}",
                                 k > 0 ? "," : "", s->announced[k], s->measured[k]);
    return used;
}

static size_t print_layouts(const tern_layout_probes *probes, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "],\"layouts\":[");
    for (size_t i = 0; i < probes->n; i++) {
        const tern_layout_probe *p = &probes->list[i];
        used +=
            (size_t)snprintf(text + used, size - used,
                             "%s{\"threads\":%u,\"stream\":%" PRIu64
                             ",\"dense\":\"%s\",\"ratio\":%u,\"noise\":%u,\"passes\":[%u,%u]}",
                             i > 0 ? "," : "", p->threads, p->stream, tern_layout_name(p->dense),
                             p->ratio, p->noise, p->passes[0], p->passes[1]);
    }
    return used;
}

static size_t print_paces(const tern_tune_paces *paces, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "],\"paces\":[");
    for (size_t i = 0; i < paces->n; i++) {
        const tern_tune_pace *p = &paces->list[i];
        used += (size_t)snprintf(text + used, size - used,
                                 "%s{\"threads\":%u,\"shape\":%" PRIu64 ",\"table_ns\":%" PRIu64
                                 ",\"chosen_ns\":%" PRIu64 ",\"runs\":%u,\"rechecks\":%u}",
                                 i > 0 ? "," : "", p->threads, p->shape, p->table_ns, p->chosen_ns,
                                 p->runs, p->rechecks);
    }
    return used;
}

char *tern_tune_text(const tern_tune_machine *machine, const tern_tuning *tuning, size_t *size) {
    /* Only the newest choices, if there are too many. */
    const size_t n = tuning->n < TERN_TUNE_FILE_CHOICES ? tuning->n : TERN_TUNE_FILE_CHOICES;
    const size_t room = (n + 4 + TERN_LAYOUT_PROBES + TERN_TUNE_PACES) * CHOICE_BYTES;
    char *text = malloc(room);
    if (text == NULL)
        return NULL;
    size_t used = 0;
    text[used++] = '{';
    used += (size_t)describe(machine, text + used, room - used);
    used += (size_t)snprintf(text + used, room - used, ",\"choices\":[");
    for (size_t i = tuning->n - n; i < tuning->n; i++) {
        used += (size_t)snprintf(text + used, room - used, i > tuning->n - n ? ",\n" : "\n");
        used += (size_t)print_choice(&tuning->choices[i], text + used, room - used);
    }
    used += print_cores(&tuning->cores, text + used, room - used);
    used += print_layouts(&tuning->layouts, text + used, room - used);
    used += print_paces(&tuning->paces, text + used, room - used);
    used += (size_t)snprintf(text + used, room - used, "]");
    used += (size_t)snprintf(text + used, room - used, CHECK_FORMAT, tern_hash64_of(text, used));
    *size = used;
    return text;
}

/* ---- in the folder --------------------------------------------------------------------------- */

/* The bytes of a file of the folder, from malloc; NULL when it is missing or too large. */
static char *read_file(const tern_cache_folder *folder, const char *name, size_t *size) {
    tern_file_map *map = NULL;
    char *bytes = NULL;
    if (tern_cache_folder_map(folder, name, &map, NULL) != TERN_OK)
        return NULL;
    *size = tern_file_map_size(map);
    if (*size <= TERN_TUNE_FILE_LIMIT && (bytes = malloc(*size)) != NULL)
        memcpy(bytes, tern_file_map_bytes(map), *size);
    tern_file_map_close(&map);
    return bytes;
}

void tern_tune_load(const tern_cache_folder *folder, const tern_guard *guard, tern_tuning *tuning) {
    const tern_tune_machine machine = tern_tune_this_machine(guard);
    char name[TERN_TUNE_NAME_BYTES];
    size_t size;
    tern_tune_name(&machine, name);
    char *bytes = read_file(folder, name, &size);
    if (bytes != NULL &&
        tern_tune_parse(bytes, size, name, &machine, guard, tuning, NULL) != TERN_OK)
        tern_tuning_free(tuning);
}

static tern_status write_file(const tern_cache_folder *folder, const char *name, const char *text,
                              size_t size, tern_error *err) {
    tern_out_file *file = NULL;
    tern_status status = tern_cache_folder_create(folder, name, &file, err);
    if (status == TERN_OK)
        status = tern_out_file_write(file, text, size, err);
    if (status == TERN_OK)
        return tern_out_file_commit(&file, err);
    tern_out_file_discard(&file);
    return status;
}

/* Adds a choice to those of the folder. If it replaces another, the times of runs with that are
 * forgotten. */
static tern_status add_choice(tern_tuning *all, const tern_tune_choice *choice, tern_error *err) {
    const tern_tune_choice *before = tern_tuning_find(all, &choice->key);
    if (before != NULL && (before->gemv != choice->gemv || before->gemm != choice->gemm))
        for (size_t i = 0; i < all->paces.n; i++)
            if (all->paces.list[i].threads == choice->key.threads)
                tern_tune_pace_renew(&all->paces.list[i]);
    return tern_tuning_set(all, choice, err);
}

tern_status tern_tune_save(const tern_cache_folder *folder, const tern_guard *guard,
                           const tern_tuning *tuning, tern_error *err) {
    const tern_tune_machine machine = tern_tune_this_machine(guard);
    char name[TERN_TUNE_NAME_BYTES];
    tern_tuning all = {.n = 0};
    tern_status status = TERN_OK;
    size_t size;
    tern_tune_name(&machine, name);
    tern_tune_load(folder, guard, &all);
    for (size_t i = 0; status == TERN_OK && i < tuning->n; i++)
        status = add_choice(&all, &tuning->choices[i], err);
    for (size_t i = 0; i < tuning->paces.n; i++)
        tern_tune_pace_keep(&all.paces, &tuning->paces.list[i]);
    if (tuning->cores.n > 0)
        all.cores = tuning->cores;
    for (size_t i = 0; i < tuning->layouts.n; i++)
        if (tern_layout_is_sure(&tuning->layouts.list[i]))
            tern_layout_keep(&all.layouts, &tuning->layouts.list[i]);
    char *text = status == TERN_OK ? tern_tune_text(&machine, &all, &size) : NULL;
    if (status == TERN_OK && text == NULL)
        status = tern_fail(err, TERN_ERR_NOMEM, "no memory to write %zu choices of kernels", all.n);
    if (text != NULL)
        status = write_file(folder, name, text, size, err);
    free(text);
    tern_tuning_free(&all);
    return status;
}
