// Forward attention on Hopper: TMA loads, wgmma, and two or three groups of warps that take turns at the tensor cores.
//
// FlashInfer's loop over keys does the work of a tile; tiles, loads, masks, the softmax and the store are here. A
// launch makes the TMA descriptors (they hold pointers); in group mode a small kernel before it lists the tiles of all
// requests in the workspace, for lengths are known on the device only. No allocation, no synchronisation.
#pragma once

#include "kernelwright/cuda/attention/forward/load.hpp"
#include "kernelwright/cuda/attention/forward/pages.hpp"
#include "kernelwright/cuda/attention/forward/schedule.hpp"
#include "kernelwright/cuda/attention/forward/scores.hpp"
#include "kernelwright/cuda/attention/forward/softmax.hpp"
#include "kernelwright/cuda/attention/forward/store.hpp"
#include "kernelwright/cuda/common/resources.hpp"

namespace kernelwright::cuda::attention {

constexpr size_t most_shared_bytes = 232448;  // of a workgroup on compute capability 9.0

// Config: element, tile_m, tile_n, hdim_q, hdim_v; bounded (queries see keys up to some place), windowed (and from some
// place on), soft_cap, bias, paged.
template <class Config>
struct forward {
  using element = typename Config::element;
  // With three groups of 64 rows in a tile, each begins at its own diagonal; with two that costs more than it saves.
  static constexpr bool skips = Config::bounded && Config::tile_m > 128;
  // Where it was measured to gain, see softmax.hpp: with pages, or 64 elements, it gains nothing.
  static constexpr bool holds =
      Config::hdim_v == 128 && !Config::paged && Config::bias == addend::none && !Config::soft_cap;
  struct traits
      : flashinfer::AttentionKernelTraits<true, Config::hdim_q, Config::hdim_v, Config::tile_m, Config::tile_n, 2,
                                          element, element, element, int32_t, scores<Config>> {
    static constexpr int rows_at_diagonal = skips ? 64 : Config::tile_m;  // read by FlashInfer's loop
  };
  using pipeline = typename traits::MainloopPipeline;
  using position = typename traits::PipelineState;
  using turns = flashinfer::WarpScheduler<traits, Config::hdim_v <= 128>;
  static constexpr int M = Config::tile_m, N = Config::tile_n;
  static constexpr int consumers = traits::NUM_MMA_THREADS, producers = cutlass::NumThreadsPerWarpGroup;
  static constexpr int threads = consumers + producers, rows_of_group = 64;

  struct storage : traits::SharedStorage {
    alignas(16) tile next;
    cutlass::arch::ClusterBarrier next_written, next_read;
    uint32_t still[2];
  };
  static_assert(sizeof(storage) <= most_shared_bytes);

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

  // The tile of this round; request < 0: there is none left. All lanes of a warp that loads or multiplies.
  CUTLASS_DEVICE static tile received(storage& shared, int round) {
    shared.next_written.wait(round % 2);
    const tile t = shared.next;
    __syncwarp();
    if (threadIdx.x % 32 == 0) shared.next_read.arrive();
    return t;
  }

  // What the first warp takes tiles with and tells the others of.
  struct taker {
    int item, total, round = 0;
    bool leader = cute::elect_one_sync();

    CUTLASS_DEVICE taker(schedule const& tiles) : item(blockIdx.x), total(tiles.total()) {}

    CUTLASS_DEVICE tile take(schedule const& tiles, storage& shared) {
      tile t{-1};
      if (item < total) t = tiles.at(item);
      shared.next_read.wait((++round) % 2);
      if (leader) {
        shared.next = t;
        shared.next_written.arrive();
        if (t.request >= 0) item = tiles.next(item);
      }
      return t;
    }
    // Behind the loads of a tile, for the number comes from memory.
    CUTLASS_DEVICE void settle() { item = __shfl_sync(~0u, item, __ffs(__ballot_sync(~0u, leader)) - 1); }
  };

