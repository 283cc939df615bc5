# What `cmake --install` puts where. Nothing that is installed names the prefix, so the tree may be
# moved; only the program remembers where its small model lies. Each file has a component: program, libraries (what
# programs load), development. Without --component all of them are installed.

set(TERN_CONFIG_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/tern)

install(DIRECTORY include/tern ${TERN_GEN_DIR}/include/tern DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT development)
if(TARGET tern_program)
  install(TARGETS tern_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
  list(TRANSFORM TERN_PROGRAM_NAMES PREPEND ${PROJECT_BINARY_DIR}/ OUTPUT_VARIABLE program_links)
  install(PROGRAMS ${program_links} DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program) # links, as they are
  install(PROGRAMS scripts/get-model DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program RENAME tern-get-model)
  install(DIRECTORY docs/schemas/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tern/schemas COMPONENT program)
  install(FILES models/tern-small.gguf models/generation_config.json
          DESTINATION ${CMAKE_INSTALL_DATADIR}/tern COMPONENT program OPTIONAL)
endif()

# tern_install(NAME TARGET KIND): a library, and the file that imports it as tern::NAME.
function(tern_install name target kind)
  install(TARGETS ${target} EXPORT tern-${name}-${kind}
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libraries NAMELINK_COMPONENT development)
  install(EXPORT tern-${name}-${kind} NAMESPACE tern:: DESTINATION ${TERN_CONFIG_DIR}
          COMPONENT development)
endfunction()
tern_install(kernels tern_kernels static)
tern_install(tern tern static)
if(TERN_SHARED)
  tern_install(kernels tern_kernels_shared shared)
  tern_install(tern tern_shared shared)
endif()

include(CMakePackageConfigHelpers)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tern-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES cmake/tern-config.cmake ${PROJECT_BINARY_DIR}/tern-config-version.cmake
        DESTINATION ${TERN_CONFIG_DIR} COMPONENT development)

# ${pcfiledir} is lib/pkgconfig under whatever prefix the tree lies now.
file(RELATIVE_PATH TERN_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" TERN_PC_PREFIX ${TERN_PC_PREFIX})
foreach(name IN ITEMS tern tern-kernels)
  configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
          COMPONENT development)
endforeach()

# A release tarball, with the generated sources.
if(NOT TERN_PREGENERATED)
  add_custom_target(dist VERBATIM COMMAND ${TERN_CODEGEN_PYTHON} ${PROJECT_SOURCE_DIR}/scripts/make-dist
    --version ${PROJECT_VERSION} --gen ${TERN_GEN_DIR}
    --out ${PROJECT_BINARY_DIR}/tern-${PROJECT_VERSION}.tar.gz)
endif()
