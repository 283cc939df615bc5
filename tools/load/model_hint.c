/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/load/model_hint.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/output.h"
#include "tools/hub/hub_cache.h"
#include "tools/hub/short_names.h"

enum { HINT_BYTES = 400, BEGINNING = 64 };

static const char cut_short[] = "if a download was cut short, get the file again";

/* Models that get-model fetches. */
static const char *const fetched[] = {"smollm2", "gemma3-270m", "minilm"};

/* The program that fetches models: in the source tree, or where it is installed. */
static const char *get_model(void) {
    static const char *const places[] = {"scripts/get-model", TERN_GET_MODEL};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (access(places[i], X_OK) == 0)
            return places[i];
    return "tern-get-model";
}

static bool ends_in(const char *path, const char *ending) {
    const size_t n = strlen(path), m = strlen(ending);
    return n >= m && strcasecmp(path + n - m, ending) == 0;
}

/* ---- missing files --------------------------------------------------------------------------- */

static const char *fetched_name(const char *path) {
    for (size_t i = 0; i < sizeof fetched / sizeof *fetched; i++)
        if (strncasecmp(path, fetched[i], strlen(fetched[i])) == 0 && strchr(path, '/') == NULL)
            return fetched[i];
    return NULL;
}

/* A model of the Hub: it has to be fetched, or what was fetched has to be converted. */
static void hint_hub(const hub_name *name, char *hint) {
    char whole[HUB_WHOLE_BYTES], folder[PATH_MAX];
    hub_name_write(name, whole);
    if (name->file[0] == '\0' && hub_cache_find_folder(name, folder))
        (void)snprintf(hint, HINT_BYTES,
                       "its weights in safetensors were fetched; `tern convert %.150s %.100s.gguf` "
                       "makes a model of them",
                       whole, hub_short_name(name));
    else
        (void)snprintf(hint, HINT_BYTES, "`tern pull %.300s` fetches it from the Hugging Face Hub",
                       whole);
}

/* A short name: its file has to be fetched, or the user's line names a file that is missing. */
static void hint_known(const short_name *known, char *hint) {
    if (known->hub.repo[0] == '\0')
        (void)snprintf(hint, HINT_BYTES, "this name stands for %.300s, which is missing",
                       known->path);
    else if (known->path[0] != '\0')
        (void)snprintf(
            hint, HINT_BYTES,
            "`tern pull %s` fetches it from the Hugging Face Hub, and `%s %s` fetches it "
            "in the form that tests use",
            known->name, get_model(), known->name);
    else
        (void)snprintf(hint, HINT_BYTES, "`tern pull %s` fetches it from the Hugging Face Hub",
                       known->name);
}

static void hint_missing(const char *path, bool may_be_prompt, char *hint) {
    char longer[PATH_MAX];
    const int n = snprintf(longer, sizeof longer, "%s.gguf", path);
    const char *name = fetched_name(path);
    hub_name hub;
    short_name known;
    if (short_name_find(path, &known)) {
        hint_known(&known, hint);
        return;
    }
    if (n > 0 && (size_t)n < sizeof longer && access(longer, F_OK) == 0) {
        (void)snprintf(hint, HINT_BYTES, "did you mean %.300s?", longer);
    } else if (name != NULL) {
        (void)snprintf(hint, HINT_BYTES, "`%s %s` fetches it and prints the path of its file",
                       get_model(), name);
    } else if (hub_name_read(path, &hub) && (hub.file[0] != '\0' || !ends_in(path, ".gguf"))) {
        hint_hub(&hub, hint);
    } else if (may_be_prompt && !ends_in(path, ".gguf")) {
        (void)snprintf(hint, HINT_BYTES,
                       "the first argument is the model's file, and a prompt alone needs -p");
    }
}

/* ---- folders --------------------------------------------------------------------------------- */

static bool has(const char *folder, const char *name) {
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    return n > 0 && (size_t)n < sizeof path && access(path, F_OK) == 0;
}

