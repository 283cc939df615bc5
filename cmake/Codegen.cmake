# Generates the kernels of kernels/kernels.toml, and what C reads of kernels/formats.toml, into ${TERN_GEN_DIR} (folder "gen" of the build) at
# configure time; a change of the table, a template or the generator configures again.
# With TERN_PREGENERATED=ON, the default where a release tarball put it there, the folder "gen" of the
# source tree is used and Python is not needed.
#
# Sets TERN_INCLUDE, the folders of public headers, TERN_ISAS and, per instruction set, TERN_ISA_<name>_{ARCH,FLAGS,SOURCES}.

if(EXISTS ${PROJECT_SOURCE_DIR}/gen/sources.cmake)
  set(pregenerated ON)
else()
  set(pregenerated OFF)
endif()
option(TERN_PREGENERATED "Use generated kernels that a release tarball carries" ${pregenerated})
if(TERN_PREGENERATED)
  set(TERN_GEN_PARENT ${PROJECT_SOURCE_DIR})
else()
  set(TERN_GEN_PARENT ${PROJECT_BINARY_DIR})
endif()
set(TERN_GEN_DIR ${TERN_GEN_PARENT}/gen)
set(TERN_INCLUDE ${PROJECT_SOURCE_DIR}/include ${TERN_GEN_DIR}/include)

# First Python that has Jinja2 (a virtual environment's python3 may lack what Debian's has).
function(tern_find_python out)
  find_package(Python3 COMPONENTS Interpreter QUIET)
  foreach(candidate IN ITEMS "${TERN_PYTHON}" "${Python3_EXECUTABLE}" /usr/bin/python3)
    if(candidate)
      execute_process(COMMAND ${candidate} -c "import jinja2" RESULT_VARIABLE status
                      OUTPUT_QUIET ERROR_QUIET)
      if(status EQUAL 0)
        set(${out} ${candidate} PARENT_SCOPE)
        return()
      endif()
    endif()
  endforeach()
  message(FATAL_ERROR "No Python 3 with Jinja2 was found: install python3-jinja2, or set TERN_PYTHON")
endfunction()

if(NOT TERN_PREGENERATED)
  tern_find_python(TERN_CODEGEN_PYTHON)
  file(GLOB generator CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.j2
       ${PROJECT_SOURCE_DIR}/codegen/*.py)
  file(GLOB_RECURSE templates CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/*.j2)
  list(APPEND generator ${templates})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${generator}
               ${PROJECT_SOURCE_DIR}/kernels/kernels.toml ${PROJECT_SOURCE_DIR}/kernels/formats.toml
               ${PROJECT_SOURCE_DIR}/include/tern/kernels.h
               ${PROJECT_SOURCE_DIR}/dispatch/cpu.h)
  execute_process(COMMAND ${TERN_CODEGEN_PYTHON} ${PROJECT_SOURCE_DIR}/codegen/gen.py
                          --out ${TERN_GEN_DIR}
                  RESULT_VARIABLE status ERROR_VARIABLE message)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${message}")
  endif()
endif()
include(${TERN_GEN_DIR}/sources.cmake)
