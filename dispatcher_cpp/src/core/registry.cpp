#include "kernelwright/dispatcher/registry.hpp"

#include <string.h>

#include "kernelwright/dispatcher/support/error.hpp"
#include "kernelwright/dispatcher/support/sort.hpp"

namespace kernelwright {
namespace {

bool first_fit_order(const KernelEntry* left, const KernelEntry* right) {
  if (left->priority != right->priority) return left->priority > right->priority;
  if (const int names = strcmp(left->kernel->name, right->kernel->name)) return names < 0;
  if (const int archs = strcmp(left->kernel->arch, right->kernel->arch)) return archs < 0;
  return strcmp(left->kernel->identity, right->kernel->identity) < 0;
}

bool is_called(const kw_kernel& kernel, const char* wanted) {
  if (strcmp(kernel.name, wanted) == 0 || strcmp(kernel.identity, wanted) == 0) return true;
  const size_t arch = strlen(kernel.arch);
  return strncmp(wanted, kernel.arch, arch) == 0 && wanted[arch] == '/' && strcmp(wanted + arch + 1, kernel.name) == 0;
}

}  // namespace

Registry::~Registry() {
  for (KernelEntry* entry : kernels_) destroy_object(entry);
  for (LibraryEntry* entry : libraries_) destroy_object(entry);
}

kw_status Registry::check_new(const kw_library& library) const {
  for (uint64_t i = 0; i < library.kernel_count; ++i) {
    const kw_kernel& kernel = *library.kernels[i];
    const auto clash = [&](const kw_kernel& other, const char* where) {
      const bool same_identity = strcmp(kernel.identity, other.identity) == 0;
      const bool same_name = strcmp(kernel.name, other.name) == 0 && strcmp(kernel.arch, other.arch) == 0;
      if (!same_identity && !same_name) return KW_OK;
      return fail(KW_INVALID_ARGUMENT,
                  "library %s: kernel %s/%s (%.12s…) has the %s of a kernel that %s brought; "
                  "add each kernel once",
                  library.name, kernel.arch, kernel.name, kernel.identity, same_identity ? "identity" : "name", where);
    };
    for (const KernelEntry* entry : kernels_) {
      if (kw_status status = clash(*entry->kernel, entry->library->library->name)) return status;
    }
    for (uint64_t j = 0; j < i; ++j) {
      if (kw_status status = clash(*library.kernels[j], library.name)) return status;
    }
  }
  return KW_OK;
}

kw_status Registry::add(const kw_library* library, int32_t priority, bool device_checked) {
  if (kw_status status = check_new(*library)) return status;
  if (!kernels_.reserve(kernels_.size() + library->kernel_count) || !libraries_.reserve(libraries_.size() + 1)) {
    return fail(KW_OUT_OF_MEMORY, "library %s: no memory for its kernels", library->name);
  }
  LibraryEntry* owner = make_object<LibraryEntry>();
  if (owner == nullptr) return fail(KW_OUT_OF_MEMORY, "library %s: no memory", library->name);
  owner->library = library;
  owner->device_checked.release(device_checked);
  const size_t before = kernels_.size();
  bool complete = true;
  for (uint64_t i = 0; i < library->kernel_count && complete; ++i) {
    KernelEntry* entry = make_object<KernelEntry>();
    complete = entry != nullptr;
    if (!complete) break;
    *entry = KernelEntry{library->kernels[i], owner, priority};
    complete = kernels_.push(entry);
  }
  if (!complete || !libraries_.push(owner)) {
    for (size_t i = before; i < kernels_.size(); ++i) destroy_object(kernels_[i]);
    kernels_.resize_down(before);
    destroy_object(owner);
    return fail(KW_OUT_OF_MEMORY, "library %s: no memory for its kernels", library->name);
  }
  sort();
  return KW_OK;
}

void Registry::sort() { kernelwright::sort(kernels_.begin(), kernels_.size(), first_fit_order); }

kw_status Registry::find(const char* kernel, KernelEntry** entry) const {
  if (kernel == nullptr) return fail(KW_INVALID_ARGUMENT, "kernel is null; allowed: a name, arch/name or identity");
  *entry = nullptr;
  for (KernelEntry* candidate : kernels_) {
    if (!is_called(*candidate->kernel, kernel)) continue;
    if (*entry != nullptr) {
      return fail(KW_INVALID_ARGUMENT, "kernel %s is ambiguous; allowed: %s/%s, %s/%s", kernel, (*entry)->kernel->arch,
                  kernel, candidate->kernel->arch, kernel);
    }
    *entry = candidate;
  }
  if (*entry != nullptr) return KW_OK;
  Text known;
  for (size_t i = 0; i < kernels_.size() && i < 5; ++i) known.add(i == 0 ? "" : ", ").add(kernels_[i]->kernel->name);
  if (kernels_.size() > 5) known.add(", …");
  return fail(KW_INVALID_ARGUMENT, "kernel %s is none of the %zu here; allowed: %s", kernel, kernels_.size(),
              kernels_.empty() ? "none, add a library first" : known.c_str());
}

kw_status Registry::set_priority(const char* kernel, int32_t priority) {
  KernelEntry* entry = nullptr;
  if (kw_status status = find(kernel, &entry)) return status;
  entry->priority = priority;
  sort();
  return KW_OK;
}

void Registry::to_json(Text* text) const {
  text->add("{\"schema_version\":1,\"libraries\":[");
  for (size_t i = 0; i < libraries_.size(); ++i) {
    const kw_library& library = *libraries_[i]->library;
    text->add(i == 0 ? "" : ",").add("{\"name\":").quoted(library.name).add(",\"arch\":").quoted(library.arch->name);
    text->add(",\"abi_version\":").add(library.abi_version).add(",\"kernels\":").add(library.kernel_count).add('}');
  }
  text->add("],\"kernels\":[");
  for (size_t i = 0; i < kernels_.size(); ++i) {
    const kw_kernel& kernel = *kernels_[i]->kernel;
    text->add(i == 0 ? "" : ",").add("{\"name\":").quoted(kernel.name).add(",\"arch\":").quoted(kernel.arch);
    text->add(",\"identity\":").quoted(kernel.identity).add(",\"features\":").quoted(kernel.features);
    text->add(",\"library\":").quoted(kernels_[i]->library->library->name);
    text->add(",\"priority\":").add(kernels_[i]->priority);
    text->add(",\"spec\":").add(kernel.spec_json == nullptr ? "null" : kernel.spec_json).add('}');
  }
  text->add("]}");
}

}  // namespace kernelwright
