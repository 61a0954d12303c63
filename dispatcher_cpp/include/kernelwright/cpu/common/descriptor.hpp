// The descriptor of a kernel that a library lists.
#ifndef KERNELWRIGHT_CPU_COMMON_DESCRIPTOR_HPP
#define KERNELWRIGHT_CPU_COMMON_DESCRIPTOR_HPP

#include "kernelwright/abi.h"

// Defines the descriptor SYMBOL of a kernel of OPERATION, whose four calls are kw_cpu_<OPERATION>_supports and so on.
// KERNEL has static storage and a member traits.
#define KW_CPU_DESCRIPTOR(OPERATION, OP, PLAN_BYTES, EXTENSION, SYMBOL, KERNEL, NAME, ARCH, IDENTITY, SPEC_JSON, \
                          FEATURES)                                                                              \
  extern "C" {                                                                                                   \
  extern KW_HIDDEN const kw_kernel SYMBOL;                                                                       \
  const kw_kernel SYMBOL = {                                                                                     \
      .struct_size = sizeof(kw_kernel),                                                                          \
      .abi_version = KW_ABI_VERSION,                                                                             \
      .op = OP,                                                                                                  \
      .plan_bytes = PLAN_BYTES,                                                                                  \
      .name = NAME,                                                                                              \
      .arch = ARCH,                                                                                              \
      .identity = IDENTITY,                                                                                      \
      .spec_json = SPEC_JSON,                                                                                    \
      .features = FEATURES,                                                                                      \
      .traits = &(KERNEL).traits,                                                                                \
      .supports = kw_cpu_##OPERATION##_supports,                                                                 \
      .workspace_size = kw_cpu_##OPERATION##_workspace_size,                                                     \
      .plan = kw_cpu_##OPERATION##_plan,                                                                         \
      .launch = kw_cpu_##OPERATION##_launch,                                                                     \
      .extension = EXTENSION,                                                                                    \
  };                                                                                                             \
  }

#endif  // KERNELWRIGHT_CPU_COMMON_DESCRIPTOR_HPP
