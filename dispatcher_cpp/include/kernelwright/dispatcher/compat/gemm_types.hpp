// What the familiar GEMM functions do not say: dtypes and layouts of a problem.
#ifndef KERNELWRIGHT_DISPATCHER_COMPAT_GEMM_TYPES_HPP
#define KERNELWRIGHT_DISPATCHER_COMPAT_GEMM_TYPES_HPP

#include "kernelwright/dispatcher.h"
#include "kernelwright/dispatcher/support/text.hpp"
#include "kernelwright/gemm.h"

namespace kernelwright {

struct GemmTypes {
  uint32_t dtype_a, dtype_b, dtype_c, dtype_acc;
  uint32_t layout_a, layout_b, layout_c;
};

// What follows the product where there are D tensors: (A B op D0 op D1 ...), then the activation.
struct Epilogue {
  uint32_t num_d, d_op, activation;
};

// "fp16_rcr" or "fp8_rcr_bf16": dtype of A and B, layouts, dtype of C; then, behind a colon, which epilogue the
// functions with D tensors mean: "fp16_rcr:add_relu_d1"; it has no D tensors if that is left out. KW_INVALID_ARGUMENT
// says what is allowed.
kw_status parse_types(const char* text, GemmTypes* types, Epilogue* epilogue);
// What all kernels of these types with D tensors have in common; KW_NO_KERNEL if there are none, KW_INVALID_ARGUMENT
// lists their epilogues if they differ.
kw_status common_epilogue(kw_dispatcher* dispatcher, const GemmTypes& types, Epilogue* epilogue);
// What all kernels of the dispatcher have in common; KW_INVALID_ARGUMENT lists their types if they differ.
kw_status common_types(kw_dispatcher* dispatcher, GemmTypes* types);
// The problem with these types whose matrices have no gaps.
kw_gemm_problem packed_problem(const GemmTypes& types, int64_t m, int64_t n, int64_t k);

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_COMPAT_GEMM_TYPES_HPP
