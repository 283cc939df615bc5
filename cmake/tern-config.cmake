# find_package(tern) defines tern::kernels (tern/kernels.h) and, where what it needs is there,
# tern::tern (tern/tern.h and all of the former). COMPONENTS static or shared says which libraries;
# without one BUILD_SHARED_LIBS decides, as far as both kinds are installed.

set(_tern_kind static)
if(BUILD_SHARED_LIBS AND EXISTS ${CMAKE_CURRENT_LIST_DIR}/tern-kernels-shared.cmake)
  set(_tern_kind shared)
endif()
if(tern_FIND_COMPONENTS)
  set(_tern_kind ${tern_FIND_COMPONENTS})
endif()

set(tern_FOUND FALSE)
if(NOT _tern_kind MATCHES "^(static|shared)$")
  set(tern_NOT_FOUND_MESSAGE "tern: one component, static or shared, not '${_tern_kind}'")
  return()
elseif(NOT EXISTS ${CMAKE_CURRENT_LIST_DIR}/tern-kernels-${_tern_kind}.cmake)
  set(tern_NOT_FOUND_MESSAGE "tern: the ${_tern_kind} libraries are not installed")
  return()
elseif(TARGET tern::kernels AND NOT tern_KIND STREQUAL _tern_kind)
  set(tern_NOT_FOUND_MESSAGE "tern: ${_tern_kind} asked for, but ${tern_KIND} is in use already")
  return()
endif()

# Static libraries leave it to the program to link what they use: the kernels cpuinfo and threads,
# the rest PCRE2 too.
set(_tern_complete TRUE)
if(_tern_kind STREQUAL "static")
  include(CMakeFindDependencyMacro)
  find_dependency(PkgConfig)
  find_dependency(Threads)
  pkg_check_modules(CPUINFO QUIET IMPORTED_TARGET libcpuinfo)
  if(NOT TARGET PkgConfig::CPUINFO)
    set(tern_NOT_FOUND_MESSAGE "tern: pkg-config does not find libcpuinfo")
    return()
  endif()
  pkg_check_modules(PCRE2 QUIET IMPORTED_TARGET libpcre2-8)
  if(NOT TARGET PkgConfig::PCRE2)
    set(_tern_complete FALSE)
  endif()
endif()

include(${CMAKE_CURRENT_LIST_DIR}/tern-kernels-${_tern_kind}.cmake)
if(_tern_complete)
  include(${CMAKE_CURRENT_LIST_DIR}/tern-tern-${_tern_kind}.cmake)
endif()
set(tern_KIND ${_tern_kind})
set(tern_${_tern_kind}_FOUND TRUE)
set(tern_FOUND TRUE)
