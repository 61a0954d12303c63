/* How a depthwise convolution is planned and launched: boxes of images, strips of outputs. */
#include <string.h>

#include "internal.h"
#include "kernelwright/convolution/checks.h"

#define PAIR 2   /* channels of a lane, in one access of 4 bytes */
#define LINE 8   /* elements: TMA addresses lines by multiples of 16 bytes */
#define ROWS 8   /* lines of outputs of a workgroup, one for each warp */

/* Along W and H. The image that is read is x, or dy of backward data, which is forward with a flipped filter. */
static const int64_t* read_strides(const kw_conv_problem* p) {
  return p->base.op == KW_OP_CONV_FORWARD ? p->stride_x : p->stride_y;
}
static const int64_t* written_strides(const kw_conv_problem* p) {
  return p->base.op == KW_OP_CONV_FORWARD ? p->stride_y : p->stride_x;
}
static int64_t read_extent(const kw_conv_problem* p, int dim) {
  return p->base.op == KW_OP_CONV_FORWARD ? p->extent[dim] : kw_conv_out(p, dim);
}
static int64_t written_extent(const kw_conv_problem* p, int dim) {
  return p->base.op == KW_OP_CONV_FORWARD ? kw_conv_out(p, dim) : p->extent[dim];
}

static kw_status check_memory(const kw_conv_problem* p, kw_reason reason) {
  const int64_t read[3] = {1, read_extent(p, 1), read_extent(p, 2)};
  const int64_t* written = written_strides(p);
  if (!kw_cuda_conv_aligned(read_strides(p), p->n, read))
    return kw_cuda_conv_refuse(reason, "points of the image do not lie at multiples of 16 bytes, which TMA needs");
  if (p->c % PAIR || written[0] % PAIR || written[3] % PAIR || written[4] % PAIR)
    return kw_cuda_conv_refuse(reason, "c or a stride of the result is odd; this kernel stores two channels at a time");
  return KW_OK;
}

kw_status kw_cuda_conv_check_direct(const kw_conv_problem* p, kw_reason reason) {
  const int64_t filter = p->filter[2], stride = p->stride[2];
  if (p->extent[0] != 1 || p->filter[0] != 1 || p->pad_left[0] || p->pad_right[0])
    return kw_cuda_conv_refuse(reason, "this kernel serves two dimensions");
  if (p->filter[1] != filter || (filter != 3 && filter != 5 && filter != 7) || !kw_conv_all(p->dilation, 1))
    return kw_cuda_conv_refuse(reason, "this kernel serves filters of 3x3, 5x5 and 7x7 points without dilation");
  if (p->stride[1] != stride || stride > 2)
    return kw_cuda_conv_refuse(reason, "this kernel serves strides of 1 and 2 in both dimensions");
  if (p->base.op == KW_OP_CONV_BACKWARD_DATA && stride != 1)
    return kw_cuda_conv_refuse(reason, "this kernel serves backward data with a stride of 1");
  for (int dim = 1; dim < 3; ++dim)
    if (p->extent[dim] > INT16_MAX || p->pad_left[dim] > INT16_MAX || p->pad_right[dim] > INT16_MAX)
      return kw_cuda_conv_refuse(reason, "an extent or its padding exceeds %d", INT16_MAX);
  if (p->c > INT32_MAX / 2 || p->n > INT32_MAX / 2)
    return kw_cuda_conv_refuse(reason, "c or n exceeds %d", INT32_MAX / 2);
  return check_memory(p, reason);
}

static int64_t parts(int64_t extent, int64_t part) { return (extent + part - 1) / part; }

/* Two strips side by side, but one where the second would be empty. */
static void lay_out(const kw_conv_problem* p, kw_cuda_conv_direct* x) {
  const int64_t width = written_extent(p, 2), height = written_extent(p, 1);
  x->strips = width > KW_CUDA_CONV_STRIP ? 2 : 1;
  x->rows = height < ROWS ? (int32_t)height : ROWS;
  x->channels = (int32_t)p->c;
  x->filter = (int32_t)p->filter[2];
  x->stride = (int32_t)p->stride[2];
  x->flipped = p->base.op == KW_OP_CONV_BACKWARD_DATA;
  for (int i = 0; i < 2; ++i) {
    const int64_t pad = p->pad_left[2 - i];
    x->out[i] = (int32_t)written_extent(p, 2 - i);
    x->pad[i] = (int32_t)(x->flipped ? x->filter - 1 - pad : pad);
    x->point[i] = written_strides(p)[4 - i];
  }
  x->image = written_strides(p)[0];
  x->channel_blocks = kw_cuda_conv_divider(parts(p->c, KW_CUDA_CONV_STEP));
  x->across = kw_cuda_conv_divider(parts(width, (int64_t)x->strips * KW_CUDA_CONV_STRIP));
  x->down = kw_cuda_conv_divider(parts(height, x->rows));
}

static kw_status describe(const kw_kernel* kernel, const kw_conv_problem* p, const void* at, const cuuint32_t* box,
                          CUtensorMap* map) {
  const int64_t* strides = read_strides(p);
  const int64_t extent[4] = {p->c, read_extent(p, 2), read_extent(p, 1), p->n};
  const int64_t asked[3] = {strides[4], strides[3], strides[0]};
  int64_t stride[3], before = parts(p->c, LINE) * LINE;
  for (int i = 0; i < 3; ++i) stride[i] = before = extent[1 + i] > 1 ? asked[i] : before;
  return kw_cuda_conv_describe_box(kernel, "the image", p->dtype_x, extent, stride, box, CU_TENSOR_MAP_SWIZZLE_NONE, at,
                                   map);
}

kw_status kw_cuda_conv_launch_direct(const kw_kernel* kernel, const kw_conv_problem* p, const kw_launch* launch,
                                     const kw_conv_args* args) {
  const kw_cuda_conv* conv = (const kw_cuda_conv*)kernel->traits;
  kw_cuda_conv_direct params;
  memset(&params, 0, sizeof params);
  lay_out(p, &params);
  const uint32_t width = (uint32_t)((params.strips * KW_CUDA_CONV_STRIP - 1) * params.stride + params.filter);
  const uint32_t height = (uint32_t)((params.rows - 1) * params.stride + params.filter);
  const cuuint32_t box[4] = {KW_CUDA_CONV_STEP, width, height, 1};
  params.box_bytes = width * height * KW_CUDA_CONV_STEP * 2;
  params.w = args->b;
  params.y = args->d;
  params.bias = args->bias;
  params.residual = args->residual;
  params.alpha = (float)p->alpha;
  params.beta = (float)p->beta;
  const kw_status status = describe(kernel, p, args->a, box, &params.x);
  if (status != KW_OK) return status;
  const int64_t blocks =
      p->n * params.channel_blocks.divisor * (int64_t)params.across.divisor * params.down.divisor;
  if (blocks > INT32_MAX)
    return kw_cuda_fail(KW_UNSUPPORTED, "%s: %lld workgroups are more than a launch can have", kernel->name,
                        (long long)blocks);
  const uint32_t taps = (uint32_t)(params.filter * params.filter) * KW_CUDA_CONV_STEP * 4;
  return kw_cuda_conv_start(kernel, conv->function, (uint32_t)blocks, conv->threads, 256 + taps + params.box_bytes,
                            &params, launch->stream);
}
