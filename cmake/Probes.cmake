# tern_probes: what each instruction set can do at best, generated beside the kernels; for the program and
# the benchmarks, not for the libraries. Not vectorized: what the
# compiler makes of many independent lanes is nothing that a kernel of one lane has.
set(probe_flags -fno-tree-vectorize -fno-tree-slp-vectorize)
foreach(isa IN LISTS TERN_ISA_BUILT)
  set(probe ${TERN_GEN_DIR}/probes/tern_probe_${isa}.c)
  list(APPEND probes ${probe})
  set_source_files_properties(${probe}
    PROPERTIES COMPILE_OPTIONS "${TERN_ISA_${isa}_FLAGS};${probe_flags}")
endforeach()
add_library(tern_probes STATIC ${PROJECT_SOURCE_DIR}/bench/peaks.c ${probes})
target_include_directories(tern_probes PRIVATE ${PROJECT_SOURCE_DIR} ${TERN_INCLUDE}
                           ${TERN_GEN_PARENT})
target_compile_definitions(tern_probes PRIVATE ${TERN_ISA_DEFINITIONS})
target_link_libraries(tern_probes PUBLIC Threads::Threads)
