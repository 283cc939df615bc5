# tern_add_test(NAME COMMAND PROGRAM [ARGUMENT...] [ENVIRONMENT NAME=VALUE...] [WORKING_DIRECTORY FOLDER])
#
# add_test for everything that ctest starts: by tests/start, so that the caller's environment has no say, and under
# tests/watch, which ends a test where nothing works any more. How long a test takes is not tested, since the machine
# may be slow or busy: the limit here only ends one that computes for ever.
set(TERN_TEST_SECONDS 21600)
find_program(TERN_PYTHON3 python3)
if(TERN_PYTHON3) # a release tarball builds without
  set(TERN_TEST_WATCH ${TERN_PYTHON3} -I -S ${CMAKE_CURRENT_LIST_DIR}/../tests/watch)
endif()

function(tern_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "WORKING_DIRECTORY" "COMMAND;ENVIRONMENT")
  if(NOT arg_WORKING_DIRECTORY)
    set(arg_WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  endif()
  add_test(NAME ${name} COMMAND ${PROJECT_SOURCE_DIR}/tests/start ${arg_ENVIRONMENT} ${TERN_TEST_WATCH} ${arg_COMMAND}
           WORKING_DIRECTORY ${arg_WORKING_DIRECTORY})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${TERN_TEST_SECONDS} SKIP_RETURN_CODE 77)
endfunction()
