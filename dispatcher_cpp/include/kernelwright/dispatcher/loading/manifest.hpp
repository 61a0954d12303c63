// The manifest.json beside a library, as far as it says whether a file is that library.
#ifndef KERNELWRIGHT_DISPATCHER_LOADING_MANIFEST_HPP
#define KERNELWRIGHT_DISPATCHER_LOADING_MANIFEST_HPP

#include "kernelwright/dispatcher/loading/pinned.hpp"

namespace kernelwright {

// KW_OK if manifest.json in the folder of path describes the file of that name, with the digest of the open file.
kw_status check_manifest(const char* path, PinnedFile& file);

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_LOADING_MANIFEST_HPP
