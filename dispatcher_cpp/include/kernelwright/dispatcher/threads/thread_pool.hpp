// Who runs the parts of CPU launches: threads of ours, an OpenMP runtime that the process has loaded, or the
// application. One choice and one pool for the process, whatever the number of dispatchers and libraries.
#ifndef KERNELWRIGHT_DISPATCHER_THREAD_POOL_HPP
#define KERNELWRIGHT_DISPATCHER_THREAD_POOL_HPP

#include "kernelwright/abi.h"

namespace kernelwright {

// What launches of CPU kernels are handed.
const kw_parallel& process_threads();

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_THREAD_POOL_HPP
