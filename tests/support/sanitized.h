/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_SUPPORT_SANITIZED_H
#define TERN_TESTS_SUPPORT_SANITIZED_H

/* SANITIZED is defined if the address or thread sanitizer replaces malloc. */

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

#endif
