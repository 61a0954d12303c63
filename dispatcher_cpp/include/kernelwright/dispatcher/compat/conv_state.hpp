// What the familiar convolution functions work on between conv_dispatcher_init() and conv_dispatcher_cleanup().
#ifndef KERNELWRIGHT_DISPATCHER_COMPAT_CONV_STATE_HPP
#define KERNELWRIGHT_DISPATCHER_COMPAT_CONV_STATE_HPP

#include "kernelwright/convolution.h"
#include "kernelwright/dispatcher/compat/session.hpp"
#include "kernelwright/dispatcher/conv_lib.h"

namespace kernelwright {

struct ConvState : Session {
  uint32_t dtype = 0;  // of x, w and y
};

extern Slot<ConvState> g_conv;

class ConvReading : public Slot<ConvState>::Reading {
 public:
  ConvReading() : Reading(g_conv) {}
  ConvState* state() const { return Reading::state("conv_dispatcher_init"); }
};

// The dtype of a name, or what all convolution kernels of the dispatcher have in common where it is null;
// KW_INVALID_ARGUMENT lists what is allowed, or theirs if they differ.
kw_status conv_dtype(kw_dispatcher* dispatcher, const char* name, uint32_t* dtype);
// How many kernels of the dtype serve an operation (kw_conv_op; of backward weight KW_OP_CONV_WEIGHT_SLICES), and the
// name of the one at an index, null where there is none.
int conv_kernels(const ConvState& state, uint32_t op, int index, const char** name);
// The problem without gaps; KW_INVALID_ARGUMENT for a null pointer or an unknown direction.
kw_status conv_problem(const ConvProblemC* given, uint32_t dtype, kw_conv_problem* problem);

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_COMPAT_CONV_STATE_HPP
