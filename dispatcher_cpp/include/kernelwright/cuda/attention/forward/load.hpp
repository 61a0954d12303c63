// How Q, K and V come from memory: TMA descriptors that know where each request ends.
#pragma once

#include "kernelwright/cuda/attention/forward/flashinfer.hpp"
#include "kernelwright/cuda/attention/tile.hpp"

namespace kernelwright::cuda::attention {

// The packed tensor of group mode has no edge between requests, and what lies beyond the last row of one (NaN, say)
// must not reach it: 0 * NaN is NaN. So a descriptor has two more dimensions. The row counts up to the fixed extent
// `edge`, which is where the request ends, and with c = edge and d = start + count the address of row edge - count + r
// is
//   c * (2^34 - stride) + d * stride + (edge - count + r) * stride = 2^64 + (start + r) * stride,
// which is the right one, modulo 2^64. Rows beyond the end are zeros.
// In batch mode d is the request, with its own stride, and c is 0.
constexpr int64_t wrap = int64_t(1) << 34;  // elements of 16 bits: times `edge` a multiple of 2^64 bytes

using tensor_shape = cute::Shape<int32_t, int32_t, int32_t, int32_t, int32_t>;
using tensor_stride = cute::Shape<int64_t, cute::_1, int64_t, int64_t, int64_t>;
using tensor_layout = cute::Layout<tensor_shape, tensor_stride>;  // row, element, head, d, c

struct place_of_rows {
  int32_t row, d, c;
};

// One of Q, K and V.
struct operand {
  int64_t row, head, request;  // strides in elements
  int32_t rows, hdim, heads, requests;
  bool packed;  // requests follow each other, of lengths that only the device knows

  // Head dimensions of kernels are larger than that of the problem where it is padded: TMA reads zeros there.
  tensor_layout layout() const {
    if (packed) {
      constexpr int32_t any = 0x7fff0000;
      return {tensor_shape{int32_t(edge), hdim, heads, any, any}, tensor_stride{row, {}, head, row, wrap - row}};
    }
    return {tensor_shape{rows, hdim, heads, requests, 1}, tensor_stride{row, {}, head, request, 0}};
  }

  // Batch mode with a length for each request: a request begins at a multiple of rows (see supports).
  int64_t rows_per_request() const { return row ? request / row : 0; }
};

// Where the rows of a request are: constant for a launch.
struct locator {
  bool packed;
  int32_t rows_per_request;  // of a packed tensor in batch mode, else 0

  CUTLASS_DEVICE place_of_rows of(rows const& r, int request) const {
    if (!packed) return {0, request, 0};
    return {int32_t(edge) - r.count, r.start + request * rows_per_request + r.count, int32_t(edge)};
  }
};

// The tile of a descriptor's coordinates that begins at row 0 of a request: (rows, elements, tiles).
template <class Tma, class Tile>
CUTLASS_DEVICE auto tiles_of(Tma const& tma, tensor_shape const& shape, Tile tile, int head, place_of_rows const& at) {
  using namespace cute;
  auto whole = tma.get_tma_tensor(shape)(_, _, head, at.d, at.c);
  return local_tile(domain_offset(make_coord(at.row, 0), whole), tile, make_coord(_, _0{}));
}

template <class Traits>
struct operands {
  using element = typename Traits::DTypeQ;
  using tile_q = decltype(cute::select<0, 2>(typename Traits::TileShape_QKD{}));
  using tile_k = decltype(cute::select<1, 2>(typename Traits::TileShape_QKD{}));
  using tile_v = decltype(cute::select<2, 1>(typename Traits::TileShape_PDV{}));
  using one_k = decltype(cute::take<0, 2>(typename Traits::SmemLayoutK{}));
  using one_v = decltype(cute::take<0, 2>(typename Traits::SmemLayoutV{}));

  template <class Smem, class Tile>
  static auto descriptor(const void* pointer, tensor_layout const& layout, Smem smem, Tile tile) {
    using namespace cute;
    auto* const typed = const_cast<element*>(static_cast<const element*>(pointer));
    return make_tma_copy(SM90_TMA_LOAD{}, make_tensor(make_gmem_ptr(typed), layout), smem, tile, _1{});
  }
  template <class Smem, class Tile>
  using descriptor_of = decltype(descriptor(nullptr, tensor_layout{}, Smem{}, Tile{}));

  tensor_shape shape_q, shape_k, shape_v;
  descriptor_of<typename Traits::SmemLayoutQ, tile_q> q;
  descriptor_of<one_k, tile_k> k;
  descriptor_of<one_v, tile_v> v;
  locator at_q, at_k, at_v;

