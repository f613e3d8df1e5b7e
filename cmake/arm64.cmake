# Compiles for arm64 on another machine, with the libraries that `script/bootstrap --cross` has unpacked.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

get_filename_component(CMAKE_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../build/sysroot-arm64 ABSOLUTE)
if(NOT EXISTS ${CMAKE_SYSROOT}/.stamp)
  message(FATAL_ERROR "no libraries for arm64 in ${CMAKE_SYSROOT}: run script/bootstrap --cross")
endif()
# Headers and libraries are arm64's, programs (protoc) this machine's.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
    ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
# Debian's qemu-user-static runs tests on another machine.
find_program(NOS_ARM64_EMULATOR qemu-aarch64-static)
if(NOS_ARM64_EMULATOR)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${NOS_ARM64_EMULATOR} -L ${CMAKE_SYSROOT})
endif()
# Debian's alternatives would link these two into the folder of libraries; nothing runs them here.
foreach(library blas lapack)
  set(folder ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/${library})
  string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT " -L${folder} -Wl,-rpath-link,${folder}")
endforeach()