  // One warp.
  CUTLASS_DEVICE static void produce(params const& p, storage& shared, pipeline keys, pipeline values) {
    auto at_key = cutlass::make_producer_start_state<pipeline>();
    auto at_value = cutlass::make_producer_start_state<pipeline>();
    taker of_tiles(p.tiles);
    for (;; of_tiles.settle()) {
      const tile t = of_tiles.take(p.tiles, shared);
      if (t.request < 0) break;
      const span keys_of = span_of(p, t);
      if (keys_of.last < 0) continue;
      loader<traits>::load(p.tensors, shared, keys, at_key, values, at_value, t, keys_of.first, keys_of.last);
    }
    if (of_tiles.leader) {
      keys.producer_tail(at_key);
      values.producer_tail(at_value);
    }
  }

  // Four warps: two for K, of which the first also takes tiles and loads Q, and two for V.
  CUTLASS_DEVICE static void produce_from_pages(params const& p, storage& shared, pipeline keys, pipeline values) {
    using paged = page_loader<traits>;
    const int warp = cutlass::canonical_warp_idx_sync();
    if (warp < paged::warps) {
      paged of_keys(p.cache, p.cache.k, p.cache.k_rows, shared.smem_k.data(), keys, warp);
      if (warp == 0) {
        produce_keys_and_queries(p, shared, of_keys);
      } else {
        for (int round = 0;; ++round) {
          const tile t = received(shared, round);
          if (t.request < 0) break;
          const span keys_of = span_of(p, t);
          if (keys_of.last >= 0) of_keys.load(t, keys_of.first, keys_of.last, [] {});
        }
      }
    } else {
      paged of_values(p.cache, p.cache.v, p.cache.v_rows, shared.smem_v.data(), values, warp - paged::warps);
      for (int round = 0;; ++round) {
        const tile t = received(shared, round);
        if (t.request < 0) break;
        const span keys_of = span_of(p, t);
        if (keys_of.last >= 0) of_values.load(t, keys_of.first, keys_of.last, [] {});
      }
    }
  }

  CUTLASS_DEVICE static void produce_keys_and_queries(params const& p, storage& shared, page_loader<traits>& of_keys) {
    taker of_tiles(p.tiles);
    for (;; of_tiles.settle()) {
      const tile t = of_tiles.take(p.tiles, shared);
      if (t.request < 0) break;
      const span keys_of = span_of(p, t);
      if (keys_of.last < 0) continue;
      of_keys.load(t, keys_of.first, keys_of.last, [&] {
        loader<traits>::wait_for_queries_read();
        if (of_tiles.leader) loader<traits>::load_queries(p.tensors, shared, t);
      });
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
      const tile t = received(shared, round);
      if (t.request < 0) break;
      const span keys_of = span_of(p, t);
      const float sink = p.numbers.sinks ? p.numbers.sinks[t.head] : -flashinfer::math::inf;
      if (keys_of.last < 0) {
        p.out.template store_nothing<element, M, consumers>(t, thread, sink);
        continue;
      }
      Tensor sums = partition_fragment_C(multiply, select<0, 1>(typename traits::TileShape_PDV{}));
      softmax<2 * (2 * M / consumers), holds> rows(Config::soft_cap ? p.numbers.soft_cap : p.numbers.scale,
                                                   sink * flashinfer::math::log2e, shared_address(shared.still));
      auto change = scores<Config>::of(p.numbers, t);
      const int tiles_of_keys = skip_unseen(t, keys_of, keys, at_key, values, at_value);
      // The loop hides keys beyond query + 1 + kv_len - qo_len: with this qo_len it is the band's edge.
      flashinfer::mma_f16<traits, Config::windowed, Config::bounded, false, turns>(
          loop_params{keys_of.seen.left}, change, keys, values, at_key, at_value, sums, rows, tiles_of_keys,
          keys_of.first, keys_of.last_cut, thread, done++, t.index, shared, t.k.count - keys_of.seen.right, t.k.count,
          t.head, t.kv_head, 0, nullptr);
      p.out.template store<element, M, Config::hdim_v>(sums, rows.row_sum, thread, t);
    }
  }

