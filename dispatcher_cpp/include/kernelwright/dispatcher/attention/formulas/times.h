/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/attention/formulas/times.py by `kernelwright formulas`, and explained there. */
#ifndef KW_ATTENTION_TIMES_H
#define KW_ATTENTION_TIMES_H

#include <stdbool.h>

#include "kernelwright/dispatcher/support/machine.h"
#include "kernelwright/dispatcher/support/numbers.h"

#define KW_ATTENTION_TIMES_FILL_BYTES_PER_CLOCK 48.0
#define KW_ATTENTION_TIMES_SECOND_LAUNCH_US 4.0
#define KW_ATTENTION_TIMES_SPARE_MASK 1.05
#define KW_ATTENTION_TIMES_STREAMED 1.0
#define KW_ATTENTION_TIMES_ALONE_CLOCKS 18.48
#define KW_ATTENTION_TIMES_ALONE_BYTES 35.31
#define KW_ATTENTION_TIMES_SHARED_CLOCKS 3.676
#define KW_ATTENTION_TIMES_SHARED_BYTES 32.42
#define KW_ATTENTION_TIMES_PRODUCT_SHARE 1.12
#define KW_ATTENTION_TIMES_SOFTMAX_WORK 110.0
#define KW_ATTENTION_TIMES_SOFTMAX_WORK_OF_THREE 87.0
#define KW_ATTENTION_TIMES_TILE_US 2.0
#define KW_ATTENTION_TIMES_TILES_LAUNCH_US 7.064
#define KW_ATTENTION_TIMES_LAUNCH_US 0.9966
#define KW_ATTENTION_TIMES_WAVE_US 2.786
#define KW_ATTENTION_TIMES_COMBINE_US 2.986
#define KW_ATTENTION_TIMES_COMBINE_SPLIT_US 0.08997
#define KW_ATTENTION_TIMES_THREAD_BYTES_PER_US 12000.0
#define KW_ATTENTION_TIMES_LAST_TASK 0.5
#define KW_ATTENTION_TIMES_FEW_ROWS 4.0
#define KW_ATTENTION_TIMES_PARTIAL_CLOCKS 10.0
#define KW_ATTENTION_TIMES_RANK 1e-09
#define KW_ATTENTION_TIMES_SAMPLES 16.0

typedef struct kw_attention_times_Problem {
  double requests;
  double heads_q;
  double heads_kv;
  double queries;
  double keys;
  double hdim_q;
  double hdim_v;
  double size_q;
  double size_kv;
  double size_o;
  bool masked;
  bool bottom_right;
  double window_left;
  double window_right;
  bool ragged;
  double splits;
  bool leaves_splits;
  double dq_slices;
} kw_attention_times_Problem;

typedef struct kw_attention_times_Kernel {
  bool cpu;
  bool nvidia;
  double tile_m;
  double tile_n;
  double hdim_q;
  double hdim_v;
  double blocks_per_cu;
  bool packs_heads;
  bool spare_mask;
  double work;
  double selection_rank;
} kw_attention_times_Kernel;

static inline double kw_attention_times_bandwidth(KW_GIVEN(kw_attention_times_Kernel) k, KW_GIVEN(kw_machine_Device) d) {
  return k.cpu ? kw_min(d.bytes_per_us, KW_ATTENTION_TIMES_THREAD_BYTES_PER_US * d.units) : d.bytes_per_us;
}

static inline double kw_attention_times_visible_part(KW_GIVEN(kw_attention_times_Problem) p) {
  double seen = 0;
  double i = 0;
  double place = 0;
  double first = 0;
  double last = 0;
  if (!p.masked || p.keys <= 0.0 || p.queries <= 0.0) {
    return 1.0;
  }
  seen = 0.0;
  i = 0.0;
  while (i < KW_ATTENTION_TIMES_SAMPLES) {
    place = p.queries * (i + 0.5) / KW_ATTENTION_TIMES_SAMPLES + (p.bottom_right ? p.keys - p.queries : 0.0);
    first = p.window_left < 0.0 ? 0.0 : kw_max(0.0, place - p.window_left);
    last = p.window_right < 0.0 ? p.keys : place + 1.0 + p.window_right;
    seen += kw_max(0.0, kw_min(last, p.keys) - first);
    i += 1.0;
  }
  return kw_max(seen / (KW_ATTENTION_TIMES_SAMPLES * p.keys), 1.0 / p.keys);
}

