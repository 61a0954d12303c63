#include "launchers/cuda/convolution/depthwise.hpp"

#include "launchers/cuda/convolution/conditions.h"
#include "launchers/cuda/convolution/descriptors.hpp"
#include "launchers/cuda/convolution/helpers.hpp"
#include "launchers/cuda/convolution/shape.hpp"
#include "launchers/cuda/convolution/start.hpp"

namespace kernelwright::cuda::launchers {
namespace {

// x or y of a problem, with its extents along D, H, W.
struct image {
  const int64_t* strides;
  int64_t extent[3];
};

image image_of(const kw_conv_problem& p, bool of_x) {
  if (of_x) return {p.stride_x, {p.extent[0], p.extent[1], p.extent[2]}};
  return {p.stride_y, {kw_conv_out(&p, 0), kw_conv_out(&p, 1), kw_conv_out(&p, 2)}};
}

// Two strips side by side, but one where the second would be empty. Backward data with a stride of 2 begins at points
// whose distance from the corner of the padding is even, and reads half as many points.
void lay_out(const kw_conv_problem& p, kw_cuda_conv_direct* x, uint32_t* box) {
  const bool data = p.base.op == KW_OP_CONV_BACKWARD_DATA, halves = data && p.stride[2] == 2;
  const int64_t length = halves ? KW_CUDA_CONV_EVEN_STRIP : KW_CUDA_CONV_STRIP, filter = p.filter[2];
  const image written = image_of(p, data);
  int64_t extent[2];
  x->channels = static_cast<int32_t>(p.c);
  x->filter = static_cast<int32_t>(filter);
  x->stride = static_cast<int32_t>(p.stride[2]);
  x->image = written.strides[0];
  for (int i = 0; i < 2; ++i) {
    const int64_t pad = p.pad_left[2 - i];
    x->out[i] = static_cast<int32_t>(written.extent[2 - i]);
    x->point[i] = written.strides[4 - i];
    x->before[i] = static_cast<int32_t>(halves ? pad % 2 : 0);
    x->corner[i] = static_cast<int32_t>(halves ? (pad - pad % 2 - (filter - 1)) / 2 : data ? pad - (filter - 1) : -pad);
    extent[i] = x->out[i] + x->before[i];
  }
  x->strips = extent[0] > length ? 2 : 1;
  x->rows = static_cast<int32_t>(kw_smaller(extent[1], KW_CUDA_CONV_ROWS));
  const int64_t cells[2] = {x->strips * length, x->rows};
  for (int i = 0; i < 2; ++i)
    box[i] = static_cast<uint32_t>(halves ? (cells[i] - 1) / 2 + 1 + (filter - 1) / 2
                                          : (cells[i] - 1) * (data ? 1 : x->stride) + filter);
  x->box_bytes = box[0] * box[1] * KW_CUDA_CONV_STEP * 2;
  x->channel_blocks = divider_of(kw_parts(p.c, KW_CUDA_CONV_STEP));
  x->across = divider_of(kw_parts(extent[0], cells[0]));
  x->down = divider_of(kw_parts(extent[1], cells[1]));
}

// A box of points of 64 channels.
kw_status describe(const kw_kernel* kernel, const kw_conv_problem& p, bool of_x, const void* at, const uint32_t* points,
                   CUtensorMap* map) {
  const image v = image_of(p, of_x);
  const int64_t asked[3] = {v.strides[4], v.strides[3], v.strides[0]};
  tensor_box x = {{p.c, v.extent[2], v.extent[1], kw_larger(p.n, 1)},
                  {},
                  {KW_CUDA_CONV_STEP, points[0], points[1], 1},
                  CU_TENSOR_MAP_SWIZZLE_NONE};
  int64_t before = round_up(p.c, KW_CUDA_CONV_LINE);
  for (int i = 0; i < 3; ++i) x.stride[i] = before = x.extent[1 + i] > 1 ? asked[i] : before;
  return describe_box(kernel, of_x ? "x" : "y", p.dtype_x, x, at, map);
}

// Boxes of outputs, and slices that the workgroups share them in.
void lay_out_weight(const kw_conv_problem& p, kw_cuda_conv_direct_weight* x, uint32_t* box_x, uint32_t* box_y) {
  const int64_t width = kw_conv_out(&p, 2), height = kw_conv_out(&p, 1);
  x->channels = static_cast<int32_t>(p.c);
  x->filter = static_cast<int32_t>(p.filter[2]);
  x->stride = static_cast<int32_t>(p.stride[2]);
  x->strips = width > KW_CUDA_CONV_STRIP ? 2 : 1;
  x->rows = static_cast<int32_t>(kw_smaller(height, KW_CUDA_CONV_ROWS));
  box_y[0] = static_cast<uint32_t>(x->strips) * KW_CUDA_CONV_STRIP;
  box_y[1] = static_cast<uint32_t>(x->rows);
  for (int i = 0; i < 2; ++i) {
    x->out[i] = static_cast<int32_t>(kw_conv_out(&p, 2 - i));
    x->pad[i] = static_cast<int32_t>(p.pad_left[2 - i]);
    box_x[i] = (box_y[i] - 1) * static_cast<uint32_t>(x->stride) + static_cast<uint32_t>(x->filter);
  }
  x->x_bytes = box_x[0] * box_x[1] * KW_CUDA_CONV_STEP * 2;
  x->dy_bytes = box_y[0] * box_y[1] * KW_CUDA_CONV_STEP * 2;
  x->channel_blocks = divider_of(kw_parts(p.c, KW_CUDA_CONV_STEP));
  x->across = divider_of(kw_parts(width, box_y[0]));
  x->down = divider_of(kw_parts(height, box_y[1]));
  x->boxes = static_cast<int32_t>(p.n * x->across.divisor * x->down.divisor);
  x->of_slice = static_cast<int32_t>(kw_parts(x->boxes, p.split_k));
}

// The slices as one line of elements, wherever the channels begin.
kw_status add_lines(const kw_kernel* kernel, const kw_conv_problem& p, const float* from, void* to, void* stream) {
  kw_cuda_conv_sum x = {};
  x.from = from, x.to = to;
  x.count = x.slice = p.c * kw_conv_filter_points(&p);
  x.c = x.pitch = static_cast<int32_t>(x.count);
  x.k = x.merged = x.filter_points = 1;
  x.slices = static_cast<int32_t>(p.split_k);
  x.alpha = static_cast<float>(p.alpha), x.beta = static_cast<float>(p.beta);
  return add_slices(kernel, x, stream);
}

}  // namespace

kw_status launch_depthwise(const kw_kernel* kernel, const kw_conv_problem& p, const kw_launch& launch,
                           const kw_conv_args& args) {
  const auto& conv = held_by<kw_cuda_conv>(kernel);
  kw_cuda_conv_direct params = {};
  uint32_t box[2];
  lay_out(p, &params, box);
  params.w = args.b;
  params.y = args.d;
  params.bias = p.bias ? args.bias : nullptr;
  params.residual = p.residual ? args.residual : nullptr;
  params.activation = p.activation;
  params.alpha = static_cast<float>(p.alpha);
  params.beta = static_cast<float>(p.beta);
  const kw_status status = describe(kernel, p, p.base.op == KW_OP_CONV_FORWARD, args.a, box, &params.x);
  if (status != KW_OK) return status;
  const int64_t boxes = kw_mul(params.across.divisor, params.down.divisor);
  const int64_t blocks = kw_mul3(p.n, params.channel_blocks.divisor, boxes);
  if (blocks > INT32_MAX)
    return kw_cuda_fail(KW_UNSUPPORTED, "%s: %lld workgroups are more than a launch can have", kernel->name,
                        static_cast<long long>(blocks));
  const uint32_t taps = static_cast<uint32_t>(params.filter * params.filter) * KW_CUDA_CONV_STEP * 4;
  return kw_cuda_conv_start(kernel, conv.function, static_cast<uint32_t>(blocks), conv.threads,
                            256 + taps + params.box_bytes, &params, launch.stream);
}

kw_status launch_depthwise_weight(const kw_kernel* kernel, const kw_cuda_conv_plan& plan, const kw_launch& launch,
                                  const kw_conv_args& args) {
  const auto& conv = held_by<kw_cuda_conv>(kernel);
  const kw_conv_problem& p = plan.problem;
  kw_cuda_conv_direct_weight params = {};
  uint32_t box_x[2], box_y[2];
  lay_out_weight(p, &params, box_x, box_y);
  params.to = reinterpret_cast<float*>(static_cast<char*>(launch.workspace) + plan.slices);
  kw_status status = describe(kernel, p, true, p.n > 0 ? args.a : unread(args), box_x, &params.x);
  if (status == KW_OK) status = describe(kernel, p, false, p.n > 0 ? args.b : unread(args), box_y, &params.dy);
  if (status != KW_OK) return status;
  const uint32_t points = static_cast<uint32_t>(kw_conv_filter_points(&p));
  const uint32_t stages = 2 * (params.x_bytes + params.dy_bytes);
  const uint32_t sums = KW_CUDA_CONV_DIRECT_WARPS / (params.filter < 7 ? 1 : 2) * points * KW_CUDA_CONV_DIRECT_LINE *
                        static_cast<uint32_t>(sizeof(float));
  status = kw_cuda_conv_start(kernel, conv.function, params.channel_blocks.divisor * p.split_k, conv.threads,
                              256 + (stages > sums ? stages : sums), &params, launch.stream);
  return status == KW_OK ? add_lines(kernel, p, params.to, args.d, launch.stream) : status;
}

}  // namespace kernelwright::cuda::launchers
