# Compiler, linker and sanitizer settings shared by every target.

# The sloppiness is what ccache needs for precompiled headers: it compares a checksum of their origin
# (Precompile.cmake) and ignores the macros they define. Paths below the source folder count as
# relative, so clones share objects.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1
      CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()

find_program(MOLD mold)
if(MOLD AND NOT CMAKE_CROSSCOMPILING)  # the cross compiler looks for linkers in its own folders only
  add_link_options(-fuse-ld=mold)
endif()

# On ARM a char is unsigned by default; the code is tested where it is signed.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  add_compile_options(-fsigned-char)
endif()
add_compile_options(
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Woverloaded-virtual
  -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # clang 19 sees through libstdc++ 12's own use of std::get_temporary_buffer in std::stable_sort.
  add_compile_options(-Wthread-safety -Wno-deprecated-declarations)
endif()

# Library assertions (bounds, empty optionals) stay on in every build: a decision on a broken
# container is worse than a crash.
add_compile_definitions(_GLIBCXX_ASSERTIONS)

set(NOS_SANITIZE "" CACHE STRING "Sanitizers to build with, e.g. address,undefined or thread")

# Memory errors end the program instead of being exploited. nos runs as root on nodes and reads what
# others write. test/integration/hardening_test.sh reads the binary; BENCHMARKS.md has the cost. Not with
# sanitizers: they find more, and with zero-initialised automatics g++ warns of their code.
option(NOS_HARDEN "Stack protector, FORTIFY, CET, zero-initialised automatics, full RELRO, PIE" ON)
if(NOS_HARDEN AND NOT NOS_SANITIZE)
  add_compile_options(-fstack-protector-strong -fstack-clash-protection -ftrivial-auto-var-init=zero)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    add_compile_options(-fcf-protection=full)
    # Debian's start-up objects carry no mark, so the linker would drop the one for shadow stacks.
    # They need nothing of the code. Indirect branches are not marked: linked archives have no endbr64.
    add_link_options(-Wl,-z,shstk)
  endif()
  add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")  # it needs the optimiser, and sanitizers replace it
    add_compile_definitions(_FORTIFY_SOURCE=2)
  endif()
endif()

if(NOS_SANITIZE)
  add_compile_options(-fsanitize=${NOS_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${NOS_SANITIZE})
  if(NOS_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()
