// A file that is opened once: hashed and loaded through one descriptor.
//
// Loading by path would load another file if the path were renamed over after the comparison. A descriptor cannot be
// redirected, and /proc names it to the dynamic linker.
#ifndef KERNELWRIGHT_DISPATCHER_LOADING_PINNED_HPP
#define KERNELWRIGHT_DISPATCHER_LOADING_PINNED_HPP

#include <stddef.h>
#include <stdint.h>

#include "kernelwright/abi.h"
#include "kernelwright/dispatcher/loading/sha256.hpp"

namespace kernelwright {

class PinnedFile {
 public:
  PinnedFile() = default;
  PinnedFile(const PinnedFile&) = delete;
  PinnedFile& operator=(const PinnedFile&) = delete;
  ~PinnedFile();

  // KW_LOAD_FAILED, with the path in the text, for what cannot be opened or is no regular file.
  kw_status open(const char* path);
  uint64_t size() const { return size_; }
  // False unless all bytes are there.
  bool read(void* target, size_t bytes, uint64_t offset) const;
  bool sha256(char (&hex)[Sha256::kHexBytes]) const;
  // Maps it and runs its constructors, or finds it mapped; dlclose() ends what dlopen() began. The descriptor of a file
  // that was mapped stays open for the life of the process. Null, with the reason in dlerror(), on failure.
  void* load();
  // How the dynamic linker knows the file, after load().
  const char* name() const { return name_; }

 private:
  int descriptor_ = -1;
  uint64_t size_ = 0;
  uint64_t device_ = 0;
  uint64_t inode_ = 0;
  char name_[48] = "";
};

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_LOADING_PINNED_HPP
