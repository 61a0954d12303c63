/* What the extension module uses of CPython's stable ABI (PEP 384), found in the process that imports it: the library
 * needs no Python to be loaded and no header of Python's to be compiled. Declarations are those of the C API's manual,
 * "C API Stability", for versions from 3.11 with a global interpreter lock; others lay objects out differently. */
#ifndef KERNELWRIGHT_DISPATCHER_PYTHON_STABLE_ABI_HPP
#define KERNELWRIGHT_DISPATCHER_PYTHON_STABLE_ABI_HPP

#include <stddef.h>

namespace kernelwright::python {

struct Object; /* PyObject, never looked into */
using Size = ptrdiff_t;
using Destructor = void (*)(Object* capsule);

/* PyMethodDef. */
struct Method {
  const char* name;
  void* function;
  int flags;
  const char* doc;
};
constexpr int kFastCall = 0x80; /* METH_FASTCALL: function(self, arguments, count) */
constexpr int kNoArguments = 4; /* METH_NOARGS: function(self, null) */

/* PyModuleDef of a module that is initialised in one phase. */
struct Module {
  Size references;
  void* type;
  void *init, *index, *copy;
  const char *name, *doc;
  Size state_bytes;
  Method* methods;
  void *slots, *traverse, *clear, *free;
};
constexpr int kAbiVersion = 3; /* PYTHON_ABI_VERSION, which PyModule_Create2 wants of the stable ABI */

#define KW_PYTHON_FUNCTIONS(FUNCTION)                                \
  FUNCTION(void, Py_IncRef, (Object*))                               \
  FUNCTION(void, Py_DecRef, (Object*))                               \
  FUNCTION(Object*, PyCFunction_NewEx, (Method*, Object*, Object*))  \
  FUNCTION(Object*, PyCapsule_New, (void*, const char*, Destructor)) \
  FUNCTION(void*, PyCapsule_GetPointer, (Object*, const char*))      \
  FUNCTION(void*, PyEval_SaveThread, ())                             \
  FUNCTION(void, PyEval_RestoreThread, (void*))                      \
  FUNCTION(Object*, PyList_New, (Size))                              \
  FUNCTION(int, PyList_SetItem, (Object*, Size, Object*))            \
  FUNCTION(Size, PyLong_AsSsize_t, (Object*))                        \
  FUNCTION(void*, PyLong_AsVoidPtr, (Object*))                       \
  FUNCTION(Object*, PyLong_FromSsize_t, (Size))                      \
  FUNCTION(Object*, PyLong_FromVoidPtr, (void*))                     \
  FUNCTION(Object*, PyErr_NoMemory, ())                              \
  FUNCTION(Object*, PyErr_Occurred, ())                              \
  FUNCTION(void, PyErr_SetString, (Object*, const char*))            \
  FUNCTION(Object*, PyModule_Create2, (Module*, int))                \
  FUNCTION(Object*, PyObject_CallObject, (Object*, Object*))         \
  FUNCTION(Object*, PyObject_GetAttr, (Object*, Object*))            \
  FUNCTION(Object*, PyTuple_GetItem, (Object*, Size))                \
  FUNCTION(Object*, PyTuple_New, (Size))                             \
  FUNCTION(int, PyTuple_SetItem, (Object*, Size, Object*))           \
  FUNCTION(Size, PyTuple_Size, (Object*))                            \
  FUNCTION(Object*, PyUnicode_InternFromString, (const char*))

struct Functions {
#define KW_PYTHON_MEMBER(result, name, parameters) result(*name) parameters;
  KW_PYTHON_FUNCTIONS(KW_PYTHON_MEMBER)
#undef KW_PYTHON_MEMBER
  Object* none;        /* _Py_NoneStruct */
  Object** type_error; /* PyExc_TypeError */
};

}  // namespace kernelwright::python

#endif  // KERNELWRIGHT_DISPATCHER_PYTHON_STABLE_ABI_HPP
