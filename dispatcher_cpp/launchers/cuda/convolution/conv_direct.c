/* How depthwise convolutions and their gradients are planned and launched: boxes of images, strips of outputs. */
#include <string.h>

#include "internal.h"
#include "kernelwright/convolution/checks.h"
#include "kernelwright/widths.h"

/* x or y of a problem, with its extents along D, H, W. */
typedef struct image {
  const int64_t* strides;
  int64_t extent[3];
} image;

static image image_of(const kw_conv_problem* p, int of_x) {
  image found = {of_x ? p->stride_x : p->stride_y, {0, 0, 0}};
  for (int dim = 0; dim < 3; ++dim) found.extent[dim] = of_x ? p->extent[dim] : kw_conv_out(p, dim);
  return found;
}

static int64_t parts(int64_t extent, int64_t part) { return (extent + part - 1) / part; }

/* Two strips side by side, but one where the second would be empty. Backward data with a stride of 2 begins at points
 * whose distance from the corner of the padding is even, and reads half as many points. */
static void lay_out(const kw_conv_problem* p, kw_cuda_conv_direct* x, uint32_t* box) {
  const int data = p->base.op == KW_OP_CONV_BACKWARD_DATA, halves = data && p->stride[2] == 2;
  const int64_t length = halves ? KW_CUDA_CONV_EVEN_STRIP : KW_CUDA_CONV_STRIP, filter = p->filter[2];
  const image written = image_of(p, data);
  int64_t extent[2], cells[2];
  x->channels = (int32_t)p->c;
  x->filter = (int32_t)filter;
  x->stride = (int32_t)p->stride[2];
  x->image = written.strides[0];
  for (int i = 0; i < 2; ++i) {
    const int64_t pad = p->pad_left[2 - i];
    x->out[i] = (int32_t)written.extent[2 - i];
    x->point[i] = written.strides[4 - i];
    x->before[i] = (int32_t)(halves ? pad % 2 : 0);
    x->corner[i] = (int32_t)(halves ? (pad - pad % 2 - (filter - 1)) / 2 : data ? pad - (filter - 1) : -pad);
    extent[i] = x->out[i] + x->before[i];
  }
  x->strips = extent[0] > length ? 2 : 1;
  x->rows = extent[1] < KW_CUDA_CONV_ROWS ? (int32_t)extent[1] : KW_CUDA_CONV_ROWS;
  cells[0] = x->strips * length;
  cells[1] = x->rows;
  for (int i = 0; i < 2; ++i)
    box[i] = (uint32_t)(halves ? (cells[i] - 1) / 2 + 1 + (filter - 1) / 2
                               : (cells[i] - 1) * (data ? 1 : x->stride) + filter);
  x->box_bytes = box[0] * box[1] * KW_CUDA_CONV_STEP * 2;
  x->channel_blocks = kw_cuda_conv_divider(parts(p->c, KW_CUDA_CONV_STEP));
  x->across = kw_cuda_conv_divider(parts(extent[0], cells[0]));
  x->down = kw_cuda_conv_divider(parts(extent[1], cells[1]));
}

/* A box of points of 64 channels. */
static kw_status describe(const kw_kernel* kernel, const kw_conv_problem* p, int of_x, const void* at,
                          const uint32_t* points, CUtensorMap* map) {
  const image v = image_of(p, of_x);
  const int64_t extent[4] = {p->c, v.extent[2], v.extent[1], p->n > 0 ? p->n : 1};
  const int64_t asked[3] = {v.strides[4], v.strides[3], v.strides[0]};
  const cuuint32_t box[4] = {KW_CUDA_CONV_STEP, points[0], points[1], 1};
  int64_t stride[3], before = parts(p->c, KW_CUDA_CONV_LINE) * KW_CUDA_CONV_LINE;
  for (int i = 0; i < 3; ++i) stride[i] = before = extent[1 + i] > 1 ? asked[i] : before;
  return kw_cuda_conv_describe_box(kernel, of_x ? "x" : "y", p->dtype_x, extent, stride, box,
                                   CU_TENSOR_MAP_SWIZZLE_NONE, at, map);
}

