// Who computes which tile. Workgroups stay for the whole launch and take tiles in an order that starts with the longest
// of each section; a section is as many heads as fit into L2 with their keys. A smaller section comes first: as the
// last one it would leave units idle while others compute its longest tiles.
#pragma once

#include "kernelwright/cuda/attention/early.hpp"
#include "kernelwright/cuda/attention/keys.hpp"
#include "kernelwright/cuda/attention/tile.hpp"

namespace kernelwright::cuda::attention {

// A request in group mode, as `list_tiles` leaves it in the workspace: once for each of its tiles of queries.
struct alignas(16) listed_tile {
  int32_t request, first, tiles, unused;  // first: the place of its first entry
  rows q, k;
};

// The head of a workspace. `taken` counts tiles that workgroups took beyond their first one.
struct alignas(16) schedule_state {
  int32_t taken, listed, unused[2];
};

struct schedule {
  schedule_state* state;      // null: workgroup i takes tiles i, i + grid, i + 2 grids, ...
  const listed_tile* listed;  // group mode, else null
  key_rows keys;              // batch mode
  int32_t section_keys;       // group mode: how many keys of one head fit into L2
  int32_t heads, all_heads;   // of one request; of all requests, or the heads alone in group mode
  int32_t tiles;              // of queries: of each head
  int32_t seqlen_q;
  cutlass::FastDivmod group;                   // heads of Q for each of K and V
  cutlass::FastDivmod request;                 // heads of a request
  cutlass::FastDivmod section, first_section;  // heads of a section; the first one may have fewer
  cutlass::FastDivmod section_tiles;           // tiles of all of them

  CUTLASS_DEVICE int total() const { return listed ? state->listed * heads : all_heads * tiles; }

  // Which of all tiles comes after the `previous` one of this workgroup.
  CUTLASS_DEVICE int next(int previous) const {
    return state ? int(gridDim.x) + atomicAdd(&state->taken, 1) : previous + int(gridDim.x);
  }

  CUTLASS_DEVICE tile at(int item) const { return listed ? of_group(item) : of_batch(item); }

 private:
  CUTLASS_DEVICE tile of_group(int item) const {
    const listed_tile in = listed[request.divide(item)];
    tile out{in.request};
    out.q = in.q, out.k = in.k;
    // As in a batch: sections of as many heads as fit into L2 with their keys, the smaller one first.
    const int fitting = min(heads, max(1, section_keys / max(1, in.k.count)) * group.divisor);
    const int rest = heads % fitting, behind_rest = item - (in.first * heads + rest * in.tiles);
    const int number = behind_rest / (fitting * in.tiles), width = behind_rest < 0 ? rest : fitting;
    const int first = behind_rest < 0 ? 0 : rest + number * fitting;
    const int in_section = behind_rest < 0 ? behind_rest + rest * in.tiles : behind_rest - number * fitting * in.tiles;
    out.index = in.tiles - 1 - in_section / width;
    out.head = first + in_section % width;
    out.kv_head = group.divide(out.head);
    return out;
  }

  CUTLASS_DEVICE tile of_batch(int item) const {
    tile out;
    int in_section = item, number, rank, head, first = 0;
    const int rest = all_heads % section.divisor;
    if (item < rest * tiles) {
      first_section(rank, head, in_section);
    } else {
      section_tiles(number, in_section, item - rest * tiles);
      section(rank, head, in_section);
      first = rest + number * section.divisor;
    }
    out.index = tiles - 1 - rank;  // with a causal mask the last queries see the most keys
    request(out.request, out.head, first + head);
    out.kv_head = group.divide(out.head);
    out.q = {0, seqlen_q};
    out.k = {static_cast<int32_t>(keys.first(out.request)), keys.count(out.request)};
    return out;
  }
};

struct listing {
  schedule_state* state;
  listed_tile* listed;
  const int32_t* cu_seqlens_q;
  key_rows keys;
  int32_t requests;
  window visible;
  int32_t bounded;
};

constexpr int listing_threads = 1024;
constexpr int listing_classes = 2048;  // of requests by how many keys their last queries see

// One workgroup sorts requests by how many tiles of keys their last queries see, the most first. Tiles of a request
// stay together, so that they share its keys in L2.
template <int M, int N>
__global__ void __launch_bounds__(listing_threads) list_tiles(const __grid_constant__ listing in) {
  __shared__ int32_t places[listing_classes];
  __shared__ int32_t warps[listing_threads / 32];
  let_next_kernel_begin();
  for (int i = threadIdx.x; i < listing_classes; i += listing_threads) places[i] = 0;
  __syncthreads();
  const auto each = [&](auto use) {
    const int warp = threadIdx.x / 32;
    for (int request = warp; request < in.requests; request += listing_threads / 32) {
      listed_tile one{request};
      const int32_t first_q = in.cu_seqlens_q[request];
      one.q = {first_q, in.cu_seqlens_q[request + 1] - first_q};
      one.k = {static_cast<int32_t>(in.keys.first(request)), in.keys.count(request)};
      one.tiles = (one.q.count + M - 1) / M;
      const tile last{request, one.tiles - 1, 0, 0, one.q, one.k};
      const band seen = band::of(in.visible, last);
      int count = seen.template key_tiles<M, N>(in.bounded, last);
      if (in.bounded) count -= seen.template first_tile<M, N>(last);
      use(one, listing_classes - 1 - max(0, min(count, listing_classes - 1)));
    }
  };
  const int lane = threadIdx.x % 32;
  each([&](listed_tile const& one, int kind) {
    if (lane == 0) atomicAdd(&places[kind], one.tiles);
  });
  __syncthreads();
  // Where each class begins: sums over pairs of classes, of warps, of the workgroup.
  const int mine = 2 * threadIdx.x;
  const int even = places[mine], odd = places[mine + 1];
  int sum = even + odd;
  for (int step = 1; step < 32; step *= 2) {
    const int before = __shfl_up_sync(~0u, sum, step);
    if (lane >= step) sum += before;
  }
  if (lane == 31) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  int before = 0;
  for (int i = 0; i < int(threadIdx.x / 32); ++i) before += warps[i];
  places[mine] = before + sum - even - odd;
  places[mine + 1] = before + sum - odd;
  if (threadIdx.x == listing_threads - 1) *in.state = {0, before + sum, {0, 0}};
  __syncthreads();
  each([&](listed_tile one, int kind) {
    if (lane == 0) one.first = atomicAdd(&places[kind], one.tiles);
    one.first = __shfl_sync(~0u, one.first, 0);
    for (int i = lane; i < one.tiles; i += 32) in.listed[one.first + i] = one;
  });
}
static_assert(listing_classes == 2 * listing_threads);

}  // namespace kernelwright::cuda::attention
