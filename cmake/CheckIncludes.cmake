# Refuses an #include of a room that is not declared. Run by every build of a room:
#   cmake -DROOM=gpu -DDIR=src/gpu -DDEPS=base -DTEST_DEPS= -P CheckIncludes.cmake
# Lists are separated by commas. Tests and doubles may use TEST_DEPS as well.
#
# It reads lines, not C++: so there is one way to write an include of our own, "room/path.h" at the
# start of a line, and <path> is for what is not below src. Whatever else the compiler could take
# for an include is refused, be it a comment before it or a line that goes on in the next one.
cmake_minimum_required(VERSION 3.24)
string(REPLACE "," ";" DEPS "${DEPS}")
string(REPLACE "," ";" TEST_DEPS "${TEST_DEPS}")
list(TRANSFORM TEST_DEPS REPLACE "_testing$" "")

# '#' also as a digraph or trigraph, and all that may come between it and the word.
set(directive "(#|%:|[?][?]=)[ \t]*(/[*]|[?][?]/|\\\\|i[a-z_]*(\\\\|[?][?]/)|include|import)")

function(check_line file line allowed)
  if(NOT line MATCHES "[.][.]" AND line MATCHES "^#include <([^/<>][^<>]*)>$")
    string(REGEX REPLACE "/.*" "" first "${CMAKE_MATCH_1}")
    if(NOT EXISTS ${DIR}/../${first})
      return()
    endif()
  elseif(line MATCHES "^#include \"([a-z]+)/[a-z0-9_/]+[.]h\"$")
    set(used ${CMAKE_MATCH_1})
    if(used IN_LIST allowed)
      return()
    endif()
    message(FATAL_ERROR "${file}: includes room '${used}', which room ${ROOM} does not declare")
  endif()
  message(FATAL_ERROR
    "${file}: '${line}': write #include \"room/path.h\" for what is below src, #include <path> for "
    "the rest, each alone on its line")
endfunction()

file(GLOB_RECURSE files ${DIR}/*.cc ${DIR}/*.h)
foreach(file ${files})
  set(allowed ${ROOM} ${DEPS})
  if(file MATCHES "_test\\.(cc|h)$|/testing/")
    list(APPEND allowed ${TEST_DEPS})
  endif()
  file(STRINGS ${file} lines REGEX "${directive}" ENCODING UTF-8)
  foreach(line ${lines})
    check_line(${file} "${line}" "${allowed}")
  endforeach()
endforeach()
