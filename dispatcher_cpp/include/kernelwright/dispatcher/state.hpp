// What a dispatcher consists of.
#ifndef KERNELWRIGHT_DISPATCHER_STATE_HPP
#define KERNELWRIGHT_DISPATCHER_STATE_HPP

#include <stdlib.h>

#include "kernelwright/dispatcher/plan_cache.hpp"
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

inline kw_status null_argument(const char* name) { return fail(KW_INVALID_ARGUMENT, "%s is null", name); }

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_STATE_HPP
