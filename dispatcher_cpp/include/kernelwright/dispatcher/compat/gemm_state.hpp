// What the familiar GEMM functions work on between dispatcher_init() and dispatcher_cleanup().
#ifndef KERNELWRIGHT_DISPATCHER_COMPAT_GEMM_STATE_HPP
#define KERNELWRIGHT_DISPATCHER_COMPAT_GEMM_STATE_HPP

#include "kernelwright/dispatcher/compat/gemm_types.hpp"
#include "kernelwright/dispatcher/compat/session.hpp"
#include "kernelwright/dispatcher/gemm_lib.h"

namespace kernelwright {

struct GemmState : Session {
  GemmTypes types{};
  Epilogue epilogue{};  // of the functions with D tensors; without any where none or several are possible
};

extern Slot<GemmState> g_gemm;

class GemmReading : public Slot<GemmState>::Reading {
 public:
  GemmReading() : Reading(g_gemm) {}
  GemmState* state() const { return Reading::state("dispatcher_init"); }
};

// What the familiar functions return.
inline int code(kw_status status) {
  if (status == KW_OK) return DISPATCHER_OK;
  return status == KW_NO_KERNEL ? DISPATCHER_NO_KERNEL : DISPATCHER_ERROR;
}

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_COMPAT_GEMM_STATE_HPP
