// Forward attention on Hopper: TMA loads, wgmma, and two or three groups of warps that take turns at the tensor cores.
//
// FlashInfer's loop over keys does the work of a tile; tiles, loads, masks, the softmax and the store are here. A
// launch makes the TMA descriptors (they hold pointers); in group mode a small kernel before it lists the tiles of all
// requests in the workspace, for lengths are known on the device only. No allocation, no synchronisation.
#pragma once

#include "kernelwright/cuda/attention/forward/load.hpp"
#include "kernelwright/cuda/attention/forward/pages.hpp"
#include "kernelwright/cuda/attention/forward/schedule.hpp"
#include "kernelwright/cuda/attention/forward/softmax.hpp"
#include "kernelwright/cuda/attention/forward/store.hpp"
#include "kernelwright/cuda/common/resources.hpp"

namespace kernelwright::cuda::attention {

// Config: element, tile_m, tile_n, hdim_q, hdim_v; bounded (queries see keys up to some place), windowed (and from some
// place on), soft_cap, paged.
template <class Config>
struct forward {
  using element = typename Config::element;
  using traits = flashinfer::AttentionKernelTraits<true, Config::hdim_q, Config::hdim_v, Config::tile_m, Config::tile_n,
                                                   2, element, element, element, int32_t, scores<Config::soft_cap>>;
  using pipeline = typename traits::MainloopPipeline;
  using position = typename traits::PipelineState;
  using turns = flashinfer::WarpScheduler<traits, Config::hdim_v <= 128>;
  static constexpr int M = Config::tile_m, N = Config::tile_n;
  static constexpr int consumers = traits::NUM_MMA_THREADS, producers = cutlass::NumThreadsPerWarpGroup;
  static constexpr int threads = consumers + producers;

  struct storage : traits::SharedStorage {
    alignas(16) tile next;
    cutlass::arch::ClusterBarrier next_written, next_read;
  };

  struct params {
    operands<traits> tensors;
    pages cache;  // of a kernel with pages
    schedule tiles;
    window visible;
    score_numbers numbers;
    output out;
  };

  // What FlashInfer's loop reads of its parameters.
  struct loop_params {
    int32_t window_left;
  };

  struct span {
    int first, last, last_cut;  // tiles of keys; last < 0: no query sees a key
    band seen;
  };

  CUTLASS_DEVICE static span span_of(params const& p, tile const& t) {
    const band seen = band::of(p.visible, t);
    span out{0, seen.key_tiles<M, N>(Config::bounded, t) - 1, -1, seen};
    if constexpr (Config::windowed) {
      out.first = seen.first_tile<M, N>(t);
      out.last_cut = seen.last_cut_tile<M, N>(t);
    }
    return out;
  }

  CUTLASS_DEVICE static void produce(params const& p, storage& shared, pipeline keys, pipeline values) {
    auto at_key = cutlass::make_producer_start_state<pipeline>();
    auto at_value = cutlass::make_producer_start_state<pipeline>();
    const bool leader = cute::elect_one_sync();
    int done = 0, item = blockIdx.x;
    const int total = p.tiles.total();
    for (int round = 0;; ++round) {
      tile t{-1};
      if (item < total) t = p.tiles.at(item);
      shared.next_read.wait((round + 1) % 2);
      if (leader) {
        shared.next = t;
        shared.next_written.arrive();
      }
      if (t.request < 0) break;
      if (leader) item = p.tiles.next(item);
      const span keys_of = span_of(p, t);
      if (keys_of.last >= 0) {
        if constexpr (Config::paged) {
          page_loader<traits>::load(p.tensors, p.cache, shared, keys, at_key, values, at_value, t, keys_of.first,
                                    keys_of.last, done++);
        } else {
          loader<traits>::load(p.tensors, shared, keys, at_key, values, at_value, t, keys_of.first, keys_of.last,
                               done++);
        }
      }
      item = __shfl_sync(~0u, item, __ffs(__ballot_sync(~0u, leader)) - 1);
    }
    if (leader) {
      keys.producer_tail(at_key);
      values.producer_tail(at_value);
    }
  }