  // A group of warps has 64 rows, and with a causal mask its last row may see fewer tiles of keys than the workgroup's.
  // It lets those pass, with its turn at the tensor cores, and begins at its own diagonal: the number of tiles from the
  // first one on is returned. FlashInfer's loop wants one at least.
  CUTLASS_DEVICE static int skip_unseen(tile const& t, span const& keys_of, pipeline& keys, position& at_key,
                                        pipeline& values, position& at_value) {
    const int all = keys_of.last + 1;
    if constexpr (!skips) return all;
    const int64_t behind = int64_t(t.index) * M + rows_of_group * cutlass::canonical_warp_group_idx();
    const int mine = cutlass::fast_max(keys_of.seen.template key_tiles_before<N>(behind, t),
                                       cutlass::fast_min(keys_of.first, keys_of.last) + 1);
    for (int skipped = mine; skipped < all; ++skipped) {
      keys.consumer_wait(at_key);
      turns::barrier_sync();
      turns::barrier_arrive();
      keys.consumer_release(at_key);
      ++at_key;
      values.consumer_wait(at_value);
      values.consumer_release(at_value);
      ++at_value;
    }
    return mine;
  }

  CUTLASS_DEVICE static void run(params const& p, storage& shared) {
    const int group = cutlass::canonical_warp_group_idx(), warp = cutlass::canonical_warp_idx_sync();
    if (warp == 0 && cute::elect_one_sync()) {
      cute::prefetch_tma_descriptor(p.tensors.q.get_tma_descriptor());
      if constexpr (Config::paged) {
        cute::prefetch_tma_descriptor(&p.cache.k);
        cute::prefetch_tma_descriptor(&p.cache.v);
      } else {
        cute::prefetch_tma_descriptor(p.tensors.k.get_tma_descriptor());
        cute::prefetch_tma_descriptor(p.tensors.v.get_tma_descriptor());
      }
      shared.barrier_Q.init(1);
      shared.barrier_O.init(1);  // the loop arrives at it; nobody waits, for O does not pass through shared memory
      shared.next_written.init(1);
      shared.next_read.init(consumers / 32 + (Config::paged ? producers / 32 - 1 : 0));
    }
    typename pipeline::Params of_pipeline;
    of_pipeline.role = group == 0 ? pipeline::ThreadCategory::Producer : pipeline::ThreadCategory::Consumer;
    of_pipeline.is_leader = threadIdx.x == 0;
    of_pipeline.num_consumers = consumers;
    // A pipeline fences the barriers that were made before it.
    of_pipeline.transaction_bytes = loader<traits>::bytes_k;
    pipeline keys(shared.pipeline_k, of_pipeline, cute::Shape<cute::_1, cute::_1, cute::_1>{});
    of_pipeline.transaction_bytes = loader<traits>::bytes_v;
    if constexpr (Config::paged) of_pipeline.is_leader = threadIdx.x == 32 * page_loader<traits>::warps;
    pipeline values(shared.pipeline_v, of_pipeline, cute::Shape<cute::_1, cute::_1, cute::_1>{});
    __syncthreads();
    wait_for_kernel_before();
    // Registers move from the producer to those who multiply; the numbers are FlashInfer's, but for pages.
    constexpr bool two_groups = threads == 384;
    if (group == 0) {
      cutlass::arch::warpgroup_reg_dealloc<!two_groups ? 32 : Config::paged ? 40 : 24>();
      if constexpr (Config::paged) {
        produce_from_pages(p, shared, keys, values);
      } else if (warp == 0) {
        produce(p, shared, keys, values);
      }
    } else {
      cutlass::arch::warpgroup_reg_alloc<!two_groups ? 160 : Config::paged ? 232 : 240>();
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
