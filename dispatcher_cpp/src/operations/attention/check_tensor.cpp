// What problems of attention and of append are checked for in the same way.
#include "kernelwright/attention.h"
#include "kernelwright/dispatcher/attention/problem.hpp"
#include "kernelwright/dispatcher/support/error.hpp"
#include "kernelwright/widths.h"

namespace kernelwright {
namespace {

constexpr int64_t kMaxElements = INT64_MAX / 64;  // so that byte offsets fit into int64 for every dtype

long long wide(int64_t value) { return static_cast<long long>(value); }

struct Dimension {
  int64_t extent, stride;
};

// Rows of a tensor that is written must have addresses of their own: sorted by stride, each dimension steps over all
// that the ones before span.
kw_status check_overlap(const char* what, const AttentionTensor& t, const Dimension (&all)[3]) {
  Dimension sorted[3];
  int count = 0;
  for (const Dimension& each : all) {
    if (each.extent < 2) continue;
    int at = count++;
    for (; at > 0 && sorted[at - 1].stride > each.stride; --at) sorted[at] = sorted[at - 1];
    sorted[at] = each;
  }
  int64_t span = t.hdim;
  for (int i = 0; i < count; ++i) {
    if (sorted[i].stride < span) {
      return fail(KW_INVALID_ARGUMENT, "%s: strides of %s let results overlap; allowed: %lld or more for %lld", what,
                  t.name, wide(span), wide(sorted[i].stride));
    }
    span += (sorted[i].extent - 1) * sorted[i].stride;
  }
  return KW_OK;
}

}  // namespace

kw_status check_most(const char* what, const char* field, uint32_t value, uint32_t most) {
  if (value <= most) return KW_OK;
  return fail(KW_INVALID_ARGUMENT, "%s: %s = %u; allowed: 0 to %u", what, field, value, most);
}

kw_status check_least(const char* what, const char* field, int64_t value, int64_t least) {
  if (value >= least && value <= kMaxElements) return KW_OK;
  return fail(KW_INVALID_ARGUMENT, "%s: %s = %lld; allowed: %lld to %lld", what, field, wide(value), wide(least),
              wide(kMaxElements));
}

kw_status check_dtype(const char* what, const char* field, uint32_t dtype) {
  if (kw_dtype_bytes(dtype) != 0) return KW_OK;
  return fail(KW_INVALID_ARGUMENT, "%s: %s = %u is no dtype; allowed: 1 (fp32) to %u (int32)", what, field, dtype,
              static_cast<uint32_t>(KW_INT32));
}

kw_status check_attention_tensor(const char* what, const AttentionTensor& t) {
  const Dimension all[3] = {{t.requests, t.strides.request}, {t.heads, t.strides.head}, {t.rows, t.strides.row}};
  const char* const names[3] = {"request", "head", "row"};
  int64_t last = t.hdim, elements = t.hdim;
  for (int i = 0; i < 3; ++i) {
    if (all[i].stride < 0) {
      return fail(KW_INVALID_ARGUMENT, "%s: %s stride of %s = %lld; allowed: 0 or more", what, names[i], t.name,
                  wide(all[i].stride));
    }
    last = kw_add(last, kw_mul(all[i].extent > 0 ? all[i].extent - 1 : 0, all[i].stride));
    elements = kw_mul(elements, all[i].extent > 1 ? all[i].extent : 1);
    if (last > kMaxElements || elements > kMaxElements) {
      return fail(KW_INVALID_ARGUMENT, "%s: %s spans too much memory; allowed: at most %lld elements", what, t.name,
                  wide(kMaxElements));
    }
  }
  const bool empty = t.requests == 0 || t.heads == 0 || t.rows == 0;
  return t.written && !empty ? check_overlap(what, t, all) : KW_OK;
}

kw_status check_pages(const char* what, int64_t pages, int64_t page_size, int64_t page_table_stride, uint32_t table,
                      uint32_t layout, int64_t longest) {
  if (table == KW_PAGES_NONE) {
    if (pages == 0 && page_size == 0 && page_table_stride == 0 && layout == KW_PAGE_LINEAR) return KW_OK;
    return fail(KW_INVALID_ARGUMENT,
                "%s: pages, page_size, page_table_stride or page_layout is not 0; allowed: with a page table only",
                what);
  }
  if (kw_status status = check_least(what, "pages", pages, 0)) return status;
  if (kw_status status = check_least(what, "page_size", page_size, 1)) return status;
  const int64_t needed = table == KW_PAGES_BLOCK ? longest / page_size + (longest % page_size != 0 ? 1 : 0) : 0;
  if (page_table_stride >= needed && (table == KW_PAGES_BLOCK || page_table_stride == 0)) return KW_OK;
  return fail(KW_INVALID_ARGUMENT, "%s: page_table_stride = %lld; allowed: %lld%s", what, wide(page_table_stride),
              wide(needed), table == KW_PAGES_BLOCK ? " or more" : "");
}

}  // namespace kernelwright
