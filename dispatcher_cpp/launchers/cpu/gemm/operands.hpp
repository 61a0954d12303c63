// Where the parts of a problem's matrices lie.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_GEMM_OPERANDS_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_GEMM_OPERANDS_HPP

#include "kernelwright/cpu/gemm/kernel.hpp"

namespace kernelwright::cpu {

// What a thread sets up before it multiplies, and clears behind it.
class multiplying_thread {
 public:
  explicit multiplying_thread(const gemm_kernel& kernel) : kernel_(kernel) {
    if (kernel_.enter != nullptr) kernel_.enter();
  }
  ~multiplying_thread() {
    if (kernel_.leave != nullptr) kernel_.leave();
  }
  multiplying_thread(const multiplying_thread&) = delete;
  multiplying_thread& operator=(const multiplying_thread&) = delete;

 private:
  const gemm_kernel& kernel_;
};

inline const void* a_at(const gemm_kernel& kernel, const kw_gemm_problem& p, const product& args, int64_t row,
                        int64_t k) {
  const int64_t element = p.layout_a == KW_ROW_MAJOR ? row * p.lda + k : k * p.lda + row;
  return static_cast<const char*>(args.a) + element * kernel.input_bytes;
}

inline const void* b_at(const gemm_kernel& kernel, const kw_gemm_problem& p, const product& args, int64_t k,
                        int64_t col) {
  const int64_t element = p.layout_b == KW_ROW_MAJOR ? k * p.ldb + col : col * p.ldb + k;
  return static_cast<const char*>(args.b) + element * kernel.input_bytes;
}

inline output output_at(const gemm_kernel& kernel, const kw_gemm_problem& p, const product& args, int64_t row,
                        int64_t col) {
  const int64_t offset = (row * p.ldc + col) * kernel.output_bytes;
  output to = {};
  to.d = static_cast<char*>(args.d) + offset;
  to.c = p.beta == 0 ? nullptr : static_cast<const char*>(args.c) + offset;
  to.ldc = p.ldc;
  to.alpha64 = p.alpha;
  to.beta64 = p.beta;
  to.alpha = static_cast<float>(p.alpha);
  to.beta = static_cast<float>(p.beta);
  to.num_d = p.num_d;
  to.d_op = p.d_op;
  to.activation = p.activation;
  for (uint32_t n = 0; n < p.num_d; ++n) {
    to.ld_multi_d[n] = p.ld_multi_d[n];
    to.multi_d[n] = static_cast<const char*>(args.multi_d[n]) + (row * p.ld_multi_d[n] + col) * kernel.output_bytes;
  }
  return to;
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_GEMM_OPERANDS_HPP
