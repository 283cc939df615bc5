# find_package(tern) defines tern::kernels (tern/kernels.h) and tern::tern (tern/tern.h and all of
# the former). COMPONENTS static or shared says which libraries; without one BUILD_SHARED_LIBS
# decides, as far as both kinds are installed.

set(_tern_kind static)
if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/tern-shared.cmake AND BUILD_SHARED_LIBS)
  set(_tern_kind shared)
endif()
if(tern_FIND_COMPONENTS)
  set(_tern_kind ${tern_FIND_COMPONENTS})
endif()

set(tern_FOUND FALSE)
if(NOT _tern_kind MATCHES "^(static|shared)$")
  set(tern_NOT_FOUND_MESSAGE "tern: one component, static or shared, not '${_tern_kind}'")
  return()
elseif(NOT EXISTS ${CMAKE_CURRENT_LIST_DIR}/tern-${_tern_kind}.cmake)
  set(tern_NOT_FOUND_MESSAGE "tern: the ${_tern_kind} libraries are not installed")
  return()
elseif(TARGET tern::kernels AND NOT tern_KIND STREQUAL _tern_kind)
  set(tern_NOT_FOUND_MESSAGE "tern: ${_tern_kind} asked for, but this folder uses ${tern_KIND}")
  return()
endif()

# Static libraries leave it to the program to link what they use.
if(_tern_kind STREQUAL "static" AND NOT TARGET tern::kernels)
  include(CMakeFindDependencyMacro)
  find_dependency(PkgConfig)
  find_dependency(Threads)
  pkg_check_modules(CPUINFO QUIET IMPORTED_TARGET libcpuinfo)
  pkg_check_modules(PCRE2 QUIET IMPORTED_TARGET libpcre2-8)
  foreach(_tern_module IN ITEMS CPUINFO PCRE2)
    if(NOT TARGET PkgConfig::${_tern_module})
      set(tern_NOT_FOUND_MESSAGE "tern: the static libraries need ${_tern_module} (pkg-config)")
      return()
    endif()
  endforeach()
endif()

include(${CMAKE_CURRENT_LIST_DIR}/tern-${_tern_kind}.cmake)
set(tern_KIND ${_tern_kind})
set(tern_${_tern_kind}_FOUND TRUE)
set(tern_FOUND TRUE)
