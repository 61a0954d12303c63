// Predicted times of GEMM kernels: the formula by hand, and measured times on an H200.
#include "handle.hpp"
#include "kernelwright/dispatcher/gemm/estimate.hpp"

namespace {

void estimates_follow_the_formula() {
  const kw_arch gpu = {sizeof gpu, KW_BACKEND_HIP, "x", 10, 64, KW_FP8_OCP, 0, 65536, 1.0, 1000.0, {0, 0, 1000}};
  kw_gemm_traits t = {};
  t.tile_m = t.tile_n = 100, t.tile_k = 10;
  kw_gemm_problem p = make_problem(1000, 100, 100);
  p.dtype_a = p.dtype_b = p.dtype_c = KW_FP16;
  kernelwright::Estimate e = kernelwright::estimate(p, t, {&gpu, 10});
  CHECK(e.tiles == 10 && e.waves == 1 && e.useful == 1);
  CHECK(e.compute_us == 2.0);  // 2*100*100*100 flops at 1000 per clock and 1 GHz
  p.m = 1001;                  // one more row: a second wave, mostly idle
  e = kernelwright::estimate(p, t, {&gpu, 10});
  CHECK(e.tiles == 11 && e.waves == 2 && e.compute_us == 4.0 && e.useful > 0.90 && e.useful < 0.92);
  p = make_problem(100, 100, 10);  // fp32: no stated rate, so it ranks behind everything
  e = kernelwright::estimate(p, t, {&gpu, 10});
  CHECK(e.compute_us == 200.0);
  p.dtype_a = p.dtype_b = p.dtype_c = KW_FP16, p.k = 1, p.lda = p.ldb = 1;
  kw_arch starved = gpu;
  starved.memory_gbytes_per_s = 1;
  e = kernelwright::estimate(p, t, {&starved, 10});
  CHECK(e.memory_us > e.compute_us && e.total_us == e.memory_us);
}

// AVX-512: 16 lanes. A 14x32 block of fp32 has 28 accumulators: 14 clocks per k. bf16 dot products do two k at once.
void estimates_of_processors_count_register_blocks() {
  const kw_arch cpu = {sizeof cpu, KW_BACKEND_CPU, "y", 0, 1, KW_FP8_OCP, 0, 1 << 20, 1.0, 1e9, {0, 64, 64, 128}};
  kernelwright::Place place = {&cpu, 1};
  kw_gemm_traits t = {};
  t.tile_m = t.tile_n = 1024, t.tile_k = 16384, t.max_split_k = 1;
  t.warp_tile_m = 14, t.warp_tile_n = 32, t.warp_tile_k = 1, t.dtype_a = KW_BF16;
  kw_gemm_problem p = make_problem(14, 32, 10000);
  p.dtype_a = p.dtype_b = p.dtype_c = KW_BF16;
  const double widened = kernelwright::estimate(p, t, place).compute_us;
  CHECK(widened > 140 && widened < 150);
  t.warp_tile_k = 2;
  const double dots = kernelwright::estimate(p, t, place).compute_us;
  CHECK(dots > 70 && dots < 75);
  place.slow_dots = true;
  CHECK(kernelwright::estimate(p, t, place).compute_us > 3 * dots);
  place.slow_dots = false;

  // A row more is a smaller block, not a whole one; eight rows at once are cheaper than eight times one.
  p.m = 15;
  const double more = kernelwright::estimate(p, t, place).compute_us;
  CHECK(more > dots && more < 1.5 * dots);
  // Two threads share what keeps them busy.
  p = make_problem(1400, 3200, 1000), p.dtype_a = p.dtype_b = p.dtype_c = KW_BF16;
  const double one = kernelwright::estimate(p, t, place).compute_us;
  place.compute_units = 2;
  const double two = kernelwright::estimate(p, t, place).compute_us;
  CHECK(two > 0.49 * one && two < 0.6 * one);
}

// The numbers of arch/kernelwright/files/archs/sm_90a.json and gfx942.json, as compiled into library tables.
const kw_arch kHopper = {sizeof kHopper,
                         KW_BACKEND_CUDA,
                         "sm_90a",
                         132,
                         32,
                         KW_FP8_OCP,
                         0,
                         232448,
                         1.83,
                         4800,
                         {0, 0, 4096, 4096, 8192, 8192, 8192}};
const kw_arch kCdna3 = {sizeof kCdna3,
                        KW_BACKEND_HIP,
                        "gfx942",
                        304,
                        64,
                        KW_FP8_FNUZ,
                        0,
                        65536,
                        2.1,
                        5300,
                        {0, 256, 2048, 2048, 4096, 4096, 4096}};

double predicted_us(const kw_arch& arch, uint32_t tile_m, uint32_t tile_n, int64_t m, int64_t n, int64_t k,
                    uint32_t split_k = 1) {
  kw_gemm_traits t = {};
  t.dtype_a = t.dtype_b = t.dtype_c = KW_BF16;
  t.tile_m = tile_m, t.tile_n = tile_n, t.tile_k = 64;
  t.warp_tile_m = 64, t.warp_tile_n = tile_n;  // of wgmma
  t.max_split_k = split_k > 1 ? 1024 : 1;
  kw_gemm_problem p = make_problem(m, n, k);
  p.dtype_a = p.dtype_b = p.dtype_c = KW_BF16;
  p.split_k = split_k;
  return kernelwright::estimate(p, t, {&arch, arch.compute_units}).total_us;
}

// Measured on an H200 (benchmarks/gpu/gemm.py), cool, in 128x256x64 tiles.
void estimates_are_near_measured_times() {
  const auto near = [](double predicted, double measured) {
    return predicted < 1.5 * measured && measured < 1.5 * predicted;
  };
  CHECK(near(predicted_us(kHopper, 128, 256, 8192, 8192, 8192), 1390));
  CHECK(near(predicted_us(kHopper, 128, 256, 4096, 4096, 4096), 178));
  CHECK(predicted_us(kHopper, 128, 256, 8192, 8192, 8192) < predicted_us(kHopper, 64, 128, 8192, 8192, 8192));
  CHECK(predicted_us(kHopper, 128, 256, 4096, 4096, 4096) < predicted_us(kHopper, 64, 128, 4096, 4096, 4096));
  for (const int64_t n : {1024, 4096, 8192}) {  // few rows: half of a large tile would be padding
    CHECK(predicted_us(kHopper, 64, 128, 16, n, 8192) < predicted_us(kHopper, 128, 256, 16, n, 8192));
  }
  // Reading B once takes 28 us at the stated bandwidth, and nothing is faster than that.
  CHECK(predicted_us(kHopper, 64, 128, 16, 8192, 8192) > 28);
  const double square = predicted_us(kCdna3, 128, 128, 8192, 8192, 8192);
  CHECK(near(square, 2.0 * 8192 * 8192 * 8192 / (304 * 2048 * 2.1e3)));
  CHECK(square < predicted_us(kCdna3, 64, 64, 8192, 8192, 8192));
  CHECK(predicted_us(kCdna3, 128, 128, 1, 8192, 8192) > predicted_us(kCdna3, 16, 64, 1, 8192, 8192));
  CHECK(predicted_us(kCdna3, 128, 128, 128, 128, 65536, 16) < predicted_us(kCdna3, 128, 128, 128, 128, 65536));

  // Fitted to times that AMD published: an MI355X took 988 TFLOPS for 512x4608x7168 in fp8, in 128x128x128 tiles.
  kw_arch cdna4 = kCdna3;
  cdna4.name = "gfx950", cdna4.times = KW_TIMES_CDNA4, cdna4.compute_units = 256, cdna4.lds_bytes = 163840;
  cdna4.clock_ghz = 2.4, cdna4.memory_gbytes_per_s = 8000, cdna4.flops_per_clock_per_cu[KW_FP8] = 8192;
  kw_gemm_traits tile = {};
  tile.dtype_a = tile.dtype_b = KW_FP8, tile.dtype_c = KW_FP16, tile.max_split_k = 1;
  tile.tile_m = tile.tile_n = tile.tile_k = 128, tile.wave_m = tile.wave_n = 2, tile.wave_k = 1;
  tile.stream_k = KW_STREAM_K_NONE;
  kw_gemm_problem product = make_problem(512, 4608, 7168);
  product.dtype_a = product.dtype_b = KW_FP8, product.dtype_c = KW_FP16;
  CHECK(near(kernelwright::estimate(product, tile, {&cdna4, 256}).total_us, 34.2));

  // One panel of A and one of B per row and column of tiles, however the tiles share them.
  kw_arch slow = kHopper;
  slow.times = KW_TIMES_TILES;       // the formula that is not fitted
  slow.memory_gbytes_per_s = 0.001;  // one byte per microsecond: total_us counts bytes
  const double once = 2.0 * (100 * 64 + 64 * 100 + 100 * 100);
  CHECK(predicted_us(slow, 50, 50, 100, 100, 64) == once);
  slow.compute_units = 1;  // nothing runs together: each of 4 tiles reads both panels
  CHECK(predicted_us(slow, 50, 50, 100, 100, 64) == once + 2.0 * (100 * 64 + 64 * 100));
}

// Numbers that look random, the same in every run.
class Draw {
 public:
  uint32_t below(uint32_t bound) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state_ >> 33) % bound;
  }
  uint32_t one_of(uint32_t least, uint32_t most) { return least + below(most - least + 1); }

 private:
  uint64_t state_ = 1;
};

