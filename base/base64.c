/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

void tern_base64_quad(const unsigned char *bytes, size_t n, char out[4]) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned second = n > 1 ? bytes[1] : 0, third = n > 2 ? bytes[2] : 0;
    out[0] = digits[bytes[0] >> 2];
    out[1] = digits[(bytes[0] & 3U) << 4 | second >> 4];
    out[2] = n > 1 ? digits[(second & 15U) << 2 | third >> 6] : '=';
    out[3] = n > 2 ? digits[third & 63U] : '=';
}
