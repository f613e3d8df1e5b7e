# An undeclared dependency does not build, in any spelling: runs cmake/check_library.pl on a library
# `gpu` that declares `base` and the parts model <- search <- explain, one spelling after the other, and on
# compiled files that call each other.
#   cmake -DCHECK=cmake/check_library.pl -DPERL=perl -DCXX=c++ -DNM=nm -DWORK=folder -P includes_test.cmake
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
foreach(code 1 11 12 13)
  string(ASCII ${code} control_${code})
endforeach()
file(WRITE ${WORK}/src/gpu/search.h "#pragma once\n#include \"gpu/search/a.h\"\n")
file(WRITE ${WORK}/src/gpu/plan.h "#pragma once\n#include \"gpu/search.h\"\n")
# Its source lies in a part, so it belongs to that part.
file(WRITE ${WORK}/src/gpu/finder.h "#pragma once\nint Find(int most);\n")
file(WRITE ${WORK}/src/gpu/search/finder.cc "#include \"gpu/finder.h\"\nint Find(int most) { return most; }\n")

set(parts parts=model,search:model,explain:search+model)
function(expect text result code error)
  if(result STREQUAL "taken" AND NOT code EQUAL 0)
    message(SEND_ERROR "refused, but is right:\n${text}\n${error}")
  elseif(result STREQUAL "refused" AND code EQUAL 0)
    message(SEND_ERROR "taken, but is wrong:\n${text}")
  elseif(result STREQUAL "refused" AND NOT code EQUAL 1)
    message(SEND_ERROR "failed:\n${text}\n${error}")
  endif()
endfunction()

function(check name text result)
  file(WRITE ${WORK}/src/gpu/${name} "${text}\n")
  execute_process(COMMAND ${PERL} ${CHECK} includes library=gpu dir=${WORK}/src/gpu deps=base
                          test_deps=kube_testing ${parts} open=base/plugins roots=${WORK}/src
                  RESULT_VARIABLE code ERROR_VARIABLE error)
  file(REMOVE ${WORK}/src/gpu/${name})
  expect("${name}: ${text}" ${result} "${code}" "${error}")
endfunction()

check(model/c.cc "#include \"base/api.h\"" taken)
check(model/c.cc "#include \"gpu/api.h\"\n#include <sys/stat.h>\n#include <string>" taken)
check(model/c.cc "#define X 1 \\\n  + 2\n#if X\n#endif\n// no # here; [brackets\nint i;" taken)
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
    "#${control_12}include \"kube/api.h\""
    "#${control_11}include \"kube/api.h\""
    "${control_1}#include \"kube/api.h\""
    "// one line?${control_13}#include \"kube/api.h\""
    "#if 0\n#include <[a\n#endif\n#include \"kube/api.h\""
    "#if 0\n#include <[a\n#endif\n#include \"kube/api.h\" // ]>"
    "#if 0\n#include \"base/api.h\\\n#endif\n#include \"kube/api.h\""
    "// [ ; ]\n#include \"kube/api.h\""
    "#define A [\n#include \"kube/api.h\"\n#define B ]"
    "int i;#include \"kube/api.h\""
    "#\\\ninclude \"kube/api.h\""
    "#incl\\\nude \"kube/api.h\""
    "#include \\\n\"kube/api.h\""
    "%:include \"kube/api.h\""
    "#include_next <kube/api.h>"
    "#import \"kube/api.h\""
    "#define API \"kube/api.h\"\n#include API"
    "#include \"api.h\"")
  check(model/c.cc "${wrong}" refused)
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
# The header and the source with the name of a part belong to it; so does a header whose source lies in it.
check(explain.cc "#include \"gpu/search/a.h\"" taken)
check(model.cc "#include \"gpu/search/a.h\"" refused)
check(model.h "#include \"gpu/search/a.h\"" refused)
check(gpu.cc "#include \"gpu/api.h\"" refused)
check(explain/b.cc "#include \"gpu/finder.h\"" taken)
check(model/b.cc "#include \"gpu/finder.h\"" refused)
check(model/b.h "#include \"gpu/finder.h\"" refused)
check(model/b_test.cc "#include \"gpu/finder.h\"" taken)
check(other/b.cc "#include <string>\n#include \"gpu/api.h\"" refused)
check(model/b.cc "#include \"base/inner/detail.h\"" refused)
check(model/b.cc "#include \"base/plugins/one.h\"" taken)
check(model/b_test.cc "#include \"kube/testing/fake.h\"" taken)
# Headers for tests only.
check(model/b.cc "#include \"gpu/model/a_test.h\"" refused)
check(model/b.cc "#include \"base/testing/fake.h\"" refused)
check(model/b_test.cc "#include \"gpu/model/a_test.h\"" taken)

# Calls, however they are declared: each source with what it defines or uses.
set(objects ${WORK}/objects)
function(check_calls part use result)
  file(REMOVE_RECURSE ${objects})
  file(WRITE ${WORK}/${part}.cc "${use}\n")
  set(sources ${WORK}/src/gpu/search/finder.cc ${WORK}/${part}.cc)
  set(compiled ${objects}/search/finder.cc.o ${objects}/${part}.cc.o)
  foreach(source object IN ZIP_LISTS sources compiled)
    cmake_path(GET object PARENT_PATH folder)
    file(MAKE_DIRECTORY ${folder})
    execute_process(COMMAND ${CXX} -std=c++20 -I${WORK}/src -c ${source} -o ${object}
                    COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  execute_process(COMMAND ${PERL} ${CHECK} calls library=gpu dir=${WORK}/src/gpu ${parts} nm=${NM}
                          objects=${objects} ${compiled}
                  RESULT_VARIABLE code ERROR_VARIABLE error)
  expect("${part}.cc: ${use}" ${result} "${code}" "${error}")
endfunction()
set(call "int Find(int most);\nint Least() { return Find(1); }")
check_calls(explain/b "${call}" taken)
check_calls(explain "${call}" taken)
check_calls(search/b "${call}" taken)
check_calls(model/b "${call}" refused)
check_calls(model/inner/b "${call}" refused)
check_calls(model "${call}" refused)
check_calls(model/b "static int Find(int most) { return most; }\nint Least() { return Find(1); }" taken)
