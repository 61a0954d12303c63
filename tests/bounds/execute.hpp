// Runs CPU kernels on operands that span much memory and touch little of it, and compares results with sums in double.
//
// Operands are maps without reserved memory: a stride of 2^31 elements costs a page for each line that is touched.
#ifndef KERNELWRIGHT_TESTS_BOUNDS_EXECUTE_HPP
#define KERNELWRIGHT_TESTS_BOUNDS_EXECUTE_HPP

#include <stdlib.h>
#include <sys/mman.h>

#include <map>

#include "kernelwright/convolution/checks.h"
#include "kernelwright/dispatcher.h"
#include "problems.hpp"

namespace bounds {

// Of a problem that is executed: multiplications, elements of the span of an operand, bytes of workspace.
constexpr int64_t kMostWork = 1 << 18, kMostSpan = int64_t{1} << 42;
constexpr uint64_t kMostWorkspace = 1 << 24;

enum class Ran { kNot, kRight, kWrong, kFailed };

// `count` floats, all 0 until they are written.
class Sparse {
 public:
  explicit Sparse(int64_t count) : bytes_((static_cast<size_t>(count) + 1) * sizeof(float)) {
    void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    at_ = at == MAP_FAILED ? nullptr : static_cast<float*>(at);
  }
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;
  ~Sparse() {
    if (at_ != nullptr) munmap(at_, bytes_);
  }
  float* at() const { return at_; }
  // A small integer that the place determines.
  float& filled(int64_t index) const { return at_[index] = static_cast<float>((index * 7 + index / 64) % 5 - 2); }

