// How sums become elements of D: D = act((alpha * sum + beta * C) op D0 op D1 …).
#ifndef KERNELWRIGHT_CPU_GEMM_MICRO_EPILOGUE_HPP
#define KERNELWRIGHT_CPU_GEMM_MICRO_EPILOGUE_HPP

#include "kernelwright/cpu/common/element.hpp"
#include "kernelwright/cpu/gemm/kernel.hpp"
#include "kernelwright/cpu/gemm/micro/activation.hpp"

namespace kernelwright::cpu {
namespace {

constexpr int kAnyD = -1;  // as many further D as the output says, combined as it says

// Output is the element type of C, D and every further D. NumD may be kAnyD; Combine means nothing then.
template <class Output, int NumD = 0, kw_d_op Combine = KW_D_ADD, class Activation = no_activation>
struct epilogue {
  using element = Output;
  using storage = typename Output::storage;
  static constexpr bool kPlain = NumD == 0 && Activation::kActivation == KW_ACTIVATION_NONE;
  static constexpr uint32_t kNumD = NumD, kDOp = Combine, kActivation = Activation::kActivation;

  static constexpr bool is_plain(const output&) { return kPlain; }
  static constexpr uint32_t num_d(const output& to) { return NumD == kAnyD ? to.num_d : NumD; }

  // `rows` x `cols` sums, `ld` units apart, go to `to`.
  static __attribute__((noinline)) void write(const float* sums, int64_t ld, int64_t rows, int64_t cols,
                                              const output& to) {
    for (int64_t i = 0; i < rows; ++i) {
      int64_t j = 0;
      for (; j + kLanes <= cols; j += kLanes) write_vector(load(sums + i * ld + j), i, j, to);
      if (j < cols) write_first(load_first(sums + i * ld + j, cols - j), cols - j, i, j, to);
    }
  }

  // kLanes sums of row i from column j on, or the first `count` of them.
  static KW_CPU_INLINE void write_vector(vec sum, int64_t i, int64_t j, const output& to) {
    write_some<true>(sum, kLanes, i * to.ldc + j, to, [&](uint32_t n) { return i * to.ld_multi_d[n] + j; });
  }
  static KW_CPU_INLINE void write_first(vec sum, int64_t count, int64_t i, int64_t j, const output& to) {
    write_some<false>(sum, count, i * to.ldc + j, to, [&](uint32_t n) { return i * to.ld_multi_d[n] + j; });
  }
  // kLanes or `count` sums, `at` elements from where the output begins; a further D of one line stays where it is.
  template <bool Whole>
  static KW_CPU_INLINE void write_at(vec sum, int64_t count, int64_t at, const output& to) {
    write_some<Whole>(sum, count, at, to, [&](uint32_t n) { return to.ld_multi_d[n] == 0 ? 0 : at; });
  }

 private:
  static KW_CPU_INLINE vec join(vec v, vec other, const output& to) {
    const uint32_t combine = NumD == kAnyD ? to.d_op : uint32_t{Combine};
    return combine == KW_D_ADD ? add(v, other) : mul(v, other);
  }

  // further(n): where the values of D n begin.
  template <bool Whole, class Further>
  static KW_CPU_INLINE void write_some(vec sum, int64_t count, int64_t at, const output& to, const Further& further) {
    const auto read = [&](const void* from, int64_t offset) {
      const storage* p = static_cast<const storage*>(from) + offset;
      return Whole ? Output::load_float(p) : Output::load_first(p, count);
    };
    vec v = mul(broadcast(to.alpha), sum);
    if (to.beta != 0.0f) v = fma(broadcast(to.alpha), sum, mul(broadcast(to.beta), read(to.c, at)));
    for (uint32_t n = 0; n < num_d(to); ++n) v = join(v, read(to.multi_d[n], further(n)), to);
    v = Activation::apply(v);
    storage* d = static_cast<storage*>(to.d) + at;
    if constexpr (Whole) {
      Output::store_float(d, v);
    } else {
      Output::store_first(d, v, count);
    }
  }
};

// Every epilogue, chosen where results are written by what the output says.
template <class Output>
struct any_epilogue {
  using element = Output;
  using storage = typename Output::storage;
  static constexpr bool kPlain = false;
  static constexpr uint32_t kNumD = KW_MAX_D, kDOp = KW_D_ADD, kActivation = KW_ACTIVATION_ANY;

  static KW_CPU_INLINE bool is_plain(const output& to) { return (to.num_d | to.activation) == 0; }
  static KW_CPU_INLINE uint32_t num_d(const output& to) { return to.num_d; }

  static void write(const float* sums, int64_t ld, int64_t rows, int64_t cols, const output& to) {
    kTable.write[to.activation](sums, ld, rows, cols, to);
  }

 private:
  using write_function = void (*)(const float*, int64_t, int64_t, int64_t, const output&);

  struct table {
    write_function write[KW_ACTIVATION_TANH + 1];

    template <class Activation>
    constexpr void add() {
      write[Activation::kActivation] = &epilogue<Output, kAnyD, KW_D_ADD, Activation>::write;
    }
    constexpr table() : write() {
      add<no_activation>();
      add<relu>();
      add<gelu>();
      add<fast_gelu>();
      add<silu>();
      add<sigmoid>();
      add<tanh>();
    }
  };
  static constexpr table kTable{};
};

// Integers: in double, where every sum and every product with a small alpha or beta is exact; rounded to nearest even,
// and saturated.
template <>
struct epilogue<int32, 0, KW_D_ADD, no_activation> {
  using element = int32;
  using storage = int32_t;
  static constexpr bool kPlain = false;
  static constexpr uint32_t kNumD = 0, kDOp = KW_D_ADD, kActivation = KW_ACTIVATION_NONE;

  static constexpr bool is_plain(const output&) { return kPlain; }
  static constexpr uint32_t num_d(const output&) { return 0; }

  static __attribute__((noinline)) void write(const float* sums, int64_t ld, int64_t rows, int64_t cols,
                                              const output& to) {
    for (int64_t i = 0; i < rows; ++i) {
      const float* line = sums + i * ld;
      int32_t* d = static_cast<int32_t*>(to.d) + i * to.ldc;
      if (to.alpha64 == 1.0 && to.beta64 == 0.0) {
        __builtin_memcpy(d, line, static_cast<size_t>(cols) * 4);
        continue;
      }
      const int32_t* c = to.beta64 != 0.0 ? static_cast<const int32_t*>(to.c) + i * to.ldc : nullptr;
      for (int64_t j = 0; j < cols; ++j) {
        int32_t sum = 0;
        __builtin_memcpy(&sum, line + j, 4);
        double v = to.alpha64 * sum;
        if (c != nullptr) v += to.beta64 * c[j];
        v = v < -2147483648.0 ? -2147483648.0 : v > 2147483647.0 ? 2147483647.0 : v;
        d[j] = _mm_cvtsd_si32(_mm_set_sd(v));
      }
    }
  }
};

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_GEMM_MICRO_EPILOGUE_HPP
