#include "kernelwright/dispatcher/compat/kernel_files.hpp"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kernelwright/dispatcher/support/error.hpp"
#include "kernelwright/dispatcher/support/text.hpp"

namespace kernelwright {
namespace {

class Names {
 public:
  Names() = default;
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;
  ~Names() {
    for (char* name : names_) free(name);
  }
  bool add(const Text& text) {
    char* copy = text.copy();
    if (copy != nullptr && names_.push(copy)) return true;
    free(copy);
    return false;
  }
  void sort_from(size_t first) {
    for (size_t i = first + 1; i < names_.size(); ++i) {
      for (size_t j = i; j > first && strcmp(names_[j], names_[j - 1]) < 0; --j) {
        char* smaller = names_[j];
        names_[j] = names_[j - 1];
        names_[j - 1] = smaller;
      }
    }
  }
  size_t size() const { return names_.size(); }
  const char* operator[](size_t i) const { return names_[i]; }

 private:
  Vec<char*> names_;
};

bool is_folder(const char* path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool is_library(const char* name) {
  const size_t length = strlen(name);
  return length > 6 && memcmp(name, "lib", 3) == 0 && strcmp(name + length - 3, ".so") == 0;
}

// lib*.so of a folder and of the folders in it, by name.
kw_status list_folder(const char* folder, bool below, Names* files) {
  DIR* handle = opendir(folder);
  if (handle == nullptr) return fail(KW_LOAD_FAILED, "%s cannot be read", folder);
  const size_t first = files->size();
  Names inner;
  bool kept = true;
  while (const dirent* entry = readdir(handle)) {
    if (entry->d_name[0] == '.') continue;
    Text path;
    path.add(folder).add('/').add(entry->d_name);
    if (is_folder(path.c_str())) {
      kept = kept && (!below || inner.add(path));
    } else if (is_library(entry->d_name)) {
      kept = kept && files->add(path);
    }
  }
  closedir(handle);
  if (!kept) return fail(KW_OUT_OF_MEMORY, "no memory for the names in %s", folder);
  files->sort_from(first);
  inner.sort_from(0);
  for (size_t i = 0; i < inner.size(); ++i) {
    if (kw_status status = list_folder(inner[i], false, files)) return status;
  }
  return KW_OK;
}

kw_status list_all(const char* list, Names* files) {
  while (*list != '\0') {
    const size_t length = strcspn(list, ":");
    Text path;
    for (size_t i = 0; i < length; ++i) path.add(list[i]);
    list += length + (list[length] == ':' ? 1 : 0);
    if (length == 0) continue;
    if (!is_folder(path.c_str())) {
      if (!files->add(path)) return fail(KW_OUT_OF_MEMORY, "no memory for a path");
    } else if (kw_status status = list_folder(path.c_str(), true, files)) {
      return status;
    }
  }
  return KW_OK;
}

// In a dispatcher of its own: whether kernels are there twice matters only among those that a device runs.
kw_status load_file(const char* path, const kw_library** library) {
  kw_dispatcher_options options{};
  options.struct_size = sizeof options;
  options.device_check = KW_CHECK_ON_LAUNCH;
  kw_dispatcher* loader = nullptr;
  if (kw_status status = kw_dispatcher_create(&options, &loader)) return status;
  kw_kernel_info info{};
  info.struct_size = sizeof info;
  kw_status status = kw_dispatcher_add_library(loader, path, nullptr);
  if (status == KW_OK) status = kw_dispatcher_kernel_at(loader, 0, &info);
  *library = info.library;
  kw_dispatcher_destroy(loader);
  return status;
}

}  // namespace

kw_status load_kernel_files(const char* list, Libraries* libraries) {
  Names files;
  if (kw_status status = list_all(list, &files)) return status;
  if (files.size() == 0) return fail(KW_LOAD_FAILED, "no kernels in %s: it holds no lib*.so", list);
  for (size_t i = 0; i < files.size(); ++i) {
    const kw_library* library = nullptr;
    if (kw_status status = load_file(files[i], &library)) return status;
    if (!libraries->push(library)) return fail(KW_OUT_OF_MEMORY, "no memory for %zu libraries", files.size());
  }
  return KW_OK;
}

kw_status add_libraries(kw_dispatcher* dispatcher, const Libraries& libraries) {
  Text refused;
  size_t added = 0;
  for (const kw_library* library : libraries) {
    const kw_status status = kw_dispatcher_add_descriptor(dispatcher, library, nullptr);
    if (status == KW_OK) {
      ++added;
    } else if (status == KW_ARCH_MISMATCH || status == KW_RUNTIME_MISSING) {
      refused.add("\n  ").add(kw_last_error());
    } else {
      return status;
    }
  }
  if (added != 0) return KW_OK;
  return fail(KW_LOAD_FAILED, "this machine runs none of its libraries:%s", refused.c_str());
}

kw_status common_backend(kw_dispatcher* dispatcher, uint32_t* backend) {
  *backend = 0;
  const uint64_t count = kw_dispatcher_kernel_count(dispatcher);
  for (uint64_t i = 0; i < count; ++i) {
    kw_kernel_info info{};
    info.struct_size = sizeof info;
    if (kw_status status = kw_dispatcher_kernel_at(dispatcher, i, &info)) return status;
    const uint32_t one = info.library->arch->backend;
    if (*backend != 0 && one != *backend) {
      return fail(KW_INVALID_ARGUMENT,
                  "the libraries are of several backends, this machine has devices for them all, and a GEMM on host "
                  "memory can be meant for any; name the library of one in KERNELWRIGHT_GEMM_KERNELS");
    }
    *backend = one;
  }
  return KW_OK;
}

}  // namespace kernelwright