 private:
  size_t bytes_;
  float* at_;
};

// The launch of a plan with its workspace; false where that is too large to try.
inline kw_status launch(kw_dispatcher* dispatcher, const kw_problem& problem, const void* args, bool* tried) {
  kw_plan* plan = nullptr;
  kw_plan_info info = {};
  info.struct_size = sizeof info;
  kw_status status = kw_plan_create(dispatcher, &problem, &plan);
  if (status == KW_OK) status = kw_plan_get_info(plan, &info);
  void* workspace = nullptr;
  *tried = status == KW_OK && info.workspace_bytes <= kMostWorkspace &&
           posix_memalign(&workspace, 256, info.workspace_bytes + 256) == 0;
  if (*tried) {
    const kw_launch where = {sizeof where, 0, nullptr, workspace, info.workspace_bytes};
    status = kw_plan_launch(plan, &where, args);
  }
  free(workspace);
  kw_plan_destroy(plan);
  return status;
}

inline bool fits(int64_t work, const int64_t* spans, int count) {
  bool small = work <= kMostWork;
  for (int i = 0; i < count; ++i) small = small && spans[i] <= kMostSpan;
  return small;
}

inline Ran execute_gemm(kw_dispatcher* dispatcher, const kw_gemm_problem& p) {
  const auto span = [&](uint32_t layout, int64_t rows, int64_t columns, int64_t ld, int64_t stride) {
    const bool by_rows = layout == KW_ROW_MAJOR;
    const int64_t extents[] = {p.batch, by_rows ? rows : columns, by_rows ? columns : rows};
    const int64_t strides[] = {p.batch == 1 ? 0 : stride, ld, 1};
    return kw_span(3, extents, strides);
  };
  const int64_t spans[] = {span(p.layout_a, p.m, p.k, p.lda, p.stride_a), span(p.layout_b, p.k, p.n, p.ldb, p.stride_b),
                           span(p.layout_c, p.m, p.n, p.ldc, p.stride_c)};
  const int64_t outputs = kw_mul3(p.batch, p.m, p.n), work = kw_mul(outputs, kw_add(p.k, 1));
  if (p.dtype_a != KW_FP32 || p.num_d != 0 || p.beta != 0 || !fits(work, spans, 3)) return Ran::kNot;
  if (!fits(kw_mul3(p.batch, kw_add(p.m, p.n), p.k), spans, 3)) return Ran::kNot;
  const Sparse a(spans[0]), b(spans[1]), d(spans[2]);
  if (a.at() == nullptr || b.at() == nullptr || d.at() == nullptr) return Ran::kNot;
  const auto place = [](uint32_t layout, int64_t row, int64_t column, int64_t ld) {
    return layout == KW_ROW_MAJOR ? row * ld + column : column * ld + row;
  };
  std::vector<double> wanted;
  for (int64_t i = 0; i < outputs; ++i) {
    const int64_t n = i % p.n, m = i / p.n % p.m, one = i / p.n / p.m;
    double sum = 0;
    for (int64_t k = 0; k < p.k; ++k) {
      sum += static_cast<double>(a.filled(one * p.stride_a + place(p.layout_a, m, k, p.lda))) *
             static_cast<double>(b.filled(one * p.stride_b + place(p.layout_b, k, n, p.ldb)));
    }
    wanted.push_back(sum);
  }
  kw_gemm_args args = {};
  args.struct_size = sizeof args, args.a = a.at(), args.b = b.at(), args.d = d.at();
  bool tried = false;
  const kw_status status = launch(dispatcher, p.base, &args, &tried);
  if (!tried) return Ran::kNot;
  if (status != KW_OK) return Ran::kFailed;
  for (int64_t i = 0; i < outputs; ++i) {
    const int64_t n = i % p.n, m = i / p.n % p.m, one = i / p.n / p.m;
    const float actual = d.at()[one * p.stride_c + place(p.layout_c, m, n, p.ldc)];
    if (static_cast<double>(actual) != wanted[static_cast<size_t>(i)]) return Ran::kWrong;
  }
  return Ran::kRight;
}

// Calls visit with the elements of x, w and y of every product.
template <class Visit>
void every_product(const kw_conv_problem& p, const Visit& visit) {
  const int64_t c = p.c / p.groups, k = p.k / p.groups, points = kw_conv_filter_points(&p);
  const int64_t out[3] = {kw_conv_out(&p, 0), kw_conv_out(&p, 1), kw_conv_out(&p, 2)};
  const int64_t outputs = out[0] * out[1] * out[2];
  for (int64_t index = 0; index < p.n * outputs * points; ++index) {
    const int64_t t = index % points, o = index / points % outputs, n = index / points / outputs;
    const int64_t tap[3] = {t / p.filter[2] / p.filter[1], t / p.filter[2] % p.filter[1], t % p.filter[2]};
    const int64_t at[3] = {o / out[2] / out[1], o / out[2] % out[1], o % out[2]};
    int64_t x = n * p.stride_x[0], y = n * p.stride_y[0];
    bool inside = true;
    for (int dim = 0; dim < 3; ++dim) {
      const int64_t q = at[dim] * p.stride[dim] + tap[dim] * p.dilation[dim] - p.pad_left[dim];
      inside = inside && q >= 0 && q < p.extent[dim];
      if (inside) x += q * p.stride_x[dim + 2], y += at[dim] * p.stride_y[dim + 2];
    }
    if (!inside) continue;
    for (int64_t all = 0; all < p.k * c; ++all) {
      const int64_t to = all / c, from = to / k * c + all % c;
      const int64_t w = p.layout == KW_CONV_NGCHW ? (to * c + all % c) * points + t : (to * points + t) * c + all % c;
      visit(x + from * p.stride_x[1], w, y + to * p.stride_y[1]);
    }
  }
}

inline Ran execute_convolution(kw_dispatcher* dispatcher, const kw_conv_problem& p) {
  const int64_t points = kw_conv_filter_points(&p), outputs = kw_conv_out_points(&p), per_group = p.c / p.groups;
  const int64_t extents_x[] = {p.n, p.c, p.extent[0], p.extent[1], p.extent[2]};
  const int64_t extents_y[] = {p.n, p.k, kw_conv_out(&p, 0), kw_conv_out(&p, 1), kw_conv_out(&p, 2)};
  const int64_t weights = kw_mul3(p.k, per_group, points);
  const int64_t spans[] = {kw_span(5, extents_x, p.stride_x), weights, kw_span(5, extents_y, p.stride_y)};
  const int64_t images = kw_mul(kw_mul3(p.n, p.c, p.extent[0]), kw_mul(p.extent[1], p.extent[2]));
  const int64_t work = kw_add(kw_add(images, weights), kw_mul3(kw_mul(p.n, outputs), weights, 1));
  if (p.dtype_x != KW_FP32 || p.beta != 0 || !fits(work, spans, 3)) return Ran::kNot;
  const Sparse x(spans[0]), w(spans[1]), y(spans[2]);
  if (x.at() == nullptr || w.at() == nullptr || y.at() == nullptr) return Ran::kNot;
  const uint32_t op = p.base.op;
  std::map<int64_t, double> wanted;  // by element of what is written
  every_product(p, [&](int64_t i, int64_t t, int64_t o) {
    const double a = op == KW_OP_CONV_BACKWARD_DATA ? 0 : static_cast<double>(x.filled(i));
    const double b = op == KW_OP_CONV_BACKWARD_WEIGHT ? 0 : static_cast<double>(w.filled(t));
    const double c = op == KW_OP_CONV_FORWARD ? 0 : static_cast<double>(y.filled(o));
    if (op == KW_OP_CONV_FORWARD) wanted[o] += a * b;
    if (op == KW_OP_CONV_BACKWARD_DATA) wanted[i] += b * c;
    if (op == KW_OP_CONV_BACKWARD_WEIGHT) wanted[t] += a * c;
  });
  const bool data = op == KW_OP_CONV_BACKWARD_DATA, weight = op == KW_OP_CONV_BACKWARD_WEIGHT;
  const Sparse& written = data ? x : weight ? w : y;
  const kw_conv_args args = {sizeof args, 0,      data ? y.at() : x.at(), weight ? y.at() : w.at(), written.at(),
                             nullptr,     nullptr};
  bool tried = false;
  const kw_status status = launch(dispatcher, p.base, &args, &tried);
  if (!tried) return Ran::kNot;
  if (status != KW_OK) return Ran::kFailed;
  for (const auto& one : wanted) {
    if (static_cast<double>(written.at()[one.first]) != one.second) return Ran::kWrong;
  }
  return Ran::kRight;
}

inline Ran execute(kw_dispatcher* dispatcher, const DrawnProblem& drawn) {
  if (drawn.base.op == KW_OP_GEMM) return execute_gemm(dispatcher, drawn.gemm);
  const bool convolution = drawn.base.op >= KW_OP_CONV_FORWARD && drawn.base.op <= KW_OP_CONV_BACKWARD_WEIGHT;
  return convolution ? execute_convolution(dispatcher, drawn.conv) : Ran::kNot;
}

}  // namespace bounds

#endif  // KERNELWRIGHT_TESTS_BOUNDS_EXECUTE_HPP
