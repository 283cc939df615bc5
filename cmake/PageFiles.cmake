# Run by the build: writes OUT, a C file with the table of serve/page_files.h, from the files in
# FOLDER. A file whose ending has no type here stops the build.
set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_svg "image/svg+xml")

file(GLOB paths ${FOLDER}/*)
list(SORT paths)
set(arrays "")
set(rows "")
set(n 0)
foreach(path IN LISTS paths)
  get_filename_component(name ${path} NAME)
  string(REGEX REPLACE ".*\\." "" ending ${name})
  if(NOT DEFINED type_${ending})
    message(FATAL_ERROR "${path}: files of the page end with .html, .css, .js or .svg")
  endif()
  file(SHA256 ${path} hash)
  string(SUBSTRING ${hash} 0 16 hash)
  file(READ ${path} hex HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
  string(APPEND arrays "\nstatic const unsigned char file_${n}[] = {\n${hex}\n};\n")
  string(APPEND rows "    {\"${name}\", \"${type_${ending}}\", \"\\\"${hash}\\\"\", file_${n}, sizeof file_${n}},\n")
  math(EXPR n "${n} + 1")
endforeach()
file(WRITE ${OUT} "/* Made by cmake/PageFiles.cmake. */
#include \"serve/page_files.h\"
${arrays}
const page_file page_files[] = {
${rows}};
const size_t n_page_files = sizeof page_files / sizeof *page_files;
")
