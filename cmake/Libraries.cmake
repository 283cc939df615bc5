# The two libraries. libtern-kernels holds kernels/, dispatch/, device/, base/os/, status.c and module.c, the generated kernels and what lanes
# of the processor share work by: threads/worker.c and fetch.c. It needs nothing but cpuinfo. Making teams is left to
# libtern, because finding places for threads takes hwloc. libtern holds the same objects, the rest of base/ and threads/,
# and runtime/. Every file is compiled once, position independent, and goes into the static and into the shared library.
# authoring/ is a library that is not installed: what only reads models does not link what writes them.
#
# Targets: tern_kernels, tern (static); tern_kernels_shared, tern_shared.

option(TERN_SHARED "Build the shared libraries besides the static ones" ON)

file(GLOB kernel_sources CONFIGURE_DEPENDS kernels/*.c dispatch/*.c device/*.c)
if(APPLE)
  set(TERN_SYSTEM macos)
else()
  set(TERN_SYSTEM linux)
endif()
set(kernel_files_of_others base/status.c base/module.c base/os/${TERN_SYSTEM}.c threads/worker.c threads/fetch.c)
list(APPEND kernel_sources ${kernel_files_of_others})
list(FILTER kernel_sources EXCLUDE REGEX "/reference[^/]*$")
file(GLOB runtime_sources CONFIGURE_DEPENDS base/*.c threads/*.c ranks/*.c runtime/*/*.c runtime/*/*/*.c)
foreach(file IN LISTS kernel_files_of_others)
  list(REMOVE_ITEM runtime_sources ${PROJECT_SOURCE_DIR}/${file})
endforeach()
add_library(tern_kernel_objects OBJECT ${kernel_sources})
add_library(tern_runtime_objects OBJECT ${runtime_sources})

# The kernels of an instruction set have flags of their own. Their header of verbs, with the compiler's intrinsics in it,
# takes two thirds of the time that a kernel takes to compile, so it is read once for a set. A compiler cache knows a file
# by what the preprocessor makes of it, and would find none that way.
if(CMAKE_C_COMPILER_LAUNCHER MATCHES "cache")
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()
set(TERN_KERNEL_OBJECTS tern_kernel_objects)
foreach(isa IN LISTS TERN_ISA_BUILT)
  add_library(tern_kernel_objects_${isa} OBJECT ${TERN_ISA_${isa}_SOURCES})
  target_compile_options(tern_kernel_objects_${isa} PRIVATE ${TERN_ISA_${isa}_FLAGS} ${TERN_KERNEL_FLAGS})
  target_precompile_headers(tern_kernel_objects_${isa} PRIVATE kernels/isa/${isa}.h)
  list(APPEND TERN_KERNEL_OBJECTS tern_kernel_objects_${isa})
endforeach()
set_source_files_properties(device/load_cuda.c PROPERTIES
                            COMPILE_DEFINITIONS TERN_CUDA_FROM_PROGRAM="${TERN_CUDA_FROM_PROGRAM}")
set_source_files_properties(ranks/load_mpi.c PROPERTIES
                            COMPILE_DEFINITIONS TERN_MPI_FROM_PROGRAM="${TERN_MPI_FROM_PROGRAM}")
target_link_libraries(tern_kernel_objects PRIVATE ${TERN_KERNEL_LIBRARIES})
target_link_libraries(tern_runtime_objects PRIVATE ${TERN_LIBRARIES})
target_compile_definitions(tern_runtime_objects PRIVATE ${TERN_UTF8PROC_DEFINITIONS}
                           ${TERN_HWLOC_DEFINITIONS})

foreach(objects IN LISTS TERN_KERNEL_OBJECTS ITEMS tern_runtime_objects)
  target_include_directories(${objects} PRIVATE ${PROJECT_SOURCE_DIR} ${TERN_INCLUDE}
                             ${TERN_GEN_PARENT})
  target_compile_definitions(${objects} PRIVATE ${TERN_ISA_DEFINITIONS}
                             TERN_VERSION="${PROJECT_VERSION}")
  # Nobody may replace an exported function in the middle of the library, so calls inside it are
  # direct and can be inlined, as in code that is not position independent.
  if(NOT APPLE) # where nobody can
    target_compile_options(${objects} PRIVATE -fno-semantic-interposition)
  endif()
  set_target_properties(${objects} PROPERTIES POSITION_INDEPENDENT_CODE ON
                        C_VISIBILITY_PRESET hidden)
endforeach()

# tern_add_library(TARGET TYPE NAME OBJECTS... LIBRARIES...): NAME is that of the file and, behind
# tern::, of the installed target. Before 1.0 a minor version may change the interface, so it is
# part of the soname.
function(tern_add_library target type file)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "EXPORT" "OBJECTS;LIBRARIES")
  add_library(${target} ${type})
  foreach(objects IN LISTS arg_OBJECTS)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
  endforeach()
  target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${TERN_INCLUDE}>"
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PRIVATE ${arg_LIBRARIES})
  set_target_properties(${target} PROPERTIES
    LINKER_LANGUAGE C OUTPUT_NAME ${file} EXPORT_NAME ${arg_EXPORT} VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  if(type STREQUAL SHARED AND NOT TERN_SANITIZE AND NOT TERN_FUZZ)
    target_link_options(${target} PRIVATE LINKER:--no-undefined)
  endif()
endfunction()

function(tern_add_libraries suffix type)
  tern_add_library(tern_kernels${suffix} ${type} tern-kernels EXPORT kernels
                   OBJECTS ${TERN_KERNEL_OBJECTS} LIBRARIES ${TERN_KERNEL_LIBRARIES})
  tern_add_library(tern${suffix} ${type} tern EXPORT tern
                   OBJECTS ${TERN_KERNEL_OBJECTS} tern_runtime_objects LIBRARIES ${TERN_LIBRARIES})
endfunction()

tern_add_libraries("" STATIC)
if(TERN_SHARED)
  tern_add_libraries(_shared SHARED)
endif()

# JSON as a tree of values, for programs that write documents.
file(GLOB json_tree_sources CONFIGURE_DEPENDS base/json_tree/*.c)
add_library(tern_json_tree STATIC ${json_tree_sources})
target_include_directories(tern_json_tree PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(tern_json_tree PUBLIC tern)

# Receipts and other documents of measurements: fields, rules, digests, signatures. Not installed.
file(GLOB receipts_sources CONFIGURE_DEPENDS receipts/*.c)
add_library(tern_receipts STATIC ${receipts_sources})
target_include_directories(tern_receipts PUBLIC ${PROJECT_SOURCE_DIR})
target_compile_definitions(tern_receipts PRIVATE ${TERN_SIGN_DEFINITIONS})
target_link_libraries(tern_receipts PUBLIC tern tern_json_tree PRIVATE tern_probes
                      ${TERN_SIGN_LIBRARIES})

file(GLOB authoring_sources CONFIGURE_DEPENDS authoring/*.c authoring/convert/*.c authoring/dedup/*.c)
add_library(tern_authoring STATIC ${authoring_sources})
target_include_directories(tern_authoring PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(tern_authoring PUBLIC tern PRIVATE tern_json_tree)
