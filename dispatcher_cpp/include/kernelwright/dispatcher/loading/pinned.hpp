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

// What the file system says of a file: it changes whenever somebody writes into it.
struct FileStamp {
  uint64_t bytes;
  int64_t modified_ns, changed_ns;

  bool operator==(const FileStamp& other) const {
    return bytes == other.bytes && modified_ns == other.modified_ns && changed_ns == other.changed_ns;
  }
};

class PinnedFile {
 public:
  PinnedFile() = default;
  PinnedFile(const PinnedFile&) = delete;
  PinnedFile& operator=(const PinnedFile&) = delete;
  ~PinnedFile();

  // KW_LOAD_FAILED, with the path in the text, for what cannot be opened or is no regular file.
  kw_status open(const char* path);
  uint64_t size() const { return stamp_.bytes; }
  // False unless all bytes are there.
  bool read(void* target, size_t bytes, uint64_t offset) const;
  // load() then insists on these contents.
  bool sha256(char (&hex)[Sha256::kHexBytes]);
  // Maps it and runs its constructors, or finds it mapped; dlclose() ends what dlopen() began. The descriptor of a file
  // that was mapped stays open for the life of the process. KW_LOAD_FAILED, with the path in the text, also where the
  // contents that were hashed are not those that are mapped.
  kw_status load(const char* path, void** handle);
  // How the dynamic linker knows the file, after load().
  const char* name() const { return name_; }

 private:
  bool hash(char (&hex)[Sha256::kHexBytes]) const;
  bool still_holds_what_was_hashed();

  int descriptor_ = -1;
  bool is_kept_ = false;  // the descriptor, by what is mapped
  FileStamp stamp_ = {};
  uint64_t device_ = 0;
  uint64_t inode_ = 0;
  char hex_[Sha256::kHexBytes] = "";  // empty: nobody asked for it
  char name_[48] = "";
};

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_LOADING_PINNED_HPP
