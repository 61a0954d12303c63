// The epilogue that a problem asks for: D = act((alpha A B + beta C) op D0 op D1 ...).
//
// One node takes the place of CUTLASS's visitor trees. One matrix comes by the TMA loads of C: C itself, or, where beta
// is 0, the first D tensor that is no line. The first line (a bias) waits in registers, its loads under way together.
// What remains is read where it is needed. All decisions are the same for all threads.
#pragma once

#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/epilogue/fusion/sm90_visitor_tma_warpspecialized.hpp>

#include "kernelwright/cuda/common/activation.hpp"
#include "kernelwright/cuda/gemm/operands.hpp"

namespace kernelwright::cuda {

// A D tensor on the rows and columns of wgmma.
template <class Element>
struct further_tensor {
  const Element* data;
  int64_t row, column, batch;  // elements from one to the next
};

// What the loads of C bring.
enum class brought { nothing, c, d };

template <class Element>
struct any_epilogue_params {
  float alpha, beta;
  brought matrix;
  bool multiply, line;
  uint32_t activation;
  int32_t count;
  further_tensor<Element> first_line;
  further_tensor<Element> further[KW_MAX_D];
};

template <class Element, bool swap>
struct any_epilogue_node {
  struct SharedStorage {};
  using Arguments = any_epilogue_params<Element>;
  using Params = Arguments;

  template <class Shape>
  static constexpr Params to_underlying_arguments(Shape const&, Arguments const& args, void*) {
    return args;
  }
  template <class Shape>
  static bool can_implement(Shape const&, Arguments const&) {
    return true;
  }
  template <class Shape>
  static size_t get_workspace_size(Shape const&, Arguments const&) {
    return 0;
  }
  template <class Shape>
  static cutlass::Status initialize_workspace(Shape const&, Arguments const&, void*, cudaStream_t,
                                              cutlass::CudaHostAdapter* = nullptr) {
    return cutlass::Status::kSuccess;
  }

  CUTLASS_HOST_DEVICE any_epilogue_node() {}
  CUTLASS_HOST_DEVICE any_epilogue_node(Params const& all, SharedStorage const&) : params(&all) {}

  CUTLASS_DEVICE bool is_producer_load_needed() const { return is_C_load_needed(); }
  CUTLASS_DEVICE bool is_C_load_needed() const { return params->matrix != brought::nothing; }

  template <class... Args>
  CUTLASS_DEVICE auto get_producer_load_callbacks(cutlass::epilogue::fusion::detail::ProducerLoadArgs<Args...> const&) {
    return cutlass::epilogue::fusion::detail::EmptyProducerLoadCallbacks{};
  }

  // Places: coordinates of a thread's elements from its first one, of (element …, subtile row, subtile column).
  template <class Places, class Source>
  struct ConsumerStoreCallbacks : cutlass::epilogue::fusion::detail::EmptyConsumerStoreCallbacks {
    // wgmma leaves a thread two neighbours of a row, and the same columns 8 rows below.
    static constexpr int kSubtiles =
        swap ? decltype(cute::size<3>(Places{}))::value : decltype(cute::size<4>(Places{}))::value;
    static constexpr int kElements = decltype(cute::size(Source{}))::value;
    static constexpr int kOfSubtile = swap ? 2 : kElements / 2;
    // Lines of 4-byte elements would take registers that the accumulators need.
    static constexpr bool kTogether = swap || sizeof(Element) == 2;

    Params const& p;
    Places places;
    Source const& source;
    int row, column, rows_left, columns_left, batch;
    Element line[kTogether ? kSubtiles : 1][kOfSubtile];

    CUTLASS_DEVICE ConsumerStoreCallbacks(Params const& all, Places const& of, Source const& loaded, int first_row,
                                          int first_column, int rows, int columns, int product)
        : p(all),
          places(of),
          source(loaded),
          row(first_row),
          column(first_column),
          rows_left(rows),
          columns_left(columns),
          batch(product) {}

    CUTLASS_DEVICE auto place(int i, int m, int n) const { return places(cute::_, cute::_, cute::_, m, n)(i); }

    CUTLASS_DEVICE void load_line(int subtile, Element (&to)[kOfSubtile]) const {
      const Element* from = p.first_line.data + batch * p.first_line.batch + (swap ? row : column);
      CUTLASS_PRAGMA_UNROLL
      for (int j = 0; j < kOfSubtile; j += swap ? 1 : 2) {
        const auto at = place(j * 2, swap ? subtile : 0, swap ? 0 : subtile);
        const int along = swap ? cute::get<0>(at) : cute::get<1>(at);
        const bool inside = along < (swap ? rows_left : columns_left);
        if constexpr (swap) {
          to[j] = inside ? from[along] : Element(0);
        } else {
          using pair = cutlass::AlignedArray<Element, 2>;
          pair both{};
          if (inside) both = *reinterpret_cast<const pair*>(from + along);
          to[j] = both[0], to[j + 1] = both[1];
        }
      }
    }

    CUTLASS_DEVICE void begin() {
      if constexpr (kTogether) {
        if (!p.line) return;
        CUTLASS_PRAGMA_UNROLL
        for (int i = 0; i < kSubtiles; ++i) load_line(i, line[i]);
      }
    }

    CUTLASS_DEVICE void begin_loop(int, int n) {
      if constexpr (!kTogether) {
        if (p.line) load_line(n, line[0]);
      }
    }

    template <int N>
    CUTLASS_DEVICE void join(float (&values)[N], float (&with)[N]) const {
      if (p.multiply) {
        CUTLASS_PRAGMA_UNROLL
        for (int i = 0; i < N; ++i) values[i] *= with[i];
      } else {
        CUTLASS_PRAGMA_UNROLL
        for (int i = 0; i < N; ++i) values[i] += with[i];
      }
    }

