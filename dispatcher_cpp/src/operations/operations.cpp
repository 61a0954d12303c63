// The operations of this library. Others are registered from outside: register_operation.
#include "kernelwright/dispatcher/operation.hpp"

// One line for each operation: k<name>Operations stands in its folder.
#define KW_OPERATIONS(each) each(Gemm) each(Convolution) each(Attention) each(Norm)

namespace kernelwright {

#define KW_DECLARED(name) extern const Operations k##name##Operations;
KW_OPERATIONS(KW_DECLARED)

#define KW_LISTED(name) &k##name##Operations,
const Operations* const kOperations[] = {KW_OPERATIONS(KW_LISTED)};
const size_t kOperationsCount = sizeof kOperations / sizeof kOperations[0];

}  // namespace kernelwright
