/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_STATUS_H
#define TERN_STATUS_H

/*
 * Errors are values. Every fallible function of tern returns a tern_status and, where the
 * caller passes a tern_error, a one-line message that names the file, the thing and the number
 * that is wrong. The library never prints and never exits.
 */

/*
 * Everything between TERN_API_BEGIN and TERN_API_END has C linkage and is exported by the shared
 * libraries, which hide everything else. TERN_MUST_CHECK: the compiler complains when a status is
 * thrown away.
 */
#ifdef __cplusplus
#define TERN_EXTERN_C_BEGIN extern "C" {
#define TERN_EXTERN_C_END }
#else
#define TERN_EXTERN_C_BEGIN
#define TERN_EXTERN_C_END
#endif
#if defined(__GNUC__)
#define TERN_API_BEGIN TERN_EXTERN_C_BEGIN _Pragma("GCC visibility push(default)")
#define TERN_API_END _Pragma("GCC visibility pop") TERN_EXTERN_C_END
#define TERN_MUST_CHECK __attribute__((warn_unused_result))
#define TERN_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define TERN_API_BEGIN TERN_EXTERN_C_BEGIN
#define TERN_API_END TERN_EXTERN_C_END
#define TERN_MUST_CHECK
#define TERN_PRINTF(fmt, first)
#endif

TERN_API_BEGIN

/* "MAJOR.MINOR.PATCH" of the library. */
const char *tern_version(void);

