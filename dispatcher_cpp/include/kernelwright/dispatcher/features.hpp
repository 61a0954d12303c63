// What a device has beyond its architecture, as words separated by spaces.
#ifndef KERNELWRIGHT_DISPATCHER_FEATURES_HPP
#define KERNELWRIGHT_DISPATCHER_FEATURES_HPP

#include <stdint.h>

namespace kernelwright {

// Of this CPU, in the kernel's spelling (/proc/cpuinfo): "avx512_bf16 avx512_vnni …". Never null.
const char* cpu_features();
// CPUs that this process may run on, at least 1.
uint32_t cpu_count();
// The first word of wanted that is not a word of offered, as [begin, begin + *length); null when all are there.
const char* missing_feature(const char* wanted, const char* offered, int* length);

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_FEATURES_HPP
