#include "kernelwright/dispatcher/compat/session.hpp"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "kernelwright/dispatcher/support/text.hpp"

namespace kernelwright {
namespace {

// A folder relative to that of this file.
void beside(const char* folder, Text* path) {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&beside), &info) != 0 && info.dli_fname != nullptr) {
    const char* end = strrchr(info.dli_fname, '/');
    for (const char* at = info.dli_fname; end != nullptr && at <= end; ++at) path->add(*at);
  }
  path->add(folder);
}

// The device that is current in the calling thread, of the first GPU runtime that can be asked; 0 where there is none.
int32_t current_device(const Libraries& libraries) {
  for (const kw_library* library : libraries) {
    Memory memory;
    int32_t device = 0;
    if (library->arch->backend == KW_BACKEND_CPU || memory.open(library->arch->backend) != KW_OK) continue;
    if (memory.current_device(&device) == KW_OK) return device;
  }
  return 0;
}

kw_status make_target(const Libraries& libraries, int32_t device, Target* target) {
  kw_dispatcher_options options{};
  options.struct_size = sizeof options;
  options.device_check = KW_CHECK_ON_ADD;
  options.device = device;
  target->device = device;
  if (kw_status status = kw_dispatcher_create(&options, &target->dispatcher)) return status;
  return add_libraries(target->dispatcher, libraries);
}

}  // namespace

const char* given(const char* argument, const char* variable) {
  if (argument != nullptr) return argument;
  const char* value = getenv(variable);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

Session::~Session() {
  kw_dispatcher_destroy(first.dispatcher);
  for (const Target& target : others_) kw_dispatcher_destroy(target.dispatcher);
  free(json);
}

kw_status Session::load(const char* kernels, const Places& places) {
  kernels = given(kernels, places.variable);
  if (kernels != nullptr) return load_kernel_files(kernels, &libraries);
  Text packaged, installed;
  beside(places.beside, &packaged);
  beside(places.installed, &installed);
  const bool is_packaged = access(packaged.c_str(), F_OK) == 0 || access(installed.c_str(), F_OK) != 0;
  if (kw_status status = load_kernel_files(is_packaged ? packaged.c_str() : installed.c_str(), &libraries)) {
    Text why;
    why.add(kw_last_error());
    return fail(status, "%s; name kernel libraries in %s", why.c_str(), places.variable);
  }
  return KW_OK;
}

kw_status Session::open(const char* kernels, const Places& places) {
  if (kw_status status = load(kernels, places)) return status;
  if (kw_status status = make_target(libraries, current_device(libraries), &first)) return status;
  uint32_t backend = 0;
  if (kw_status status = common_backend(first.dispatcher, &backend)) return status;
  if (kw_status status = memory.open(backend)) return status;
  if (backend == KW_BACKEND_CPU) first.device = 0;
  size_t bytes = 0;
  kw_dispatcher_export_json(first.dispatcher, nullptr, 0, &bytes);
  json = static_cast<char*>(malloc(bytes));
  if (json == nullptr) return fail(KW_OUT_OF_MEMORY, "no memory for %zu bytes of JSON", bytes);
  return kw_dispatcher_export_json(first.dispatcher, json, bytes, nullptr);
}

kw_status Session::here(Target* target) {
  int32_t device = 0;
  if (kw_status status = memory.current_device(&device)) return status;
  *target = first;
  if (device == first.device) return KW_OK;
  const Lock lock(mutex_);
  for (const Target& other : others_) {
    *target = other;
    if (other.device == device) return KW_OK;
  }
  kw_status status = make_target(libraries, device, target);
  if (status == KW_OK && !others_.push(*target)) status = fail(KW_OUT_OF_MEMORY, "no memory for device %d", device);
  if (status != KW_OK) kw_dispatcher_destroy(target->dispatcher);
  return status;
}

}  // namespace kernelwright
