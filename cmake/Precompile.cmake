# The headers of other people that most files include, parsed once: more than half of the compiler's
# time was parsing (BENCHMARKS.md, "Building"). Headers of our own are not among them: an edit of one
# would compile everything, and a file that forgets to include one would not be noticed.
#
#   nos_precompiled(TARGET)            the standard library, fmt and Boost.JSON
#   nos_precompiled(TARGET commands)   the same and CLI11, a header of 4 s
#   nos_precompiled(TARGET tests)      the standard library, fmt, Boost.JSON and GoogleTest
#
# One precompiled header serves every target, so every target has to be compiled with the same flags:
# this file sets those that the libraries' own targets would otherwise add here and there.

find_package(CLI11 REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json)
find_package(fmt REQUIRED)
find_package(GTest REQUIRED)
find_package(Threads REQUIRED)

# Code of tests runs once, so it is optimised less than what it tests; that is compiled as it ships.
set(NOS_TEST_OPTIMIZATION -Og CACHE STRING "Optimisation of *_test.cc")
option(NOS_PRECOMPILE "Parse common headers once" ON)

add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie>)
add_compile_options(-pthread -fPIE)
foreach(library fmt::fmt Boost::json Boost::container GTest::gtest)
  add_compile_definitions($<TARGET_PROPERTY:${library},INTERFACE_COMPILE_DEFINITIONS>)
endforeach()

set(standard
  <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cmath> <compare> <condition_variable>
  <cstdint> <deque> <filesystem> <fstream> <functional> <iostream> <limits> <map> <memory> <mutex>
  <numeric> <optional> <set> <span> <sstream> <string> <string_view> <thread> <tuple>
  <unordered_map> <utility> <variant> <vector>
  <boost/json.hpp> <fmt/format.h>)

# Two clones of this source produce precompiled headers with different bytes. ccache compares this
# checksum of their origin instead (pch_external_checksum), so that one clone uses the objects of
# another.
function(nos_precompiled_checksum name)
  string(SHA256 checksum "${CMAKE_CXX_COMPILER_VERSION} ${Boost_VERSION} ${fmt_VERSION} ${GTest_VERSION} ${CLI11_VERSION} ${ARGN}")
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/CMakeFiles/${name}.dir/cmake_pch.hxx.gch.sum
       CONTENT "${checksum}\n")
endfunction()

function(nos_precompiled_header name)
  set(source ${CMAKE_BINARY_DIR}/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Carries a precompiled header.\n")
  add_library(${name} OBJECT ${source})
  target_precompile_headers(${name} PRIVATE ${ARGN})
  target_link_libraries(${name} PRIVATE fmt::fmt Boost::json)
  nos_precompiled_checksum(${name} ${ARGN})
endfunction()

function(nos_precompiled target)
  if(NOT NOS_PRECOMPILE)
    return()
  endif()
  if("tests" IN_LIST ARGN)
    target_compile_options(${target} PRIVATE ${NOS_TEST_OPTIMIZATION})
    target_precompile_headers(${target} REUSE_FROM nos_precompiled_tests)
  elseif("commands" IN_LIST ARGN)
    target_precompile_headers(${target} REUSE_FROM nos_precompiled_commands)
  else()
    target_precompile_headers(${target} REUSE_FROM nos_precompiled_library)
  endif()
endfunction()

if(NOS_PRECOMPILE)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # g++ 12 warns of its own std::string in inlined code (GCC bugs 105329, 105651), and no longer
    # knows that a precompiled header is a system header.
    add_compile_options(-Wno-array-bounds -Wno-restrict -Wno-stringop-overflow)
  endif()
  nos_precompiled_header(nos_precompiled_library ${standard})
  nos_precompiled_header(nos_precompiled_commands ${standard} <CLI/CLI.hpp>)
  nos_precompiled_header(nos_precompiled_tests ${standard} <gmock/gmock.h> <gtest/gtest.h>)
  target_compile_options(nos_precompiled_tests PRIVATE ${NOS_TEST_OPTIMIZATION})
  target_link_libraries(nos_precompiled_tests PRIVATE GTest::gmock GTest::gtest)
endif()
