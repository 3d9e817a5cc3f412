# Writes build_info_values.h with the version, commit and settings of the build, which the manifest
# of a run repeats. CMakeLists.txt runs this file at every build.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  set(commit "unknown")  # built from an archive without git
endif()
set(content "#define CONVOY_VERSION \"${VERSION}\"\n#define CONVOY_COMMIT \"${commit}\"\n")
string(APPEND content "#define CONVOY_BUILD_TYPE \"${BUILD_TYPE}\"\n#define CONVOY_WITH_CUDA \"${CUDA}\"\n")
set(previous "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} previous)
endif()
if(NOT previous STREQUAL content)
  file(WRITE ${OUTPUT} "${content}")
endif()
