/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/pull/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "authoring/convert/hf_quantization.h"
#include "base/in_file.h"
#include "base/json.h"
#include "base/json_tree/read.h"
#include "base/json_tree/write.h"
#include "base/word_list.h"
#include "tern/gguf.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/hub/hub_cache.h"
#include "tools/pull/download.h"
#include "tools/pull/holdings.h"
#include "tools/pull/told.h"
#include "tools/remote/exchange.h"
#include "tools/remote/reply.h"

enum {
    URL_BYTES = 4096,
    TOKEN_BYTES = 512,
    ETAG_BYTES = 129,
    LISTING_BYTES = 16 << 20,
    CONFIG_BYTES = 16 << 20,
    SNAPSHOT_BYTES = PATH_MAX + HUB_FILE_BYTES,
    MOST_MOVES = 5,
    MOST_PARTS = 10000
};

static const char config_name[] = "config.json";
static const char default_endpoint[] = "https://huggingface.co";

/* A repository of the Hub. */
typedef struct hub {
    const options *o;
    const hub_name *name;
    char endpoint[URL_BYTES]; /* without a trailing slash */
    char token[TOKEN_BYTES];  /* "": none */
    exchange *server;
    char repository[PATH_MAX]; /* the local folder for the repository */
    json_t *listing;           /* the Hub's description of it */
    const char **files;        /* [n_files] texts in the listing */
    size_t n_files;
    char commit[41];
} hub;

/* ---- settings -------------------------------------------------------------------------------- */

static bool is_offline(void) {
    const char *value = hub_variable("HF_HUB_OFFLINE");
    return value != NULL && (strcmp(value, "1") == 0 || strcasecmp(value, "true") == 0 ||
                             strcasecmp(value, "yes") == 0 || strcasecmp(value, "on") == 0);
}

/* Reads the first line of the file in which other clients keep a token, if it exists. */
static void read_token_file(hub *h) {
    char path[PATH_MAX];
    const char *said = hub_variable("HF_TOKEN_PATH"), *home = hub_variable("HF_HOME"),
               *cache = hub_variable("XDG_CACHE_HOME"), *own = hub_variable("HOME");
    if (said != NULL)
        (void)snprintf(path, sizeof path, "%s", said);
    else if (home != NULL)
        (void)snprintf(path, sizeof path, "%s/token", home);
    else if (cache != NULL)
        (void)snprintf(path, sizeof path, "%s/huggingface/token", cache);
    else
        (void)snprintf(path, sizeof path, "%s/.cache/huggingface/token", own != NULL ? own : "");
    FILE *file;
    tern_error err = {0};
    if (access(path, F_OK) != 0)
        return;
    if (tern_in_file_open(path, TERN_IN_FILE, &file, &err) != TERN_OK) {
        (void)complain_error(&err);
        return;
    }
    if (fgets(h->token, sizeof h->token, file) == NULL)
        h->token[0] = '\0';
    (void)fclose(file); /* was only read */
}

