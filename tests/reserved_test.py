"""Every reserved member of every struct of the C API, not 0, through every function that takes the struct."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from attention.compat.client import Args as FmhaArgs
from attention.compat.client import Client
from kernelwright.dispatch import AppendProblem, AttentionProblem, ConvProblem, GemmProblem, GroupedGemmProblem
from kernelwright.dispatch.core import native
from kernelwright.dispatch.loading.library import KernelLibrary
from kernelwright.dispatch.testdata import mocks
from kernelwright.dispatch.testdata.extension import GemmExtension
from kernelwright.problems.attention import structs as attention
from kernelwright.problems.convolution import structs as convolution
from kernelwright.problems.gemm import structs as gemm
from kernelwright.problems.norm import structs as norm
from kernelwright.problems.norm.problem import NormProblem

INCLUDE = mocks.NATIVE / "include" / "kernelwright"
PUBLIC = ("*.h", "dispatcher/*.h")  # kernels' own headers are below
_PART = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32)
_ALONE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, _PART, ctypes.c_void_p)(
    lambda pool, threads, part, context: part(context, 0)
)
"""Runs the parts of a launch on the calling thread."""
FILLED_BY_THE_FUNCTION = {"kw_stage_info": "kw_plan_get_stage"}
PROBLEMS = {"kw_gemm_problem", "kw_grouped_gemm_problem", "kw_attention_problem", "kw_append_problem"}
ARGS = {"kw_gemm_args", "kw_grouped_gemm_args", "kw_conv_args", "kw_attention_args", "kw_append_args", "kw_norm_args"}
BROUGHT_BY_LIBRARIES = {"kw_arch", "kw_gemm_extension"}  # what kw_library leads to
IN_FILES = {"kw_dispatcher_add_library"}  # the same check, of a table in a file: nothing to write into


def text() -> str:
    """All public headers without comments."""
    headers = "\n".join(path.read_text() for pattern in PUBLIC for path in sorted(INCLUDE.glob(pattern)))
    return re.sub(r"/\*.*?\*/", "", headers, flags=re.DOTALL)


@cache
def reserved() -> dict[str, list[str]]:
    """Struct → its members whose names begin with "reserved"."""
    bodies = re.findall(r"struct (\w+) \{(.*?)\n\}", text(), flags=re.DOTALL)
    by_struct = {name: re.findall(r"\b(reserved\w*)\s*[;,\[]", body) for name, body in bodies}
    return {name: members for name, members in by_struct.items() if members}


@cache
def functions() -> dict[str, str]:
    """Exported function → its parameters."""
    return dict(re.findall(r"_EXPORT [\w\s*]*?\b(\w+)\(([^;]*?)\);", text()))


def taking(struct: str) -> set[str]:
    """The functions that read a struct, directly or behind the head that it begins with."""
    shown = {"kw_problem"} if struct in PROBLEMS else {"kw_library"} if struct in BROUGHT_BY_LIBRARIES else {struct}
    readers = {name for name, given in functions().items() for one in shown if re.search(rf"const {one}\*", given)}
    if struct in ARGS:
        readers = {name for name, given in functions().items() if "const void* args" in given}
    return readers


@dataclass
class Api:
    """The dispatcher with a kernel for each operation."""

    native: Any
    handle: ctypes.c_void_p
    plans: dict[str, ctypes.c_void_p]
    problems: dict[str, ctypes.Structure]
    library: KernelLibrary
    keep: list[Any]

    def said(self, status: int) -> tuple[int, str]:
        """A status with what the library says of it; nothing of success."""
        return status, self.native.kw_last_error().decode() if status else ""


def served(api: Any, made: Any) -> int:
    """Kernels that serve everything and do nothing, for convolutions and norms."""
    traits = convolution.ConvTraits()
    traits.struct_size = ctypes.sizeof(traits)
    traits.dtype_x = traits.dtype_w = traits.dtype_y = traits.dtype_acc = 1
    traits.layout, traits.max_split_k = 2, 1
    for name in ("tile_m", "tile_n", "tile_k", "warp_tile_m", "warp_tile_n", "warp_tile_k", "wave_m", "wave_n"):
        setattr(traits, name, 1)
    for name in ("vector_a", "vector_b", "vector_c", "num_groups_to_merge", "wave_k", "pad_m", "pad_n", "pad_k"):
        setattr(traits, name, 1)
    norms = norm.NormTraits(ctypes.sizeof(norm.NormTraits), 1, 1, 1)

    def no_bytes(kernel: int, problem: int, result: int) -> int:
        ctypes.c_uint64.from_address(result).value = 0
        return 0

    calls = (
        native.Supports(lambda *_: 0), native.WorkspaceSize(no_bytes), native.MakePlan(lambda *_: 0),
        native.LaunchPlan(lambda *_: 0),
    )  # fmt: skip
    kernel, other = (
        native.KernelStruct(
            ctypes.sizeof(native.KernelStruct), 3, op, 64, name, b"x86_64_v3", name[:1] * 64, b"{}", b"",
            ctypes.addressof(of), *calls, None,
        )
        for op, name, of in ((16, b"conv", traits), (48, b"a norm", norms))
    )  # fmt: skip
    library = native.LibraryStruct.from_buffer_copy(api.library.descriptor.contents)
    kernels = (ctypes.POINTER(native.KernelStruct) * 2)(ctypes.pointer(kernel), ctypes.pointer(other))
    library.struct_size, library.kernels, library.kernel_count = ctypes.sizeof(library), kernels, 2
    made += [traits, norms, calls, kernel, other, library, kernels]
    return int(api.native.kw_dispatcher_add_descriptor(api.handle, library, None))


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Api:
    """One dispatcher for all tests."""
    mocks.native_library()
    library = KernelLibrary.load(mocks.write_library(tmp_path_factory.mktemp("mock"), "MOCK_VARIANTS"))
    lib, handle, keep = native.library(), ctypes.c_void_p(), []
    native.check(lib.kw_dispatcher_create(None, native.byref(handle)))
    for one in (library, KernelLibrary.load(mocks.attention_library())):
        native.check(lib.kw_dispatcher_add_descriptor(handle, one.descriptor, None))
    made = Api(lib, handle, {}, {}, library, keep)
    native.check(served(made, keep))
    problems = {
        "kw_gemm_problem": GemmProblem(4, 5, 6, layout="rrr"),
        "kw_grouped_gemm_problem": GroupedGemmProblem([(4, 5, 6)], layout="rrr"),
        "kw_attention_problem": AttentionProblem("forward", 1, 1, 1, 4, 4, 8, dtype="fp32"),
        "kw_append_problem": AppendProblem(1, 1, 1, 8, 4, dtype="fp32"),
        "kw_conv_problem": ConvProblem("forward", 1, 4, 4, (4, 4), (1, 1)),
        "kw_norm_problem": NormProblem("rms", 4, 4),
    }
    for name, problem in problems.items():
        made.problems[name] = problem.native()
        plan = made.plans[name] = ctypes.c_void_p()
        native.check(lib.kw_plan_create(handle, native.byref(made.problems[name]), native.byref(plan)))
    return made


Call = Callable[[ctypes.Structure], int]


def of_options(api: Api, struct: str) -> dict[str, Call]:
    if struct == "kw_dispatcher_options":
        return {"kw_dispatcher_create": lambda one: api.native.kw_dispatcher_create(one, ctypes.c_void_p())}
    if struct == "kw_parallel":
        return {"kw_set_threads": lambda one: api.native.kw_set_threads(3, native.byref(one))}
    path = str(api.library.path).encode()
    return {
        "kw_dispatcher_add_library": lambda one: api.native.kw_dispatcher_add_library(api.handle, path, one),
        "kw_dispatcher_add_descriptor": lambda one: api.native.kw_dispatcher_add_descriptor(
            api.handle, api.library.descriptor, one
        ),
    }


def of_problem(api: Api) -> dict[str, Call]:
    lib, handle, number, plan = api.native, api.handle, ctypes.c_uint64(), ctypes.c_void_p()
    launch = native.Launch(ctypes.sizeof(native.Launch))
    lib.kw_dispatcher_select.argtypes = [ctypes.c_void_p] * 3
    lib.kw_dispatcher_run.argtypes = [ctypes.c_void_p] * 4
    return {
        "kw_problem_validate": lambda one: lib.kw_problem_validate(native.byref(one)),
        "kw_dispatcher_explain": lambda one: lib.kw_dispatcher_explain(handle, native.byref(one), None, 0, None),
        "kw_dispatcher_select": lambda one: lib.kw_dispatcher_select(handle, native.byref(one), native.byref(plan)),
        "kw_plan_create": lambda one: lib.kw_plan_create(handle, native.byref(one), native.byref(plan)),
        "kw_dispatcher_run": lambda one: lib.kw_dispatcher_run(handle, native.byref(one), native.byref(launch), None),
        "kw_dispatcher_shuffled_b": lambda one: lib.kw_dispatcher_shuffled_b(
            handle, native.byref(one), native.byref(number), native.byref(number)
        ),
        "kw_dispatcher_shuffle_b": lambda one: lib.kw_dispatcher_shuffle_b(handle, native.byref(one), None, None, 0),
    }


def of_args(api: Api, struct: str) -> dict[str, Call]:
    name = struct.replace("_args", "_problem")
    launch = native.Launch(ctypes.sizeof(native.Launch))
    api.native.kw_dispatcher_run.argtypes = [ctypes.c_void_p] * 4
    return {
        "kw_plan_launch": lambda one: api.native.kw_plan_launch(
            api.plans[name], native.byref(launch), native.byref(one)
        ),
        "kw_dispatcher_run": lambda one: api.native.kw_dispatcher_run(
            api.handle, native.byref(api.problems[name]), native.byref(launch), native.byref(one)
        ),
    }


def of_library(api: Api, struct: str) -> dict[str, Call]:
    """The struct in a copy of the mock library's table."""

    def add(one: ctypes.Structure) -> int:
        library = native.LibraryStruct.from_buffer_copy(api.library.descriptor.contents)
        if struct == "kw_arch":
            library.arch = ctypes.pointer(one)
        else:
            shuffles = next(k.contents for k in library.kernels[: library.kernel_count] if k.contents.extension)
            kernel = native.KernelStruct.from_buffer_copy(shuffles)
            kernel.extension = ctypes.addressof(one)
            library.kernels = (ctypes.POINTER(native.KernelStruct) * 1)(ctypes.pointer(kernel))
            library.kernel_count = 1
            api.keep.append(kernel)
        api.keep += [library, one]
        return int(api.native.kw_dispatcher_add_descriptor(api.handle, library, None))

    return {"kw_dispatcher_add_descriptor": add}


