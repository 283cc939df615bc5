# Ranks over MPI, in a module of their own: libtern-mpi.so, which the library opens when it is asked for
# (ranks/load_mpi.c). It has what it needs of base/ and ranks/ itself, so it links MPI and nothing of tern.

option(TERN_MPI "Build the module for mpirun where MPI is found" ON)

file(RELATIVE_PATH TERN_MPI_FROM_PROGRAM ${CMAKE_INSTALL_FULL_BINDIR}
     ${CMAKE_INSTALL_FULL_LIBDIR}/libtern-mpi.so)

if(TERN_MPI AND NOT TERN_FUZZ AND NOT TERN_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  find_package(MPI QUIET COMPONENTS C)
endif()
if(NOT MPI_C_FOUND)
  message(STATUS "tern: MPI was not found, or TERN_MPI is off: the module for mpirun is not built")
  return()
endif()
add_library(tern_mpi MODULE ranks/mpi/module.c ranks/wait.c base/metrics.c base/status.c)
set_target_properties(tern_mpi PROPERTIES OUTPUT_NAME tern-mpi PREFIX lib C_VISIBILITY_PRESET hidden
                      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
target_include_directories(tern_mpi PRIVATE ${PROJECT_SOURCE_DIR} ${TERN_INCLUDE})
target_compile_definitions(tern_mpi PRIVATE TERN_VERSION="${PROJECT_VERSION}")
target_link_libraries(tern_mpi PRIVATE MPI::MPI_C)
install(TARGETS tern_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT program)
