// Kernel libraries by files and folders.
#ifndef KERNELWRIGHT_DISPATCHER_COMPAT_KERNEL_FILES_HPP
#define KERNELWRIGHT_DISPATCHER_COMPAT_KERNEL_FILES_HPP

#include "kernelwright/dispatcher.h"

namespace kernelwright {

// Adds the libraries of a list separated by colons, in its order; lib*.so and <folder>/lib*.so of folders by name.
// Those for other devices are left out. KW_LOAD_FAILED if none is left, with the reason against each.
kw_status add_kernel_files(kw_dispatcher* dispatcher, const char* list);
// KW_OK and the backend of all kernels; KW_INVALID_ARGUMENT if they have several.
kw_status common_backend(kw_dispatcher* dispatcher, uint32_t* backend);

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_COMPAT_KERNEL_FILES_HPP
