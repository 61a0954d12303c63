// Kernel libraries by files and folders.
#ifndef TILEWRIGHT_DISPATCHER_KERNEL_FILES_HPP
#define TILEWRIGHT_DISPATCHER_KERNEL_FILES_HPP

#include "tilewright/dispatcher.h"

namespace tilewright {

// Adds the libraries of a list separated by colons, in its order; lib*.so and <folder>/lib*.so of folders by name.
// Those for other devices are left out. TW_LOAD_FAILED if none is left, with the reason against each.
tw_status add_kernel_files(tw_dispatcher* dispatcher, const char* list);
// TW_OK and the backend of all kernels; TW_INVALID_ARGUMENT if they have several.
tw_status common_backend(tw_dispatcher* dispatcher, uint32_t* backend);

}  // namespace tilewright

#endif  // TILEWRIGHT_DISPATCHER_KERNEL_FILES_HPP
