// Gradients of norms on GPUs. A row of threads takes a run of rows and adds up what they say of the weights; a second
// kernel adds the runs up in their order, so results have the same bits in every run.
#ifndef KERNELWRIGHT_NORM_GPU_BACKWARD_HPP
#define KERNELWRIGHT_NORM_GPU_BACKWARD_HPP

#include "kernelwright/norm/gpu/row.hpp"

namespace kernelwright::norm {

// Config is a shape with `centred` and the element type `element`.
template <class Config>
struct backward {
  using T = typename Config::element;
  using row_type = row_of_threads<Config, 4>;
  static constexpr int kVector = Config::vector;
  using vector_type = packed<T, kVector>;

  // Sums of a run of rows: those of columns in registers, and beyond them where they lie in memory.
  struct sums {
    float weight[Config::unroll][kVector], bias[Config::unroll][kVector];
    float *weight_memory, *bias_memory;  // null if the problem lacks it
  };

  KW_NORM_DEVICE static void run(const kw_norm_gpu_arguments& p, typename row_type::shared& memory) {
    const row_type row(memory);
    const int64_t slice = static_cast<int64_t>(blockIdx.x) * Config::rows + row.group;
    const bool leaves = slice < p.slices;
    sums all;
    start(p, row, slice, leaves ? p.columns : 0, all);
    // Every row of threads counts alike, for they meet at barriers.
    for (int64_t i = 0; i < p.rows_per_slice; ++i) one_row(p, row, slice * p.rows_per_slice + i, all);
    row.each(
        leaves ? p.columns : 0,
        [&](int at, int n) KW_NORM_INLINE {
          KW_NORM_UNROLL for (int i = 0; i < kVector; ++i) {
            if (at + i >= p.columns) continue;
            if (all.weight_memory != nullptr) all.weight_memory[at + i] = all.weight[n][i];
            if (all.bias_memory != nullptr) all.bias_memory[at + i] = all.bias[n][i];
          }
        },
        [](int) KW_NORM_INLINE {});
  }

  // Adds slices up: lanes of a workgroup take turns at slices, and their sums are added in order.
  KW_NORM_DEVICE static void finish(const kw_norm_gpu_arguments& p, float* memory) {
    constexpr int kColumns = KW_NORM_SUM_COLUMNS, kTurns = KW_NORM_SUM_BLOCK / KW_NORM_SUM_COLUMNS;
    const int blocks = (p.columns + kColumns - 1) / kColumns, gradients = int(p.has_weight + p.has_bias);
    const int of_bias = static_cast<int>(blockIdx.x) >= blocks || p.has_weight == 0;
    const int block = static_cast<int>(blockIdx.x) % blocks, gradient = static_cast<int>(blockIdx.x) / blocks;
    const int lane = static_cast<int>(threadIdx.x) % kColumns, turn = static_cast<int>(threadIdx.x) / kColumns;
    const int column = block * kColumns + lane;
    const int64_t pitch = static_cast<int64_t>(gradients) * p.columns;
    const float* const from = p.partial + static_cast<int64_t>(gradient) * p.columns + column;
    float sum = 0;
    if (column < p.columns) {
      for (int64_t slice = turn; slice < p.slices; slice += kTurns) sum += from[slice * pitch];
    }
    memory[threadIdx.x] = sum;
    __syncthreads();
    if (turn != 0 || column >= p.columns) return;
    KW_NORM_UNROLL for (int i = 1; i < kTurns; ++i) sum += memory[i * kColumns + lane];
    void* const to = of_bias ? p.dbias : p.dweight;
    if (p.wide_weights != 0) {
      static_cast<float*>(to)[column] = sum;
    } else {
      static_cast<typename T::storage*>(to)[column] = T::stored(T::narrow(sum));
    }
  }

 private:
  KW_NORM_DEVICE static void start(const kw_norm_gpu_arguments& p, const row_type& row, int64_t slice, int columns,
                                   sums& all) {
    float* const memory = p.partial + slice * int64_t(p.has_weight + p.has_bias) * p.columns;
    all.weight_memory = p.has_weight != 0 ? memory : nullptr;
    all.bias_memory = p.has_bias != 0 ? memory + (p.has_weight != 0 ? p.columns : 0) : nullptr;
    KW_NORM_UNROLL for (int n = 0; n < Config::unroll; ++n) {
      KW_NORM_UNROLL for (int i = 0; i < kVector; ++i) all.weight[n][i] = all.bias[n][i] = 0;
    }
    row.each(
        columns, [](int, int) KW_NORM_INLINE {},
        [&](int at) KW_NORM_INLINE {
          for (int i = 0; i < kVector && at + i < columns; ++i) {
            if (all.weight_memory != nullptr) all.weight_memory[at + i] = 0;
            if (all.bias_memory != nullptr) all.bias_memory[at + i] = 0;
          }
        });
  }