  static operands of(const void* q, operand const& of_q, const void* k, operand const& of_k, const void* v,
                     operand const& of_v) {
    using namespace cute;
    const auto layout_q = of_q.layout(), layout_k = of_k.layout(), layout_v = of_v.layout();
    const auto packed_in = [](operand const& x, bool batch) {
      return locator{x.packed, batch && x.packed ? int32_t(x.rows_per_request()) : 0};
    };
    return {layout_q.shape(),
            layout_k.shape(),
            layout_v.shape(),
            descriptor(q, layout_q, typename Traits::SmemLayoutQ{}, tile_q{}),
            descriptor(k, layout_k, one_k{}, tile_k{}),
            descriptor(v, layout_v, one_v{}, tile_v{}),
            packed_in(of_q, false),
            packed_in(of_k, !of_q.packed),
            packed_in(of_v, !of_q.packed)};
  }
};

// The producer: one thread that keeps two tiles of K and of V on their way.
template <class Traits>
struct loader {
  using pipeline = typename Traits::MainloopPipeline;
  using position = typename Traits::PipelineState;
  using element = typename Traits::DTypeQ;
  static constexpr uint32_t bytes_q = cute::size(typename Traits::SmemLayoutQ{}) * sizeof(element);
  static constexpr uint32_t bytes_k = cute::size(cute::take<0, 2>(typename Traits::SmemLayoutK{})) * sizeof(element);
  static constexpr uint32_t bytes_v = cute::size(cute::take<0, 2>(typename Traits::SmemLayoutV{})) * sizeof(element);
  static constexpr int waiting = Traits::NUM_MMA_THREADS + Traits::NUM_PRODUCER_THREADS;

  // All threads of the producing warp.
  template <class Storage>
  CUTLASS_DEVICE static void load(operands<Traits> const& from, Storage& shared, pipeline& keys, position& at_key,
                                  pipeline& values, position& at_value, tile const& t, int first, int last) {
    using namespace cute;
    using all = operands<Traits>;
    const auto place_k = from.at_k.of(t.k, t.request), place_v = from.at_v.of(t.k, t.request);
    auto from_k = tiles_of(from.k, from.shape_k, typename all::tile_k{}, t.kv_head, place_k);
    auto from_v = tiles_of(from.v, from.shape_v, typename all::tile_v{}, t.kv_head, place_v);
    auto to_k = make_tensor(make_smem_ptr(shared.smem_k.data()), typename Traits::SmemLayoutK{});
    auto to_v = make_tensor(make_smem_ptr(shared.smem_v.data()), typename Traits::SmemLayoutV{});
    auto [k_from, k_to] = tma_partition(from.k, _0{}, Layout<_1>{}, group_modes<0, 2>(to_k), group_modes<0, 2>(from_k));
    auto [v_from, v_to] = tma_partition(from.v, _0{}, Layout<_1>{}, group_modes<0, 2>(to_v), group_modes<0, 2>(from_v));

    const bool leader = elect_one_sync();
    const auto load_keys = [&](int index) {
      keys.producer_acquire(at_key);
      copy(from.k.with(*keys.producer_get_barrier(at_key)), k_from(_, index), k_to(_, at_key.index()));
      ++at_key;
    };
    const auto load_values = [&](int index) {
      values.producer_acquire(at_value);
      copy(from.v.with(*values.producer_get_barrier(at_value)), v_from(_, index), v_to(_, at_value.index()));
      ++at_value;
    };
    if (leader) load_keys(last);
    wait_for_queries_read();
    if (leader) load_queries(from, shared, t);
    if (leader) {
      for (int index = last; index > first; --index) {
        load_keys(index - 1);
        load_values(index);
      }
      load_values(cutlass::fast_min(first, last));
    }
  }

  // One warp: until those who multiply have read the Q of the tile before.
  CUTLASS_DEVICE static void wait_for_queries_read() {
    cutlass::arch::NamedBarrier::sync(waiting, static_cast<int>(flashinfer::NamedBarriers::kQueryEmpty));
  }

  // One thread.
  template <class Storage>
  CUTLASS_DEVICE static void load_queries(operands<Traits> const& from, Storage& shared, tile const& t) {
    using namespace cute;
    using tile_q = typename operands<Traits>::tile_q;
    auto from_q = tiles_of(from.q, from.shape_q, tile_q{}, t.head, from.at_q.of(t.q, t.request));
    auto one = from_q(_, _, t.index);
    auto to_q = make_tensor(make_smem_ptr(shared.smem_q.data()), typename Traits::SmemLayoutQ{});
    auto wide_to = make_tensor(to_q.data(), make_layout(to_q.layout(), Layout<_1>{}));
    auto wide_from = make_tensor(one.data(), make_layout(one.layout(), Layout<_1>{}));
    auto [q_from, q_to] =
        tma_partition(from.q, _0{}, Layout<_1>{}, group_modes<0, 2>(wide_to), group_modes<0, 2>(wide_from));
    shared.barrier_Q.arrive_and_expect_tx(bytes_q);
    auto& barrier = reinterpret_cast<cutlass::arch::ClusterTransactionBarrier::ValueType&>(shared.barrier_Q);
    copy(from.q.with(barrier), q_from, q_to);
  }
};

}  // namespace kernelwright::cuda::attention
