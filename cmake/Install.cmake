# cmake --install: the library, its headers, the package config for find_package(pt2onnx), and the program.
include(CMakePackageConfigHelpers)

set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/pt2onnx)
install(TARGETS pt2onnx EXPORT pt2onnx ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/pt2onnx DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT pt2onnx NAMESPACE pt2onnx:: FILE pt2onnx-targets.cmake DESTINATION ${config_folder})
if(PT2ONNX_PROGRAM)
  install(TARGETS pt2onnx_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
configure_package_config_file(cmake/pt2onnx-config.cmake.in ${PROJECT_BINARY_DIR}/pt2onnx-config.cmake INSTALL_DESTINATION ${config_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/pt2onnx-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/pt2onnx-config.cmake ${PROJECT_BINARY_DIR}/pt2onnx-config-version.cmake DESTINATION ${config_folder})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
