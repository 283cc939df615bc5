# 64-bit ARM from an x86-64 Debian: crossbuild compiler, multiarch libraries, qemu-user for tests.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
# The weakest processor that may run plain NEON code: anything newer is an illegal instruction.
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64;-cpu;cortex-a53")
# The one that has every instruction set of the table, for the kernels that the weakest cannot run.
set(TERN_NEWEST_EMULATOR "qemu-aarch64;-cpu;max")