def sample(api: Api, struct: str) -> ctypes.Structure:
    """A struct that is right."""
    if struct in api.problems:
        return type(api.problems[struct]).from_buffer_copy(api.problems[struct])
    kernels = api.library.descriptor.contents.kernels[: api.library.descriptor.contents.kernel_count]
    if struct == "kw_arch":
        return native.ArchStruct.from_buffer_copy(api.library.descriptor.contents.arch.contents)
    if struct == "kw_gemm_extension":
        address = next(kernel.contents.extension for kernel in kernels if kernel.contents.extension)
        return GemmExtension.from_buffer_copy(GemmExtension.from_address(address))
    kind: type[ctypes.Structure] = {
        "kw_dispatcher_options": native.DispatcherOptions,
        "kw_library_options": native.LibraryOptions,
        "kw_stage_info": native.StageInfo,
        "kw_gemm_args": gemm.GemmArgs,
        "kw_grouped_gemm_args": gemm.GroupedGemmArgs,
        "kw_conv_args": convolution.ConvArgs,
        "kw_attention_args": attention.AttentionArgs,
        "kw_append_args": attention.AppendArgs,
        "kw_norm_args": norm.NormArgs,
        "kw_parallel": native.Parallel,
    }[struct]
    if kind is native.Parallel:
        return kind(ctypes.sizeof(kind), 0, None, ctypes.cast(_ALONE, ctypes.c_void_p))
    return kind(ctypes.sizeof(kind))


