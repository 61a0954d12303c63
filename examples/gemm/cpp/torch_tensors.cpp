// Tensors of torch in C++, read and written where they are: torch_tensors LIBRARY.so
//
// The plan of a product depends on shapes, strides and dtypes only, so a layer keeps it and launches it again and
// again.
#include <ATen/ATen.h>

#include "example.hpp"

namespace {

kw_dtype dtype_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return KW_FP32;
    case at::kHalf:
      return KW_FP16;
    case at::kBFloat16:
      return KW_BF16;
    default:
      TORCH_CHECK(false, "dtype ", tensor.scalar_type(), "; allowed: float, half, bfloat16");
  }
}

// A matrix whose rows or columns are without gaps inside; a transposed view is column-major, and nothing is copied.
void describe(const at::Tensor& tensor, uint32_t& layout, int64_t& leading) {
  TORCH_CHECK(tensor.dim() == 2 && tensor.device().is_cpu(), "a matrix on the CPU is wanted, not ", tensor.sizes());
  layout = tensor.stride(1) == 1 ? KW_ROW_MAJOR : KW_COL_MAJOR;
  TORCH_CHECK(tensor.stride(layout == KW_ROW_MAJOR ? 1 : 0) == 1, "strides ", tensor.strides(), " of no matrix");
  leading = tensor.stride(layout == KW_ROW_MAJOR ? 0 : 1);
}

kw_gemm_problem problem_of(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out) {
  kw_gemm_problem problem{};
  problem.base = {sizeof problem, KW_OP_GEMM};
  problem.dtype_a = dtype_of(a), problem.dtype_b = dtype_of(b), problem.dtype_c = dtype_of(out);
  problem.dtype_acc = KW_FP32;
  describe(a, problem.layout_a, problem.lda);
  describe(b, problem.layout_b, problem.ldb);
  describe(out, problem.layout_c, problem.ldc);
  problem.m = a.size(0), problem.n = b.size(1), problem.k = a.size(1);
  TORCH_CHECK(b.size(0) == problem.k && out.size(0) == problem.m && out.size(1) == problem.n, "shapes do not fit");
  problem.batch = 1;
  problem.alpha = 1.0;
  return problem;
}

// out = a b, all of them matrices that exist already.
std::string multiply(kw_dispatcher* dispatcher, const at::Tensor& a, const at::Tensor& b, const at::Tensor& out) {
  const kw_gemm_problem problem = problem_of(a, b, out);
  const kw_plan* plan = nullptr;
  require(kw_dispatcher_select(dispatcher, &problem.base, &plan), "select");
  Workspace workspace(plan);
  kw_gemm_args args{};
  args.struct_size = sizeof args;
  args.a = a.const_data_ptr(), args.b = b.const_data_ptr(), args.d = out.mutable_data_ptr();
  const kw_launch launch = workspace.launch();
  require(kw_plan_launch(plan, &launch, &args), "launch");
  return kernel_of(plan);
}

}  // namespace

int main(int argc, char** argv) {
  const Dispatcher dispatcher(library_argument(argc, argv));
  at::manual_seed(0);
  bool close = true;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor x = at::randn({200, 512}, type), weight = at::randn({256, 512}, type);  // as a linear layer has it
    const at::Tensor storage = at::full({200, 300}, -7, type), y = storage.slice(1, 0, 256);  // rows with gaps
    const std::string kernel = multiply(dispatcher, x, weight.t(), y);
    const at::Tensor expected = at::matmul(x.to(at::kDouble), weight.to(at::kDouble).t());
    const double error = (y.to(at::kDouble) - expected).abs().max().item<double>();
    const double bound = type == at::kFloat ? 1e-3 : 0.5;  // sums are about 100 at most: half a unit of bf16 is 0.25
    close = close && error < bound && at::equal(storage.slice(1, 256), at::full({200, 44}, -7, type));
    std::printf("%s: largest error %.1e\n", kernel.c_str(), error);
  }
  std::printf("%s torch's result\n", close ? "close to" : "NOT");
  return !close;
}
