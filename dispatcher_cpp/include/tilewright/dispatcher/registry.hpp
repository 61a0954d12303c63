// The kernels of a dispatcher in first-fit order, and the checks that a library passes before it is let in.
#ifndef TILEWRIGHT_DISPATCHER_REGISTRY_HPP
#define TILEWRIGHT_DISPATCHER_REGISTRY_HPP

#include "tilewright/abi.h"
#include "tilewright/dispatcher/atomic.hpp"
#include "tilewright/dispatcher/text.hpp"
#include "tilewright/dispatcher/vec.hpp"

namespace tilewright {

struct LibraryEntry {
  const tw_library* library = nullptr;
  Atomic<bool> device_checked;
};

struct KernelEntry {
  const tw_kernel* kernel;
  LibraryEntry* library;
  int32_t priority;
};

class Registry {
 public:
  Registry() = default;
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;
  ~Registry();

  // All kernels of a library that passed check_library, or none.
  tw_status add(const tw_library* library, int32_t priority, bool device_checked);
  // By name, "arch/name" or identity. TW_INVALID_ARGUMENT with the nearest names when there is none or more than one.
  tw_status find(const char* kernel, KernelEntry** entry);
  tw_status set_priority(const char* kernel, int32_t priority);
  void to_json(Text* text) const;

  const Vec<KernelEntry*>& kernels() const { return kernels_; }  // in first-fit order
  const Vec<LibraryEntry*>& libraries() const { return libraries_; }

 private:
  tw_status check_new(const tw_library& library) const;
  void sort();

  Vec<KernelEntry*> kernels_;
  Vec<LibraryEntry*> libraries_;
};

// ABI version, struct sizes, architecture name, and that every descriptor is complete.
tw_status check_library(const tw_library* library, const char* path);
// Maps a file after checking that it is a whole x86-64 shared object (a truncated one would raise SIGBUS in the
// loader).
tw_status open_library(const char* path, const tw_library** library);

}  // namespace tilewright

#endif  // TILEWRIGHT_DISPATCHER_REGISTRY_HPP