static inline double kw_attention_times_keys_of_tile(KW_GIVEN(kw_attention_times_Problem) p, double tile_m, double tile_n) {
  double read = 0;
  double i = 0;
  double place = 0;
  double first = 0;
  double last = 0;
  if (!p.masked || p.keys <= 0.0 || p.queries <= 0.0) {
    return kw_ceil(p.keys / tile_n) * tile_n;
  }
  const double tiles = kw_ceil(p.queries / tile_m);
  const double some = kw_min(tiles, KW_ATTENTION_TIMES_SAMPLES);
  read = 0.0;
  i = 0.0;
  while (i < some) {
    place = kw_floor(tiles * (i + 0.5) / some) * tile_m + (p.bottom_right ? p.keys - p.queries : 0.0);
    first = p.window_left < 0.0 ? 0.0 : kw_max(0.0, place - p.window_left);
    last = p.window_right < 0.0 ? p.keys : kw_max(0.0, place + tile_m + p.window_right);
    read += kw_max(0.0, kw_ceil(kw_min(last, p.keys) / tile_n) - kw_floor(first / tile_n));
    i += 1.0;
  }
  return kw_max(read / some, 1.0) * tile_n;
}

static inline double kw_attention_times_row_bytes(KW_GIVEN(kw_attention_times_Problem) p) {
  return p.requests * p.queries * p.heads_q * (p.hdim_q * p.size_q + p.hdim_v * p.size_o);
}

static inline double kw_attention_times_key_bytes(KW_GIVEN(kw_attention_times_Problem) p) {
  return p.keys * (p.hdim_q + p.hdim_v) * p.size_kv;
}

static inline double kw_attention_times_tiles_of(KW_GIVEN(kw_attention_times_Problem) p, KW_GIVEN(kw_attention_times_Kernel) k) {
  const double shared = k.packs_heads ? p.heads_q / p.heads_kv : 1.0;
  return kw_ceil(p.queries * shared / k.tile_m) * p.heads_q / shared * p.requests;
}

static inline double kw_attention_times_splits_that_fill(KW_GIVEN(kw_attention_times_Problem) p, KW_GIVEN(kw_attention_times_Kernel) k, KW_GIVEN(kw_machine_Device) d) {
  const double tiles = kw_attention_times_tiles_of(p, k);
  return tiles > 0.0 ? kw_floor(d.units * k.blocks_per_cu / tiles) : 0.0;
}

static inline double kw_attention_times_wave_us(double count, KW_GIVEN(kw_machine_Device) d, double keys, double size, double readers) {
  const double alone = KW_ATTENTION_TIMES_ALONE_CLOCKS + size / KW_ATTENTION_TIMES_ALONE_BYTES;
  const double shared = KW_ATTENTION_TIMES_SHARED_CLOCKS + size / KW_ATTENTION_TIMES_SHARED_BYTES;
  const double clocks = keys * kw_max(alone, kw_ceil(count / d.units) * shared);
  return KW_ATTENTION_TIMES_WAVE_US + kw_max(clocks / d.clocks_per_us, count * keys * size / readers / (KW_ATTENTION_TIMES_STREAMED * d.bytes_per_us));
}

static inline double kw_attention_times_streaming_us(double blocks, KW_GIVEN(kw_attention_times_Kernel) k, KW_GIVEN(kw_machine_Device) d, double keys, double size, double readers) {
  const double resident = d.units * k.blocks_per_cu;
  const double full = kw_floor(blocks / resident);
  const double rest = blocks - full * resident;
  const double last = rest > 0.0 ? kw_attention_times_wave_us(rest, d, keys, size, readers) : 0.0;
  return full * kw_attention_times_wave_us(resident, d, keys, size, readers) + last;
}

static inline double kw_attention_times_settled(KW_GIVEN(kw_attention_times_Kernel) k, double compute, double fill, double memory) {
  return (k.cpu ? compute + memory : kw_max(kw_max(compute, fill), memory)) * (1.0 + KW_ATTENTION_TIMES_RANK * k.selection_rank);
}

static inline double kw_attention_times_rows_of(KW_GIVEN(kw_attention_times_Problem) p, KW_GIVEN(kw_attention_times_Kernel) k) {
  return k.cpu ? kw_min(k.tile_m, kw_max(KW_ATTENTION_TIMES_FEW_ROWS, p.queries * p.heads_q / p.heads_kv)) : k.tile_m;
}

