/* The functions of LibTorch's stable C ABI that kw_torch_call uses, as pointers in the order of
 * kernelwright.torch.road.
 *
 * LibTorch promises these types and names for every version from 2.10 on. They are declared here since a build needs no
 * torch; tests/pytorch/native_road_test.py compares them with the headers of the torch that is installed. */
#ifndef KERNELWRIGHT_DISPATCHER_TORCH_SHIM_H
#define KERNELWRIGHT_DISPATCHER_TORCH_SHIM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A value of torch's stack in 64 bits: a handle of a tensor, or an integer. */
typedef uint64_t StableIValue;
typedef int32_t AOTITorchError; /* 0 = success */
typedef struct AtenTensorOpaque* AtenTensorHandle;
typedef struct TorchLibraryOpaque* TorchLibraryHandle;

/* What torch_library_impl is told: values are converted as LibTorch 2.10 does. */
#define KW_TORCH_ABI_VERSION 0x020a000000000000u

typedef struct kw_torch_shim {
  AOTITorchError (*aoti_torch_library_init_impl)(const char* ns, const char* k, const char* file, uint32_t line,
                                                 TorchLibraryHandle* ret_new_torch_lib);
  AOTITorchError (*torch_library_impl)(TorchLibraryHandle self, const char* name,
                                       void (*fn)(StableIValue*, uint64_t, uint64_t), uint64_t extension_build_version);
  AOTITorchError (*aoti_torch_get_dim)(AtenTensorHandle tensor, int64_t* ret_dim);
  AOTITorchError (*aoti_torch_get_sizes)(AtenTensorHandle tensor, int64_t** ret_sizes);
  AOTITorchError (*aoti_torch_get_strides)(AtenTensorHandle tensor, int64_t** ret_strides);
  AOTITorchError (*aoti_torch_get_dtype)(AtenTensorHandle tensor, int32_t* ret_dtype);
  AOTITorchError (*aoti_torch_get_device_type)(AtenTensorHandle tensor, int32_t* ret_device_type);
  AOTITorchError (*aoti_torch_get_device_index)(AtenTensorHandle tensor, int32_t* ret_device_index);
  AOTITorchError (*torch_get_const_data_ptr)(AtenTensorHandle tensor, const void** ret_data_ptr);
  AOTITorchError (*torch_get_mutable_data_ptr)(AtenTensorHandle tensor, void** ret_data_ptr);
  AOTITorchError (*aoti_torch_empty_strided)(int64_t ndim, const int64_t* sizes_ptr, const int64_t* strides_ptr,
                                             int32_t dtype, int32_t device_type, int32_t device_index,
                                             AtenTensorHandle* ret_new_tensor);
  AOTITorchError (*aoti_torch_new_uninitialized_tensor)(AtenTensorHandle* ret);
  AOTITorchError (*aoti_torch_delete_tensor_object)(AtenTensorHandle tensor);
  int32_t (*aoti_torch_dtype_uint8)(void);
  int32_t (*aoti_torch_device_type_cpu)(void);
  /* Of builds for GPUs; null elsewhere. */
  AOTITorchError (*aoti_torch_get_current_cuda_stream)(int32_t device_index, void** ret_stream);
} kw_torch_shim;

#ifdef __cplusplus
}
#endif
#endif /* KERNELWRIGHT_DISPATCHER_TORCH_SHIM_H */
