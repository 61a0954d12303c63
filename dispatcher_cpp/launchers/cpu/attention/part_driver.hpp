// Forward attention with however many threads come: tasks are handed out in one fixed order by a ticket counter.
//
// The tickets of a chunk of units are its packing tasks, each of one block of keys, then its blocks of rows; each kind
// waits until everything before it is done. A block of rows is one thread's, and sees its keys in ascending order, so
// that results do not depend on the number of threads.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_PART_DRIVER_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_PART_DRIVER_HPP

#include "kernelwright/attention/checks.h"
#include "kernelwright/attention/dropout.h"
#include "launchers/cpu/attention/part_plan.hpp"
#include "launchers/cpu/attention/rows.hpp"

namespace kernelwright::cpu {

class part_job {
 public:
  part_job(const attention_kernel& kernel, const part_plan& plan, const kw_attention_args& args, void* workspace)
      : kernel_(kernel),
        plan_(plan),
        problem_(plan.problem),
        args_(args),
        memory_(static_cast<char*>(workspace)),
        rules_(rules_of(plan.problem, args, kw_attention_keeps(&plan.problem))),
        k_(plan.problem, args, args.k, plan.problem.k, plan.problem.hdim_q, kernel, args.descale_k),
        v_(plan.problem, args, args.v, plan.problem.v, plan.problem.hdim_v, kernel, args.descale_v),
        next_(0),
        done_(0) {}

  void run() { run_parts(threads_now(plan_.threads), &part_job::participate, this); }

 private:
  static void participate(void* context, uint32_t index) {
    part_job& job = *static_cast<part_job*>(context);
    const part_plan& plan = job.plan_;
    const int64_t splits = larger(1, plan.problem.num_splits);
    const int64_t packs = plan.shared ? plan.chunk * plan.key_blocks : 0, rows = plan.chunk * plan.blocks * splits;
    const int64_t total = divide_up(plan.units, plan.chunk) * (packs + rows);
    char* const own = job.memory_ + plan.private_offset + index * plan.own.bytes;
    for (;;) {
      const int64_t ticket = __atomic_fetch_add(&job.next_, 1, __ATOMIC_RELAXED);
      if (ticket >= total) break;
      const int64_t number = ticket / (packs + rows), task = ticket % (packs + rows);
      if (plan.shared) wait_until(job.done_, number * (packs + rows) + (task < packs ? 0 : packs));
      if (task < packs) {
        job.pack_shared(number * plan.chunk + task / plan.key_blocks, task % plan.key_blocks, own);
      } else {
        const int64_t left = (task - packs) / splits;
        // The last queries of a causal mask see most keys: they come first.
        const int64_t block = plan.blocks - 1 - left % plan.blocks;
        job.attend(number * plan.chunk + left / plan.blocks, block, (task - packs) % splits, own);
      }
      __atomic_fetch_add(&job.done_, 1, __ATOMIC_RELEASE);
    }
    if (index == 0) wait_until(job.done_, total);
  }

  int64_t tile_m() const { return kernel_.traits.tile_m0; }
  int64_t tile_n() const { return kernel_.traits.tile_n0; }

  float* shared_block(int64_t unit, int64_t index) const {
    return reinterpret_cast<float*>(memory_) + (unit % plan_.chunk * plan_.key_blocks + index) * plan_.block_units;
  }

  void pack_shared(int64_t unit, int64_t index, char* own) const {
    if (unit >= plan_.units) return;
    const request r = request_at(problem_, args_, unit / problem_.heads_kv);
    const int64_t first = index * tile_n(), count = smaller(tile_n(), r.keys - first);
    if (count > 0 && !r.skipped) pack(r, unit % problem_.heads_kv, first, count, shared_block(unit, index), own);
  }

