# What the library itself needs. All of it comes from the system; nothing is fetched.
find_package(simdjson REQUIRED)
find_package(ZLIB REQUIRED)
find_package(fmt 9 REQUIRED)

set(simdjson_target simdjson::simdjson)
if(PT2ONNX_STATIC_SIMDJSON)
  find_library(simdjson_archive libsimdjson.a REQUIRED)
  set(simdjson_target ${simdjson_archive})
endif()

# Debian has fmt only as a shared library and as headers. Sources include fmt/core.h, which is quick to compile; src/support/fmt.cc holds the one
# instantiation, so that neither the program nor who embeds the library needs libfmt.so.
add_library(fmt_headers INTERFACE)
target_include_directories(fmt_headers SYSTEM INTERFACE $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)
