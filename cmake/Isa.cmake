# Which instruction sets are built, and the flags of their files. Flags are given to the files of a
# kernel only, never globally: the rest of the program runs on every processor of the architecture.

include(CheckCCompilerFlag)
option(TERN_SCALAR_ONLY "Build no instruction set but scalar" OFF)

string(TOLOWER "${CMAKE_SYSTEM_PROCESSOR}" TERN_ARCH)
if(TERN_ARCH MATCHES "^(x86_64|amd64)$")
  set(TERN_ARCH x86_64)
elseif(TERN_ARCH MATCHES "^(aarch64|arm64)$")
  set(TERN_ARCH aarch64)
endif()

# Arithmetic that numerics.md fixes: no fused multiply-add, no reassociation, no errno from sqrtf.
set(TERN_FLOAT_FLAGS -ffp-contract=off -fno-math-errno)

# Before registers are allocated, gcc for ARM moves loads up until accumulators are spilled: the inner
# loop of gemm_i2_s_16x4_neon takes 281 instructions with that pass, 217 and no spill without.
set(TERN_KERNEL_FLAGS "")
if(TERN_ARCH STREQUAL aarch64 AND CMAKE_C_COMPILER_ID STREQUAL GNU)
  set(TERN_KERNEL_FLAGS -fno-schedule-insns)
endif()

# Whether this build has an instruction set: its architecture, and a compiler that knows its flags
# (gcc learned -mavxvnni in version 11).
function(tern_can_build isa out)
  set(${out} FALSE PARENT_SCOPE)
  set(arch ${TERN_ISA_${isa}_ARCH})
  if(arch STREQUAL "any")
    set(${out} TRUE PARENT_SCOPE)
  elseif(arch STREQUAL TERN_ARCH AND NOT TERN_SCALAR_ONLY)
    string(REPLACE ";" " " flags "${TERN_ISA_${isa}_FLAGS}")
    set(CMAKE_REQUIRED_QUIET ON)
    check_c_compiler_flag("${flags}" TERN_COMPILER_KNOWS_${isa})
    set(${out} ${TERN_COMPILER_KNOWS_${isa}} PARENT_SCOPE)
    if(NOT TERN_COMPILER_KNOWS_${isa})
      message(STATUS "tern: the compiler does not know ${flags}: ${isa} is not built")
    endif()
  endif()
endfunction()

set(TERN_ISA_BUILT "")
foreach(isa IN LISTS TERN_ISAS)
  string(TOUPPER ${isa} upper)
  tern_can_build(${isa} can)
  if(can)
    list(TRANSFORM TERN_ISA_${isa}_SOURCES PREPEND ${TERN_GEN_DIR}/)
    list(APPEND TERN_ISA_BUILT ${isa})
    list(APPEND TERN_ISA_DEFINITIONS TERN_HAVE_${upper}=1)
  else()
    list(APPEND TERN_ISA_DEFINITIONS TERN_HAVE_${upper}=0)
  endif()
endforeach()
string(REPLACE ";" ", " TERN_ISA_TEXT "${TERN_ISA_BUILT}")
message(STATUS "tern: instruction sets built: ${TERN_ISA_TEXT}")
