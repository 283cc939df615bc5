# SPDX-License-Identifier: Apache-2.0
"""jsonschema's checkers of formats, but for those that are wrong."""

import copy
import re

# A single text is enough to take a checker's place; it stands for texts that the standard allows and the checker
# refuses.
RELATIVE_POINTER = "relative-json-pointer"
REFUSED_WRONGLY = "2200"  # section 3 of the draft forbids a zero before other digits, the checker one among them too


def is_relative_pointer(text):
    return not isinstance(text, str) or re.fullmatch(r"(0|[1-9][0-9]*)(#|(/([^~/]|~[01])*)*)", text, re.ASCII | re.DOTALL) is not None


def checker_of(validator):
    """Ends the program when jsonschema is right: then its own checker can be taken again."""
    checker = copy.copy(validator.FORMAT_CHECKER)
    if RELATIVE_POINTER not in checker.checkers:
        return checker
    if checker.conforms(REFUSED_WRONGLY, RELATIVE_POINTER):
        raise SystemExit(f"jsonschema takes the {RELATIVE_POINTER} {REFUSED_WRONGLY!r} now; {__file__} is not needed any more")
    checker.checkers = {**checker.checkers, RELATIVE_POINTER: (is_relative_pointer, ())}
    return checker
