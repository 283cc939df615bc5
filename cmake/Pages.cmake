# What the program makes of its own tables: manual page and completion for shells. Where the program
# cannot run on this machine (cross compiling), `tern completion` and `tern help man` give them later.

if(CMAKE_CROSSCOMPILING OR NOT TARGET tern_program)
  return()
endif()
set(pages ${PROJECT_BINARY_DIR}/pages)
file(MAKE_DIRECTORY ${pages})

# tern_page(FILE ARGUMENTS...): FILE in the folder of pages from the program's output.
function(tern_page file)
  add_custom_command(OUTPUT ${pages}/${file} DEPENDS tern_program VERBATIM COMMENT "Page ${file}"
    COMMAND sh -c "\"$0\" \"$@\" > ${file}.part && mv ${file}.part ${file}"
            $<TARGET_FILE:tern_program> ${ARGN}
    WORKING_DIRECTORY ${pages})
endfunction()
tern_page(tern.1 help man)
tern_page(tern.bash completion bash)
tern_page(_tern completion zsh)
tern_page(tern.fish completion fish)
add_custom_target(tern_pages ALL DEPENDS ${pages}/tern.1 ${pages}/tern.bash ${pages}/_tern
                                         ${pages}/tern.fish)

# Where zsh looks is not the same everywhere: Debian's own packages have a folder apart (cmake/Deb.cmake).
set(TERN_ZSH_FOLDER ${CMAKE_INSTALL_DATADIR}/zsh/site-functions CACHE STRING "Where completion for zsh is installed")
if(NOT TERN_DEB) # which has the page compressed
  install(FILES ${pages}/tern.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
endif()
install(FILES ${pages}/tern.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        COMPONENT program RENAME tern)
install(FILES ${pages}/_tern DESTINATION ${TERN_ZSH_FOLDER} COMPONENT program)
install(FILES ${pages}/tern.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)