  void pack(const request& r, int64_t head, int64_t first, int64_t count, float* to, char* own) const {
    char* const gathered = own + plan_.own.gathered;
    const key_rows k = k_.rows(r, head, first, count, gathered);
    kernel_.pack_k(to, k.at, k.ld, count, problem_.hdim_q);
    const key_rows v = v_.rows(r, head, first, count, gathered);
    kernel_.pack_v(to + plan_.k_units, v.at, v.ld, problem_.hdim_v, count);
  }

  // One block of rows of a unit, and one split of its keys.
  void attend(int64_t unit, int64_t block, int64_t split, char* own) const {
    if (unit >= plan_.units) return;
    const request r = request_at(problem_, args_, unit / problem_.heads_kv);
    const int64_t group = problem_.heads_q / problem_.heads_kv, kv_head = unit % problem_.heads_kv;
    if (block >= row_blocks(r, group, tile_m())) return;
    const row_range which = row_range_at(r, kv_head * group, group, tile_m(), block);
    row_block rows = place_rows(own + plan_.own.arrays, tile_m());
    range keys = describe_rows(problem_, args_, r, which, kernel_.bias_bytes, tile_m(), rows);
    if (problem_.sink != 0 && split == 0) begin_with_sinks(args_, which, rows);
    place_results(r, which, split, rows);
    if (problem_.num_splits > 1) keys = in_split(keys, r, split);
    const bool few = rows.rows <= kFewRows && !plan_.shared;
    char* const copied = own + plan_.own.q_rows;
    if (kernel_.widen_rows != nullptr) {
      widen_queries(reinterpret_cast<float*>(copied), kernel_.widen_rows, problem_, args_, r, which);
    } else {
      copy_rows(copied, args_.q, problem_.q, problem_, r, which, problem_.hdim_q, kernel_.input_bytes);
    }
    finish_call done = {};
    done.rows = &rows;
    done.partial = reinterpret_cast<const float*>(own + plan_.own.partial);
    done.hdim_v = problem_.hdim_v;
    done.factor = problem_.dropout != 0 ? static_cast<float>(1 / (1 - problem_.dropout_p)) : 1.0f;
    done.fp32 = problem_.leaves_splits != 0;
    if (!done.fp32 && kw_dtype_bytes(problem_.dtype_o) == 1) done.factor *= *args_.scale_o;
    if (few) {
      attend_few(r, kv_head, keys, rows, own);
      kernel_.finish_few(done);
    } else {
      attend_panels(r, unit, keys, rows, own);
      kernel_.finish(done);
    }
  }

  range in_split(const range& keys, const request& r, int64_t split) const {
    const range blocks = part(divide_up(r.keys, kSplitKeys), problem_.num_splits, split);
    return {larger(keys.begin, blocks.begin * kSplitKeys), smaller(keys.end, blocks.end * kSplitKeys)};
  }

  void place_results(const request& r, const row_range& which, int64_t split, row_block& rows) const {
    const bool splits = problem_.leaves_splits != 0;
    const int64_t all = kw_attention_rows(&problem_);
    for (int64_t i = 0; i < rows.rows; ++i) {
      const int64_t head = which.head + i / which.queries, query = which.query + i % which.queries;
      const int64_t number = split * all + row_number(problem_, r, head, query);
      if (splits) {
        rows.o[i] = args_.o_splits + number * problem_.hdim_v;
        rows.lse[i] = args_.lse_splits + number;
        continue;
      }
      const int64_t offset = row_offset(problem_.o, problem_.group != 0 ? 0 : r.number, head, r.first_query + query);
      rows.o[i] = static_cast<char*>(args_.o) + offset * kernel_.output_bytes;
      rows.lse[i] = problem_.lse != 0 ? args_.lse + number : nullptr;
    }
  }

