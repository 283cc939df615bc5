# The CUDA kernels of the table, in a module of their own: libtern-cuda.so, which the library
# opens when a device is asked for (device/load_cuda.c). nvcc is run as what it is here, a compiler of
# one generated file, so that the rest of the build knows nothing of CUDA's language in CMake.

find_program(TERN_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
set(TERN_CUDA_DEFAULT OFF)
if(TERN_NVCC AND NOT CMAKE_CROSSCOMPILING)
  set(TERN_CUDA_DEFAULT ON)
endif()
option(TERN_CUDA "Build the CUDA module (needs nvcc)" ${TERN_CUDA_DEFAULT})

# CUDA 13 no longer compiles for 7.0.
set(oldest 75)
if(TERN_NVCC)
  execute_process(COMMAND ${TERN_NVCC} --version OUTPUT_VARIABLE version)
  if(version MATCHES "release ([0-9]+)" AND CMAKE_MATCH_1 LESS 13)
    set(oldest 70)
  endif()
endif()
set(TERN_CUDA_ARCHS ${oldest} 80 90 CACHE STRING
    "Compute capabilities with machine code, oldest first; PTX for the last")
list(GET TERN_CUDA_ARCHS 0 oldest)
set(TERN_CUDA_DEFINITIONS TERN_VERSION="${PROJECT_VERSION}" TERN_CUDA_CAPABILITY_MIN=${oldest})

file(RELATIVE_PATH TERN_CUDA_FROM_PROGRAM ${CMAKE_INSTALL_FULL_BINDIR}
     ${CMAKE_INSTALL_FULL_LIBDIR}/libtern-cuda.so)

# What every build of the module has, the tests' too (tests/cuda): all but the runtime and the kernels.
file(GLOB TERN_CUDA_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/pack*.c)
foreach(source IN ITEMS device/cuda/memory.c device/cuda/operations.c device/cuda/waiting.c device/check.c
                        base/status.c kernels/format.c kernels/ternary.c kernels/grids.c kernels/grids_table.c)
  list(APPEND TERN_CUDA_SOURCES ${PROJECT_SOURCE_DIR}/${source})
endforeach()

if(NOT TERN_CUDA)
  message(STATUS "tern: nvcc was not found, or TERN_CUDA is off: the CUDA module is not built")
  return()
endif()
if(NOT TERN_NVCC)
  message(FATAL_ERROR "TERN_CUDA is on, but nvcc was not found: set TERN_NVCC")
endif()
get_filename_component(cuda_root ${TERN_NVCC} REALPATH)
get_filename_component(cuda_root ${cuda_root}/../.. ABSOLUTE)
find_path(TERN_CUDA_INCLUDE cuda_runtime_api.h HINTS ${cuda_root}/include REQUIRED)
find_library(TERN_CUDART cudart_static HINTS ${cuda_root}/lib64 REQUIRED)

set(TERN_NVCC_FLAGS -std=c++17 -O3 -Werror all-warnings ${TERN_ISA_cuda_FLAGS}
                    -I ${PROJECT_SOURCE_DIR} -I ${PROJECT_SOURCE_DIR}/include -I ${TERN_GEN_DIR}/include
                    -I ${TERN_GEN_PARENT})
set(gencode "")
foreach(arch IN LISTS TERN_CUDA_ARCHS)
  list(APPEND gencode -gencode arch=compute_${arch},code=sm_${arch})
endforeach()
list(GET TERN_CUDA_ARCHS -1 newest)
list(APPEND gencode -gencode arch=compute_${newest},code=compute_${newest})

set(TERN_CUDA_OBJECT ${PROJECT_BINARY_DIR}/tern_cuda_kernels.o)
list(TRANSFORM TERN_ISA_cuda_SOURCES PREPEND ${TERN_GEN_DIR}/ OUTPUT_VARIABLE cuda_kernels)
add_custom_command(
  OUTPUT ${TERN_CUDA_OBJECT}
  COMMAND ${CMAKE_C_COMPILER_LAUNCHER} ${TERN_NVCC} ${TERN_NVCC_FLAGS} ${gencode}
          -Xcompiler -fPIC,-fvisibility=hidden
          -c ${TERN_GEN_DIR}/cuda/kernels.cu -o ${TERN_CUDA_OBJECT}
  DEPENDS ${TERN_GEN_DIR}/cuda/kernels.cu ${cuda_kernels} ${PROJECT_SOURCE_DIR}/kernels/isa/cuda.cuh
          ${PROJECT_SOURCE_DIR}/kernels/cuda/rows.cuh
          ${PROJECT_SOURCE_DIR}/kernels/cuda/job.h ${PROJECT_SOURCE_DIR}/include/tern/kernels.h
          ${TERN_GEN_DIR}/include/tern/formats.h
          ${PROJECT_SOURCE_DIR}/include/tern/device.h
  COMMENT "CUDA kernels with nvcc" VERBATIM)

add_library(tern_cuda MODULE ${TERN_CUDA_SOURCES} device/cuda/runtime.c device/cuda/entry.c
                             ${TERN_CUDA_OBJECT})
set_target_properties(tern_cuda PROPERTIES OUTPUT_NAME tern-cuda PREFIX lib C_VISIBILITY_PRESET hidden
                      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
target_include_directories(tern_cuda PRIVATE ${PROJECT_SOURCE_DIR} ${TERN_INCLUDE}
                                             ${TERN_GEN_PARENT})
target_include_directories(tern_cuda SYSTEM PRIVATE ${TERN_CUDA_INCLUDE})
target_compile_definitions(tern_cuda PRIVATE ${TERN_CUDA_DEFINITIONS})
# CUDA's runtime and C++'s are linked in. The first looks for the driver when it is called, not when
# it is loaded.
target_link_libraries(tern_cuda PRIVATE ${TERN_CUDART}
                      -Wl,-Bstatic stdc++ -Wl,-Bdynamic Threads::Threads ${CMAKE_DL_LIBS} rt m)
target_link_options(tern_cuda PRIVATE
  -Wl,--version-script=${PROJECT_SOURCE_DIR}/device/cuda/exports.map)
if(NOT TERN_SANITIZE)
  target_link_options(tern_cuda PRIVATE -Wl,--no-undefined)
endif()
install(TARGETS tern_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT program)
string(REPLACE ";" ", " arch_text "${TERN_CUDA_ARCHS}")
message(STATUS "tern: CUDA module for compute capabilities ${arch_text}")
