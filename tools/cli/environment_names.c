/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/environment_names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const environment_name others[] = {
    {"NO_COLOR", "any text", "`tern chat`: remarks are not dim"},
    {"XDG_STATE_HOME", "a folder",
     "`tern chat`: its history is in `tern/history` there, without it "
     "in `~/.local/state/tern/history`"},
    {"XDG_CONFIG_HOME", "a folder",
     "short names of models are in `tern/models` there, without it in `~/.config/tern/models`"},
    {"XDG_CACHE_HOME", "a folder",
     "without `TERN_CACHE`, whose folder is also that of `scripts/get-model` and the tests (models "
     "are "
     "in `models` there): `tern` in this folder; without both `~/.cache/tern`"},
    {"HF_HUB_CACHE", "a folder",
     "files of the Hugging Face Hub (`tern pull`); without it `hub` in `HF_HOME`, else "
     "`huggingface/hub` in `XDG_CACHE_HOME` or `~/.cache`"},
    {"HF_HOME", "a folder",
     "holds `hub` and `token` where `HF_HUB_CACHE` and `HF_TOKEN` are not set"},
    {"HF_TOKEN", "a text", "`tern pull`: shown to the Hub"},
    {"HF_TOKEN_PATH", "a file", "`tern pull`: its first line is the token, without `HF_TOKEN`"},
    {"HF_ENDPOINT", "a URL", "`tern pull`: the Hub, in place of `https://huggingface.co`"},
    {"HF_HUB_OFFLINE", "1 or 0", "`tern pull` fetches nothing and shows what is there"},
    {"OLLAMA_HOST", "HOST or HOST:PORT", "`tern serve --ollama`: where it listens"},
    {"LISTEN_FDS", "1",
     "`tern serve`, with its own process in `LISTEN_PID`: it listens on the socket that systemd "
     "hands over ([operating.md](operating.md#a-socket-of-systemd))"},
    {"TERN_PROCESSOR", "a name, see [building.md](building.md#on-another-processor)",
     "take away what that processor lacks of this one's features, as if the program ran there"},
    {"TERN_CUDA_MODULE", "a file", "the CUDA module, in place of the one beside the library"},
    {"TERN_TEST_SMOLLM2", "a file", "the SmolLM2 model of the tests"},
    {"RUNS", "a number",
     "`make bench`, `make bench-model`: rounds of every measurement of a model"},
    {"PROMPTS", "a file", "`make bench`, `make bench-model`: prompts to answer, one a line"},
};

const environment_name *environment_other(size_t i) {
    return i < sizeof others / sizeof *others ? &others[i] : NULL;
}

/* Prefixes of variables that tests and tools of the source tree read. */
static const char *const prefixes[] = {"TERN_TEST_", "TERN_FUZZ_", "TERN_FAULTS_", "TERN_EMULATE"};

/* ---- variables of a container platform ------------------------------------------------------- */

static bool ends_in(const char *text, const char *ending) {
    const size_t n = strlen(text), m = strlen(ending);
    return n >= m && strcmp(text + n - m, ending) == 0;
}

/* True for "_PORT_8080_TCP", and for the same with _PROTO, _PORT or _ADDR after it. */
static bool is_port_of_protocol(const char *name) {
    static const char *const protocols[] = {"_TCP", "_UDP", "_SCTP"};
    static const char *const parts[] = {"", "_PROTO", "_PORT", "_ADDR"};
    const char *port = strstr(name, "_PORT_");
    if (port == NULL || !isdigit((unsigned char)port[strlen("_PORT_")]))
        return false;
    const char *rest = port + strlen("_PORT_") + strspn(port + strlen("_PORT_"), "0123456789");
    for (int i = 0; i < 3; i++) {
        const size_t n = strlen(protocols[i]);
        for (int k = 0; strncmp(rest, protocols[i], n) == 0 && k < 4; k++)
            if (strcmp(rest + n, parts[k]) == 0)
                return true;
    }
    return false;
}

static bool is_service_link(const char *name, const char *value) {
    return ends_in(name, "_SERVICE_HOST") || strstr(name, "_SERVICE_PORT") != NULL ||
           (ends_in(name, "_PORT") && strstr(value, "://") != NULL) || is_port_of_protocol(name);
}

/* ---- names that tern reads ------------------------------------------------------------------- */

/*
 * Calls visit with each name that begins with TERN_ until it returns true; returns whether it did.
 */
static bool each_name(bool (*visit)(const char *name, void *user), void *user) {
    char name[WORD_BYTES];
    for (int id = 0; id < OPT_COUNT; id++) {
        const option_spec *spec = option_describe((option_id)id);
        if (option_variable(spec, name, sizeof name) && visit(name, user))
            return true;
        const char *list = spec->variables;
        while (word_next(&list, name))
            if (visit(name, user))
                return true;
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (visit(others[i].name, user))
            return true;
    return false;
}

static bool is_same(const char *name, void *user) {
    return strcmp(name, (const char *)user) == 0;
}

typedef struct search {
    const char *wanted;
    size_t distance;
    char nearest[WORD_BYTES];
} search;

/* Compares the parts after TERN_. */
static bool is_nearer(const char *name, void *user) {
    search *s = user;
    if (strncmp(name, "TERN_", 5) == 0) {
        const size_t distance = word_distance(s->wanted + 5, name + 5);
        if (distance < s->distance && word_is_near(distance, name + 5)) {
            s->distance = distance;
            (void)snprintf(s->nearest, sizeof s->nearest, "%s", name);
        }
    }
    return false;
}

/* The flag without a variable (one_call) whose variable would have this name; NULL: none. */
static const char *flag_of_one_call(const char *name) {
    for (int id = 0; id < OPT_COUNT; id++) {
        option_spec spec = *option_describe((option_id)id);
        char variable[WORD_BYTES];
        spec.one_call = false;
        if (option_variable(&spec, variable, sizeof variable) && strcmp(variable, name) == 0)
            return spec.name;
    }
    return NULL;
}

static tern_status refuse_name(const char *name, tern_error *err) {
    search s = {.wanted = name, .distance = WORD_BYTES};
    const char *flag = flag_of_one_call(name);
    if (flag != NULL) {
        return tern_fail(err, TERN_ERR_ARG, "%.60s: --%s is for one call, it has no variable", name,
                         flag);
    }
    (void)each_name(is_nearer, &s);
    if (s.nearest[0] != '\0') {
        return tern_fail(err, TERN_ERR_ARG, "unknown variable %.60s, did you mean %s?", name,
                         s.nearest);
    }
    return tern_fail(err, TERN_ERR_ARG, "unknown variable %.60s, see `tern help environment`",
                     name);
}

static bool has_prefix(const char *name) {
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

extern char **environ;

tern_status environment_check(tern_error *err) {
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        const size_t n = strcspn(*entry, "=");
        if (strncmp(*entry, "TERN_", 5) != 0 || (*entry)[n] == '\0' || (*entry)[n + 1] == '\0')
            continue;
        char name[4 * WORD_BYTES]; /* longer names are unknown in any case */
        (void)snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name), *entry);
        if (!each_name(is_same, name) && !has_prefix(name) &&
            !is_service_link(name, *entry + n + 1))
            return refuse_name(name, err);
    }
    return TERN_OK;
}
