// What happens to a tile between its accumulators and memory: scale, add C, combine with D tensors, activate, convert.
#pragma once

#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/epilogue/fusion/sm90_callbacks_tma_warpspecialized.hpp>

#include "kernelwright/cuda/common/activation.hpp"
#include "kernelwright/cuda/gemm/any_epilogue.hpp"
#include "kernelwright/cuda/gemm/operands.hpp"

namespace kernelwright::cuda {

// A function of one number as what CUTLASS's visitor trees call: on whole fragments.
template <class Function>
struct elementwise {
  template <class T>
  struct on {
    CUTLASS_DEVICE T operator()(T const& x) const { return Function::of(x); }
  };
  template <class T, int N>
  struct on<cutlass::Array<T, N>> {
    CUTLASS_DEVICE cutlass::Array<T, N> operator()(cutlass::Array<T, N> const& x) const {
      cutlass::Array<T, N> y;
      CUTLASS_PRAGMA_UNROLL
      for (int i = 0; i < N; ++i) y[i] = Function::of(x[i]);
      return y;
    }
  };
};

// What the loads of C bring.
struct reads_c {
  static operand source(const kw_gemm_problem& problem, const kw_gemm_args& args) { return operand_c(problem, args); }
};

// D = alpha A B + beta C, what most kernels store. int32 accumulators stay integers up to the store: a float would lose
// bits above 2^24.
template <class Config>
struct plain_epilogue : reads_c {
  using element_c = typename Config::element_c;
  using element_acc = typename Config::element_acc;
  using fusion = cutlass::epilogue::fusion::LinearCombination<element_c, element_acc, element_c, element_acc>;

  template <class Arguments>
  static void fill(Arguments& out, const kw_gemm_problem& problem, const kw_gemm_args&) {
    out.thread.alpha = static_cast<element_acc>(problem.alpha);
    out.thread.beta = static_cast<element_acc>(problem.beta);
  }
};

// D = act((alpha A B + beta C) op D0 op D1 ...) as a visitor tree: a chain of D tensors that TMA loads beside C.
template <class Config, class Tile, class LayoutD>
struct fused_epilogue : reads_c {
  template <template <class> class Function, class Output>
  using compute = cutlass::epilogue::fusion::Sm90Compute<Function, Output, typename Config::element_acc,
                                                         cutlass::FloatRoundStyle::round_to_nearest>;
  using element_c = typename Config::element_c;
  using element_acc = typename Config::element_acc;
  using tensor = cutlass::epilogue::collective::detail::EpilogueDescriptor<
      Tile, cutlass::epilogue::collective::EpilogueTileAuto, element_c, element_c, typename Config::epilogue_schedule>;
  using aux = cutlass::epilogue::collective::detail::AuxLoadDescriptor<tensor, LayoutD, element_c>;
  using load = cutlass::epilogue::fusion::Sm90AuxLoad<aux::Stages, typename tensor::EpilogueTile, element_c,
                                                      typename aux::Stride, typename aux::SmemLayoutAtom,
                                                      typename aux::CopyOpS2R>;
  using scaled = cutlass::epilogue::fusion::Sm90LinearCombination<element_acc, element_acc, element_c, element_acc>;

  template <int count, class Unused = void>
  struct chain {
    using node = cutlass::epilogue::fusion::Sm90EVT<compute<Config::template combine, element_acc>,
                                                    typename chain<count - 1>::node, load>;
    static typename node::Arguments arguments(const kw_gemm_problem& problem, const kw_gemm_args& args) {
      constexpr int index = count - 1;
      typename aux::Stride stride{};
      if constexpr (cute::is_same_v<LayoutD, cutlass::layout::RowMajor>) {
        cute::get<0>(stride) = problem.ld_multi_d[index];
      } else {
        cute::get<1>(stride) = problem.ld_multi_d[index];
      }
      cute::get<2>(stride) = batch_stride(problem, problem.stride_multi_d[index]);
      const auto* pointer = static_cast<const element_c*>(args.multi_d[index]);
      return {chain<index>::arguments(problem, args), {pointer, element_c(0), stride}, {}};
    }
  };
  template <class Unused>
  struct chain<0, Unused> {
    using node = scaled;
    static typename node::Arguments arguments(const kw_gemm_problem& problem, const kw_gemm_args&) {
      const auto alpha = static_cast<element_acc>(problem.alpha), beta = static_cast<element_acc>(problem.beta);
      return {{{beta}, {nullptr}, {}}, {}, {{{alpha}, {nullptr}, {}}, {}, {}}, {}};
    }
  };

  using fusion =
      cutlass::epilogue::fusion::Sm90EVT<compute<elementwise<typename Config::activation>::template on, element_c>,
                                         typename chain<Config::num_d>::node>;

  template <class Arguments>
  static void fill(Arguments& out, const kw_gemm_problem& problem, const kw_gemm_args& args) {
    out.thread = {chain<Config::num_d>::arguments(problem, args), {}};
  }
};

template <class Config, class Tile, class LayoutD>
using epilogue_of = cute::conditional_t<
    cute::is_same_v<typename Config::activation, function::any>, any_epilogue<Config>,
    cute::conditional_t<Config::fused, fused_epilogue<Config, Tile, LayoutD>, plain_epilogue<Config>>>;

}  // namespace kernelwright::cuda
