# A room is one library below src/. It declares its layer and the rooms it uses; using a room of the
# same or a higher layer stops the configuration, and an #include of a room not declared stops the
# build of the room.
#
#   nos_room(gpu LAYER 1 DEPS base LIBS yaml-cpp)
#
# All *.cc files of the folder (recursively) belong to the room, except:
#   *_test.cc      unit tests, linked into one binary nos_<room>_test
#   testing/*.cc   doubles for other rooms' tests, library nos_<room>_testing
#   main.cc        the program's entry point
# TEST_DEPS names further rooms (or nos_<room>_testing libraries) that only the tests use.

include(GoogleTest)

function(nos_room name)
  cmake_parse_arguments(ROOM "" "LAYER" "DEPS;LIBS;TEST_DEPS" ${ARGN})
  set(dir ${CMAKE_CURRENT_SOURCE_DIR})
  set_property(GLOBAL PROPERTY nos_layer_${name} ${ROOM_LAYER})

  foreach(dep ${ROOM_DEPS})
    get_property(dep_layer GLOBAL PROPERTY nos_layer_${dep})
    if(dep_layer STREQUAL "")
      message(FATAL_ERROR "room ${name}: unknown room '${dep}' (rooms are declared bottom-up)")
    endif()
    if(NOT dep_layer LESS ROOM_LAYER)
      message(FATAL_ERROR
        "room ${name} (layer ${ROOM_LAYER}) may not depend on ${dep} (layer ${dep_layer})")
    endif()
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
  nos_precompiled(nos_${name})
  nos_check_includes(${name} "${ROOM_DEPS}" "${ROOM_TEST_DEPS}" ${sources} ${tests} ${doubles}
                     ${headers})
  target_include_directories(nos_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  set(public ${headers})
  list(FILTER public EXCLUDE REGEX "_test\\.h$")
  target_sources(nos_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR}/src
                                    FILES ${public})
  list(TRANSFORM ROOM_DEPS PREPEND nos_ OUTPUT_VARIABLE dep_targets)
  target_link_libraries(nos_${name} PUBLIC ${dep_targets} PRIVATE ${ROOM_LIBS})

  if(doubles)
    add_library(nos_${name}_testing STATIC ${doubles})
    nos_precompiled(nos_${name}_testing)
    target_link_libraries(nos_${name}_testing PUBLIC nos_${name} PRIVATE ${ROOM_LIBS})
  endif()
  if(tests)
    nos_test(nos_${name}_test ${tests})
    target_link_libraries(nos_${name}_test PRIVATE nos_${name})
    if(TARGET nos_${name}_testing)
      target_link_libraries(nos_${name}_test PRIVATE nos_${name}_testing)
    endif()
    list(TRANSFORM ROOM_TEST_DEPS PREPEND nos_)
    target_link_libraries(nos_${name}_test PRIVATE ${ROOM_TEST_DEPS} ${ROOM_LIBS})
  endif()
endfunction()

# A GoogleTest binary whose cases ctest knows one by one.
function(nos_test name)
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARGN})
  nos_precompiled(${name} tests)
  target_link_libraries(${name} PRIVATE GTest::gmock GTest::gtest GTest::gtest_main)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 120 PROPERTIES TIMEOUT 900
                       WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
endfunction()

# Looks at what is included whenever one of the files has changed, before the room is compiled.
function(nos_check_includes name deps test_deps)
  set(stamp ${CMAKE_CURRENT_BINARY_DIR}/includes.stamp)
  list(JOIN deps "," deps)
  list(JOIN test_deps "," test_deps)
  add_custom_command(OUTPUT ${stamp}
    COMMAND ${CMAKE_COMMAND} -DROOM=${name} -DDIR=${CMAKE_CURRENT_SOURCE_DIR} -DDEPS=${deps}
            -DTEST_DEPS=${test_deps} -P ${CMAKE_SOURCE_DIR}/cmake/CheckIncludes.cmake
    COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
    DEPENDS ${ARGN} ${CMAKE_SOURCE_DIR}/cmake/CheckIncludes.cmake VERBATIM
    COMMENT "Checking what ${name} includes")
  add_custom_target(nos_${name}_includes DEPENDS ${stamp})
  add_dependencies(nos_${name} nos_${name}_includes)
endfunction()
