/* Which convolution problems a CK Tile kernel serves: what its vectors, its 32-bit offsets and its grid take. */
#include <stdio.h>

#include "kernelwright/convolution/checks.h"
#include "kernelwright/hip/convolution/launcher.h"

/* K tiles that a pipeline may load beyond the end of K (never used, but their offsets must not wrap around). */
#define MAX_PREFETCH 8
/* Buffer loads of 4 bytes and more are aligned to these. */
#define WORD 4

typedef struct vector_need {
  const char* channels;
  int64_t count;
  uint32_t vector;
  const char* operand;
} vector_need;

static int64_t tiles(int64_t extent, uint32_t tile) { return (extent + tile - 1) / tile; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* The product, or INT64_MAX where it has more bits; neither is negative. */
static int64_t times(int64_t a, int64_t b) { return a != 0 && b > INT64_MAX / a ? INT64_MAX : a * b; }

static int64_t outputs(const kw_conv_problem* p) { return kw_conv_out_points(p); }

uint32_t kw_hip_conv_alignment(const kw_conv_traits* t) {
  const uint32_t widest = t->vector_a > t->vector_b ? t->vector_a : t->vector_b;
  const uint32_t bytes = kw_dtype_bytes(t->dtype_x);
  return (widest > t->vector_c ? widest : t->vector_c) * bytes >= WORD ? WORD : bytes;
}

int64_t kw_hip_conv_workgroups(const kw_conv_traits* t, const kw_conv_problem* p) {
  kw_conv_gemm g = kw_conv_as_gemm(p);
  int64_t phases = 1;
  if (p->base.op == KW_OP_CONV_BACKWARD_DATA) {
    g.m = p->n;
    for (int i = 0; i < KW_CONV_SPATIAL; ++i) {
      phases *= p->stride[i];
      g.m *= tiles(p->extent[i], (uint32_t)p->stride[i]);
    }
  }
  const int64_t of_phase = times(tiles(g.m, t->tile_m), tiles(g.n, t->tile_n));
  return times(times(of_phase, phases), times(p->split_k, p->groups));
}

static kw_status check_vectors(const kw_conv_traits* t, const kw_conv_problem* p, char* reason, size_t bytes) {
  const int64_t c = p->c / p->groups, k = p->k / p->groups;
  const vector_need forward[] = {{"c", c, t->vector_a, "x"}, {"c", c, t->vector_b, "w"}, {"k", k, t->vector_c, "y"}};
  const vector_need data[] = {{"k", k, t->vector_a, "dy"}, {"c", c, t->vector_b, "w"}, {"c", c, t->vector_c, "dx"}};
  const vector_need weight[] = {{"k", k, t->vector_a, "dy"}, {"c", c, t->vector_b, "x"}, {"c", c, t->vector_c, "dw"}};
  const vector_need* needs = p->base.op == KW_OP_CONV_FORWARD         ? forward
                             : p->base.op == KW_OP_CONV_BACKWARD_DATA ? data
                                                                      : weight;
  for (int i = 0; i < 3; ++i) {
    if (needs[i].count % needs[i].vector == 0) continue;
    snprintf(reason, bytes, "%s per group = %lld is not a multiple of %u, the vector in which %s is accessed",
             needs[i].channels, (long long)needs[i].count, needs[i].vector, needs[i].operand);
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

/* Offsets of an image tensor, also of points that lie beyond it and are masked, fit into 31 bits of bytes. */
static kw_status check_images(const char* name, const int64_t* strides, int64_t points, int64_t beyond,
                              const kw_conv_traits* t, const kw_conv_problem* p, char* reason, size_t bytes) {
  const int64_t size = kw_dtype_bytes(t->dtype_x), limit = INT32_MAX / size;
  const int64_t images = p->n + 1 + beyond / most(points, 1);
  int64_t along = 0;
  for (int i = 0; i < KW_CONV_STRIDES; ++i) {
    if (i != 1 && strides[i] * size % kw_hip_conv_alignment(t) != 0) {
      snprintf(reason, bytes, "a stride of %s is %lld elements: points are not aligned to %u bytes", name,
               (long long)strides[i], kw_hip_conv_alignment(t));
      return KW_UNSUPPORTED;
    }
    along = most(along, strides[i]);
  }
  if (strides[1] != 1) {
    snprintf(reason, bytes, "the channels of %s do not lie side by side", name);
    return KW_UNSUPPORTED;
  }
  if (along <= limit && images <= limit / most(strides[0], 1)) return KW_OK;
  snprintf(reason, bytes, "%s spans %lld images of %lld elements: its byte offsets do not fit into 31 bits", name,
           (long long)p->n, (long long)strides[0]);
  return KW_UNSUPPORTED;
}

static kw_status check_spans(const kw_conv_traits* t, const kw_conv_problem* p, char* reason, size_t bytes) {
  const int64_t extents = p->extent[0] * p->extent[1] * p->extent[2];
  const int64_t beyond = (int64_t)t->tile_m + t->tile_n + (int64_t)MAX_PREFETCH * t->tile_k;
  const int64_t row = kw_conv_filter_points(p) * (p->c / p->groups);
  const int64_t limit = INT32_MAX / kw_dtype_bytes(t->dtype_x);
  kw_status status = check_images("x", p->stride_x, extents, beyond, t, p, reason, bytes);
  if (status == KW_OK) status = check_images("y", p->stride_y, outputs(p), beyond, t, p, reason, bytes);
  if (status != KW_OK) return status;
  if (row <= limit && p->k / p->groups + beyond <= limit / most(row + beyond, 1)) return KW_OK;
  snprintf(reason, bytes, "the weights of a group are %lld rows of %lld elements: byte offsets do not fit into 31 bits",
           (long long)(p->k / p->groups), (long long)row);
  return KW_UNSUPPORTED;
}

static int evenly_spaced(const int64_t* strides, const int64_t* points) {
  int64_t next = strides[4];
  for (int i = KW_CONV_SPATIAL - 1; i >= 0; --i) {
    if (points[i] != 1 && strides[2 + i] != next) return 0;
    next *= points[i];
  }
  return strides[0] == next;
}

static kw_status check_spacing(const kw_conv_problem* p, char* reason, size_t bytes) {
  int64_t out[KW_CONV_SPATIAL];
  for (int i = 0; i < KW_CONV_SPATIAL; ++i) out[i] = kw_conv_out(p, i);
  if (evenly_spaced(p->stride_x, p->extent) && evenly_spaced(p->stride_y, out)) return KW_OK;
  snprintf(reason, bytes, "the points of x or y are not everywhere equally far apart in memory");
  return KW_UNSUPPORTED;
}

static int fits(int64_t value) { return value >= 0 && value <= INT32_MAX; }

static int all_fit(const int64_t* values, int count) {
  int64_t product = 1;
  for (int i = 0; i < count; ++i) {
    if (!fits(values[i])) return 0;
    product = times(product, values[i]);
  }
  return fits(product);
}

/* Counts of points beyond 31 bits are refused first, so that nothing later can overflow 64 bits. */
static kw_status check_range(const kw_conv_problem* p, char* reason, size_t bytes) {
  const int64_t channels[] = {p->groups, p->c, p->k};
  const char* what = NULL;
  int64_t padded[KW_CONV_SPATIAL + 1] = {p->n};
  for (int i = 0; i < KW_CONV_SPATIAL; ++i) {
    if (!fits(p->extent[i]) || !fits(p->pad_left[i]) || !fits(p->pad_right[i])) what = "an extent or its padding";
    padded[1 + i] = what == NULL ? p->extent[i] + p->pad_left[i] + p->pad_right[i] : 0;
  }
  if (what == NULL && !all_fit(padded, KW_CONV_SPATIAL + 1)) what = "the number of points of all images";
  if (!all_fit(p->filter, KW_CONV_SPATIAL)) what = "the number of filter points";
  if (!all_fit(p->stride, KW_CONV_SPATIAL) || !all_fit(p->dilation, KW_CONV_SPATIAL)) what = "strides or dilations";
  for (int i = 0; i < 3; ++i)
    if (!fits(channels[i])) what = "the number of groups or channels";
  for (int i = 0; i < KW_CONV_STRIDES; ++i)
    if (!fits(p->stride_x[i]) || !fits(p->stride_y[i])) what = "a stride in memory";
  if (what == NULL) return KW_OK;
  snprintf(reason, bytes, "%s does not fit into 31 bits", what);
  return KW_UNSUPPORTED;
}

static kw_status check_counts(const kw_hip_conv* conv, const kw_conv_problem* p, const kw_hip_conv_facts* facts,
                              char* reason, size_t bytes) {
  const kw_conv_gemm g = kw_conv_as_gemm(p);
  if (g.m > INT32_MAX || g.n > INT32_MAX || g.k > INT32_MAX - (int64_t)MAX_PREFETCH * conv->traits.tile_k) {
    snprintf(reason, bytes, "the implicit GEMM is %lld x %lld x %lld: it does not fit into 31 bits", (long long)g.m,
             (long long)g.n, (long long)g.k);
    return KW_UNSUPPORTED;
  }
  if (g.m != 0 && g.n != 0 && g.k == 0) {
    snprintf(reason, bytes, "there is nothing to sum up");
    return KW_UNSUPPORTED;
  }
  const int64_t count = kw_hip_conv_workgroups(&conv->traits, p);
  if (count <= (int64_t)(UINT32_MAX / facts->block_size) && count <= INT32_MAX) return KW_OK;
  snprintf(reason, bytes, "%lld workgroups are more than a launch can have", (long long)count);
  return KW_UNSUPPORTED;
}

/* What everything else divides by. */
static kw_status check_divisors(const kw_conv_problem* p, char* reason, size_t bytes) {
  int whole = p->groups >= 1 && p->c % p->groups == 0 && p->k % p->groups == 0;
  for (int i = 0; i < KW_CONV_SPATIAL; ++i)
    whole = whole && p->stride[i] >= 1 && p->dilation[i] >= 1 && p->filter[i] >= 1;
  if (whole) return KW_OK;
  snprintf(reason, bytes, "groups divide c and k; filter, stride and dilation are at least 1");
  return KW_INVALID_ARGUMENT;
}

kw_status kw_hip_conv_check(const kw_hip_conv* conv, const kw_conv_problem* p, const kw_hip_conv_facts* facts,
                            char* reason, size_t bytes) {
  kw_status status = kw_conv_traits_match(&conv->traits, p, reason, bytes);
  if (status == KW_OK && p->beta != 0.0 && conv->sum.image == NULL) {
    snprintf(reason, bytes, "beta is %g, this kernel serves 0", p->beta);
    status = KW_UNSUPPORTED;
  }
  if (status == KW_OK) status = check_divisors(p, reason, bytes);
  if (status == KW_OK) status = check_range(p, reason, bytes);
  if (status == KW_OK) status = check_vectors(&conv->traits, p, reason, bytes);
  if (status == KW_OK) status = check_spans(&conv->traits, p, reason, bytes);
  if (status == KW_OK && conv->evenly_spaced) status = check_spacing(p, reason, bytes);
  if (status == KW_OK) status = check_counts(conv, p, facts, reason, bytes);
  return status;
}
