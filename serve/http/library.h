/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_LIBRARY_H
#define TERN_SERVE_HTTP_LIBRARY_H

/* What is used of libmicrohttpd, which is loaded when a server starts. */

#include <microhttpd.h>

#include "tern/status.h"

#define HTTP_LIBRARY_FUNCTIONS(X)                                                                  \
    X(add_response_header)                                                                         \
    X(create_response_from_buffer)                                                                 \
    X(create_response_from_callback)                                                               \
    X(destroy_response)                                                                            \
    X(get_connection_info)                                                                         \
    X(get_connection_values)                                                                       \
    X(is_feature_supported)                                                                        \
    X(lookup_connection_value)                                                                     \
    X(queue_response)                                                                              \
    X(resume_connection)                                                                           \
    X(start_daemon)                                                                                \
    X(stop_daemon)                                                                                 \
    X(suspend_connection)

#define HTTP_LIBRARY_FIELD(name) __typeof__(MHD_##name) *name;
/* mhd.start_daemon is MHD_start_daemon; NULL until http_library_load has succeeded. */
extern struct http_library { HTTP_LIBRARY_FUNCTIONS(HTTP_LIBRARY_FIELD) } mhd;
#undef HTTP_LIBRARY_FIELD

/* By the thread that starts servers. TERN_ERR_IO: it is not on this machine. */
TERN_MUST_CHECK tern_status http_library_load(tern_error *err);

#endif