  void attend_panels(const request& r, int64_t unit, const range& seen, const row_block& rows, char* own) const {
    attend_call call = {};
    call.rules = &rules_;
    call.rows = &rows;
    auto* const q = reinterpret_cast<float*>(own + plan_.own.q);
    kernel_.pack_q(q, own + plan_.own.q_rows, problem_.hdim_q, rows.rows, problem_.hdim_q);
    call.q = q;
    call.scores = reinterpret_cast<float*>(own + plan_.own.scores);
    call.partial = reinterpret_cast<float*>(own + plan_.own.partial);
    const int64_t lines = round_up(problem_.hdim_v, kernel_.mr);
    memset(call.partial, 0, static_cast<size_t>(round_up(rows.rows, kernel_.nr) * lines) * sizeof(float));
    // Shared blocks begin at multiples of the tile; a block of one's own begins where the keys do.
    const int64_t begin = plan_.shared ? seen.begin / tile_n() * tile_n() : seen.begin;
    for (int64_t first = begin; first < seen.end; first += tile_n()) {
      float* block = reinterpret_cast<float*>(own + plan_.own.packed);
      int64_t count = smaller(tile_n(), seen.end - first);
      if (plan_.shared) {
        block = shared_block(unit, first / tile_n());
        count = smaller(tile_n(), r.keys - first);
      } else {
        pack(r, unit % problem_.heads_kv, first, count, block, own);
      }
      call.keys.k = block;
      call.keys.v = block + plan_.k_units;
      call.keys.first = first;
      call.keys.count = count;
      call.keys.k_steps = divide_up(problem_.hdim_q, kernel_.depth);
      call.keys.v_steps = divide_up(count, kernel_.depth);
      call.keys.hdim_v = problem_.hdim_v;
      kernel_.attend(call);
    }
  }

  void attend_few(const request& r, int64_t kv_head, const range& keys, const row_block& rows, char* own) const {
    few_call call = {};
    call.rules = &rules_;
    call.rows = &rows;
    call.hdim_q = problem_.hdim_q;
    call.hdim_v = problem_.hdim_v;
    call.ld_q = round_up(problem_.hdim_q, kSpareUnits);
    call.ld_o = round_up(problem_.hdim_v, kSpareUnits);
    auto* const q = reinterpret_cast<float*>(own + plan_.own.q);
    memset(q, 0, static_cast<size_t>(rows.rows * call.ld_q) * sizeof(float));
    const char* const copied = own + plan_.own.q_rows;
    for (int64_t i = 0; i < rows.rows; ++i) {
      kernel_.widen(q + i * call.ld_q, copied + i * problem_.hdim_q * kernel_.staged_bytes, 1, problem_.hdim_q);
    }
    call.q = q;
    call.scores = reinterpret_cast<float*>(own + plan_.own.scores);
    call.fresh = reinterpret_cast<float*>(own + plan_.own.fresh);
    call.partial = reinterpret_cast<float*>(own + plan_.own.partial);
    memset(call.partial, 0, static_cast<size_t>(kFewRows * call.ld_o) * sizeof(float));
    memset(call.fresh, 0, static_cast<size_t>(kFewRows * call.ld_o) * sizeof(float));
    for (call.first = keys.begin; call.first < keys.end; call.first += tile_n()) {
      call.count = smaller(tile_n(), keys.end - call.first);
      char* const gathered = own + plan_.own.gathered;
      const key_rows k = k_.rows(r, kv_head, call.first, call.count, gathered);
      char* const behind = gathered + tile_n() * problem_.hdim_q * kernel_.staged_bytes;
      const key_rows v = v_.rows(r, kv_head, call.first, call.count, behind);
      call.k = k.at;
      call.ld_k = k.ld;
      call.v = v.at;
      call.ld_v = v.ld;
      kernel_.few(call);
    }
  }

  const attention_kernel& kernel_;
  const part_plan& plan_;
  const kw_attention_problem& problem_;
  const kw_attention_args& args_;
  char* memory_;
  score_rules rules_;
  key_source k_, v_;
  alignas(64) int64_t next_;
  alignas(64) int64_t done_;
};

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_PART_DRIVER_HPP
