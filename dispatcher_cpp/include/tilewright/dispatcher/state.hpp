// What a dispatcher consists of.
#ifndef TILEWRIGHT_DISPATCHER_STATE_HPP
#define TILEWRIGHT_DISPATCHER_STATE_HPP

#include <stdlib.h>

#include "tilewright/dispatcher/error.hpp"
#include "tilewright/dispatcher/lock.hpp"
#include "tilewright/dispatcher/plan_cache.hpp"

struct tw_dispatcher {
  tilewright::PlanCache plans;
  tilewright::Mutex mutex;  // guards everything but reads of plans
  tilewright::Registry registry;
  tilewright::Device device;
  tilewright::Selection selection;
  uint32_t device_check = TW_CHECK_ON_ADD;
  uint32_t plan_limit = TW_DEFAULT_PLAN_LIMIT;

  ~tw_dispatcher() {
    free(device.arch);
    free(device.features);
    free(selection.kernel);
    free(selection.label);
  }
};

namespace tilewright {

inline tw_status null_argument(const char* name) { return fail(TW_INVALID_ARGUMENT, "%s is null", name); }

}  // namespace tilewright

#endif  // TILEWRIGHT_DISPATCHER_STATE_HPP
