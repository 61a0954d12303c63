// GEMM for matrices that TMA cannot read or write: rows at any address. Threads copy operands into shared memory, 16,
// 8, 4 or 2 bytes at a time as the problem's rows allow, and warps multiply by mma.sync.
//
// The workgroups loop over all tiles of all products. Sums go through shared memory to the epilogue, which works on
// neighbouring columns: it reads and writes single elements, whole lines of them at once.
#pragma once

#include <cuda_runtime.h>
#include <cutlass/numeric_conversion.h>
#include <cutlass/numeric_types.h>

#include "kernelwright/cuda/common/activation.hpp"
#include "kernelwright/cuda/common/device.hpp"
#include "kernelwright/cuda/common/mma.hpp"
#include "kernelwright/cuda/common/resources.hpp"
#include "kernelwright/cuda/gemm/launcher.h"

namespace kernelwright::cuda {

struct copied_operand {
  const void* data;
  int64_t leading, batch;
  int32_t bytes;  // that are copied at once
};

struct copied_params {
  copied_operand a, b;
  const void* c;
  void* d;
  int64_t ldc, stride_c;
  const void* multi_d[KW_MAX_D];
  int64_t ld_multi_d[KW_MAX_D], stride_multi_d[KW_MAX_D];
  int64_t batch;
  int32_t m, n, k;
  uint32_t num_d, d_op, activation;
  float alpha, beta;
};

// Bytes of `count` elements, at most 16 of them, that lie at a multiple of `bytes`; zeros behind them.
__device__ inline void copy_line(uint32_t to, const uint16_t* from, int count, int bytes) {
  const auto left = [&](int at, int most) { return max(0, min(most, count * 2 - at)); };
  if (bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(left(0, 16)) : "memory");
  } else if (bytes == 8) {
#pragma unroll
    for (int i = 0; i < 16; i += 8) {
      asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;\n" ::"r"(to + i), "l"(from + (left(i, 8) ? i / 2 : 0)),
                   "r"(left(i, 8))
                   : "memory");
    }
  } else if (bytes == 4) {
#pragma unroll
    for (int i = 0; i < 16; i += 4) {
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(to + i), "l"(from + (left(i, 4) ? i / 2 : 0)),
                   "r"(left(i, 4))
                   : "memory");
    }
  } else {
    uint32_t x[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t low = 2 * i < count ? from[2 * i] : 0, high = 2 * i + 1 < count ? from[2 * i + 1] : 0;
      x[i] = low | high << 16;
    }
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};\n" ::"r"(to), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
                 : "memory");
  }
}

// An operand of a tile in shared memory, in the order of memory: lines of elements, 16-byte chunks swizzled.
// k_lines: lines lie along K.
template <int extent, int depth, bool along_k, int threads>
struct copied_tile {
  static constexpr int lines = along_k ? extent : depth, chunks = (along_k ? depth : extent) / 8;
  static constexpr int bytes = lines * chunks * 16;

  __device__ static uint32_t address(uint32_t base, int line, int chunk) {
    return base + (line * chunks + (chunk ^ (line & 7))) * 16;
  }

  // first: row or column of the tile; k: the step's first; both have ends.
  __device__ static void load(uint32_t to, copied_operand const& from, int64_t product, int first, int end, int k,
                              int k_end) {
    const auto* const data = static_cast<const uint16_t*>(from.data) + product * from.batch;
    const int first_line = along_k ? first : k, end_line = along_k ? end : k_end;
    const int first_of_line = along_k ? k : first, end_of_line = along_k ? k_end : end;
#pragma unroll
    for (int i = 0; i < lines * chunks / threads; ++i) {
      const int at = i * threads + static_cast<int>(threadIdx.x), line = at / chunks, chunk = at % chunks;
      const int column = first_of_line + chunk * 8;
      const int count = first_line + line < end_line ? max(0, min(8, end_of_line - column)) : 0;
      const auto* const source = count > 0 ? data + (first_line + line) * from.leading + column : data;
      copy_line(address(to, line, chunk), source, count, from.bytes);
    }
  }

  // Four 8x8 matrices at `at` rows or columns and `depth_at` along K. `inner`: of the four, the second lies 8 further
  // along K (B); else 8 further along the extent (A).
  template <bool inner>
  __device__ static void fragment(uint32_t (&to)[4], uint32_t base, int at, int depth_at) {
    const int lane = static_cast<int>(threadIdx.x) % 32, matrix = lane / 8;
    const int along = at + (inner ? matrix / 2 : matrix % 2) * 8,
              deep = depth_at + (inner ? matrix % 2 : matrix / 2) * 8;
    if constexpr (along_k) {
      load_matrices<false>(to, address(base, along + lane % 8, deep / 8));
    } else {
      load_matrices<true>(to, address(base, deep + lane % 8, along / 8));
    }
  }
};

