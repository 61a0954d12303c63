// What the familiar GEMM functions work on between dispatcher_init() and dispatcher_cleanup().
#ifndef TILEWRIGHT_DISPATCHER_GEMM_STATE_HPP
#define TILEWRIGHT_DISPATCHER_GEMM_STATE_HPP

#include <pthread.h>
#include <stdlib.h>

#include "tilewright/dispatcher/error.hpp"
#include "tilewright/dispatcher/gemm_lib.h"
#include "tilewright/dispatcher/gemm_types.hpp"
#include "tilewright/dispatcher/memory.hpp"

namespace tilewright {

struct State {
  tw_dispatcher* dispatcher = nullptr;
  Memory memory;
  GemmTypes types{};
  Epilogue epilogue{};  // of the functions with D tensors; without any where none or several are possible
  char* json = nullptr;

  ~State() {
    tw_dispatcher_destroy(dispatcher);
    free(json);
  }
};

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
    if (g_state == nullptr) fail(TW_INVALID_ARGUMENT, "not initialised; call dispatcher_init() first");
    return g_state;
  }
};

// The plan of a problem: the dispatcher's, or one of our own where its cache is full or, for groups, keeps none.
class Planned {
 public:
  Planned() = default;
  Planned(const Planned&) = delete;
  Planned& operator=(const Planned&) = delete;
  ~Planned() { tw_plan_destroy(own_); }

  tw_status make(const State& state, const tw_problem& problem) {
    tw_status status = TW_OUT_OF_MEMORY;
    if (problem.op == TW_OP_GEMM) status = tw_dispatcher_select(state.dispatcher, &problem, &plan_);
    if (status == TW_OUT_OF_MEMORY) {
      status = tw_plan_create(state.dispatcher, &problem, &own_);
      plan_ = own_;
    }
    return status;
  }
  const tw_plan* get() const { return plan_; }

 private:
  const tw_plan* plan_ = nullptr;
  tw_plan* own_ = nullptr;
};

// What the familiar functions return.
inline int code(tw_status status) {
  if (status == TW_OK) return DISPATCHER_OK;
  return status == TW_NO_KERNEL ? DISPATCHER_NO_KERNEL : DISPATCHER_ERROR;
}

}  // namespace tilewright

#endif  // TILEWRIGHT_DISPATCHER_GEMM_STATE_HPP