static int read_settings(hub *h) {
    const char *token = hub_variable("HF_TOKEN"), *endpoint = hub_variable("HF_ENDPOINT");
    if (token != NULL)
        (void)snprintf(h->token, sizeof h->token, "%s", token);
    else
        read_token_file(h);
    h->token[strcspn(h->token, " \t\r\n")] = '\0';
    (void)snprintf(h->endpoint, sizeof h->endpoint, "%s",
                   endpoint != NULL ? endpoint : default_endpoint);
    for (size_t n = strlen(h->endpoint); n > 0 && h->endpoint[n - 1] == '/'; n--)
        h->endpoint[n - 1] = '\0';
    if (strncmp(h->endpoint, "https://", 8) == 0 || strncmp(h->endpoint, "http://", 7) == 0)
        return EXIT_DONE;
    complain("HF_ENDPOINT: '%.100s' is not an address that begins with https:// or http://",
             h->endpoint);
    return EXIT_USAGE;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Appends a path to a URL; characters other than letters, digits and a few signs become %XX. */
static void add_escaped(char *url, size_t size, const char *path) {
    size_t at = strlen(url);
    for (; *path != '\0' && at + 4 < size; path++) {
        const unsigned char c = (unsigned char)*path;
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || strchr("-._~/", c) != NULL;
        at += (size_t)snprintf(url + at, size - at, plain ? "%c" : "%%%02X", c);
    }
}

/* Explains a refusal to the user. */
static int refuse(const hub *h, const exchange_reply *reply, const char *what) {
    tern_error err = {0};
    if (reply->status == 401 || reply->status == 403 || reply->status == 404)
        complain("%s: %ld: %s is not there, or needs %s (HF_TOKEN) of an account that has accepted "
                 "its terms at %s/%s",
                 h->endpoint, reply->status, what,
                 h->token[0] != '\0' ? "another token" : "a token", h->endpoint, h->name->repo);
    else if (reply_refuse(h->endpoint, reply->status, reply->retry_seconds, &reply->refusal,
                          &err) != TERN_OK)
        complain("%s", err.message);
    return EXIT_FAILED;
}

/* Asks until there is an answer below 400. Returns the exit status, after a complaint unless a
 * signal came. */
static int question(const hub *h, const exchange_request *request, exchange_reply *reply,
                    const char *what) {
    for (unsigned attempt = 0;; attempt++) {
        tern_error err = {0};
        double seconds;
        if (exchange_ask(h->server, request, reply, &err) != TERN_OK)
            return complain_error(&err);
        if (reply->interrupted)
            return EXIT_FAILED;
        if (reply->status < 400 && !reply->unwanted)
            return EXIT_DONE;
        const bool again = download_again(reply, attempt, &seconds);
        if (!again)
            (void)refuse(h, reply, what);
        else
            remark("%s: %ld; again in %.1f s\n", h->endpoint, reply->status, seconds);
        text_free(&reply->refusal);
        if (!again || !download_wait(seconds))
            return EXIT_FAILED;
    }
}

/* ---- the list of files ----------------------------------------------------------------------- */

static bool keep_listing(void *user, const char *bytes, size_t size) {
    text *body = user;
    text_add(body, bytes, size);
    return !body->failed && body->size <= LISTING_BYTES;
}

/* Reads the names of files, as far as they are valid paths. */
static int read_listing(hub *h, const text *body) {
    tern_error err = {0};
    h->listing = json_read(body->bytes != NULL ? body->bytes : "", body->size, h->endpoint, &err);
    if (h->listing == NULL)
        return complain_error(&err);
    const json_t *siblings = json_object_get(h->listing, "siblings");
    const char *commit = json_string_value(json_object_get(h->listing, "sha"));
    const size_t n = json_array_size(siblings);
    h->files = calloc(n + 1, sizeof *h->files);
    if (h->files == NULL || commit == NULL || !hub_is_commit(commit)) {
        complain("%s: what it says of %s is not understood", h->endpoint, h->name->repo);
        return EXIT_FAILED;
    }
    memcpy(h->commit, commit, sizeof h->commit);
    for (size_t i = 0; i < n; i++) {
        const char *file =
            json_string_value(json_object_get(json_array_get(siblings, i), "rfilename"));
        if (file != NULL && hub_file_is_sound(file))
            h->files[h->n_files++] = file;
    }
    return EXIT_DONE;
}

static int list_files(hub *h) {
    char url[URL_BYTES] = "/api/models/";
    text body = {0};
    exchange_reply reply = {0};
    add_escaped(url, sizeof url, h->name->repo);
    (void)strncat(url, "/revision/", sizeof url - strlen(url) - 1);
    add_escaped(url, sizeof url, h->name->revision);
    const exchange_request request = {
        .path = url, .follow = true, .sink = keep_listing, .user = &body};
    int status = question(h, &request, &reply, h->name->repo);
    text_free(&reply.refusal);
    if (status == EXIT_DONE)
        status = read_listing(h, &body);
    text_free(&body);
    return status;
}

/* ---- one file -------------------------------------------------------------------------------- */

/* Facts about a file from the headers of a reply. */
typedef struct facts {
    char etag[ETAG_BYTES]; /* of the contents: SHA-256 for large files, another hash for others */
    bool linked;           /* headers of large files have other names (X-Linked-...) */
    uint64_t bytes;
    char size[24];
} facts;

/* Reads "abc", or abc without quotes, or with W/ before it. The result is empty if it cannot be a
 * file's name. */
static void take_etag(facts *f, const char *value) {
    const char *begin = strchr(value, '"') != NULL ? strchr(value, '"') + 1 : value;
    const size_t size = strcspn(begin, "\"");
    const size_t sound =
        strspn(begin, "0123456789abcdefABCDEFghijklmnopqrstuvwxyzGHIJKLMNOPQRSTUVWXYZ-_");
    f->etag[0] = '\0';
    if (size > 0 && size < sizeof f->etag && sound >= size)
        (void)snprintf(f->etag, sizeof f->etag, "%.*s", (int)size, begin);
}

static void take_fact(void *user, const char *name, const char *value) {
    facts *f = user;
    if (strcmp(name, "x-linked-etag") == 0) {
        f->linked = true;
        take_etag(f, value);
    } else if (strcmp(name, "x-linked-size") == 0 ||
               (strcmp(name, "content-length") == 0 && !f->linked)) {
        (void)snprintf(f->size, sizeof f->size, "%s", value);
    } else if (strcmp(name, "etag") == 0 && !f->linked) {
        take_etag(f, value);
    }
}

static bool none_wanted(void *user, const char *bytes, size_t size) {
    (void)user, (void)bytes, (void)size;
    return false;
}

/* Asks for the headers. If the repository was renamed, follows the Hub's link to its new place. */
static int ask_facts(const hub *h, char url[URL_BYTES], const char *file, facts *f) {
    for (unsigned moves = 0; moves < MOST_MOVES; moves++) {
        exchange_reply reply = {0};
        char *end;
        *f = (facts){0};
        const exchange_request request = {
            .path = url, .head = true, .header = take_fact, .sink = none_wanted, .user = f};
        const int status = question(h, &request, &reply, file);
        text_free(&reply.refusal);
        if (status != EXIT_DONE)
            return status;
        if (reply.status >= 300 && !f->linked && exchange_is_own(h->server, reply.place)) {
            (void)snprintf(url, URL_BYTES, "%s", reply.place);
            continue;
        }
        f->bytes = strtoull(f->size, &end, 10);
        if (f->etag[0] != '\0' && f->size[0] >= '0' && f->size[0] <= '9' && *end == '\0')
            return EXIT_DONE;
        break;
    }
    complain("%s: it says neither size nor hash of %s", h->endpoint, file);
    return EXIT_FAILED;
}

/* True if the complete contents are there. */
static bool is_there(const char *blob, uint64_t bytes) {
    struct stat info;
    return stat(blob, &info) == 0 && S_ISREG(info.st_mode) && (uint64_t)info.st_size == bytes;
}

static bool is_sha256(const char *etag) {
    return strspn(etag, "0123456789abcdef") == 64 && etag[64] == '\0';
}

/* Takes the lock of a file's contents, which other clients of the Hub respect, too. -1 after a
 * complaint. */
static int lock(const hub *h, const char *etag) {
    char path[PATH_MAX];
    const char *folder = strrchr(h->repository, '/');
    const int n = snprintf(path, sizeof path, "%.*s/.locks%s/%s.lock",
                           (int)(folder - h->repository), h->repository, folder, etag);
    tern_error err = {0};
    char parent[PATH_MAX];
    if (n <= 0 || n >= PATH_MAX) {
        complain("%.100s: a path that is too long", h->repository);
        return -1;
    }
    (void)snprintf(parent, sizeof parent, "%.*s", (int)(strrchr(path, '/') - path), path);
    if (hub_make_folder(parent, &err) != TERN_OK) {
        (void)complain_error(&err);
        return -1;
    }
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    bool told = false;
    while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && !interrupt_seen()) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            break; /* a file system without locks: at worst another client fetches the same file */
        if (!told)
            remark("%s: another program fetches it; waiting\n", path);
        told = true;
        (void)download_wait(0.2);
    }
    if (fd < 0)
        complain("%s: %s", path, strerror(errno));
    return fd;
}

