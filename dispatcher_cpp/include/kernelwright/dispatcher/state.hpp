// What a dispatcher consists of.
#ifndef KERNELWRIGHT_DISPATCHER_STATE_HPP
#define KERNELWRIGHT_DISPATCHER_STATE_HPP

#include <stdlib.h>

#include "kernelwright/dispatcher/plan_cache.hpp"
#include "kernelwright/dispatcher/selection.hpp"
#include "kernelwright/dispatcher/support/error.hpp"
#include "kernelwright/dispatcher/support/lock.hpp"

struct kw_dispatcher {
  kernelwright::PlanCache plans;
  kernelwright::Mutex mutex;  // guards everything but reads of plans
  kernelwright::Registry registry;
  kernelwright::Device device;
  kernelwright::Selection selection;
  uint32_t device_check = KW_CHECK_ON_ADD;
  uint32_t plan_limit = KW_DEFAULT_PLAN_LIMIT;

  ~kw_dispatcher() {
    free(device.arch);
    free(device.features);
    free(selection.kernel);
    free(selection.label);
  }
};

namespace kernelwright {

// Structs of this API only grow: one of another size is of another version's caller.
template <typename T>
kw_status check_version(const T& given, const char* name) {
  if (given.struct_size == sizeof(T)) return KW_OK;
  return fail(KW_INVALID_ARGUMENT, "%s: struct_size = %u; allowed: %zu (dispatcher version %u)", name,
              given.struct_size, sizeof(T), KW_DISPATCHER_VERSION);
}

// What a caller fills; null means defaults.
template <typename T>
kw_status check_options(const T* options, const char* name) {
  if (options == nullptr) return KW_OK;
  if (kw_status status = check_version(*options, name)) return status;
  return check_reserved(name, *options);
}

// What a function fills: members other than struct_size are not read.
template <typename T>
kw_status check_info(const T* info, const char* name) {
  return info == nullptr ? fail(KW_INVALID_ARGUMENT, "info is null") : check_version(*info, name);
}

inline kw_status null_argument(const char* name) { return fail(KW_INVALID_ARGUMENT, "%s is null", name); }

// KW_OK if the library's kernels can run on the device.
kw_status ask_device(const kw_library& library, int32_t device);
// The ranking of every stage as JSON. Under the lock; the problem is valid.
kw_status explain(const kw_dispatcher& dispatcher, const Operation& operation, const kw_problem& problem, Text* text);

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_STATE_HPP
