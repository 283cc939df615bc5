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

include(${CMAKE_CURRENT_LIST_DIR}/Python.cmake)

if(NOT TERN_PREGENERATED)
  tern_find_python(TERN_CODEGEN_PYTHON jinja2 "${TERN_PYTHON}")
  if(NOT TERN_CODEGEN_PYTHON)
    message(FATAL_ERROR "No Python 3 with Jinja2 was found: install python3-jinja2, or set TERN_PYTHON")
  endif()
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
