#include <dlfcn.h>
#include <elf.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "kernelwright/dispatcher.h"
#include "kernelwright/dispatcher/loading/manifest.hpp"
#include "kernelwright/dispatcher/loading/pinned.hpp"
#include "kernelwright/dispatcher/operation.hpp"
#include "kernelwright/dispatcher/registry.hpp"
#include "kernelwright/dispatcher/support/error.hpp"

namespace kernelwright {
namespace {

bool inside(uint64_t offset, uint64_t bytes, uint64_t size) { return offset <= size && bytes <= size - offset; }

kw_status check_elf(const char* path, const PinnedFile& file) {
  const uint64_t size = file.size();
  Elf64_Ehdr header;
  if (!file.read(&header, sizeof header, 0) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return fail(KW_LOAD_FAILED, "%s: is not a shared object (no ELF header)", path);
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64 || header.e_type != ET_DYN) {
    return fail(KW_LOAD_FAILED, "%s: is not an x86-64 shared object", path);
  }
  const uint64_t sections = static_cast<uint64_t>(header.e_shnum) * header.e_shentsize;
  bool whole = inside(header.e_shoff, sections, size) && header.e_phentsize == sizeof(Elf64_Phdr);
  for (unsigned i = 0; whole && i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    whole = file.read(&segment, sizeof segment, header.e_phoff + i * sizeof segment) &&
            inside(segment.p_offset, segment.p_filesz, size);
  }
  if (!whole) {
    return fail(KW_LOAD_FAILED, "%s: is truncated: %llu bytes do not hold what its header promises; copy it again",
                path, static_cast<unsigned long long>(size));
  }
  return KW_OK;
}

const char* incomplete(const kw_kernel* kernel) {
  if (kernel == nullptr) return "is null";
  if (kernel->struct_size < sizeof(kw_kernel)) return "has too small a struct_size";
  if (kernel->name == nullptr || kernel->arch == nullptr || kernel->features == nullptr) return "lacks a text";
  if (kernel->identity == nullptr || strlen(kernel->identity) != 64) return "has an identity that is not 64 digits";
  if (kernel->supports == nullptr || kernel->workspace_size == nullptr) return "lacks supports or workspace_size";
  if (kernel->plan == nullptr || kernel->launch == nullptr) return "lacks plan or launch";
  const Operation* operation = find_operation(kernel->op);
  return operation == nullptr ? "has an unknown op" : operation->incomplete(*kernel);
}

kw_status load_failed(const char* path) {
  const char* why = dlerror();
  return fail(KW_LOAD_FAILED, "%s: %s", path, why == nullptr ? "no memory or descriptor" : why);
}

}  // namespace

kw_status check_library(const kw_library* library, const char* path) {
  if (library == nullptr) return fail(KW_LOAD_FAILED, "%s: kw_library_get returned null", path);
  if (library->abi_version != KW_ABI_VERSION) {
    return fail(KW_ABI_MISMATCH, "%s: library speaks ABI version %u, this dispatcher version %u; rebuild the library",
                path, library->abi_version, KW_ABI_VERSION);
  }
  if (library->struct_size < offsetof(kw_library, set_runtime) || library->name == nullptr ||
      library->check_device == nullptr || library->last_error == nullptr || library->set_num_threads == nullptr) {
    return fail(KW_LOAD_FAILED, "%s: library table is incomplete", path);
  }
  const kw_arch* arch = library->arch;
  if (arch == nullptr || arch->struct_size < sizeof(kw_arch) || arch->name == nullptr) {
    return fail(KW_LOAD_FAILED, "%s: library %s has no architecture", path, library->name);
  }
  const bool processor = arch->backend == KW_BACKEND_CPU;
  if (arch->times > KW_TIMES_CDNA4 || (arch->times != 0 && processor != (arch->times == KW_TIMES_PROCESSORS))) {
    return fail(KW_LOAD_FAILED, "%s: library %s has times of formulas %u; allowed for its backend: 0 or %s", path,
                library->name, arch->times,
                processor ? "2 (processors)" : "1 (tiles), 3 (Hopper), 4 (CDNA3), 5 (CDNA4)");
  }
  if (library->kernel_count == 0 || library->kernels == nullptr) {
    return fail(KW_LOAD_FAILED, "%s: library %s has no kernels", path, library->name);
  }
  if (kw_status status = check_heuristics(*library, path)) return status;
  for (uint64_t i = 0; i < library->kernel_count; ++i) {
    const kw_kernel* kernel = library->kernels[i];
    if (const char* what = incomplete(kernel)) {
      return fail(KW_LOAD_FAILED, "%s: kernel %llu of library %s %s", path, static_cast<unsigned long long>(i),
                  library->name, what);
    }
    if (kernel->abi_version != KW_ABI_VERSION) {
      return fail(KW_ABI_MISMATCH, "%s: kernel %s speaks ABI version %u, this dispatcher version %u; rebuild it", path,
                  kernel->name, kernel->abi_version, KW_ABI_VERSION);
    }
    if (strcmp(kernel->arch, arch->name) != 0) {
      return fail(KW_ARCH_MISMATCH, "%s: kernel %s is for %s in a library for %s", path, kernel->name, kernel->arch,
                  arch->name);
    }
  }
  return KW_OK;
}

void add_path(const kw_library& library, Text* text) {
  Dl_info info;
  if (dladdr(&library, &info) == 0 || info.dli_fname == nullptr) {
    text->add("no file");
    return;
  }
  // A library that was loaded through a descriptor is known by that, which leads to the file.
  char path[PATH_MAX];
  const bool pinned = strncmp(info.dli_fname, "/proc/", 6) == 0;
  const ssize_t bytes = pinned ? readlink(info.dli_fname, path, sizeof path - 1) : -1;
  if (bytes > 0) path[bytes] = '\0';
  text->add(bytes > 0 ? path : info.dli_fname);
}

kw_status open_library(const char* path, uint32_t digest_check, const kw_library** library) {
  if (path == nullptr) return fail(KW_INVALID_ARGUMENT, "path is null; allowed: a kernel library");
  PinnedFile file;
  if (kw_status status = file.open(path)) return status;
  if (kw_status status = check_elf(path, file)) return status;
  if (digest_check != KW_DIGEST_UNCHECKED) {
    if (kw_status status = check_manifest(path, file)) return status;
  }
  void* handle = nullptr;
  if (kw_status status = file.load(path, &handle)) return status;
  using Get = const kw_library* (*)();
  const Get get = reinterpret_cast<Get>(dlsym(handle, "kw_library_get"));
  kw_status status = KW_OK;
  if (get == nullptr) {
    status = fail(KW_LOAD_FAILED, "%s: does not export kw_library_get: not a kernel library", path);
  } else {
    *library = get();
    status = check_library(*library, path);
  }
  // A library that is in use stays mapped for good: its worker threads may outlive every dispatcher.
  if (status == KW_OK && dlopen(file.name(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE) == nullptr) {
    status = load_failed(path);
  }
  if (status != KW_OK) dlclose(handle);
  return status;
}

}  // namespace kernelwright
