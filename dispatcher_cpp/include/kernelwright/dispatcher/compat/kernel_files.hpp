// Kernel libraries by files and folders.
#ifndef KERNELWRIGHT_DISPATCHER_COMPAT_KERNEL_FILES_HPP
#define KERNELWRIGHT_DISPATCHER_COMPAT_KERNEL_FILES_HPP

#include "kernelwright/dispatcher.h"
#include "kernelwright/dispatcher/support/vec.hpp"

namespace kernelwright {

// Libraries stay mapped, so pointers to them stay valid.
using Libraries = Vec<const kw_library*>;

// Loads the libraries of a list separated by colons, in its order; lib*.so and <folder>/lib*.so of folders by name.
// KW_LOAD_FAILED if there are none. Touches no device.
kw_status load_kernel_files(const char* list, Libraries* libraries);
// Adds those that the dispatcher's device runs. KW_LOAD_FAILED if it runs none, with the reason against each.
kw_status add_libraries(kw_dispatcher* dispatcher, const Libraries& libraries);
// KW_OK and the backend of all kernels; KW_INVALID_ARGUMENT if they have several.
kw_status common_backend(kw_dispatcher* dispatcher, uint32_t* backend);

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_COMPAT_KERNEL_FILES_HPP
