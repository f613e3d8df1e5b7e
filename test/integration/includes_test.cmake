# An undeclared dependency does not build, in any spelling: runs cmake/CheckIncludes.cmake on a
# library `gpu` that declares `base` and the parts model <- search <- explain, one spelling after
# the other.
#   cmake -DCHECK=cmake/CheckIncludes.cmake -DWORK=folder -P includes_test.cmake
cmake_minimum_required(VERSION 3.24)
file(REMOVE_RECURSE ${WORK})
foreach(library base gpu kube codec)
  file(WRITE ${WORK}/src/${library}/api.h "#pragma once\n")
endforeach()
foreach(path base/inner/detail base/plugins/one kube/testing/fake gpu/model/a gpu/search/a
        gpu/explain/a)
  file(WRITE ${WORK}/src/${path}.h "#pragma once\n")
endforeach()
file(WRITE ${WORK}/src/gpu/model/a_test.h "#pragma once\n")
file(WRITE ${WORK}/src/base/testing/fake.h "#pragma once\n")
string(ASCII 11 vertical_tab)
string(ASCII 12 form_feed)
file(WRITE ${WORK}/src/gpu/search.h "#pragma once\n#include \"gpu/search/a.h\"\n")
file(WRITE ${WORK}/src/gpu/plan.h "#pragma once\n#include \"gpu/search.h\"\n")

function(check name text result)
  file(WRITE ${WORK}/src/gpu/${name} "${text}\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -DLIBRARY=gpu -DDIR=${WORK}/src/gpu -DDEPS=base
                          -DTEST_DEPS=kube_testing -DPARTS=model,search:model,explain:search+model
                          -DOPEN=base/plugins -DROOTS=${WORK}/src -P ${CHECK}
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
    "#${form_feed}include \"kube/api.h\""
    "#${vertical_tab}include \"kube/api.h\""
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

# Parts: only declared ones, directly or through an interface header.
check(search/b.cc "#include \"gpu/model/a.h\"" taken)
check(search/b.cc "#include \"gpu/search/a.h\"\n#include \"gpu/api.h\"" taken)
check(explain/b.cc "#include \"gpu/plan.h\"" taken)
check(model/b.cc "#include \"gpu/search/a.h\"" refused)
check(model/b.cc "#include \"gpu/search.h\"" refused)
check(model/b.cc "#include \"gpu/plan.h\"" refused)
check(model/b_test.cc "#include \"gpu/search/a.h\"" taken)
check(gpu.cc "#include \"gpu/explain/a.h\"" taken)
check(other/b.cc "#include <string>\n#include \"gpu/api.h\"" refused)
check(model/b.cc "#include \"base/inner/detail.h\"" refused)
check(model/b.cc "#include \"base/plugins/one.h\"" taken)
check(model/b_test.cc "#include \"kube/testing/fake.h\"" taken)
# What is for tests only.
check(model/b.cc "#include \"gpu/model/a_test.h\"" refused)
check(model/b.cc "#include \"base/testing/fake.h\"" refused)
check(model/b_test.cc "#include \"gpu/model/a_test.h\"" taken)