static inline double kw_attention_times_rounds_of(KW_GIVEN(kw_attention_times_Problem) p, KW_GIVEN(kw_attention_times_Kernel) k, KW_GIVEN(kw_machine_Device) d, double tiles) {
  const double units = d.units * k.blocks_per_cu;
  if (k.cpu) {
    return kw_max(1.0, tiles / units + KW_ATTENTION_TIMES_LAST_TASK * (1.0 - 1.0 / units));
  }
  const bool unequal = k.nvidia && !k.packs_heads && (p.masked || p.ragged);
  return unequal ? kw_max(1.0, tiles / units) : kw_ceil(tiles / units);
}

static inline double kw_attention_times_fill_us(KW_GIVEN(kw_attention_times_Problem) p, KW_GIVEN(kw_attention_times_Kernel) k, KW_GIVEN(kw_machine_Device) d, double tiles, double keys, double hdims) {
  double readers = 0;
  if (k.cpu) {
    return 0.0;
  }
  if (k.nvidia && k.packs_heads) {
    readers = kw_attention_times_tiles_of(p, k) / (p.requests * p.heads_kv);
    return kw_attention_times_streaming_us(tiles, k, d, keys, hdims * p.size_kv, readers);
  }
  const double waves = kw_ceil(tiles / (d.units * k.blocks_per_cu));
  return waves * k.blocks_per_cu * keys * hdims * p.size_kv / KW_ATTENTION_TIMES_FILL_BYTES_PER_CLOCK / d.clocks_per_us;
}

static inline double kw_attention_times_launches_us(KW_GIVEN(kw_attention_times_Problem) p, KW_GIVEN(kw_attention_times_Kernel) k) {
  if (k.nvidia && k.packs_heads) {
    return KW_ATTENTION_TIMES_LAUNCH_US + (p.leaves_splits ? KW_ATTENTION_TIMES_COMBINE_US + KW_ATTENTION_TIMES_COMBINE_SPLIT_US * p.splits : 0.0);
  }
  return (k.nvidia ? KW_ATTENTION_TIMES_TILES_LAUNCH_US : 0.0) + (p.leaves_splits ? KW_ATTENTION_TIMES_SECOND_LAUNCH_US : 0.0);
}

static inline kw_machine_Estimate kw_attention_times_part(KW_GIVEN(kw_attention_times_Problem) p, KW_GIVEN(kw_attention_times_Kernel) k, KW_GIVEN(kw_machine_Device) d) {
  const bool wgmma = k.nvidia && !k.packs_heads;
  const double seen = kw_attention_times_visible_part(p);
  const double read = wgmma ? kw_attention_times_keys_of_tile(p, k.tile_m, k.tile_n) : p.keys * seen;
  const double keys = kw_ceil(read / p.splits / k.tile_n) * k.tile_n;
  const double hdims = k.cpu ? p.hdim_q + p.hdim_v : kw_max(k.hdim_q, p.hdim_q) + kw_max(k.hdim_v, p.hdim_v);
  const double tiles = kw_attention_times_tiles_of(p, k) * p.splits;
  const double rows = kw_attention_times_rows_of(p, k);
  const double softmax = k.tile_m > 128.0 ? KW_ATTENTION_TIMES_SOFTMAX_WORK_OF_THREE : KW_ATTENTION_TIMES_SOFTMAX_WORK;
  const double work = wgmma ? KW_ATTENTION_TIMES_PRODUCT_SHARE * hdims + softmax : hdims;
  const double tile_us = k.blocks_per_cu * 2.0 * rows * keys * work / d.rate / d.clocks_per_us + (wgmma ? KW_ATTENTION_TIMES_TILE_US : 0.0);
  const double compute = kw_attention_times_rounds_of(p, k, d, tiles) * tile_us * (k.spare_mask ? KW_ATTENTION_TIMES_SPARE_MASK : 1.0);
  const double fill = kw_attention_times_fill_us(p, k, d, tiles, keys, hdims);
  const double partial = p.leaves_splits ? 4.0 * p.splits * p.requests * p.queries * p.heads_q * (p.hdim_v + 1.0) : 0.0;
  const double moved_bytes = kw_attention_times_row_bytes(p) + p.requests * p.heads_kv * kw_attention_times_key_bytes(p) + 2.0 * partial;
  const double written = k.cpu ? partial / 4.0 * KW_ATTENTION_TIMES_PARTIAL_CLOCKS / d.units / d.clocks_per_us : 0.0;
  const double memory = moved_bytes / kw_attention_times_bandwidth(k, d) + written;
  const double asked = p.requests * p.heads_q * p.queries * p.keys * seen * (p.hdim_q + p.hdim_v);
  const double done = tiles * rows * keys * hdims;
  return KW_RECORD(kw_machine_Estimate, tiles, kw_ceil(tiles / (d.units * k.blocks_per_cu)), compute, fill, memory, kw_attention_times_settled(k, compute, fill, memory) + kw_attention_times_launches_us(p, k), done > asked ? asked / done : 1.0);
}

