# find_package(kernelwright) for C and C++: the headers and the dispatcher of an installed kernelwright wheel.
#
#   cmake -Dkernelwright_DIR="$(python -m kernelwright.dispatch.tools.command --cmake-dir)" …
#   target_link_libraries(mine PRIVATE kernelwright::dispatcher)   # kernelwright/dispatcher.h and libkernelwright.so
#   target_link_libraries(mine PRIVATE kernelwright::headers)      # the C ABI of kernel libraries alone
#   target_link_libraries(mine PRIVATE kernelwright::gemm_lib)     # kernelwright/dispatcher/gemm_lib.h: CK Tile's functions
#   target_link_libraries(mine PRIVATE kernelwright::conv_lib)     # kernelwright/dispatcher/conv_lib.h: those of convolution
#   target_link_libraries(mine PRIVATE kernelwright::fmha_lib)     # kernelwright/dispatcher/fmha_lib.h: those of attention
get_filename_component(_kernelwright_package "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)

set(_kernelwright_include "${_kernelwright_package}/native/include")
set(_kernelwright_library "${_kernelwright_package}/dispatch/libkernelwright.so")
foreach(_kernelwright_file IN ITEMS "${_kernelwright_include}/kernelwright/dispatcher.h" "${_kernelwright_library}")
  if(NOT EXISTS "${_kernelwright_file}")
    set(kernelwright_FOUND FALSE)
    set(kernelwright_NOT_FOUND_MESSAGE "${_kernelwright_file} is missing; install the kernelwright wheel again")
    return()
  endif()
endforeach()

if(NOT TARGET kernelwright::headers)
  add_library(kernelwright::headers INTERFACE IMPORTED)
  set_target_properties(kernelwright::headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${_kernelwright_include}")
  add_library(kernelwright::dispatcher SHARED IMPORTED)
  set_target_properties(
    kernelwright::dispatcher
    PROPERTIES IMPORTED_LOCATION "${_kernelwright_library}" IMPORTED_NO_SONAME TRUE
               INTERFACE_LINK_LIBRARIES kernelwright::headers)
  foreach(_kernelwright_operation IN ITEMS gemm conv fmha)
    add_library(kernelwright::${_kernelwright_operation}_lib SHARED IMPORTED)
    set_target_properties(
      kernelwright::${_kernelwright_operation}_lib
      PROPERTIES IMPORTED_LOCATION "${_kernelwright_package}/dispatch/libdispatcher_${_kernelwright_operation}_lib.so"
                 IMPORTED_NO_SONAME TRUE INTERFACE_LINK_LIBRARIES kernelwright::headers)
  endforeach()
  unset(_kernelwright_operation)
endif()

unset(_kernelwright_package)
unset(_kernelwright_include)
unset(_kernelwright_library)
unset(_kernelwright_file)