/* One code per kind of refusal. X(name, value, text): the text is what tern_status_str returns. */
#define TERN_STATUS_LIST(X)                                                                        \
    X(OK, 0, "no error")                                                                           \
    X(ERR_ARG, 1, "invalid argument")                                                              \
    X(ERR_NOMEM, 2, "out of memory")                                                               \
    X(ERR_ARENA, 3, "arena exhausted")                                                             \
    X(ERR_IO, 4, "file cannot be opened, read or written")                                         \
    X(ERR_NULL, 5, "required pointer is NULL")                                                     \
    X(ERR_CHANGED, 6, "file changed while it was in use")                                          \
    X(ERR_BUFFER, 7, "buffer is too small")                                                        \
    X(ERR_NAME, 8, "unknown name")                                                                 \
    X(ERR_STATE, 9, "not possible in this state")                                                  \
    X(ERR_TRUNCATED, 10, "file ends too early")                                                    \
    X(ERR_MAGIC, 11, "not a GGUF file")                                                            \
    X(ERR_VERSION, 12, "unsupported GGUF version")                                                 \
    X(ERR_ENDIAN, 13, "big-endian GGUF file")                                                      \
    X(ERR_COUNT, 14, "count exceeds what the file can hold")                                       \
    X(ERR_STRING, 15, "string exceeds what the file can hold")                                     \
    X(ERR_KEY_DUPLICATE, 16, "duplicate metadata key")                                             \
    X(ERR_KEY_TYPE, 17, "metadata key has the wrong type")                                         \
    X(ERR_KEY_MISSING, 18, "required metadata key is missing")                                     \
    X(ERR_KEY_RANGE, 19, "metadata value out of range")                                            \
    X(ERR_ALIGNMENT, 20, "invalid alignment")                                                      \
    X(ERR_TENSOR_DUPLICATE, 21, "duplicate tensor name")                                           \
    X(ERR_TENSOR_SHAPE, 22, "tensor has an unusable shape")                                        \
    X(ERR_TENSOR_TYPE, 23, "tensor type is not supported")                                         \
    X(ERR_TENSOR_OFFSET, 24, "tensor offset is misaligned")                                        \
    X(ERR_TENSOR_RANGE, 25, "tensor lies outside the file")                                        \
    X(ERR_TENSOR_OVERLAP, 26, "tensors overlap")                                                   \
    X(ERR_TENSOR_MISSING, 27, "required tensor is missing")                                        \
    X(ERR_TENSOR_DATA, 28, "tensor holds invalid data")                                            \
    X(ERR_PARTS, 29, "parts of a split model do not fit together")                                 \
    X(ERR_ARCH, 30, "model architecture is not supported")                                         \
    X(ERR_CONFIG, 31, "inconsistent model configuration")                                          \
    X(ERR_NO_KV_HEADS, 32, "model has no key/value heads")                                         \
    X(ERR_HEADS, 33, "heads cannot share the key/value heads")                                     \
    X(ERR_NO_SIZE, 34, "model has no layers, heads or width")                                      \
    X(ERR_TILES, 38, "tile sizes of a tensor are not known")                                       \
    X(ERR_TOKENIZER_MISSING, 40, "model file has no tokenizer")                                    \
    X(ERR_TOKENIZER_MODEL, 41, "tokenizer model is not supported")                                 \
    X(ERR_TOKENIZER_PRE, 42, "pre-tokenizer is not supported")                                     \
    X(ERR_TOKENIZER_DATA, 43, "tokenizer data is inconsistent")                                    \
    X(ERR_TOKENIZER_PATTERN, 44, "a pattern of the tokenizer takes too many steps")                \
    X(ERR_JSON, 45, "malformed JSON")                                                              \
    X(ERR_CHAT, 46, "the chat format has no place for this")                                       \
    X(ERR_TEMPLATE, 47, "chat template cannot be run")                                             \
    X(ERR_GRAMMAR, 48, "grammar or schema is not supported")                                       \
    X(ERR_TOKEN_RANGE, 50, "token id out of range")                                                \
    X(ERR_CONTEXT, 51, "sequence exceeds the context")                                             \
    X(ERR_EMPTY, 52, "empty sequence")                                                             \
    X(ERR_NONFINITE, 53, "numbers are not finite")                                                 \
    X(ERR_SESSION, 54, "not a session file, or a damaged one")                                     \
    X(ERR_SESSION_MODEL, 55, "session file of another model or cache format")                      \
    X(ERR_IMAGE, 56, "not a packed image of these weights, or a damaged one")                      \
    X(ERR_FULL, 57, "no room after this position of the context")                                  \
    X(ERR_POSITION, 58, "position after the end of the sequence")                                  \
    X(ERR_CACHE_MEMORY, 59, "no memory for the key/value cache")                                   \
    X(ERR_ISA, 60, "unknown or unsupported instruction set")                                       \
    X(ERR_KERNEL, 61, "no kernel for this operation and format")                                   \
    X(ERR_UNALIGNED, 62, "buffer is misaligned")                                                   \
    X(ERR_ACCURACY, 63, "results differ by more than is allowed")                                  \
    X(ERR_STRICT, 64, "strict mode refuses what would stand in")                                   \
    X(ERR_PLACES, 65, "no such NUMA node, or no hwloc to bind with")                               \
    X(ERR_SCRATCH_MEMORY, 66, "no memory for a session's scratch")                                 \
    X(ERR_EXISTS, 67, "file exists already, or is being read, and is not replaced")                \
    X(ERR_QUEUE, 68, "too many requests wait")                                                     \
    X(ERR_DEVICE, 70, "device cannot be used")                                                     \
    X(ERR_UNIMPLEMENTED, 71, "not implemented on this device")                                     \
    X(ERR_RANKS, 72, "another rank failed, or does not answer")

typedef enum tern_status {
#define TERN_STATUS_ENUM(name, value, text) TERN_##name = (value),
    TERN_STATUS_LIST(TERN_STATUS_ENUM)
#undef TERN_STATUS_ENUM
} tern_status;

enum { TERN_ERROR_MESSAGE_BYTES = 512 };

/* Receives a message. Zero-initialise it; it is written only when a call fails. */
typedef struct tern_error {
    tern_status status;
    char message[TERN_ERROR_MESSAGE_BYTES]; /* one line of UTF-8, no newline, always terminated */
} tern_error;

/* Short fixed English text for a status; never NULL, static storage. */
const char *tern_status_str(tern_status status);

/*
 * Records status and a printf-formatted message in *err and returns status, so that a failing
 * function can `return tern_fail(err, TERN_ERR_IO, "%s: ...", path);`. err may be NULL. Control
 * characters in the formatted text are replaced by '?' (names of files and tensors may hold any
 * byte).
 */
tern_status tern_fail(tern_error *err, tern_status status, const char *format, ...)
    TERN_PRINTF(3, 4);

TERN_API_END

#endif
