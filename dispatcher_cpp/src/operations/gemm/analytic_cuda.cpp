// The time of a warp-specialised GEMM on Hopper. The formula is explained in analytic.hpp; its numbers are what
// benchmarks/selection/fit.py finds for times on an H200: of 80 kernels on tuning problems, which
// benchmarks/gpu/collect.py took (benchmarks/results/h200_gemm_tuning_*.csv.gz), and of 52 kernels on 81 shapes, which
// sweep.py took (h200_sweep_20261121.json). Whoever changes the formula changes fit.py's and the generator's, and fits
// again.
#include "kernelwright/dispatcher/gemm/analytic.hpp"

namespace kernelwright {
namespace {

constexpr double kRowsOfInstruction = 64;        // of wgmma
constexpr double kBytesOfInstruction = 32;       // along k
constexpr double kReadRowsClocks = 13.99;        // wgmma fetches its 64 rows from shared memory, whatever it computes
constexpr double kReadColumnClocks = 0.25;       // and its columns, 32 bytes each at 128 bytes per clock
constexpr double kInstructionSlack = 0.8804;     // measured over stated clocks of wgmma
constexpr double kFillBytesPerClock = 107.7;     // from L2, of what one workgroup of a cluster asks for
constexpr double kReceiveBytesPerClock = 130.7;  // into one multiprocessor, what others asked for included
constexpr double kStepClocks = 19.49;            // of barriers per step along k
constexpr double kClusterStepClocks = 38.99;     // of waiting for the other workgroups of a cluster
constexpr double kLatencyClocks = 2043;          // from a load to its arrival; all stages but one are on their way
constexpr double kStoreBytesPerClock = 17.49;    // of the epilogue
constexpr double kHiddenStore = 0.2305;          // what of it pingpong shows: its two tiles overlap
constexpr double kStartClocks = 553.9;           // until the first operands are there
constexpr double kRereadShare = 1.86;     // operands read again, over what a wave of tiles in a square reads again
constexpr double kMemoryShare = 0.8784;   // of the stated bandwidth
constexpr double kInFlightBytes = 10250;  // that each multiprocessor must have asked for to reach it
constexpr double kOverlap = 0.2718;       // of the shorter of computing and reading that is not hidden
constexpr double kLaunchUs = 1.273;
constexpr double kCutUs = 2.705;               // clearing the flags of split-K and stream-K, and the wait for it
constexpr double kCuttableUs = 0.7752;          // of split-K kernels that split nothing
constexpr double kSliceUs = 0.228;            // each slice waits for the one before,
constexpr double kSliceElementsPerUs = 26330;  // and adds its tile to that of the others
constexpr double kStreamSlack = 1.25;          // of stream-K, whose tiles are finished by several
constexpr double kEpilogueElements = 16384;    // that wait in shared memory to be stored
constexpr double kSwappedSlack = 1.02;         // of kernels that compute the transposed product
constexpr double kSharedSlack = 1.01;          // of warp groups that share a tile

double max(double left, double right) { return left > right ? left : right; }
double min(double left, double right) { return left < right ? left : right; }
double floor(double value) { return static_cast<double>(static_cast<int64_t>(value)); }
double ceiling(double value) {
  const double whole = floor(value);
  return whole < value ? whole + 1 : whole;
}

// A selection asks for thousands of estimates, and a division takes several times as long as a product.
constexpr double kInstructionShare = 1 / kBytesOfInstruction;
constexpr double kFillClocks = 1 / kFillBytesPerClock, kReceiveClocks = 1 / kReceiveBytesPerClock;
constexpr double kStoreClocks = 1 / kStoreBytesPerClock, kSliceElementUs = 1 / kSliceElementsPerUs;

struct Shape {
  double m, n, k, rows, columns;  // of the tile; rows and columns are wgmma's
  double cluster_m, cluster_n;
  bool swapped, pingpong;
};

Shape shape_of(const kw_gemm_traits& t) {
  Shape s;
  const bool plain = t.warp_tile_m == kRowsOfInstruction && t.warp_tile_n == t.tile_n;
  s.swapped = !plain && t.warp_tile_m == t.tile_m && t.warp_tile_n == kRowsOfInstruction;
  s.m = t.tile_m, s.n = t.tile_n, s.k = t.tile_k;
  s.rows = s.swapped ? s.n : s.m, s.columns = s.swapped ? s.m : s.n;
  s.cluster_m = max(1, t.cluster_m), s.cluster_n = max(1, t.cluster_n);
  s.pingpong = t.wave_m == 1 && t.wave_n == 1;
  return s;
}

// Elements per step of k that `running` tiles side by side need: panels of s.m or s.n, in the best rectangle.
double shared_panels(const Shape& s, double running, double tiles_m, double tiles_n) {
  double least = running * (s.m + s.n);
  const double last = min(tiles_m, running);
  double halved = running;
  for (double rows = 1;; rows *= 2, halved *= 0.5) {
    const double r = min(rows, tiles_m), columns = rows <= tiles_m ? halved : running / tiles_m;
    if (columns <= tiles_n) {
      const double needed = r * s.m + max(1.0, columns) * s.n;
      if (needed > least) return least;  // and taller ones need still more
      least = needed;
    }
    if (r >= last) return least;
  }
}

}  // namespace

Estimate estimate_cuda(const kw_gemm_problem& p, const kw_arch& arch, const kw_gemm_traits& t, uint32_t units,
                       double most_us) {
  Estimate e;
  if (p.m == 0 || p.n == 0) return e;
  const Shape s = shape_of(t);
  const double m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
  const double bytes = kw_dtype_bytes(p.dtype_a), products = static_cast<double>(p.batch > 1 ? p.batch : 1);
  const double bytes_c = kw_dtype_bytes(p.dtype_c);
  const double split = p.split_k > 1 ? p.split_k : 1;
  const double stated = p.dtype_a < 8 ? arch.flops_per_clock_per_cu[p.dtype_a] : 0;
  const double clocks_per_us = (arch.clock_ghz > 0 ? arch.clock_ghz : 1.0) * 1e3;
  const double bytes_per_us = max(1.0, arch.memory_gbytes_per_s) * 1e3 * kMemoryShare;

  const double tiles_m = ceiling(m / (s.m * s.cluster_m)) * s.cluster_m;
  const double tiles_n = ceiling(n / (s.n * s.cluster_n)) * s.cluster_n;
  e.tiles = tiles_m * tiles_n * split * products;
  const bool stream = t.stream_k != KW_STREAM_K_NONE;
  e.waves = stream ? max(1.0, e.tiles / units) * kStreamSlack : ceiling(e.tiles / units);
  const double whole_steps = ceiling(k / s.k), steps = split > 1 ? ceiling(whole_steps / split) : whole_steps;
  const double running = min(e.tiles, units);

  const double slices = s.k * bytes * kInstructionShare;
  const double multiply = 2 * kRowsOfInstruction * kBytesOfInstruction * s.columns / (bytes * max(1.0, stated));
  const double instruction = max(multiply, kReadRowsClocks + kReadColumnClocks * s.columns) * kInstructionSlack;
  const double slack = (s.swapped ? kSwappedSlack : 1.0) * (s.pingpong ? 1.0 : kSharedSlack);
  const double step = slices * s.rows / kRowsOfInstruction * instruction;
  const bool clustered = s.cluster_m * s.cluster_n > 1;
  const double waits = kStepClocks + (clustered ? kClusterStepClocks : 0.0), us_per_clock = 1 / clocks_per_us;
  // Each line from here to the end grows with those before it, in rounded numbers too: what multiplying alone takes,
  // and below what it takes with operands that are read once, is at most what the whole will take.
  e.total_us = (e.waves * (steps * (step + waits) * slack) + kStartClocks) * us_per_clock + kLaunchUs;
  if (e.total_us > most_us) return e;

  const double stages = max(
      1.0, floor((static_cast<double>(arch.lds_bytes) - kEpilogueElements * bytes_c) / ((s.m + s.n) * s.k * bytes)));
  const double stage = (s.m + s.n) * s.k * bytes;
  const double fetched = clustered ? (s.m / s.cluster_n + s.n / s.cluster_m) * s.k * bytes : stage;
  const double fill = max(fetched * kFillClocks + stage * kReceiveClocks, kLatencyClocks / max(1.0, stages - 1));
  const double store = s.m * s.n * bytes_c * kStoreClocks * (s.pingpong && e.waves > 1 ? kHiddenStore : 1.0) *
                       (split > 1 || stream ? 2.0 : 1.0);
  const double more = stages < 3 ? min(step, fill) : 0.0;  // two stages: nothing arrives while these are multiplied
  e.compute_us = (e.waves * (steps * (step + more + waits) * slack + store) + kStartClocks) * us_per_clock;
  e.fill_us = (e.waves * (steps * (fill + more + waits) * slack + store) + kStartClocks) * us_per_clock;
  const double inside = max(e.compute_us, e.fill_us);
  const double cut = split > 1 || stream ? kCutUs : t.max_split_k > 1 ? kCuttableUs : 0.0;
  const double added = (split - 1) * (kSliceUs + s.m * s.n * kSliceElementUs);
  const auto whole = [&](double memory_us) {
    return max(inside, memory_us) + kOverlap * min(inside, memory_us) + kLaunchUs + cut + added;
  };
  const double once = (m + n) * k * bytes * products;
  const double results = m * n * products * bytes_c * (1 + (p.beta != 0 ? 1 : 0) + p.num_d);
  e.total_us = whole((once + results) / bytes_per_us);
  if (e.total_us > most_us) return e;

  const double waves_of_tiles = max(1.0, split > 1 ? running / split : running);
  const double again = products * tiles_m * tiles_n / waves_of_tiles * k * bytes *
                       shared_panels(s, min(waves_of_tiles, tiles_m * tiles_n), tiles_m, tiles_n);
  const double in_flight = running * stages * stage, wanted = kInFlightBytes * units;
  const double reached = in_flight < wanted ? in_flight / wanted : 1.0;
  e.memory_us = (once + kRereadShare * max(0.0, again - once) + results) / (bytes_per_us * reached);
  e.total_us = whole(e.memory_us);
  const double padded = e.tiles * s.m * s.n * steps * s.k;
  e.useful = padded > 0 ? min(1.0, m * n * k * products / padded) : 1.0;
  return e;
}

}  // namespace kernelwright