kw_gemm_traits drawn_traits(Draw* draw) {
  kw_gemm_traits t = {};
  t.dtype_a = t.dtype_b = t.dtype_c = KW_BF16;
  t.tile_m = 16 * draw->one_of(1, 16), t.tile_n = 16 * draw->one_of(1, 16), t.tile_k = 16 * draw->one_of(1, 16);
  t.wave_m = draw->one_of(1, 2), t.wave_n = t.wave_k = 1;
  t.warp_tile_m = draw->below(2) == 0 ? 64 : t.tile_m, t.warp_tile_n = draw->below(2) == 0 ? 64 : t.tile_n;
  t.warp_tile_k = 16;
  t.cluster_m = draw->one_of(1, 2), t.cluster_n = draw->one_of(1, 2);
  t.max_split_k = draw->below(2) == 0 ? 1 : 32;
  t.stream_k = t.max_split_k == 1 && draw->below(4) == 0 ? 1 : KW_STREAM_K_NONE;
  return t;
}

// Selection discards kernels by estimates that ended early: they must be as far above as they say, and no other
// estimate may change by a bit.
void estimates_that_end_early_are_lower_bounds() {
  kw_arch cpu = kHopper, cdna3 = kCdna3, cdna4 = kCdna3;
  cpu.backend = KW_BACKEND_CPU;
  cdna3.times = KW_TIMES_CDNA3, cdna4.times = KW_TIMES_CDNA4;
  uint32_t early = 0, late = 0;
  Draw draw;
  for (const kw_arch& one : {kHopper, kCdna3, cdna3, cdna4, cpu}) {
    const kw_arch* arch = &one;
    for (int i = 0; i < 20000; ++i) {
      const kw_gemm_traits t = drawn_traits(&draw);
      kw_gemm_problem p = make_problem(draw.one_of(1, 5000), draw.one_of(1, 5000), draw.one_of(1, 9000));
      p.dtype_a = p.dtype_b = p.dtype_c = KW_BF16;
      p.split_k = t.max_split_k > 1 ? draw.one_of(1, 8) : 1;
      p.batch = draw.one_of(1, 3);
      const double whole = kernelwright::estimate(p, t, {arch, 132}).total_us;
      const double most = whole * draw.one_of(10, 150) / 100.0;
      const double predicted = kernelwright::estimate(p, t, {arch, 132, most}).total_us;
      CHECK(whole <= most ? predicted == whole : predicted > most && predicted <= whole);
      CHECK(kernelwright::estimate(p, t, {arch, 132, whole}).total_us == whole);
      ++(predicted == whole ? late : early);
    }
  }
  CHECK(early > 10000 && late > 10000);
}

}  // namespace

void estimates() {
  estimates_that_end_early_are_lower_bounds();
  estimates_follow_the_formula();
  estimates_of_processors_count_register_blocks();
  estimates_are_near_measured_times();
}
