// A kernel that begins before the one in front of it has ended, and waits for that one's results by itself: its
// workgroups are in place when they come. Launches say so (see `start` in host.hpp).
#pragma once

namespace kernelwright::cuda::attention {

// The kernel behind this one may begin when all workgroups have come here.
__device__ inline void let_next_kernel_begin() { asm volatile("griddepcontrol.launch_dependents;\n" ::: "memory"); }

// Until the kernel in front has ended and what it wrote can be read; at once where this one was launched as usual.
__device__ inline void wait_for_kernel_before() { asm volatile("griddepcontrol.wait;\n" ::: "memory"); }

}  // namespace kernelwright::cuda::attention
