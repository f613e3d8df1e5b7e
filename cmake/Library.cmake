# A library is one folder below src/ (or study/). It declares its layer and the libraries it uses;
# using a library of the same or a higher layer stops the configuration, and an #include of a library
# that is not declared stops the build.
#
#   nos_library(planning LAYER 5 DEPS base gpu LIBS fmt::fmt
#               PARTS model optimize:model scaling:model,optimize)
#
# Headers at the top of the folder are the interface of the library: other libraries include only
# those. Everything else lies in parts, sub-folders whose names say what is decided there. PARTS lists
# them bottom-up, each with the parts that it may use; the build refuses every other include, and every
# other call once the library is compiled (check_library.pl).
# OPEN names parts whose headers other libraries may include too (one folder for each plugin).
#
# All *.cc files of the folder (recursively) belong to the library, except:
#   *_test.cc      unit tests, linked into one binary nos_<library>_test
#   testing/*.cc   doubles for the tests of other libraries, library nos_<library>_testing
#   main.cc        the entry point of a program
# TEST_DEPS names further libraries (or nos_<library>_testing) that only the tests use.

include(GoogleTest)
find_program(PERL perl REQUIRED)

add_custom_target(unit_tests)

function(nos_library name)
  cmake_parse_arguments(LIBRARY "" "LAYER" "DEPS;LIBS;TEST_DEPS;PARTS;OPEN" ${ARGN})
  set(dir ${CMAKE_CURRENT_SOURCE_DIR})
  set_property(GLOBAL PROPERTY nos_layer_${name} ${LIBRARY_LAYER})
  set_property(GLOBAL PROPERTY nos_open_${name} ${LIBRARY_OPEN})

  set(open)
  foreach(dep ${LIBRARY_DEPS})
    get_property(dep_layer GLOBAL PROPERTY nos_layer_${dep})
    if(dep_layer STREQUAL "")
      message(FATAL_ERROR
        "library ${name}: unknown library '${dep}' (libraries are declared bottom-up)")
    endif()
    if(NOT dep_layer LESS LIBRARY_LAYER)
      message(FATAL_ERROR
        "library ${name} (layer ${LIBRARY_LAYER}) may not depend on ${dep} (layer ${dep_layer})")
    endif()
    get_property(dep_open GLOBAL PROPERTY nos_open_${dep})
    list(TRANSFORM dep_open PREPEND ${dep}/)
    list(APPEND open ${dep_open})
  endforeach()

  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${dir}/*.cc)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${dir}/*.h)
  set(tests ${sources})
  set(doubles ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER doubles INCLUDE REGEX "/testing/[^/]*\\.cc$")
  list(FILTER doubles EXCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cc$|/testing/")
  add_library(nos_${name} STATIC ${sources})
  if(CLI11::CLI11 IN_LIST LIBRARY_LIBS)
    nos_precompiled(nos_${name} commands)
  else()
    nos_precompiled(nos_${name})
  endif()
  nos_check(${name} DEPS ${LIBRARY_DEPS} TEST_DEPS ${LIBRARY_TEST_DEPS}
            PARTS ${LIBRARY_PARTS} OPEN ${open} FILES ${sources} ${tests} ${doubles} ${headers})
  cmake_path(GET dir PARENT_PATH root)
  target_include_directories(nos_${name} PUBLIC ${root})
  set(public ${headers})
  list(FILTER public EXCLUDE REGEX "_test\\.h$")
  target_sources(nos_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${root} FILES ${public})
  list(TRANSFORM LIBRARY_DEPS PREPEND nos_ OUTPUT_VARIABLE dep_targets)
  target_link_libraries(nos_${name} PUBLIC ${dep_targets} PRIVATE ${LIBRARY_LIBS})

  if(doubles)
    add_library(nos_${name}_testing STATIC ${doubles})
    nos_precompiled(nos_${name}_testing)
    target_link_libraries(nos_${name}_testing PUBLIC nos_${name} PRIVATE ${LIBRARY_LIBS})
  endif()
  if(tests)
    nos_test(nos_${name}_test ${tests})
    target_link_libraries(nos_${name}_test PRIVATE nos_${name})
    if(TARGET nos_${name}_testing)
      target_link_libraries(nos_${name}_test PRIVATE nos_${name}_testing)
    endif()
    list(TRANSFORM LIBRARY_TEST_DEPS PREPEND nos_)
    target_link_libraries(nos_${name}_test PRIVATE ${LIBRARY_TEST_DEPS} ${LIBRARY_LIBS})
  endif()
endfunction()

# A GoogleTest binary whose cases ctest knows one by one.
function(nos_test name)
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARGN})
  add_dependencies(unit_tests ${name})
  nos_precompiled(${name} tests)
  target_link_libraries(${name} PRIVATE GTest::gmock GTest::gtest GTest::gtest_main)
  # Rows of a table appear by their names, without the bytes of their parameters.
  gtest_discover_tests(${name} NO_PRETTY_VALUES DISCOVERY_TIMEOUT 120
                       PROPERTIES TIMEOUT 900 LABELS unit WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
endfunction()

# Checks the includes of a library whenever one of its files has changed, before it is compiled, and what
# its parts call, after.
function(nos_check name)
  cmake_parse_arguments(CHECK "" "" "DEPS;TEST_DEPS;PARTS;OPEN;FILES" ${ARGN})
  set(stamp ${CMAKE_CURRENT_BINARY_DIR}/includes.stamp)
  string(REPLACE "," "+" parts "${CHECK_PARTS}")
  list(JOIN parts "," parts)
  list(JOIN CHECK_DEPS "," deps)
  list(JOIN CHECK_TEST_DEPS "," test_deps)
  list(JOIN CHECK_OPEN "," open)
  set(script ${CMAKE_SOURCE_DIR}/cmake/check_library.pl)
  set(library library=${name} dir=${CMAKE_CURRENT_SOURCE_DIR} parts=${parts})
  add_custom_command(OUTPUT ${stamp}
    COMMAND ${PERL} ${script} includes ${library} deps=${deps} test_deps=${test_deps} open=${open}
            roots=${CMAKE_SOURCE_DIR}/src,${CMAKE_SOURCE_DIR}
    COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
    DEPENDS ${CHECK_FILES} ${script} ${CMAKE_CURRENT_SOURCE_DIR}/CMakeLists.txt VERBATIM
    COMMENT "Checking what ${name} includes")
  add_custom_target(nos_${name}_includes DEPENDS ${stamp})
  add_dependencies(nos_${name} nos_${name}_includes)
  if(parts)
    add_custom_command(TARGET nos_${name} POST_BUILD
      COMMAND ${PERL} ${script} calls ${library} nm=${CMAKE_NM}
              objects=${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/nos_${name}.dir $<TARGET_OBJECTS:nos_${name}>
      VERBATIM COMMAND_EXPAND_LISTS)
  endif()
endfunction()