kw_status kw_cuda_conv_launch_direct(const kw_kernel* kernel, const kw_conv_problem* p, const kw_launch* launch,
                                     const kw_conv_args* args) {
  const kw_cuda_conv* conv = (const kw_cuda_conv*)kernel->traits;
  kw_cuda_conv_direct params;
  memset(&params, 0, sizeof params);
  uint32_t box[2];
  lay_out(p, &params, box);
  params.w = args->b;
  params.y = args->d;
  params.bias = p->bias ? args->bias : NULL;
  params.residual = p->residual ? args->residual : NULL;
  params.activation = p->activation;
  params.alpha = (float)p->alpha;
  params.beta = (float)p->beta;
  const int forward = p->base.op == KW_OP_CONV_FORWARD;
  const kw_status status = describe(kernel, p, forward, args->a, box, &params.x);
  if (status != KW_OK) return status;
  const int64_t blocks = kw_mul(kw_mul(p->n, params.channel_blocks.divisor),
                                (int64_t)params.across.divisor * (int64_t)params.down.divisor);
  if (blocks > INT32_MAX)
    return kw_cuda_fail(KW_UNSUPPORTED, "%s: %lld workgroups are more than a launch can have", kernel->name,
                        (long long)blocks);
  const uint32_t taps = (uint32_t)(params.filter * params.filter) * KW_CUDA_CONV_STEP * 4;
  return kw_cuda_conv_start(kernel, conv->function, (uint32_t)blocks, conv->threads, 256 + taps + params.box_bytes,
                            &params, launch->stream);
}

/* Boxes of outputs, and slices that the workgroups share them in. */
static void lay_out_weight(const kw_conv_problem* p, kw_cuda_conv_direct_weight* x, uint32_t* box_x, uint32_t* box_y) {
  const int64_t width = kw_conv_out(p, 2), height = kw_conv_out(p, 1);
  x->channels = (int32_t)p->c;
  x->filter = (int32_t)p->filter[2];
  x->stride = (int32_t)p->stride[2];
  x->strips = width > KW_CUDA_CONV_STRIP ? 2 : 1;
  x->rows = height < KW_CUDA_CONV_ROWS ? (int32_t)height : KW_CUDA_CONV_ROWS;
  box_y[0] = (uint32_t)x->strips * KW_CUDA_CONV_STRIP;
  box_y[1] = (uint32_t)x->rows;
  for (int i = 0; i < 2; ++i) {
    x->out[i] = (int32_t)kw_conv_out(p, 2 - i);
    x->pad[i] = (int32_t)p->pad_left[2 - i];
    box_x[i] = (box_y[i] - 1) * (uint32_t)x->stride + (uint32_t)x->filter;
  }
  x->x_bytes = box_x[0] * box_x[1] * KW_CUDA_CONV_STEP * 2;
  x->dy_bytes = box_y[0] * box_y[1] * KW_CUDA_CONV_STEP * 2;
  x->channel_blocks = kw_cuda_conv_divider(parts(p->c, KW_CUDA_CONV_STEP));
  x->across = kw_cuda_conv_divider(parts(width, box_y[0]));
  x->down = kw_cuda_conv_divider(parts(height, box_y[1]));
  x->boxes = (int32_t)(p->n * x->across.divisor * x->down.divisor);
  x->of_slice = (int32_t)parts(x->boxes, p->split_k);
}

kw_status kw_cuda_conv_launch_direct_weight(const kw_kernel* kernel, const kw_cuda_conv_plan* plan,
                                            const kw_launch* launch, const kw_conv_args* args) {
  const kw_cuda_conv* conv = (const kw_cuda_conv*)kernel->traits;
  const kw_conv_problem* p = &plan->problem;
  const void* some = (const void*)((uintptr_t)args->d / KW_CUDA_CONV_ALIGNMENT * KW_CUDA_CONV_ALIGNMENT);
  const int64_t points = kw_conv_filter_points(p);
  kw_cuda_conv_direct_weight params;
  uint32_t box_x[2], box_y[2];
  memset(&params, 0, sizeof params);
  lay_out_weight(p, &params, box_x, box_y);
  params.to = (float*)((char*)launch->workspace + plan->slices);
  kw_status status = describe(kernel, p, 1, p->n > 0 ? args->a : some, box_x, &params.x);
  if (status == KW_OK) status = describe(kernel, p, 0, p->n > 0 ? args->b : some, box_y, &params.dy);
  if (status != KW_OK) return status;
  const uint32_t stages = 2 * (params.x_bytes + params.dy_bytes);
  const uint32_t sums = KW_CUDA_CONV_DIRECT_WARPS / (params.filter < 7 ? 1 : 2) * (uint32_t)points *
                        KW_CUDA_CONV_DIRECT_LINE * (uint32_t)sizeof(float);
  status = kw_cuda_conv_start(kernel, conv->function, params.channel_blocks.divisor * p->split_k, conv->threads,
                              256 + (stages > sums ? stages : sums), &params, launch->stream);
  if (status != KW_OK) return status;
  const int64_t count = p->c * points;
  kw_cuda_conv_sum sum = {.from = params.to,
                          .to = args->d,
                          .count = count,
                          .slice = count,
                          .c = (int32_t)count, /* one line of elements, wherever the channels begin */
                          .k = 1,
                          .merged = 1,
                          .filter_points = 1,
                          .pitch = (int32_t)count,
                          .slices = (int32_t)p->split_k,
                          .alpha = (float)p->alpha,
                          .beta = (float)p->beta};
  return kw_cuda_conv_add_slices(kernel, &sum, launch->stream);
}