/* Fetches the contents of a file unless they are there. */
static int fetch_blob(const hub *h, const char *url, const char *file, const facts *f) {
    char blob[PATH_MAX];
    const int n = snprintf(blob, sizeof blob, "%s/blobs/%s", h->repository, f->etag);
    const int held = n > 0 && n < PATH_MAX ? lock(h, f->etag) : -1;
    if (held < 0)
        return EXIT_FAILED;
    int status = interrupt_seen() ? EXIT_FAILED : EXIT_DONE;
    const download d = {.server = h->server,
                        .url = url,
                        .name = file,
                        .place = h->endpoint,
                        .path = blob,
                        .bytes = f->bytes,
                        .sha256 = is_sha256(f->etag) ? f->etag : NULL,
                        .verbose = options_switch(h->o, OPT_VERBOSE),
                        .told = told_bytes,
                        .user = h->o};
    if (status == EXIT_DONE && is_there(blob, f->bytes)) {
        told_size(&d);
    } else if (status == EXIT_DONE) {
        if (wants_remarks(options_switch(h->o, OPT_VERBOSE)))
            remark("%s: %" PRIu64 " MiB\n", file, f->bytes >> 20);
        status = download_file(&d);
    }
    (void)close(held);
    return status;
}

/* Makes the folder of the repository. It is called only when there is something to put there. */
static int make_place(const hub *h) {
    char blobs[PATH_MAX + 8];
    tern_error err = {0};
    (void)snprintf(blobs, sizeof blobs, "%s/blobs", h->repository);
    return hub_make_folder(blobs, &err) == TERN_OK ? EXIT_DONE : complain_error(&err);
}

