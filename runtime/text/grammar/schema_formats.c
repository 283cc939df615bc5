/* SPDX-License-Identifier: Apache-2.0 */

/* Formats of strings as patterns. */

#include <string.h>

#include "runtime/text/grammar/schema.h"

/* ---- days and times (RFC 3339) --------------------------------------------------------------- */

#define YEAR "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
#define LEAP "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
#define DATE                                                                                       \
    "(?:" YEAR "-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|"                                \
    "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|" LEAP "-02-29)"
#define TIME                                                                                       \
    "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?"                                 \
    "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
#define SECONDS "[0-9]+S"
#define MINUTES "[0-9]+M(?:" SECONDS ")?"
#define CLOCK "T(?:[0-9]+H(?:" MINUTES ")?|" MINUTES "|" SECONDS ")"
#define DAYS "[0-9]+D"
#define MONTHS "[0-9]+M(?:" DAYS ")?"
#define CALENDAR "(?:[0-9]+Y(?:" MONTHS ")?|" MONTHS "|" DAYS ")"
#define DURATION "P(?:" CALENDAR "(?:" CLOCK ")?|" CLOCK "|[0-9]+W)"

/* ---- hosts ----------------------------------------------------------------------------------- */

/*
 * Names of hosts have at most 253 characters, and a pattern cannot count these beside those of a
 * label. So these are all names of up to four labels, and those of up to eight that are not long.
 */
#define LETTER "[A-Za-z0-9]"
#define LABEL_OF(n) LETTER "(?:[A-Za-z0-9-]{0," #n "}" LETTER ")?"
#define LABEL LABEL_OF(61)
#define LEADING(label, times) "(?:" label "\\.){" times "}"
#define SHORT_HOST LEADING(LABEL, "0,2") LABEL
#define LONG_HOST LEADING(LABEL, "3") LABEL_OF(59)
#define HOST_OF_MANY LEADING(LABEL_OF(28), "4,7") LABEL_OF(28)
#define HOSTNAME "(?:" SHORT_HOST "|" LONG_HOST "|" HOST_OF_MANY ")"

#define BYTE "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#define IPV4 BYTE "(?:\\." BYTE "){3}"
#define GROUP "[0-9A-Fa-f]{1,4}"
#define GROUPS(times) "(?:" GROUP ":){" times "}"
#define LAST_TWO "(?:" GROUP ":" GROUP "|" IPV4 ")"
#define BEFORE(times) "(?:" GROUPS(times) GROUP ")?::" /* :: stands for zeros */
#define IPV6_LONG                                                                                  \
    GROUPS("6") LAST_TWO "|::" GROUPS("5") LAST_TWO "|" BEFORE("0") GROUPS("4") LAST_TWO
#define IPV6_HALF BEFORE("0,1") GROUPS("3") LAST_TWO "|" BEFORE("0,2") GROUPS("2") LAST_TWO
#define IPV6_SHORT                                                                                 \
    BEFORE("0,3") GROUPS("1") LAST_TWO "|" BEFORE("0,4") LAST_TWO "|" BEFORE("0,5") GROUP
#define IPV6 "(?:" IPV6_LONG "|" IPV6_HALF "|" IPV6_SHORT "|" BEFORE("0,6") ")"

/* ---- identifiers of resources (RFC 3986, or 3987) ---------------------------------------------
 */

/* `more` and `own` are parts of sets: characters beyond ASCII that RFC 3987 adds, or nothing. */
#define SAFE "A-Za-z0-9._~!$&'()*+,;=\\-"
#define CODED "%[0-9A-Fa-f]{2}"
#define ONE_OF(set) "(?:[" SAFE set "]|" CODED ")"
#define REST_OF_PATH(more) "(?:/" ONE_OF(":@" more) "*)*"
#define BEGUN_PATH(more) "(?:" ONE_OF(":@" more) "+" REST_OF_PATH(more) ")?"
#define HOST_OF(more) "(?:\\[(?:" IPV6 "|[vV][0-9A-Fa-f]+\\.[" SAFE ":]+)\\]|" ONE_OF(more) "*)"
#define AUTHORITY(more) "//(?:" ONE_OF(":" more) "*@)?" HOST_OF(more) "(?::[0-9]*)?"
#define SCHEME "[A-Za-z][A-Za-z0-9+.\\-]*:"
#define AFTER_PATH(more, own) "(?:\\?" ONE_OF(":@/?" more own) "*)?(?:#" ONE_OF(":@/?" more) "*)?"
#define RESOURCE(more, own)                                                                        \
    SCHEME "(?:" AUTHORITY(more) REST_OF_PATH(more) "|/?" BEGUN_PATH(more) ")" AFTER_PATH(more, own)
/* A path that begins with a name has no colon in it, which would make it a scheme. */
#define REFERENCE(more, own)                                                                       \
    "(?:(?:" SCHEME ")?(?:" AUTHORITY(more) REST_OF_PATH(more) "|/" BEGUN_PATH(more) ")|" SCHEME   \
    BEGUN_PATH(more) "|(?:" ONE_OF("@" more) "+" REST_OF_PATH(more) ")?)" AFTER_PATH(more, own)

/* Characters beyond ASCII of RFC 3987: those allowed everywhere, and those only in queries. */
#define BEYOND                                                                                     \
    "\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef\U00010000-\U0001fffd\U00020000-\U0002fffd"            \
    "\U00030000-\U0003fffd\U00040000-\U0004fffd\U00050000-\U0005fffd\U00060000-\U0006fffd"         \
    "\U00070000-\U0007fffd\U00080000-\U0008fffd\U00090000-\U0009fffd\U000a0000-\U000afffd"         \
    "\U000b0000-\U000bfffd\U000c0000-\U000cfffd\U000d0000-\U000dfffd\U000e1000-\U000efffd"
#define OWN "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"

#define POINTER "(?:/(?:[^~/]|~[01])*)*"

/* ---- the table ------------------------------------------------------------------------------- */

#define EMAIL "^[A-Za-z0-9_+-]+(?:\\.[A-Za-z0-9_+-]+)*@(?:" LABEL "\\.)+[A-Za-z]{2,63}$"

static const tern_schema_format formats[] = {
    {"date", "^" DATE "$", 10, 10, true},
    {"time", "^" TIME "$", 9, 24, false},
    {"date-time", "^" DATE "T" TIME "$", 20, 35, false},
    {"duration", "^" DURATION "$", 3, -1, true},
    {"uuid", "^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$", 36, 36, true},
    {"email", EMAIL, 6, -1, false},
    {"idn-email", EMAIL, 6, -1, false},
    {"hostname", "^" HOSTNAME "$", 1, 253, false},
    {"idn-hostname", "^" HOSTNAME "$", 1, 253, false},
    {"ipv4", "^" IPV4 "$", 7, 15, true},
    {"ipv6", "^" IPV6 "$", 2, 45, true},
    {"uri", "^" RESOURCE("", "") "$", 2, -1, true},
    {"uri-reference", "^" REFERENCE("", "") "$", 0, -1, true},
    {"iri", "^" RESOURCE(BEYOND, OWN) "$", 2, -1, true},
    {"iri-reference", "^" REFERENCE(BEYOND, OWN) "$", 0, -1, true},
    {"json-pointer", "^" POINTER "$", 0, -1, true},
    {"relative-json-pointer", "^(?:0|[1-9][0-9]*)(?:#|" POINTER ")$", 1, -1, true},
};

const tern_schema_format *tern_schema_format_named(tern_span name) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strlen(formats[i].name) == name.size &&
            memcmp(formats[i].name, name.data, name.size) == 0)
            return &formats[i];
    return NULL;
}
