// Norms of rows on GPUs: what a row has in registers is read once, the rest of a longer row once more for each pass.
#ifndef KERNELWRIGHT_NORM_GPU_FORWARD_HPP
#define KERNELWRIGHT_NORM_GPU_FORWARD_HPP

#include "kernelwright/norm/gpu/row.hpp"

namespace kernelwright::norm {

// Config is a shape with `centred`, the element type `element` and that of the result, `result`.
template <class Config>
struct forward {
  using T = typename Config::element;
  using Y = typename Config::result;
  using row_type = row_of_threads<Config, 4>;
  static constexpr int kVector = Config::vector;
  using vector_type = packed<T, kVector>;

  KW_NORM_DEVICE static void run(const kw_norm_gpu_arguments& p, typename row_type::shared& memory) {
    const row_type row(memory);
    const int64_t at_row = static_cast<int64_t>(blockIdx.x) * Config::rows + row.group;
    const int columns = at_row < p.rows ? p.columns : 0;  // threads without a row take part in sums alone
    const bool whole = p.whole_rows != 0;
    const void* x = row_at<T>(p.x, at_row, p.stride_x);
    vector_type held[Config::unroll];
    row.each(
        columns, [&](int at, int n) KW_NORM_INLINE { held[n] = load<T, kVector>(x, at, columns, whole); },
        [](int) KW_NORM_INLINE {});
    if (p.has_residual != 0) x = add_residual(p, row, x, at_row, columns, held);
    const auto walk = [&](auto step) KW_NORM_INLINE {
      row.each(
          columns, [&](int at, int n) KW_NORM_INLINE { step(at, held[n]); },
          [&](int at) KW_NORM_INLINE { step(at, load<T, kVector>(x, at, columns, whole)); });
    };
    const auto found = statistics_of<Config::centred>(row, columns, static_cast<float>(p.columns), p.epsilon, walk);
    const auto normalised = [&](int at, const vector_type& s) KW_NORM_INLINE {
      const auto weight = row_vector<T, kVector>(p.weight, p.has_weight != 0, 1.0f, at, p);
      const auto bias = row_vector<T, kVector>(p.bias, p.has_bias != 0, 0.0f, at, p);
      numbers<kVector> y;
      KW_NORM_UNROLL for (int i = 0; i < kVector; ++i) {
        const float h = (Config::centred ? s[i] - found.mean : s[i]) * found.inverse;
        y.of[i] = h * weight.of[i] + bias.of[i];
      }
      return y;
    };
    void* const y = row_at<Y>(p.y, at_row, p.stride_y);
    if constexpr (Y::kLargest == 0) {
      walk([&](int at, const vector_type& s)
               KW_NORM_INLINE { store<Y, kVector>(y, at, columns, whole, rounded<Y, kVector>(normalised(at, s))); });
    } else {
      quantise(p, row, y, at_row, columns, walk, normalised);
    }
  }

 private:
  // Writes the sum and keeps it as it was rounded; returns its row.
  KW_NORM_DEVICE static const void* add_residual(const kw_norm_gpu_arguments& p, const row_type& row, const void* x,
                                                 int64_t at_row, int columns, vector_type* held) {
    const bool whole = p.whole_rows != 0;
    const void* const residual = row_at<T>(p.residual, at_row, p.stride_residual);
    void* const sum = row_at<T>(p.sum, at_row, p.stride_sum);
    const auto added = [](const vector_type& a, const vector_type& b) KW_NORM_INLINE {
      numbers<kVector> out;
      KW_NORM_UNROLL for (int i = 0; i < kVector; ++i) out.of[i] = a[i] + b[i];
      return rounded<T, kVector>(out);
    };
    vector_type other[Config::unroll];
    row.each(
        columns, [&](int at, int n) KW_NORM_INLINE { other[n] = load<T, kVector>(residual, at, columns, whole); },
        [&](int at) KW_NORM_INLINE {
          const auto a = load<T, kVector>(x, at, columns, whole), b = load<T, kVector>(residual, at, columns, whole);
          store<T, kVector>(sum, at, columns, whole, added(a, b));
        });
    row.each(
        columns,
        [&](int at, int n)
            KW_NORM_INLINE { store<T, kVector>(sum, at, columns, whole, held[n] = added(held[n], other[n])); },
        [](int) KW_NORM_INLINE {});
    return sum;
  }

  template <class Walk, class Normalised>
  KW_NORM_DEVICE static void quantise(const kw_norm_gpu_arguments& p, const row_type& row, void* y, int64_t at_row,
                                      int columns, const Walk& walk, const Normalised& normalised) {
    constexpr float kLargest = Y::kLargest;
    float most = 0, poison = 0;
    walk([&](int at, const vector_type& s) KW_NORM_INLINE {
      const auto v = normalised(at, s);
      KW_NORM_UNROLL for (int i = 0; i < kVector; ++i) {
        const float kept = at + i < columns ? v.of[i] : 0.0f, size = __builtin_fabsf(kept);
        most = size > most ? size : most;
        poison = __builtin_fmaf(kept, 0.0f, poison);  // NaN once a number is not finite
      }
    });
    most = row.template largest<2>(most);
    const float bad = row.template sum<3>(poison);
    if (columns != 0 && row.thread == 0) p.scales[at_row] = most / kLargest + bad;
    // A row of zeros stays one; so does what has no scale.
    const float inverse = most / kLargest > 0 && bad == 0 ? kLargest / most : 0.0f;
    const float scaled = inverse < __builtin_inff() ? inverse : 0.0f;
    walk([&](int at, const vector_type& s) KW_NORM_INLINE {
      auto v = normalised(at, s);
      KW_NORM_UNROLL for (int i = 0; i < kVector; ++i) v.of[i] = bad == 0 ? v.of[i] * scaled : 0.0f;
      store<Y, kVector>(y, at, columns, p.whole_rows != 0, rounded<Y, kVector>(v));
    });
  }
};

}  // namespace kernelwright::norm

#endif  // KERNELWRIGHT_NORM_GPU_FORWARD_HPP
