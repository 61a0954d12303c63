# find_package(tilewright) for C and C++: the headers and the dispatcher of an installed tilewright wheel.
#
#   cmake -Dtilewright_DIR="$(python -m tilewright.dispatch.command --cmake-dir)" …
#   target_link_libraries(mine PRIVATE tilewright::dispatcher)   # tilewright/dispatcher.h and libtilewright.so
#   target_link_libraries(mine PRIVATE tilewright::headers)      # the C ABI of kernel libraries alone
#   target_link_libraries(mine PRIVATE tilewright::gemm_lib)     # tilewright/dispatcher/gemm_lib.h: CK Tile's functions
get_filename_component(_tilewright_package "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)

set(_tilewright_include "${_tilewright_package}/native/include")
set(_tilewright_library "${_tilewright_package}/dispatch/libtilewright.so")
foreach(_tilewright_file IN ITEMS "${_tilewright_include}/tilewright/dispatcher.h" "${_tilewright_library}")
  if(NOT EXISTS "${_tilewright_file}")
    set(tilewright_FOUND FALSE)
    set(tilewright_NOT_FOUND_MESSAGE "${_tilewright_file} is missing; install the tilewright wheel again")
    return()
  endif()
endforeach()

if(NOT TARGET tilewright::headers)
  add_library(tilewright::headers INTERFACE IMPORTED)
  set_target_properties(tilewright::headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${_tilewright_include}")
  add_library(tilewright::dispatcher SHARED IMPORTED)
  set_target_properties(
    tilewright::dispatcher
    PROPERTIES IMPORTED_LOCATION "${_tilewright_library}" IMPORTED_NO_SONAME TRUE
               INTERFACE_LINK_LIBRARIES tilewright::headers)
  add_library(tilewright::gemm_lib SHARED IMPORTED)
  set_target_properties(
    tilewright::gemm_lib
    PROPERTIES IMPORTED_LOCATION "${_tilewright_package}/dispatch/libdispatcher_gemm_lib.so" IMPORTED_NO_SONAME TRUE
               INTERFACE_LINK_LIBRARIES tilewright::headers)
endif()

unset(_tilewright_package)
unset(_tilewright_include)
unset(_tilewright_library)
unset(_tilewright_file)
