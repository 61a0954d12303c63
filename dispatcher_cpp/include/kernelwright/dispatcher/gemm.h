/* What the dispatcher does for GEMM alone: operands in the order of a kernel's own. Includes all that a caller needs.
 */
#ifndef KERNELWRIGHT_DISPATCHER_GEMM_H
#define KERNELWRIGHT_DISPATCHER_GEMM_H

#include "kernelwright/dispatcher.h"
#include "kernelwright/gemm.h"

/* alpha 0: CPU kernels read neither A nor B, as BLAS does, so that a NaN or infinity there does not reach D. AMD and
 * NVIDIA kernels multiply the sums by 0, so that it does: state k = 0 to leave A and B out. beta 0: no kernel reads C.
 *
 * Sums of int8 products are int32 on every backend and wrap around at 2^31, as those of NumPy and PyTorch do: the
 * result is the exact one modulo 2^32. No sum of up to 131,071 products reaches that, whatever A and B hold. CPU
 * kernels then apply alpha and beta to the wrapped sum in double and saturate; NVIDIA kernels apply whole factors in
 * int32 and wrap again; AMD kernels take alpha 1 and beta 0 only. */

#ifdef __cplusplus
extern "C" {
#endif

/* B in the order of a kernel's own, for kernels with a b_format (preshuffle). The first call ranks those kernels for
 * the problem (its b_format must be 0; m counts, it is the size that will be asked for) and says the best one's format
 * and bytes. The second orders b, which is in host memory as layout_b and ldb say, into shuffled of that many bytes;
 * the problem's b_format says for which format. Both k x n and dtype_b must be those of the problems that use it; these
 * set b_format to the same number. KW_NO_KERNEL where no kernel of that format serves the problem. */
KW_EXPORT kw_status kw_dispatcher_shuffled_b(kw_dispatcher* dispatcher, const kw_problem* problem, uint64_t* b_format,
                                             uint64_t* bytes);
KW_EXPORT kw_status kw_dispatcher_shuffle_b(kw_dispatcher* dispatcher, const kw_problem* problem, const void* b,
                                            void* shuffled, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif /* KERNELWRIGHT_DISPATCHER_GEMM_H */