template <class Config>
struct copied_kernel {
  using element = typename Config::element_a;
  using element_c = typename Config::element_c;
  using multiplied =
      cutlass::platform::conditional_t<cutlass::platform::is_same<element, cutlass::bfloat16_t>::value, bfloat16, half>;
  static constexpr int tile_m = Config::tile_m, tile_n = Config::tile_n, tile_k = Config::tile_k;
  static constexpr int warps_m = Config::warps_m, warps_n = Config::warps_n, threads = 32 * warps_m * warps_n;
  static constexpr int rows = tile_m / warps_m / 16, columns = tile_n / warps_n / 8;  // of matrices, for each warp
  static constexpr int stages = 3, pitch = tile_n + 8;
  using operand_a = copied_tile<tile_m, tile_k, Config::a_along_k, threads>;
  using operand_b = copied_tile<tile_n, tile_k, Config::b_along_k, threads>;
  static constexpr int stage_bytes = operand_a::bytes + operand_b::bytes;
  static constexpr int sum_bytes = tile_m * pitch * 4;
  static constexpr int shared_bytes = stages * stage_bytes > sum_bytes ? stages * stage_bytes : sum_bytes;
  static_assert(columns % 2 == 0 && rows > 0 && tile_k % 16 == 0, "a warp loads four matrices of B at a time");

  __device__ static void run(copied_params const& p, char* shared) {
    const int64_t tiles_m = (p.m + tile_m - 1) / tile_m, tiles_n = (p.n + tile_n - 1) / tile_n,
                  of_one = tiles_m * tiles_n;
    for (int64_t at = blockIdx.x; at < of_one * p.batch; at += gridDim.x) {
      // Eight rows of tiles side by side, so that neighbours in time share operands in L2.
      const int64_t product = at / of_one, inside = at % of_one, band = inside / (8 * tiles_n);
      const int64_t height = min(static_cast<int64_t>(8), tiles_m - band * 8), rest = inside - band * 8 * tiles_n;
      const int row = static_cast<int>(band * 8 + rest % height) * tile_m,
                column = static_cast<int>(rest / height) * tile_n;
      float sums[rows][columns][4] = {};
      multiply_tile(p, shared, product, row, column, sums);
      keep(shared, sums);
      __syncthreads();
      store(p, reinterpret_cast<const float*>(shared), product, row, column);
      __syncthreads();
    }
  }

  __device__ static void multiply_tile(copied_params const& p, char* shared, int64_t product, int row, int column,
                                       float (&sums)[rows][columns][4]) {
    const uint32_t base = shared_address(shared);
    const int steps = (p.k + tile_k - 1) / tile_k;
    const auto load = [&](int step) {
      if (step < steps) {
        const uint32_t to = base + step % stages * stage_bytes;
        operand_a::load(to, p.a, product, row, p.m, step * tile_k, p.k);
        operand_b::load(to + operand_a::bytes, p.b, product, column, p.n, step * tile_k, p.k);
      }
      end_of_copies();
    };
#pragma unroll 1
    for (int step = 0; step < stages - 1; ++step) load(step);
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      wait_for_copies<stages - 2>();
      __syncthreads();
      load(step + stages - 1);
      multiply_stage(base + step % stages * stage_bytes, sums);
    }
    wait_for_copies<0>();
    __syncthreads();
  }

  __device__ static void multiply_stage(uint32_t a_base, float (&sums)[rows][columns][4]) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int row = warp / warps_n * rows * 16, column = warp % warps_n * columns * 8;
#pragma unroll
    for (int k = 0; k < tile_k; k += 16) {
      uint32_t a[rows][4], b[columns / 2][4];
#pragma unroll
      for (int i = 0; i < rows; ++i) operand_a::template fragment<false>(a[i], a_base, row + i * 16, k);
#pragma unroll
      for (int j = 0; j < columns / 2; ++j) {
        operand_b::template fragment<true>(b[j], a_base + operand_a::bytes, column + j * 16, k);
      }
#pragma unroll
      for (int i = 0; i < rows; ++i) {
#pragma unroll
        for (int j = 0; j < columns; ++j) {
          multiply<multiplied>(sums[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
        }
      }
    }
  }

  __device__ static void keep(char* shared, const float (&sums)[rows][columns][4]) {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    float* const to = reinterpret_cast<float*>(shared) + (warp / warps_n * rows * 16 + lane / 4) * pitch +
                      warp % warps_n * columns * 8 + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < rows; ++i) {
#pragma unroll
      for (int j = 0; j < columns; ++j) {
#pragma unroll
        for (int e = 0; e < 4; e += 2) {
          *reinterpret_cast<float2*>(to + (i * 16 + e * 4) * pitch + j * 8) = {sums[i][j][e], sums[i][j][e + 1]};
        }
      }
    }
  }

  __device__ static void store(copied_params const& p, const float* sums, int64_t product, int row, int column) {
    const auto* const c = static_cast<const element_c*>(p.c) + product * p.stride_c;
    auto* const d = static_cast<element_c*>(p.d) + product * p.stride_c;
    with_activation<function::any>(p.activation, [&](auto function) {
#pragma unroll 4
      for (int i = static_cast<int>(threadIdx.x); i < tile_m * tile_n; i += threads) {
        const int64_t r = row + i / tile_n, s = column + i % tile_n;
        if (r >= p.m || s >= p.n) continue;
        float value = p.alpha * sums[i / tile_n * pitch + i % tile_n];
        if (p.beta != 0) value += p.beta * static_cast<float>(c[r * p.ldc + s]);
#pragma unroll 1
        for (uint32_t x = 0; x < p.num_d; ++x) {
          const int64_t at = product * p.stride_multi_d[x] + r * p.ld_multi_d[x] + s;
          const auto with = static_cast<float>(static_cast<const element_c*>(p.multi_d[x])[at]);
          value = p.d_op == KW_D_MULTIPLY ? value * with : value + with;
        }
        d[r * p.ldc + s] = cutlass::NumericConverter<element_c, float>::convert(function.of(value));
      }
    });
  }
};