    template <int N>
    CUTLASS_DEVICE void read(further_tensor<Element> const& tensor, int m, int n, float (&to)[N]) const {
      const Element* from = tensor.data + batch * tensor.batch + row * tensor.row + column * tensor.column;
      CUTLASS_PRAGMA_UNROLL
      for (int i = 0; i < N; ++i) {
        const auto at = place(i, m, n);
        const int r = cute::get<0>(at), c = cute::get<1>(at);
        const bool inside = r < rows_left && c < columns_left;
        to[i] = inside ? static_cast<float>(from[r * tensor.row + c * tensor.column]) : 0.0f;
      }
    }

    template <class Sum, int N>
    CUTLASS_DEVICE cutlass::Array<Element, N> visit(cutlass::Array<Sum, N> const& sums, int, int m, int n) const {
      static_assert(N == kElements, "a subtile is one fragment");
      float values[N], with[N];
      CUTLASS_PRAGMA_UNROLL
      for (int i = 0; i < N; ++i) values[i] = p.alpha * sums[i];
      if (p.matrix == brought::c) {
        CUTLASS_PRAGMA_UNROLL
        for (int i = 0; i < N; ++i) values[i] += p.beta * static_cast<float>(source(i));
      } else if (p.matrix == brought::d) {
        CUTLASS_PRAGMA_UNROLL
        for (int i = 0; i < N; ++i) with[i] = static_cast<float>(source(i));
        join(values, with);
      }
      if (p.line) {
        const auto& of = line[!kTogether ? 0 : swap ? m : n];
        CUTLASS_PRAGMA_UNROLL
        for (int i = 0; i < N; ++i) with[i] = static_cast<float>(of[swap ? i / 2 % 2 : i / 4 * 2 + i % 2]);
        join(values, with);
      }
      CUTLASS_PRAGMA_NO_UNROLL
      for (int i = 0; i < p.count; ++i) {
        read(p.further[i], m, n, with);
        join(values, with);
      }
      with_activation<function::any>(p.activation, [&](auto function) {
        CUTLASS_PRAGMA_UNROLL
        for (int i = 0; i < N; ++i) values[i] = function.of(values[i]);
      });
      cutlass::Array<Element, N> out;
      const auto& all = reinterpret_cast<cutlass::Array<float, N> const&>(values);
      out = cutlass::NumericArrayConverter<Element, float, N>{}(all);
      return out;
    }
  };

  template <bool, class... Args>
  CUTLASS_DEVICE auto get_consumer_store_callbacks(
      cutlass::epilogue::fusion::detail::ConsumerStoreArgs<Args...> const& args) {
    const auto [rows, columns, depth, products] = args.problem_shape_mnkl;
    const auto [tile_m, tile_n, tile_k, product] = args.tile_coord_mnkl;
    const int rows_left = cute::get<0>(args.residue_tCcD), columns_left = cute::get<1>(args.residue_tCcD);
    using callbacks =
        ConsumerStoreCallbacks<cute::remove_cvref_t<decltype(args.tCcD)>, cute::remove_cvref_t<decltype(args.tCrC)>>;
    return callbacks(*params, args.tCcD, args.tCrC, rows - rows_left, columns - columns_left, rows_left, columns_left,
                     static_cast<int>(product));
  }

  // Where the kernel's parameters are: a copy that is indexed would lie in local memory.
  Params const* params = nullptr;
};

template <class Config>
struct any_epilogue {
  using element_c = typename Config::element_c;
  using fusion = any_epilogue_node<element_c, Config::swap>;

  static further_tensor<element_c> tensor(const kw_gemm_problem& p, const kw_gemm_args& args, uint32_t i) {
    const int64_t line = p.ld_multi_d[i];
    return {static_cast<const element_c*>(args.multi_d[i]), Config::swap ? 1 : line, Config::swap ? line : 1,
            batch_stride(p, p.stride_multi_d[i])};
  }

  // The D tensor that comes in the place of C; KW_MAX_D where none does.
  static uint32_t in_place_of_c(const kw_gemm_problem& p) {
    uint32_t i = 0;
    while (i < p.num_d && p.ld_multi_d[i] == 0) ++i;
    return p.beta == 0 && i < p.num_d ? i : KW_MAX_D;
  }

  template <class Arguments>
  static void fill(Arguments& out, const kw_gemm_problem& p, const kw_gemm_args& args) {
    any_epilogue_params<element_c>& to = out.thread;
    to.alpha = static_cast<float>(p.alpha), to.beta = static_cast<float>(p.beta);
    const uint32_t taken = in_place_of_c(p);
    to.matrix = p.beta != 0 ? brought::c : taken < KW_MAX_D ? brought::d : brought::nothing;
    to.multiply = p.d_op == KW_D_MULTIPLY;
    to.activation = p.activation;
    for (uint32_t i = 0; i < p.num_d; ++i) {
      if (i == taken) continue;
      if (p.ld_multi_d[i] == 0 && !to.line) {
        to.line = true;
        to.first_line = tensor(p, args, i);
      } else {
        to.further[to.count++] = tensor(p, args, i);
      }
    }
  }

  static operand source(const kw_gemm_problem& p, const kw_gemm_args& args) {
    const uint32_t i = in_place_of_c(p);
    if (i == KW_MAX_D) return operand_c(p, args);
    return {args.multi_d[i], p.ld_multi_d[i], batch_stride(p, p.stride_multi_d[i])};
  }
};

}  // namespace kernelwright::cuda