static int fetch_file(const hub *h, const char *file) {
    char url[URL_BYTES] = "/";
    facts f;
    tern_error err = {0};
    add_escaped(url, sizeof url, h->name->repo);
    (void)strncat(url, "/resolve/", sizeof url - strlen(url) - 1);
    (void)strncat(url, h->commit, sizeof url - strlen(url) - 1);
    (void)strncat(url, "/", sizeof url - strlen(url) - 1);
    add_escaped(url, sizeof url, file);
    int status = ask_facts(h, url, file, &f);
    if (status == EXIT_DONE)
        status = make_place(h);
    if (status == EXIT_DONE)
        status = fetch_blob(h, url, file, &f);
    if (status == EXIT_DONE &&
        hub_cache_link(h->repository, h->commit, file, f.etag, &err) != TERN_OK)
        status = complain_error(&err);
    return status;
}

/* ---- which files ----------------------------------------------------------------------------- */

static void tell_several(const hub *h) {
    complain("%s has several models; which one? tern pull %s:FILE, where FILE is one of",
             h->name->repo, h->name->repo);
    for (size_t i = 0; i < h->n_files; i++) {
        size_t found;
        if (hub_choose(&h->files[i], 1, h->name->file, &found) == 1)
            remark("  %s\n", h->files[i]);
    }
}

static int fetch_parts(const hub *h, const char *file) {
    const unsigned parts = hub_parts(file);
    int status = EXIT_DONE;
    for (unsigned i = 1; i <= parts && i <= MOST_PARTS && status == EXIT_DONE; i++) {
        char part[HUB_FILE_BYTES];
        hub_part(file, i, part);
        status = fetch_file(h, part);
    }
    return status;
}

static int refuse_adapter(const hub *h) {
    complain("%s: is an adapter (LoRA), which changes another model: merge it into that model "
             "with peft, and `tern convert` the folder that comes out",
             h->name->repo);
    return EXIT_FAILED;
}

/* Says why a repository cannot be used. */
static int refuse_repository(const hub *h, const holdings *found) {
    if (found->adapter)
        return refuse_adapter(h);
    complain("%s: it has no model that tern reads, neither *.gguf nor *.safetensors",
             h->name->repo);
    return EXIT_FAILED;
}

static bool has_file(const hub *h, const char *name) {
    for (size_t i = 0; i < h->n_files; i++)
        if (strcmp(h->files[i], name) == 0)
            return true;
    return false;
}

/* The path of a file that was fetched. */
static void path_of(const hub *h, const char *file, char path[SNAPSHOT_BYTES]) {
    (void)snprintf(path, SNAPSHOT_BYTES, "%s/snapshots/%s/%s", h->repository, h->commit, file);
}

/* Fetches config.json, and refuses weights in a form that tern does not read before they come. */
static int check_form(const hub *h) {
    char path[SNAPSHOT_BYTES], why[HF_QUANTIZATION_BYTES];
    tern_json json = {NULL, NULL};
    tern_error err = {0};
    if (!has_file(h, config_name))
        return EXIT_DONE;
    int status = fetch_file(h, config_name);
    if (status != EXIT_DONE)
        return status;
    path_of(h, config_name, path);
    if (tern_json_read(path, CONFIG_BYTES, &json, &err) != TERN_OK)
        return complain_error(&err);
    if (hf_quantization_is_foreign(json.values, why)) {
        complain("%s: %s", h->name->repo, why);
        status = EXIT_FAILED;
    }
    tern_json_free(&json);
    return status;
}