template <class Config>
__global__ void __launch_bounds__(copied_kernel<Config>::threads, 2)
    copied_gemm_kernel(const __grid_constant__ copied_params params) {
  extern __shared__ __align__(128) char shared[];
  copied_kernel<Config>::run(params, shared);
}

template <class Config>
struct copied_gemm {
  using kernel = copied_kernel<Config>;
  static constexpr kernel_resources resources = {sizeof(kernel_resources), kernel::shared_bytes, kernel::threads,
                                                 kernel::stages};

  static kw_status workspace_size(const kw_kernel*, const kw_problem*, uint64_t* bytes) {
    *bytes = 0;
    return KW_OK;
  }

  // The largest copy that lines allow: of rows, of products and of the first address.
  static copied_operand operand(const void* data, int64_t leading, int64_t batch, int64_t products) {
    const auto address = reinterpret_cast<uintptr_t>(data);
    const auto all =
        address | static_cast<uint64_t>(leading) * 2 | (products > 1 ? static_cast<uint64_t>(batch) * 2 : 0);
    int32_t bytes = 16;
    while (bytes > 2 && all % bytes != 0) bytes /= 2;
    return {data, leading, batch, bytes};
  }

  static copied_params params(const kw_gemm_problem& p, const kw_gemm_args& args) {
    copied_params out{};
    out.a = operand(args.a, p.lda, p.stride_a, p.batch);
    out.b = operand(args.b, p.ldb, p.stride_b, p.batch);
    out.c = args.c, out.d = args.d;
    out.ldc = p.ldc, out.stride_c = p.stride_c, out.batch = p.batch;
    for (uint32_t i = 0; i < p.num_d; ++i) {
      out.multi_d[i] = args.multi_d[i];
      out.ld_multi_d[i] = p.ld_multi_d[i], out.stride_multi_d[i] = p.stride_multi_d[i];
    }
    out.m = static_cast<int32_t>(p.m), out.n = static_cast<int32_t>(p.n), out.k = static_cast<int32_t>(p.k);
    out.num_d = p.num_d, out.d_op = p.d_op, out.activation = p.activation;
    out.alpha = static_cast<float>(p.alpha), out.beta = static_cast<float>(p.beta);
    return out;
  }

  static kw_status launch(const kw_kernel* descriptor, const void* plan, const kw_launch* launch, const void* args) {
    const kw_gemm_problem& p = static_cast<const kw_cuda_gemm_plan*>(plan)->problem;
    const kw_gemm_args& a = *static_cast<const kw_gemm_args*>(args);
    if (p.m == 0 || p.n == 0) return KW_OK;
    const kw_status status = kw_cuda_copied_gemm_check_args(&p, &a);
    if (status != KW_OK) return status;
    return on_device_of(launch, [&] {
      static uint64_t prepared = 0;
      const auto* const function = reinterpret_cast<const void*>(&copied_gemm_kernel<Config>);
      kw_status ready = kw_cuda_prepare(function, kernel::shared_bytes, launch->device, &prepared);
      place where{launch->device, 0};
      if (ready == KW_OK) ready = kw_cuda_multiprocessors(where.device, &where.multiprocessors);
      if (ready != KW_OK) return ready;
      const int64_t tiles = (p.m + kernel::tile_m - 1) / kernel::tile_m * ((p.n + kernel::tile_n - 1) / kernel::tile_n);
      const int64_t most = 2 * where.multiprocessors;
      const auto grid = static_cast<unsigned>(tiles < most && tiles * p.batch < most ? tiles * p.batch : most);
      copied_params all = params(p, a);
      void* parameters[] = {&all};
      const cudaError_t error = cudaLaunchKernel(function, dim3(grid), dim3(kernel::threads), parameters,
                                                 kernel::shared_bytes, static_cast<cudaStream_t>(launch->stream));
      return error == cudaSuccess ? KW_OK : kw_cuda_launch_failed(descriptor, static_cast<int>(error));
    });
  }
};

}  // namespace kernelwright::cuda