static void hint_folder(const char *path, char *hint) {
    if (has(path, "model.ie.json"))
        return; /* the message is about its contents */
    if (has(path, "config.json")) {
        (void)snprintf(hint, HINT_BYTES,
                       "a Hugging Face folder becomes a model by `tern convert %.200s model.gguf`",
                       path);
    } else {
        (void)snprintf(hint, HINT_BYTES,
                       "-m takes a file; --model-dir %.200s takes the only *.gguf in it", path);
    }
}

/* ---- files of another kind ------------------------------------------------------------------- */

static bool begins(const char *bytes, const char *with) {
    return strncasecmp(bytes, with, strlen(with)) == 0;
}

/* Reads the first bytes of a regular file, terminated; false if it is not one. */
static bool read_beginning(const char *path, char bytes[BEGINNING]) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    memset(bytes, 0, BEGINNING);
    struct stat info;
    const bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    const bool done = regular && read(fd, bytes, BEGINNING - 1) > 0;
    (void)close(fd); /* was only read */
    return done;
}

static void hint_safetensors(const char *path, char *hint) {
    const char *slash = strrchr(path, '/');
    const int n = slash != NULL && slash != path ? (int)(slash - path) : 1;
    (void)snprintf(hint, HINT_BYTES,
                   "weights in safetensors become a model with what lies beside them: "
                   "`tern convert %.*s model.gguf`",
                   n < 200 ? n : 200, slash != NULL ? path : ".");
}

static void hint_content(const char *path, const tern_error *err, char *hint) {
    char bytes[BEGINNING];
    if (!read_beginning(path, bytes))
        return;
    const char *text = bytes + strspn(bytes, " \t\r\n");
    const char *what = NULL;
    if (begins(text, "<!doctype") || begins(text, "<html") || begins(text, "<?xml"))
        what = "this is a web page that was saved in place of the model: download the file itself";
    else if (begins(bytes, "version https://git-lfs"))
        what = "this is a Git LFS pointer in place of the model: `git lfs pull` fetches the file";
    else if (memcmp(bytes, "PK\3\4", 4) == 0)
        what = "this is a ZIP archive (or a PyTorch checkpoint): unpack it, or look for a .gguf";
    else if (memcmp(bytes, "\x1f\x8b", 2) == 0)
        what = "this is compressed by gzip: unpack it";
    else if (ends_in(path, ".safetensors") || (bytes[8] == '{' && bytes[7] == 0))
        hint_safetensors(path, hint);
    else if (memcmp(bytes, "GGUF", 4) != 0)
        what = "tern runs models in GGUF files; `tern convert` makes them of Hugging Face folders";
    else if (err->status == TERN_ERR_TRUNCATED || err->status == TERN_ERR_TENSOR_RANGE ||
             err->status == TERN_ERR_STRING || err->status == TERN_ERR_COUNT)
        what = cut_short;
    else if (err->status == TERN_ERR_ARCH)
        (void)snprintf(hint, HINT_BYTES, "`%s smollm2` fetches a model that runs", get_model());
    else if (err->status == TERN_ERR_PARTS ||
             (err->status == TERN_ERR_IO && strstr(path, "-of-") != NULL))
        what = "all parts of a split model belong in one folder, under the names they came with";
    if (what != NULL)
        (void)snprintf(hint, HINT_BYTES, "%s", what);
}

int complain_of_model(const char *path, bool may_be_prompt, const tern_error *err) {
    char hint[HINT_BYTES] = "";
    struct stat info;
    if (err->status == TERN_ERR_ISA)
        return complain_error(err); /* whatever the file contains */
    if (stat(path, &info) != 0) {
        if (errno == ENOENT || errno == ENAMETOOLONG)
            hint_missing(path, may_be_prompt, hint);
    } else if (S_ISDIR(info.st_mode)) {
        hint_folder(path, hint);
    } else if (S_ISREG(info.st_mode) && info.st_size == 0) {
        (void)snprintf(hint, HINT_BYTES, "%s", cut_short);
    } else if (err->status != TERN_ERR_NOMEM && err->status != TERN_ERR_CHANGED) {
        hint_content(path, err, hint);
    }
    if (hint[0] == '\0')
        return complain_error(err);
    complain("%s; %s", err->message, hint);
    return EXIT_FAILED;
}
