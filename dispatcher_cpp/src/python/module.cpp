/* The extension module of kernelwright.dispatch: what ctypes does too slowly, or only by knowing how CPython and NumPy
 * lay out their objects. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

#include "kernelwright/dispatcher.h"
#include "kernelwright/dispatcher/python/stable_abi.hpp"

namespace kernelwright::python {
namespace {

Functions py;
Object* array_struct; /* "__array_struct__" */

bool find_functions() {
  bool all = true;
  const auto find = [&all](auto& pointer, const char* name) {
    void* address = dlsym(RTLD_DEFAULT, name);
    __builtin_memcpy(&pointer, &address, sizeof(address));
    all = all && address != nullptr;
  };
#define KW_PYTHON_FIND(result, name, parameters) find(py.name, #name);
  KW_PYTHON_FUNCTIONS(KW_PYTHON_FIND)
#undef KW_PYTHON_FIND
  find(py.none, "_Py_NoneStruct");
  find(py.type_error, "PyExc_TypeError");
  return all;
}

Object* wrong_count(const char* text) {
  py.PyErr_SetString(*py.type_error, text);
  return nullptr;
}

/* What a builtin of bound_call launches. Its self is a tuple of a capsule of this, the result, what raises, and all
 * that must live as long. */
struct Call {
  const kw_plan* plan;
  const kw_launch* launch;
  const void* args;
  Object* result;
  Object* failed;
  bool keep_interpreter; /* over so soon that other Python threads can wait */
};

Object* raise(const Call& call, kw_status status) {
  Object* arguments = py.PyTuple_New(1);
  if (arguments == nullptr) return nullptr;
  py.PyTuple_SetItem(arguments, 0, py.PyLong_FromSsize_t(status));
  Object* none = py.PyObject_CallObject(call.failed, arguments);
  py.Py_DecRef(arguments);
  return none;
}

Object* launch(Object* self, Object*) {
  const auto* call = static_cast<const Call*>(py.PyCapsule_GetPointer(py.PyTuple_GetItem(self, 0), nullptr));
  void* state = call->keep_interpreter ? nullptr : py.PyEval_SaveThread();
  const kw_status status = kw_plan_launch(call->plan, call->launch, call->args);
  if (state != nullptr) py.PyEval_RestoreThread(state);
  if (__builtin_expect(status != KW_OK, 0)) return raise(*call, status);
  py.Py_IncRef(call->result);
  return call->result;
}

Method launch_method = {"launch", reinterpret_cast<void*>(&launch), kNoArguments, "Run and return out."};

void free_call(Object* capsule) { free(py.PyCapsule_GetPointer(capsule, nullptr)); }

Object* bound_call(Object*, Object* const* arguments, Size count) {
  if (count != 7) return wrong_count("bound_call takes plan, launch, args, keep_interpreter, result, failed, keep");
  const void* addresses[3];
  for (int i = 0; i < 3; ++i) addresses[i] = py.PyLong_AsVoidPtr(arguments[i]);
  const Size keep_interpreter = py.PyLong_AsSsize_t(arguments[3]);
  if (py.PyErr_Occurred() != nullptr) return nullptr;

  auto* call = static_cast<Call*>(malloc(sizeof(Call)));
  if (call == nullptr) return py.PyErr_NoMemory();
  *call = {static_cast<const kw_plan*>(addresses[0]),
           static_cast<const kw_launch*>(addresses[1]),
           addresses[2],
           arguments[4],
           arguments[5],
           keep_interpreter != 0};
  Object* capsule = py.PyCapsule_New(call, nullptr, &free_call);
  if (capsule == nullptr) {
    free(call);
    return nullptr;
  }
  Object* self = py.PyTuple_New(4);
  if (self == nullptr) {
    py.Py_DecRef(capsule);
    return nullptr;
  }
  py.PyTuple_SetItem(self, 0, capsule);
  for (Size i = 1; i < 4; ++i) {
    py.Py_IncRef(arguments[3 + i]);
    py.PyTuple_SetItem(self, i, arguments[3 + i]);
  }
  Object* made = py.PyCFunction_NewEx(&launch_method, self, nullptr);
  py.Py_DecRef(self);
  return made;
}

/* PyArrayInterface, NumPy's documented array interface of C. */
struct ArrayInterface {
  int two, dimensions;
  char kind;
  int itemsize, flags;
  intptr_t *shape, *strides;
  void* data;
  Object* description;
};
constexpr int kAligned = 0x100, kWriteable = 0x400;

/* Address and flags of an array; false with an exception for what is none. */
bool read_array(Object* array, void*& data, int& flags) {
  Object* capsule = py.PyObject_GetAttr(array, array_struct);
  if (capsule == nullptr) return false;
  const auto* interface = static_cast<const ArrayInterface*>(py.PyCapsule_GetPointer(capsule, nullptr));
  if (interface != nullptr) {
    data = interface->data;
    flags = interface->flags;
  }
  py.Py_DecRef(capsule);
  return interface != nullptr;
}

Object* array_address(Object*, Object* const* arguments, Size count) {
  if (count != 1) return wrong_count("array_address takes an array");
  void* data = nullptr;
  int flags = 0;
  return read_array(arguments[0], data, flags) ? py.PyLong_FromVoidPtr(data) : nullptr;
}

Object* none() {
  py.Py_IncRef(py.none);
  return py.none;
}

Object* array_addresses(Object*, Object* const* arguments, Size count) {
  if (count != 2) return wrong_count("array_addresses takes a tuple of arrays and a number of outputs");
  const Size arrays = py.PyTuple_Size(arguments[0]), outputs = py.PyLong_AsSsize_t(arguments[1]);
  if (py.PyErr_Occurred() != nullptr) return nullptr;
  Object* list = py.PyList_New(arrays);
  for (Size i = 0; list != nullptr && i < arrays; ++i) {
    Object* array = py.PyTuple_GetItem(arguments[0], i);
    if (array == py.none) {
      py.PyList_SetItem(list, i, none());
      continue;
    }
    void* data = nullptr;
    int flags = 0;
    const bool is_array = read_array(array, data, flags);
    const int needed = i < arrays - outputs ? kAligned : kAligned | kWriteable;
    if (!is_array || (flags & needed) != needed) {
      py.Py_DecRef(list);
      return is_array ? none() : nullptr;
    }
    py.PyList_SetItem(list, i, py.PyLong_FromVoidPtr(data));
  }
  return list;
}

Method methods[] = {
    {"bound_call", reinterpret_cast<void*>(&bound_call), kFastCall,
     "bound_call(plan, launch, args, keep_interpreter, result, failed, keep): a function without arguments that\n"
     "launches and returns result. Structs are given by their addresses; keep owns them. After a launch that fails it\n"
     "returns failed(status), which raises."},
    {"array_address", reinterpret_cast<void*>(&array_address), kFastCall,
     "array_address(array): the address of its first element."},
    {"array_addresses", reinterpret_cast<void*>(&array_addresses), kFastCall,
     "array_addresses(arrays, outputs): those of a tuple's arrays, None for None; None if one is not aligned for its\n"
     "type or one of the last outputs cannot be written."},
    {nullptr, nullptr, 0, nullptr},
};

Module module = {1,  nullptr, nullptr, nullptr, nullptr, "_native", "See src/python/module.cpp.",
                 -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace kernelwright::python

extern "C" KW_EXPORT void* PyInit__native(void) {
  using namespace kernelwright::python;
  if (!find_functions()) return nullptr;
  array_struct = py.PyUnicode_InternFromString("__array_struct__");
  return array_struct == nullptr ? nullptr : py.PyModule_Create2(&module, kAbiVersion);
}