def calls_of(api: Api, struct: str) -> dict[str, Call]:
    if struct in PROBLEMS:
        return of_problem(api)
    if struct in ARGS:
        return of_args(api, struct)
    return of_library(api, struct) if struct in BROUGHT_BY_LIBRARIES else of_options(api, struct)


CORE = sorted(set(reserved()) - set(FILLED_BY_THE_FUNCTION) - {"fmha_dispatcher_args"})


def test_headers_have_reserved_members() -> None:
    assert {"kw_gemm_args", "kw_dispatcher_options", "fmha_dispatcher_args"} <= set(reserved())
    assert reserved()["fmha_dispatcher_args"] == ["reserved", "reserved_float"]
    assert len(functions()) > 60


@pytest.mark.parametrize("struct", CORE)
def test_every_function_refuses_them(api: Api, struct: str) -> None:
    calls = calls_of(api, struct)
    assert set(calls) == taking(struct) - (IN_FILES if struct in BROUGHT_BY_LIBRARIES else set())
    for member in reserved()[struct]:
        for name, call in calls.items():
            assert "reserved" not in api.said(call(sample(api, struct)))[1], "without it something else may be wrong"
            poked = sample(api, struct)
            setattr(poked, member, 1)
            status, said = api.said(call(poked))
            assert status in (1, 11) and f"{member} = 1; allowed: 0" in said, f"{name}: {status} {said}"


