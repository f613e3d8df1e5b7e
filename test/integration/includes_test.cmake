# A wrong dependency does not build, however it is spelt: tries the check of cmake/CheckIncludes.cmake
# on a room `gpu` that declares `base`, one spelling after the other.
#   cmake -DCHECK=cmake/CheckIncludes.cmake -DWORK=folder -P includes_test.cmake
cmake_minimum_required(VERSION 3.24)
file(REMOVE_RECURSE ${WORK})
foreach(room base gpu kube codec)
  file(WRITE ${WORK}/src/${room}/api.h "#pragma once\n")
endforeach()

function(check name text result)
  file(WRITE ${WORK}/src/gpu/${name} "${text}\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -DROOM=gpu -DDIR=${WORK}/src/gpu -DDEPS=base
                          -DTEST_DEPS=kube_testing -P ${CHECK}
                  RESULT_VARIABLE code ERROR_VARIABLE error)
  file(REMOVE ${WORK}/src/gpu/${name})
  if(result STREQUAL "taken" AND NOT code EQUAL 0)
    message(SEND_ERROR "refused, but is right:\n${text}\n${error}")
  elseif(result STREQUAL "refused" AND code EQUAL 0)
    message(SEND_ERROR "taken, but is wrong:\n${text}")
  endif()
endfunction()

check(a.cc "#include \"base/api.h\"" taken)
check(a.cc "#include \"gpu/api.h\"\n#include <sys/stat.h>\n#include <string>" taken)
check(a.cc "#define X 1 \\\n  + 2\n#if X\n#endif\n// no # here; [brackets\nint i;" taken)
check(a_test.cc "#include \"kube/api.h\"" taken)
check(testing/a.h "#include \"kube/api.h\"" taken)
foreach(wrong
    "#include \"kube/api.h\""
    "#include <kube/api.h>"
    "#include \"../kube/api.h\""
    "#include <../src/kube/api.h>"
    "#include \"base/../kube/api.h\""
    "#include \"${WORK}/src/kube/api.h\""
    "#include <${WORK}/src/kube/api.h>"
    "#  include \"kube/api.h\""
    "  #include \"kube/api.h\""
    "#include  \"kube/api.h\""
    "#include\"kube/api.h\""
    "#include \"kube/api.h\" // why"
    "/* */ #include \"kube/api.h\""
    "/*\n*/ #include \"kube/api.h\""
    "#/* */include \"kube/api.h\""
    "# /*\n*/ include \"kube/api.h\""
    "#\\\ninclude \"kube/api.h\""
    "#incl\\\nude \"kube/api.h\""
    "#include \\\n\"kube/api.h\""
    "%:include \"kube/api.h\""
    "#include_next <kube/api.h>"
    "#import \"kube/api.h\""
    "#define API \"kube/api.h\"\n#include API"
    "#include \"api.h\"")
  check(a.cc "${wrong}" refused)
endforeach()
check(a.h "#include \"kube/api.h\"" refused)
check(a_test.cc "#include \"codec/api.h\"" refused)
