// What the familiar GEMM functions work on between dispatcher_init() and dispatcher_cleanup().
#ifndef KERNELWRIGHT_DISPATCHER_COMPAT_GEMM_STATE_HPP
#define KERNELWRIGHT_DISPATCHER_COMPAT_GEMM_STATE_HPP

#include <pthread.h>
#include <stdlib.h>

#include "kernelwright/dispatcher/compat/gemm_types.hpp"
#include "kernelwright/dispatcher/compat/kernel_files.hpp"
#include "kernelwright/dispatcher/compat/memory.hpp"
#include "kernelwright/dispatcher/gemm_lib.h"
#include "kernelwright/dispatcher/support/error.hpp"
#include "kernelwright/dispatcher/support/lock.hpp"

namespace kernelwright {

// The kernels of one device.
struct Target {
  int32_t device;
  kw_dispatcher* dispatcher;
};

struct State {
  Libraries libraries;
  Memory memory;
  Target first{};  // of the device that was current in dispatcher_init()
  GemmTypes types{};
  Epilogue epilogue{};  // of the functions with D tensors; without any where none or several are possible
  char* json = nullptr;

  // The device that is current in the calling thread, with its kernels.
  kw_status here(Target* target);
  ~State() {
    kw_dispatcher_destroy(first.dispatcher);
    for (const Target& target : others_) kw_dispatcher_destroy(target.dispatcher);
    free(json);
  }

 private:
  Mutex mutex_;  // of the others
  Vec<Target> others_;
};

kw_status make_target(const Libraries& libraries, int32_t device, Target* target);

// Calls hold it for reading, so that cleaning up waits for them.
extern pthread_rwlock_t g_lock;
extern State* g_state;

class Reading {
 public:
  Reading() { pthread_rwlock_rdlock(&g_lock); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading() { pthread_rwlock_unlock(&g_lock); }
  // Null, with the reason left for dispatcher_last_error, before dispatcher_init().
  State* state() const {
    if (g_state == nullptr) fail(KW_INVALID_ARGUMENT, "not initialised; call dispatcher_init() first");
    return g_state;
  }
};

// The plan of a problem: the dispatcher's, or one of our own where its cache is full or, for groups, keeps none.
class Planned {
 public:
  Planned() = default;
  Planned(const Planned&) = delete;
  Planned& operator=(const Planned&) = delete;
  ~Planned() { kw_plan_destroy(own_); }

  kw_status make(const Target& target, const kw_problem& problem) {
    kw_status status = KW_OUT_OF_MEMORY;
    if (problem.op == KW_OP_GEMM) status = kw_dispatcher_select(target.dispatcher, &problem, &plan_);
    if (status == KW_OUT_OF_MEMORY) {
      status = kw_plan_create(target.dispatcher, &problem, &own_);
      plan_ = own_;
    }
    return status;
  }
  const kw_plan* get() const { return plan_; }

 private:
  const kw_plan* plan_ = nullptr;
  kw_plan* own_ = nullptr;
};

// What the familiar functions return.
inline int code(kw_status status) {
  if (status == KW_OK) return DISPATCHER_OK;
  return status == KW_NO_KERNEL ? DISPATCHER_NO_KERNEL : DISPATCHER_ERROR;
}

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_COMPAT_GEMM_STATE_HPP