@pytest.mark.parametrize(("times", "served"), [(0, True), (1, False), (2, True), (3, False), (4, False)])
def test_formulas_of_times_are_those_of_the_backend(api: Api, times: int, served: bool) -> None:
    """The mock library is for processors: 2; a library that does not say has 0."""
    (add,) = of_library(api, "kw_arch").values()
    arch = sample(api, "kw_arch")
    arch.times = times
    said = api.said(add(arch))[1]
    assert ("allowed for its backend: 0 or 2 (processors)" in said) != served, said


@pytest.mark.parametrize("struct", FILLED_BY_THE_FUNCTION)
def test_functions_clear_those_that_they_fill(api: Api, struct: str) -> None:
    assert FILLED_BY_THE_FUNCTION[struct] == "kw_plan_get_stage"
    info = sample(api, struct)
    info.reserved = 7
    assert api.native.kw_plan_get_stage(api.plans["kw_gemm_problem"], 0, native.byref(info)) == 0
    assert info.reserved == 0


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The familiar functions on mock kernels."""
    mocked = Client(mocks.compat_library("libdispatcher_fmha_lib.so", "attention", tmp_path_factory.mktemp("fmha")))
    assert mocked.initialize_from(str(mocks.attention_library()).encode(), None) == 0, mocked.last_error()
    yield mocked
    mocked.cleanup()


def fmha(**changes: Any) -> FmhaArgs:
    made = FmhaArgs(ctypes.sizeof(FmhaArgs), 2, b"fp32", window_size_left=-1, window_size_right=-1)
    for name, value in {"batch": 1, "nhead_q": 1, "nhead_k": 1, "seqlen_q": 4, "seqlen_k": 4, **changes}.items():
        setattr(made, name, value)
    made.hdim_q = made.hdim_v = 8
    return made


def fmha_calls(client: Client) -> dict[str, Callable[[FmhaArgs], int]]:
    name = ctypes.create_string_buffer(200)
    return {
        "fmha_dispatcher_select_kernel": lambda one: client.select_kernel(native.byref(one), name, 200),
        "fmha_dispatcher_is_supported": lambda one: client.is_supported(native.byref(one)),
        "fmha_dispatcher_run": lambda one: client.run(native.byref(one), None),
    }


def test_the_attention_library_refuses_them(client: Client) -> None:
    calls = fmha_calls(client)
    assert set(calls) == taking("fmha_dispatcher_args")
    assert calls["fmha_dispatcher_is_supported"](fmha()) == 1, client.last_error()
    wrong = [(member, 1, "0") for member in reserved()["fmha_dispatcher_args"]]
    wrong += [("num_splits", -3, "0 or more"), ("is_group_mode", 2, "0 or 1"), ("i_perm", -1, "0 or 1")]
    wrong += [("is_deterministic", 5, "0 or 1"), ("page_block_size", -1, "0 or more"), ("mask_type", 3, "0 to 2")]
    wrong += [("bias_type", -1, "0 to 2"), ("rope_type", 3, "0 to 2"), ("cache_capacity", -9, "0 or more")]
    for member, value, allowed in wrong:
        for name, call in calls.items():
            status = call(fmha(**{member: value}))
            assert status == (0 if name.endswith("is_supported") else -1), f"{name}: {member}"
            assert f"{member} = {value}; allowed: {allowed}" in client.last_error().decode()


def test_no_other_member_begins_like_this() -> None:
    """The check finds these names by itself: dispatcher/support/structs.hpp."""
    checked = Path(INCLUDE / "dispatcher/support/structs.hpp").read_text()
    for members in reserved().values():
        assert all(f"given.{member})" in checked for member in members)
