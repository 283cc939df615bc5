# Packages of Debian, which CPack writes (scripts/make-deb): tern, the libraries that programs load, and what compiles
# with them. Beside what is installed everywhere a package has its licence, its changes, a compressed manual page, and
# a service that nobody has enabled yet.

set(deb ${PROJECT_BINARY_DIR}/deb)
set(soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(TERN_DEB_LIBRARIES libtern${soversion})
set(TERN_DEB_MAINTAINER "tern maintainers <maintainers@tern.invalid>" CACHE STRING
    "Who answers for the packages: a name, and an address in angle brackets")

# What static libraries need when a program is linked with them.
set(TERN_DEB_NEEDED "libcpuinfo-dev, libpcre2-dev")
if(UTF8PROC_FOUND)
  string(APPEND TERN_DEB_NEEDED ", libutf8proc-dev")
endif()
if(HWLOC_FOUND)
  string(APPEND TERN_DEB_NEEDED ", libhwloc-dev")
endif()

# Its time is that of the commit (SOURCE_DATE_EPOCH, by scripts/make-deb).
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file(cmake/deb/changelog.in ${deb}/changelog @ONLY)

# tern_gzip(SOURCE): the command that compresses it, with the same bytes each time.
function(tern_gzip source)
  get_filename_component(name ${source} NAME)
  add_custom_command(OUTPUT ${deb}/${name}.gz VERBATIM COMMENT "Compressed ${name}" DEPENDS ${source} ${ARGN}
    COMMAND sh -c "gzip -9nc \"$0\" > \"$1\"" ${source} ${deb}/${name}.gz)
endfunction()
tern_gzip(${deb}/changelog)
tern_gzip(${pages}/tern.1 tern_pages)
add_custom_target(tern_deb DEPENDS ${deb}/changelog.gz ${deb}/tern.1.gz)

# tern_document(COMPONENT PACKAGE)
function(tern_document component package)
  install(FILES cmake/deb/copyright ${deb}/changelog.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package}
          COMPONENT ${component})
endfunction()
tern_document(program tern)
tern_document(libraries ${TERN_DEB_LIBRARIES})
tern_document(development libtern-dev)
install(FILES ${deb}/tern.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
foreach(name IN LISTS TERN_PROGRAM_NAMES ITEMS tern-get-model) # of which the same page tells
  execute_process(COMMAND ${CMAKE_COMMAND} -E create_symlink tern.1.gz ${deb}/${name}.1.gz)
  install(FILES ${deb}/${name}.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
endforeach()
install(FILES cmake/deb/tern.service DESTINATION lib/systemd/system COMPONENT program)
configure_file(cmake/deb/overrides.in ${deb}/${TERN_DEB_LIBRARIES} @ONLY)
install(FILES ${deb}/${TERN_DEB_LIBRARIES} DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides COMPONENT libraries)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tern)
set(CPACK_PACKAGE_VENDOR tern)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR})
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL program libraries development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${TERN_DEB_MAINTAINER})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# The first line of each is the description of the project.
set(about "tern runs ternary (BitNet b1.58) and other low-bit language models on
processors, with the same bits on every instruction set, for every number of
threads and every batch.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME tern)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS python3) # of tern-get-model
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "libgnutls30, libcurl3-gnutls") # loaded when they are asked for
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION "${about}

This package has the program, a small model, and a service that is not enabled.")

set(CPACK_DEBIAN_LIBRARIES_PACKAGE_NAME ${TERN_DEB_LIBRARIES})
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON) # no component has a word of its own for it
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/deb/triggers)
set(CPACK_DEBIAN_LIBRARIES_DESCRIPTION "${about}

This package has the libraries that programs load.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libtern-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${TERN_DEB_LIBRARIES} (= ${PROJECT_VERSION}), ${TERN_DEB_NEEDED}")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "${about}

This package has headers, static libraries, and files for CMake and pkg-config.")
include(CPack)