  KW_NORM_DEVICE static void one_row(const kw_norm_gpu_arguments& p, const row_type& row, int64_t at_row, sums& all) {
    const int columns = at_row < p.rows ? p.columns : 0;
    const bool whole = p.whole_rows != 0;
    const float count = static_cast<float>(p.columns);
    const void* const x = row_at<T>(p.x, at_row, p.stride_x);
    const void* const dy = row_at<T>(p.dy, at_row, p.stride_dy);
    vector_type xs[Config::unroll], ds[Config::unroll];
    row.each(
        columns,
        [&](int at, int n) KW_NORM_INLINE {
          xs[n] = load<T, kVector>(x, at, columns, whole);
          ds[n] = load<T, kVector>(dy, at, columns, whole);
        },
        [](int) KW_NORM_INLINE {});
    const auto found = statistics_of<Config::centred>(row, columns, count, p.epsilon, [&](auto step) KW_NORM_INLINE {
      row.each(
          columns, [&](int at, int n) KW_NORM_INLINE { step(at, xs[n]); },
          [&](int at) KW_NORM_INLINE { step(at, load<T, kVector>(x, at, columns, whole)); });
    });
    const auto normalised = [&](float s)
                                KW_NORM_INLINE { return (Config::centred ? s - found.mean : s) * found.inverse; };
    float plain = 0, products = 0;
    // Behind the row's end d is 0, and so is all that is added.
    const auto add = [&](int at, const vector_type& s, const vector_type& d, float* weight, float* bias, int end)
                         KW_NORM_INLINE {
                           const auto w = row_vector<T, kVector>(p.weight, p.has_weight != 0, 1.0f, at, p);
                           KW_NORM_UNROLL for (int i = 0; i < kVector; ++i) {
                             if (i >= end) continue;
                             const float h = normalised(s[i]), g = d[i] * w.of[i];
                             if (weight != nullptr) weight[i] = __builtin_fmaf(d[i], h, weight[i]);
                             if (bias != nullptr) bias[i] += d[i];
                             plain += g;
                             products = __builtin_fmaf(g, h, products);
                           }
                         };
    row.each(
        columns, [&](int at, int n) KW_NORM_INLINE { add(at, xs[n], ds[n], all.weight[n], all.bias[n], kVector); },
        [&](int at) KW_NORM_INLINE {
          const auto s = load<T, kVector>(x, at, columns, whole), d = load<T, kVector>(dy, at, columns, whole);
          add(at, s, d, all.weight_memory != nullptr ? all.weight_memory + at : nullptr,
              all.bias_memory != nullptr ? all.bias_memory + at : nullptr, columns - at);
        });
    float mean = 0;
    if constexpr (Config::centred) mean = row.template sum<2>(plain) / count;
    const float along = row.template sum<3>(products) / count;
    void* const dx = row_at<T>(p.y, at_row, p.stride_y);
    const void* const dsum = row_at<T>(p.residual, at_row, p.stride_residual);
    const auto write = [&](int at, const vector_type& s, const vector_type& d) KW_NORM_INLINE {
      const auto w = row_vector<T, kVector>(p.weight, p.has_weight != 0, 1.0f, at, p);
      numbers<kVector> out;
      KW_NORM_UNROLL for (int i = 0; i < kVector; ++i) {
        const float g = d[i] * w.of[i];
        out.of[i] = found.inverse * ((Config::centred ? g - mean : g) - normalised(s[i]) * along);
      }
      if (p.has_residual != 0) {
        const auto more = load<T, kVector>(dsum, at, columns, whole);
        KW_NORM_UNROLL for (int i = 0; i < kVector; ++i) out.of[i] += more[i];
      }
      store<T, kVector>(dx, at, columns, whole, rounded<T, kVector>(out));
    };
    row.each(
        columns, [&](int at, int n) KW_NORM_INLINE { write(at, xs[n], ds[n]); },
        [&](int at) KW_NORM_INLINE {
          write(at, load<T, kVector>(x, at, columns, whole), load<T, kVector>(dy, at, columns, whole));
        });
  }
};

}  // namespace kernelwright::norm

#endif  // KERNELWRIGHT_NORM_GPU_BACKWARD_HPP