  CUTLASS_DEVICE static void consume(params const& p, storage& shared, pipeline keys, pipeline values) {
    using namespace cute;
    const int thread = threadIdx.x - producers;
    typename traits::TiledMmaPV multiply;
    position at_key, at_value;
    turns::mma_init();
    int done = 0;
    for (int round = 0;; ++round) {
      shared.next_written.wait(round % 2);
      const tile t = shared.next;
      __syncwarp();
      if (threadIdx.x % 32 == 0) shared.next_read.arrive();
      if (t.request < 0) break;
      const span keys_of = span_of(p, t);
      const float sink = p.numbers.sinks ? p.numbers.sinks[t.head] : -flashinfer::math::inf;
      if (keys_of.last < 0) {
        p.out.template store_nothing<element, M, Config::hdim_v, consumers>(t, thread, sink);
        continue;
      }
      Tensor sums = partition_fragment_C(multiply, select<0, 1>(typename traits::TileShape_PDV{}));
      softmax<2 * (2 * M / consumers)> rows(Config::soft_cap ? p.numbers.soft_cap : p.numbers.scale,
                                            sink * flashinfer::math::log2e);
      scores<Config::soft_cap> change{p.numbers.cap_scale};
      // The loop hides keys beyond query + 1 + kv_len - qo_len: with this qo_len it is the band's edge.
      flashinfer::mma_f16<traits, Config::windowed, Config::bounded, false, turns>(
          loop_params{keys_of.seen.left}, change, keys, values, at_key, at_value, sums, rows, keys_of.last + 1,
          keys_of.first, keys_of.last_cut, thread, done++, t.index, shared, t.k.count - keys_of.seen.right, t.k.count,
          t.head, t.kv_head, 0, nullptr);
      p.out.template store<traits>(p.tensors, sums, rows.row_sum, shared, multiply, thread, t);
    }
  }

  CUTLASS_DEVICE static void run(params const& p, storage& shared) {
    const int group = cutlass::canonical_warp_group_idx(), warp = cutlass::canonical_warp_idx_sync();
    if (warp == 0 && cute::elect_one_sync()) {
      cute::prefetch_tma_descriptor(p.tensors.q.get_tma_descriptor());
      if constexpr (!Config::paged) {
        cute::prefetch_tma_descriptor(p.tensors.k.get_tma_descriptor());
        cute::prefetch_tma_descriptor(p.tensors.v.get_tma_descriptor());
      }
      cute::prefetch_tma_descriptor(p.tensors.o.get_tma_descriptor());
      shared.barrier_Q.init(1);
      shared.barrier_O.init(1);
      shared.next_written.init(1);
      shared.next_read.init(consumers / 32);
    }
    typename pipeline::Params of_pipeline;
    of_pipeline.role = group == 0 ? pipeline::ThreadCategory::Producer : pipeline::ThreadCategory::Consumer;
    of_pipeline.is_leader = threadIdx.x % cutlass::NumThreadsPerWarpGroup == 0;
    of_pipeline.num_consumers = consumers;
    // A pipeline fences the barriers that were made before it.
    of_pipeline.transaction_bytes = loader<traits>::bytes_k;
    pipeline keys(shared.pipeline_k, of_pipeline, cute::Shape<cute::_1, cute::_1, cute::_1>{});
    of_pipeline.transaction_bytes = loader<traits>::bytes_v;
    pipeline values(shared.pipeline_v, of_pipeline, cute::Shape<cute::_1, cute::_1, cute::_1>{});
    __syncthreads();
    // Registers move from the producer to those who multiply; the numbers are FlashInfer's.
    if (group == 0) {
      cutlass::arch::warpgroup_reg_dealloc<threads == 384 ? 24 : 32>();
      if (warp == 0) produce(p, shared, keys, values);
    } else {
      cutlass::arch::warpgroup_reg_alloc<threads == 384 ? 240 : 160>();
      consume(p, shared, keys, values);
    }
  }
};

template <class Config>
__global__ void __launch_bounds__(forward<Config>::threads, 1)
    forward_kernel(CUTLASS_GRID_CONSTANT typename forward<Config>::params const p) {
  extern __shared__ __align__(1024) char memory[];
  forward<Config>::run(p, *reinterpret_cast<typename forward<Config>::storage*>(memory));
}

}  // namespace kernelwright::cuda::attention
