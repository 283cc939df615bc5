# What the core needs: cpuinfo, PCRE2, threads. What features need: utf8proc (normal forms of Unicode in a
# tokenizer.json), hwloc (--affinity, --numa), libsodium (signatures), libedit (tern chat), gnutls (TLS of tern serve), libcurl (--server), cmocka (tests), Google Benchmark (kernel benchmarks). A missing
# optional library turns its feature off, visibly.

find_package(PkgConfig REQUIRED)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)

# Without cpuinfo the processor itself is asked (dispatch/processor.c). Packages for any Linux are built so, since
# each system has another cpuinfo, or none.
option(TERN_CPUINFO "Ask cpuinfo what the processor can do" ON)
if(TERN_CPUINFO)
  # Debian's development package of cpuinfo cannot be installed for two architectures at once; when
  # cross compiling, the header of this machine and the shared library of the other one do.
  pkg_check_modules(CPUINFO IMPORTED_TARGET libcpuinfo)
  if(CPUINFO_FOUND)
    set(TERN_CPUINFO_LIBRARY PkgConfig::CPUINFO)
  else()
    find_path(TERN_CPUINFO_INCLUDE cpuinfo.h REQUIRED)
    find_library(TERN_CPUINFO_LIBRARY NAMES cpuinfo libcpuinfo.so.0 REQUIRED)
  endif()
  set_source_files_properties(dispatch/cpu.c PROPERTIES COMPILE_DEFINITIONS TERN_HAVE_CPUINFO=1)
endif()
set(TERN_KERNEL_LIBRARIES ${TERN_CPUINFO_LIBRARY} Threads::Threads m ${CMAKE_DL_LIBS})
set(TERN_LIBRARIES ${TERN_KERNEL_LIBRARIES} PkgConfig::PCRE2)

pkg_check_modules(SODIUM IMPORTED_TARGET libsodium)
if(SODIUM_FOUND)
  set(TERN_SIGN_LIBRARIES PkgConfig::SODIUM) # of the program alone
  set(TERN_SIGN_DEFINITIONS TERN_HAVE_SODIUM=1)
else()
  message(STATUS "tern: libsodium was not found: built without signatures of receipts")
endif()

pkg_check_modules(UTF8PROC IMPORTED_TARGET libutf8proc)
if(UTF8PROC_FOUND)
  set(TERN_UTF8PROC_DEFINITIONS TERN_HAVE_UTF8PROC=1)
  list(APPEND TERN_LIBRARIES PkgConfig::UTF8PROC)
  set(TERN_PC_UTF8PROC " libutf8proc") # for tern.pc
else()
  message(STATUS "tern: utf8proc was not found: built without Unicode normalization (tokenizer.json of Qwen)")
endif()

pkg_check_modules(HWLOC IMPORTED_TARGET hwloc>=2.4) # kinds of cores
if(HWLOC_FOUND)
  set(TERN_HWLOC_DEFINITIONS TERN_HAVE_HWLOC=1)
  list(APPEND TERN_LIBRARIES PkgConfig::HWLOC)
  # For tern.pc. By name, not as a package: hwloc.pc asks those who link statically for libraries (udev)
  # whose development files its own do not bring along, and the shared libhwloc finds them itself.
  set(TERN_PC_HWLOC " -lhwloc")
else()
  message(STATUS "tern: hwloc was not found: built without --affinity compact and scatter, and without --numa")
endif()

pkg_check_modules(LIBEDIT IMPORTED_TARGET libedit)
if(LIBEDIT_FOUND)
  set(TERN_EDIT_LIBRARIES PkgConfig::LIBEDIT)
  set(TERN_EDIT_DEFINITIONS TERN_HAVE_LIBEDIT=1)
else()
  message(STATUS "tern: libedit was not found: tern chat is built without line editing and history")
endif()

# Libraries of the network are not linked: the program loads them by name when it first needs them
# (base/late_library.h). Sets OUT to that name, and FOUND to off where there is no shared library.
function(tern_late_library found out)
  set(name "")
  if(APPLE) # the name behind all links is that of the interface
    get_filename_component(name "${ARGV2}" REALPATH)
    get_filename_component(name "${name}" NAME)
    set(ARGN "")
  endif()
  foreach(path IN LISTS ARGN)
    execute_process(COMMAND ${CMAKE_READELF} -d ${path} OUTPUT_VARIABLE text ERROR_QUIET)
    if(text MATCHES "SONAME[^[]*\\[([^]]+)\\]")
      set(name ${CMAKE_MATCH_1})
      break()
    endif()
  endforeach()
  set(${out} "${name}" PARENT_SCOPE)
  if(NOT name)
    set(${found} OFF PARENT_SCOPE)
  endif()
endfunction()

pkg_check_modules(GNUTLS gnutls)
if(GNUTLS_FOUND)
  tern_late_library(GNUTLS_FOUND TERN_GNUTLS ${GNUTLS_LINK_LIBRARIES})
endif()
if(NOT GNUTLS_FOUND)
  message(STATUS "tern: gnutls was not found: tern serve is built without TLS")
endif()

pkg_check_modules(CURL libcurl>=7.68)
if(CURL_FOUND)
  tern_late_library(CURL_FOUND TERN_CURL ${CURL_LINK_LIBRARIES})
endif()
if(CURL_FOUND)
  set(TERN_CURL_DEFINITIONS TERN_HAVE_CURL=1 TERN_CURL="${TERN_CURL}")
else()
  message(STATUS "tern: libcurl was not found: tern run and tern chat are built without --server")
endif()

pkg_check_modules(CMOCKA IMPORTED_TARGET cmocka)
if(TERN_TESTS AND NOT CMOCKA_FOUND)
  message(STATUS "tern: cmocka was not found: the tests are not built")
  set(TERN_TESTS OFF)
endif()

set(TERN_BENCHMARK_FOUND OFF)
if(TERN_BENCH)
  enable_language(CXX) # the shim over Google Benchmark is the only C++
  find_package(benchmark QUIET)
  set(TERN_BENCHMARK_FOUND ${benchmark_FOUND})
  if(NOT benchmark_FOUND)
    message(STATUS "tern: Google Benchmark was not found: the kernel benchmarks are not built")
  endif()
endif()
