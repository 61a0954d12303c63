// The kernels of a dispatcher in first-fit order, and the checks that a library passes before it is let in.
#ifndef KERNELWRIGHT_DISPATCHER_REGISTRY_HPP
#define KERNELWRIGHT_DISPATCHER_REGISTRY_HPP

#include "kernelwright/abi.h"
#include "kernelwright/dispatcher/support/atomic.hpp"
#include "kernelwright/dispatcher/support/text.hpp"
#include "kernelwright/dispatcher/support/vec.hpp"

namespace kernelwright {

struct LibraryEntry {
  const kw_library* library = nullptr;
  uint64_t shared = 0;  // kernels that another library brought before
  Atomic<bool> device_checked;
};

struct KernelEntry {
  const kw_kernel* kernel;
  LibraryEntry* library;
  int32_t priority;
};

class Registry {
 public:
  Registry() = default;
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;
  ~Registry();

  // The kernels of a library that passed check_library, or none. One of an identity that is here already is left out:
  // the first copy stays, with its library and priority. The library itself is listed, so that its models are asked;
  // one that is here already changes nothing. KW_INVALID_ARGUMENT for the name of a kernel of another identity.
  kw_status add(const kw_library* library, int32_t priority, bool device_checked);
  // By name, "arch/name" or identity. KW_INVALID_ARGUMENT with some names when there is none or more than one.
  kw_status find(const char* kernel, KernelEntry** entry) const;
  kw_status set_priority(const char* kernel, int32_t priority);
  void to_json(Text* text) const;

  const Vec<KernelEntry*>& kernels() const { return kernels_; }  // in first-fit order
  const Vec<LibraryEntry*>& libraries() const { return libraries_; }

 private:
  kw_status pick_new(const kw_library& library, Vec<const kw_kernel*>* fresh) const;
  void sort();

  Vec<KernelEntry*> kernels_;
  Vec<LibraryEntry*> libraries_;
};

// ABI version, struct sizes, architecture name, and that every descriptor is complete.
kw_status check_library(const kw_library* library, const char* path);
// Where a library was loaded from, for errors; "no file" of one that lies elsewhere.
void add_path(const kw_library& library, Text* text);
// That the selection models of a library are complete and of this version.
kw_status check_heuristics(const kw_library& library, const char* path);
// Maps a file after checking that it is a whole x86-64 shared object (a truncated one would raise SIGBUS in the
// loader).
kw_status open_library(const char* path, uint32_t digest_check, const kw_library** library);

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_REGISTRY_HPP
