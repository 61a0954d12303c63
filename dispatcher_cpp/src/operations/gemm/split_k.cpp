// Which numbers of slices of K are worth estimating, where the problem leaves the choice.
#include "kernelwright/dispatcher/gemm/problem.hpp"

namespace kernelwright {
namespace {

int64_t divide_up(int64_t extent, int64_t quantum) { return extent / quantum + (extent % quantum != 0 ? 1 : 0); }

// In ascending order, each once.
class Values {
 public:
  explicit Values(uint32_t* values) : values_(values) {}
  size_t count() const { return count_; }
  void add(uint32_t value) {
    size_t at = count_;
    while (at > 0 && values_[at - 1] > value) --at;
    if ((at > 0 && values_[at - 1] == value) || count_ == kMaxChoices) return;
    for (size_t i = count_; i > at; --i) values_[i] = values_[i - 1];
    values_[at] = value;
    ++count_;
  }

 private:
  uint32_t* values_;
  size_t count_ = 0;
};

// Waves of workgroups that slices may fill.
constexpr int64_t kFilledWaves = 4;
constexpr size_t kSteps = kMaxChoices - kFilledWaves;

}  // namespace

// Powers of two and what lies half-way between them; and the most slices with which all workgroups fit into one to four
// waves, because a wave that is not full costs as much as a full one. More slices than k has tiles would be empty.
size_t split_k_choices(const kw_kernel& kernel, const kw_problem& problem, const Place& place, uint32_t* values) {
  const kw_gemm_problem& p = as_gemm(problem);
  if (p.split_k != 0) return 0;
  const kw_gemm_traits& t = gemm_traits(kernel);
  const int64_t k_tiles = divide_up(p.k, t.tile_k), most = k_tiles < 1 ? 1 : k_tiles;
  const uint32_t limit = most < t.max_split_k ? static_cast<uint32_t>(most) : t.max_split_k;
  Values counts(values);
  counts.add(1);
  if (limit == 1) return counts.count();
  const double tiles = static_cast<double>(divide_up(p.m, t.tile_m)) * static_cast<double>(divide_up(p.n, t.tile_n)) *
                       static_cast<double>(p.batch);
  for (int64_t wave = 1; wave <= kFilledWaves && tiles > 0; ++wave) {
    const double slices = static_cast<double>(place.compute_units) * static_cast<double>(wave) / tiles;
    if (slices >= 1) counts.add(slices < limit ? static_cast<uint32_t>(slices) : limit);
  }
  for (uint32_t power = 2; power <= limit && counts.count() < kSteps; power *= 2) {
    counts.add(power);
    if (power + power / 2 <= limit) counts.add(power + power / 2);
  }
  counts.add(limit);
  return counts.count();
}

}  // namespace kernelwright
