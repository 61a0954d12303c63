// The operations of this library. Others are registered from outside: register_operation.
#include "kernelwright/dispatcher/attention/problem.hpp"
#include "kernelwright/dispatcher/convolution/problem.hpp"
#include "kernelwright/dispatcher/gemm/problem.hpp"

namespace kernelwright {

const Operation* const kOperations[] = {&kGemm,
                                        &kGroupedGemm,
                                        &kConvForward,
                                        &kConvBackwardData,
                                        &kConvBackwardWeight,
                                        &kConvWeightSlices,
                                        &kConvSumSlices,
                                        &kAttention,
                                        &kAttentionBackward,
                                        &kAttentionPart,
                                        &kAttentionCombine,
                                        &kAttentionAppend,
                                        &kAttentionDot,
                                        &kAttentionDqDkDv,
                                        &kAttentionConvertDq};
const size_t kOperationCount = sizeof kOperations / sizeof kOperations[0];

}  // namespace kernelwright
