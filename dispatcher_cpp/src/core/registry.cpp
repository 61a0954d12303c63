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

struct Candidate {
  const kw_kernel* kernel;
  const kw_library* library;
  bool is_new;
};

int by_identity(const kw_kernel& left, const kw_kernel& right) { return strcmp(left.identity, right.identity); }

int by_name(const kw_kernel& left, const kw_kernel& right) {
  const int names = strcmp(left.name, right.name);
  return names != 0 ? names : strcmp(left.arch, right.arch);
}

int by_order(const Candidate& left, const Candidate& right, int (*compare)(const kw_kernel&, const kw_kernel&)) {
  const int order = compare(*left.kernel, *right.kernel);
  return order != 0 ? order : static_cast<int>(left.is_new) - static_cast<int>(right.is_new);
}

// Kernels that are the same by a comparison become neighbours, the one that was here first in front.
void arrange(Vec<Candidate>* all, int (*compare)(const kw_kernel&, const kw_kernel&)) {
  sort(all->begin(), all->size(),
       [compare](const Candidate& left, const Candidate& right) { return by_order(left, right, compare) < 0; });
}

void describe(const Candidate& candidate, Text* text) {
  text->add(candidate.kernel->arch).add('/').add(candidate.kernel->name).add(" (");
  for (int i = 0; i < 12; ++i) text->add(candidate.kernel->identity[i]);
  text->add("…) of library ").add(candidate.library->name).add(" (");
  add_path(*candidate.library, text);
  text->add(')');
}

kw_status refuse(const Candidate& first, const Candidate& second, const char* what, const char* advice) {
  Text one, other;
  describe(first, &one);
  describe(second, &other);
  return fail(KW_INVALID_ARGUMENT, "kernel %s has the %s of kernel %s; %s", other.c_str(), what, one.c_str(), advice);
}

kw_status no_memory(const kw_library& library) {
  return fail(KW_OUT_OF_MEMORY, "library %s: no memory for its kernels", library.name);
}

// Leaves one kernel of each identity. A library that lists a kernel twice is refused.
kw_status drop_shared(Vec<Candidate>* all) {
  arrange(all, by_identity);
  size_t kept = 0;
  for (size_t i = 0; i < all->size(); ++i) {
    const Candidate& next = (*all)[i];
    if (kept != 0 && by_identity(*(*all)[kept - 1].kernel, *next.kernel) == 0) {
      if (!(*all)[kept - 1].is_new) continue;
      return refuse((*all)[kept - 1], next, "identity", "list each kernel of a library once");
    }
    (*all)[kept++] = next;
  }
  all->resize_down(kept);
  return KW_OK;
}

kw_status check_names(Vec<Candidate>* all) {
  arrange(all, by_name);
  for (size_t i = 1; i < all->size(); ++i) {
    const Candidate &first = (*all)[i - 1], &second = (*all)[i];
    if (by_name(*first.kernel, *second.kernel) != 0) continue;
    return refuse(first, second, "name", "their specs differ: leave out one library, or build one of them anew");
  }
  return KW_OK;
}

}  // namespace

Registry::~Registry() {
  for (KernelEntry* entry : kernels_) destroy_object(entry);
  for (LibraryEntry* entry : libraries_) destroy_object(entry);
}

kw_status Registry::pick_new(const kw_library& library, Vec<const kw_kernel*>* fresh) const {
  Vec<Candidate> all;
  const size_t count = kernels_.size() + library.kernel_count;
  if (!all.reserve(count) || !fresh->reserve(library.kernel_count)) return no_memory(library);
  bool pushed = true;
  for (const KernelEntry* entry : kernels_) pushed &= all.push({entry->kernel, entry->library->library, false});
  for (uint64_t i = 0; i < library.kernel_count; ++i) pushed &= all.push({library.kernels[i], &library, true});
  if (!pushed) return no_memory(library);
  if (kw_status status = drop_shared(&all)) return status;
  if (kw_status status = check_names(&all)) return status;
  for (const Candidate& one : all) pushed &= !one.is_new || fresh->push(one.kernel);
  return pushed ? KW_OK : no_memory(library);
}

kw_status Registry::add(const kw_library* library, int32_t priority, bool device_checked) {
  for (const LibraryEntry* entry : libraries_) {
    if (entry->library == library) return KW_OK;
  }
  Vec<const kw_kernel*> fresh;
  if (kw_status status = pick_new(*library, &fresh)) return status;
  if (!kernels_.reserve(kernels_.size() + fresh.size()) || !libraries_.reserve(libraries_.size() + 1)) {
    return no_memory(*library);
  }
  LibraryEntry* owner = make_object<LibraryEntry>();
  if (owner == nullptr) return no_memory(*library);
  owner->library = library;
  owner->shared = library->kernel_count - fresh.size();
  owner->device_checked.release(device_checked);
  const size_t before = kernels_.size();
  bool complete = true;
  for (size_t i = 0; i < fresh.size() && complete; ++i) {
    KernelEntry* entry = make_object<KernelEntry>();
    complete = entry != nullptr;
    if (!complete) break;
    *entry = KernelEntry{fresh[i], owner, priority};
    complete = kernels_.push(entry);
  }
  if (!complete || !libraries_.push(owner)) {
    for (size_t i = before; i < kernels_.size(); ++i) destroy_object(kernels_[i]);
    kernels_.resize_down(before);
    destroy_object(owner);
    return no_memory(*library);
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
    text->add(",\"abi_version\":").add(library.abi_version).add(",\"kernels\":").add(library.kernel_count);
    text->add(",\"shared\":").add(libraries_[i]->shared).add('}');
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