static int fetch_weights(const hub *h) {
    const holdings found = holdings_of(h->files, h->n_files);
    if (found.weights == 0 && !found.consolidated)
        return refuse_repository(h, &found);
    int status = check_form(h);
    for (size_t i = 0; i < h->n_files && status == EXIT_DONE; i++) {
        const char *file = h->files[i];
        if (holdings_want(&found, file) && strcmp(file, config_name) != 0)
            status = fetch_file(h, file);
    }
    return status;
}

/* Says what to do with what was fetched. */
static void tell_next(const hub *h, bool weights) {
    char whole[HUB_WHOLE_BYTES];
    hub_name_write(h->name, whole);
    if (options_switch(h->o, OPT_JSON))
        return;
    if (weights)
        remark("next: tern convert %s %s.gguf\n", whole, hub_short_name(h->name));
    else
        remark("next: tern run -m %s -p TEXT\n", whole);
}

/* True if a GGUF file that was fetched holds changes to another model's weights. */
static bool holds_adapter(const hub *h, const char *file) {
    static const char adapter[] = "adapter";
    char path[SNAPSHOT_BYTES];
    tern_gguf *opened = NULL;
    tern_span type = {"", 0};
    path_of(h, file, path);
    if (tern_gguf_open(path, &opened, NULL) != TERN_OK)
        return false; /* who runs it will be told why */
    (void)tern_gguf_string(opened, "general.type", &type, NULL);
    const bool is = type.size == sizeof adapter - 1 && memcmp(type.data, adapter, type.size) == 0;
    tern_gguf_close(&opened);
    return is;
}

static int fetch_chosen(const hub *h) {
    size_t found = 0;
    const size_t meant = hub_choose(h->files, h->n_files, h->name->file, &found);
    if (meant > 1) {
        tell_several(h);
        return EXIT_USAGE;
    }
    if (meant == 0 && h->name->file[0] != '\0') {
        complain("%s: none of its models has '%s' in its name", h->name->repo, h->name->file);
        return EXIT_FAILED;
    }
    const bool weights = meant == 0;
    char path[SNAPSHOT_BYTES];
    int status = meant == 1 ? fetch_parts(h, h->files[found]) : fetch_weights(h);
    tern_error err = {0};
    if (status == EXIT_DONE && meant == 1 && holds_adapter(h, h->files[found]))
        return refuse_adapter(h);
    if (status == EXIT_DONE)
        (void)told_step(h->o, "writing manifest");
    if (status == EXIT_DONE &&
        hub_cache_refer(h->repository, h->name->revision, h->commit, &err) != TERN_OK)
        status = complain_error(&err);
    if (status == EXIT_DONE) {
        path_of(h, weights ? "" : h->files[found], path);
        path[strlen(path) - weights] = '\0'; /* of a folder, without the slash */
        told_path(h->o, path);
        tell_next(h, weights);
    }
    return status;
}

/* ---- the whole model ------------------------------------------------------------------------- */

/* Finds the model among the local files, without asking the Hub. */
static int find_offline(const hub *h) {
    char path[PATH_MAX];
    tern_error err = {0};
    if (hub_cache_find(h->name, path, &err) != TERN_OK) {
        complain("%s (HF_HUB_OFFLINE is set: nothing is fetched)", err.message);
        return EXIT_FAILED;
    }
    told_path(h->o, path);
    return EXIT_DONE;
}

static int open_hub(hub *h) {
    tern_error err = {0};
    const int status = read_settings(h);
    if (status != EXIT_DONE)
        return status;
    const exchange_config config = {.base = h->endpoint,
                                    .key = h->token[0] != '\0' ? h->token : NULL,
                                    .ca_path = options_text(h->o, OPT_TLS_CA),
                                    .idle_seconds = (unsigned)options_integer(h->o, OPT_TIMEOUT)};
    if (exchange_open(&config, &h->server, &err) != TERN_OK ||
        hub_cache_repository(h->name->repo, h->repository, &err) != TERN_OK)
        return complain_error(&err);
    return EXIT_DONE;
}

int fetch_model(const options *o, const hub_name *name) {
    hub h = {.o = o, .name = name};
    if (is_offline())
        return find_offline(&h);
    interrupt_catch();
    int status = open_hub(&h);
    if (status == EXIT_DONE)
        (void)told_step(h.o, "pulling manifest");
    if (status == EXIT_DONE)
        status = list_files(&h);
    if (status == EXIT_DONE)
        status = fetch_chosen(&h);
    exchange_close(&h.server);
    free(h.files);
    json_decref(h.listing);
    return interrupt_status(status);
}
