# tern_add_test(NAME COMMAND PROGRAM [ARGUMENT...] [ENVIRONMENT NAME=VALUE...] [WORKING_DIRECTORY FOLDER])
#
# add_test for everything that ctest starts: by tests/start, so that the caller's environment has no say. A test that
# hangs is stopped in the end; how long it takes is not tested, since the machine may have other things to do.
set(TERN_TEST_HANGS 7200) # seconds

function(tern_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "WORKING_DIRECTORY" "COMMAND;ENVIRONMENT")
  if(NOT arg_WORKING_DIRECTORY)
    set(arg_WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  endif()
  add_test(NAME ${name} COMMAND ${PROJECT_SOURCE_DIR}/tests/start ${arg_ENVIRONMENT} ${arg_COMMAND}
           WORKING_DIRECTORY ${arg_WORKING_DIRECTORY})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${TERN_TEST_HANGS} SKIP_RETURN_CODE 77)
endfunction()