static inline kw_machine_Estimate kw_attention_times_gradients(KW_GIVEN(kw_attention_times_Problem) p, KW_GIVEN(kw_attention_times_Kernel) k, KW_GIVEN(kw_machine_Device) d) {
  const double tile_m = kw_max(k.tile_m, 1.0);
  const double tile_n = kw_max(k.tile_n, 1.0);
  const double queries = kw_ceil(p.queries * kw_attention_times_visible_part(p) / tile_m) * tile_m;
  const double hdims = k.work * (3.0 * kw_max(k.hdim_q, p.hdim_q) + 2.0 * kw_max(k.hdim_v, p.hdim_v));
  const double tiles = kw_ceil(p.keys / tile_n) * p.heads_q * p.requests;
  const double waves = kw_ceil(tiles / (d.units * k.blocks_per_cu));
  const double work = k.blocks_per_cu * 2.0 * tile_n * queries * hdims;
  const double compute = waves * work / d.rate / d.clocks_per_us * (k.spare_mask ? KW_ATTENTION_TIMES_SPARE_MASK : 1.0);
  const double sums = 8.0 * p.dq_slices * p.requests * p.queries * p.heads_q * p.hdim_q;
  const double moved_bytes = 2.0 * kw_attention_times_row_bytes(p) + 2.0 * p.requests * p.heads_kv * kw_attention_times_key_bytes(p) + sums;
  const double memory = moved_bytes / d.bytes_per_us;
  const double launch = p.dq_slices > 0.0 ? KW_ATTENTION_TIMES_SECOND_LAUNCH_US : 0.0;
  const double total = kw_attention_times_settled(k, compute, 0.0, memory) + launch;
  return KW_RECORD(kw_machine_Estimate, tiles, waves, compute, 0.0, memory, total, 1.0);
}

static inline kw_machine_Estimate kw_attention_times_moved(double count, KW_GIVEN(kw_attention_times_Kernel) k, KW_GIVEN(kw_machine_Device) d) {
  const double memory = count / kw_attention_times_bandwidth(k, d);
  return KW_RECORD(kw_machine_Estimate, 0.0, 0.0, 0.0, 0.0, memory, memory * (1.0 + KW_ATTENTION_TIMES_RANK * k.selection_rank), 1.0);
}

static inline double kw_attention_times_output_q(KW_GIVEN(kw_attention_times_Problem) p) {
  return p.requests * p.queries * p.heads_q * p.hdim_q;
}

static inline double kw_attention_times_output_v(KW_GIVEN(kw_attention_times_Problem) p) {
  return p.requests * p.queries * p.heads_q * p.hdim_v;
}

static inline kw_machine_Estimate kw_attention_times_dot(KW_GIVEN(kw_attention_times_Problem) p, KW_GIVEN(kw_attention_times_Kernel) k, KW_GIVEN(kw_machine_Device) d) {
  return kw_attention_times_moved(2.0 * kw_attention_times_output_v(p) * p.size_o, k, d);
}

static inline kw_machine_Estimate kw_attention_times_combine(KW_GIVEN(kw_attention_times_Problem) p, KW_GIVEN(kw_attention_times_Kernel) k, KW_GIVEN(kw_machine_Device) d) {
  return kw_attention_times_moved(4.0 * p.splits * kw_attention_times_output_v(p) + kw_attention_times_output_v(p) * p.size_o, k, d);
}

static inline kw_machine_Estimate kw_attention_times_convert(KW_GIVEN(kw_attention_times_Problem) p, KW_GIVEN(kw_attention_times_Kernel) k, KW_GIVEN(kw_machine_Device) d) {
  return kw_attention_times_moved(4.0 * p.dq_slices * kw_attention_times_output_q(p) + kw_attention_times_output_q(p) * p.size_q, k, d);
}

static inline kw_machine_Estimate kw_attention_times_append(double rows, double size, KW_GIVEN(kw_attention_times_Kernel) k, KW_GIVEN(kw_machine_Device) d) {
  return kw_attention_times_moved(2.0 * rows * size, k, d);
}

#endif /* KW_ATTENTION_TIMES_H */
