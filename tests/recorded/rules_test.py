"""Rules say the same in Python and in C: whether a kernel serves a problem, and the sentence if it does not."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from kernelwright.arch import load
from kernelwright.codegen.c_names import initialiser, members
from kernelwright.codegen.fields import Activation
from kernelwright.codegen.formulas.refusals import Invalid, Refusal
from kernelwright.codegen.operations.attention.rules import checks as attention_checks
from kernelwright.codegen.operations.attention.rules import cpu as attention_cpu
from kernelwright.codegen.operations.attention.rules import cuda as attention_cuda
from kernelwright.codegen.operations.attention.rules import hip as attention_hip
from kernelwright.codegen.operations.attention.time_model.model import APPEND, AttentionTimeModel
from kernelwright.codegen.operations.attention.time_model.problem import Stage
from kernelwright.codegen.operations.attention.time_model.serves import STAGES, append_of
from kernelwright.codegen.operations.attention.time_model.serves import problem_of as attention_problem
from kernelwright.codegen.operations.attention.time_model.traits import described
from kernelwright.codegen.operations.convolution.rules import checks as conv_checks
from kernelwright.codegen.operations.convolution.rules import cuda as conv_cuda
from kernelwright.codegen.operations.convolution.rules import hip as conv_hip
from kernelwright.codegen.operations.convolution.rules.traits import traits_of as conv_traits
from kernelwright.codegen.operations.convolution.time_model.model import ConvTimeModel
from kernelwright.codegen.operations.convolution.time_model.serves import problem_of as conv_problem
from kernelwright.codegen.operations.gemm.rules import checks as gemm_checks
from kernelwright.codegen.operations.gemm.rules import cuda as gemm_cuda
from kernelwright.codegen.operations.gemm.time_model.model import GemmTimeModel
from kernelwright.codegen.operations.gemm.time_model.serves import problem_of as gemm_problem
from kernelwright.codegen.operations.gemm.time_model.serves import traits_of as gemm_traits
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.dispatch.testdata import mocks
from kernelwright.problems.fields import RECORDS

CASES = 400
COUNTS = (1, 2, 3, 4, 5, 7, 8, 16, 33, 64, 96, 100, 1000, 4096, 2**15, 2**31 - 1, 2**31, 2**33, 2**40, 2**61)
NARROW = ("split_k", "leaves_slices", "num_d", "num_splits", "dq_slices")  # members of problems that have 32 bits
FACTORS = (0.0, 1.0, 2.5, -3.0, 1e10, 1e39)


@dataclass(frozen=True)
class Case:
    """A rule in Python and in C, with what it is asked: traits, a problem, and numbers and truths behind them."""

    rule: Callable[..., Refusal]
    function: str
    header: str
    traits: Any
    problem: Any
    further: tuple[int | bool, ...] = ()


def changed(record: Any, pick: random.Random) -> Any:
    """The record with one field that is another."""
    hints = get_type_hints(type(record))
    name, kind = pick.choice([(one.name, hints[one.name]) for one in fields(record) if one.init])
    traits = type(record).__name__ == "Traits"
    counts = [count for count in COUNTS if count < 2**31] if traits or name in NARROW else COUNTS
    return replace(record, **{name: another(getattr(record, name), kind, pick, counts, traits)})


def another(value: Any, kind: Any, pick: random.Random, counts: Sequence[int], traits: bool) -> Any:
    if isinstance(value, tuple):
        place = pick.randrange(len(value)) if value else 0
        return tuple(pick.choice(counts) if i == place else one for i, one in enumerate(value))
    if isinstance(value, frozenset):
        (member,) = get_args(kind)
        allowed = [False, True] if member is bool else [*member]
        return frozenset(one for one in allowed if pick.random() < 0.5)
    if type(value) in RECORDS:
        return changed(value, pick)
    if isinstance(value, bool) or value is None:
        return not value if value is not None else None
    if isinstance(value, Enum):
        return pick.choice([one for one in type(value) if traits or one is not Activation.ANY])  # problems name one
    return pick.choice(FACTORS if isinstance(value, float) else counts)


def convolutions(pick: random.Random) -> Iterator[Case]:
    model = ConvTimeModel()
    for arch, names in {"sm_90a": ("conv_default",), "gfx942": ("conv_default",), "x86_64_v4": ("conv_tests",)}.items():
        specs = [one.spec for name in names for one in expand_set(name, load(arch)).kernels]
        for _ in range(CASES):
            spec: Any = pick.choice(specs)
            groups = 64 if spec.depthwise else pick.choice([1, 2])
            c = groups if spec.depthwise else groups * pick.choice([8, 64])
            dims = spec.layout.value.count("h") + 1 if spec.layout.value != "ngchw" else 2
            asked = {"direction": str(spec.direction), "n": pick.choice([1, 8]), "c": c, "k": c, "groups": groups}
            asked |= {"size": [pick.choice([8, 28])] * dims, "filter": [pick.choice([1, 3, 5])] * dims}
            asked |= {"dtype": str(spec.dtype), "layout": str(spec.layout), "pad_left": pick.choice([0, 2])}
            asked |= {
                "bias": spec.bias,
                "residual": spec.residual,
                "activation": str(spec.activation).replace("any", "relu"),
            }
            dims = {"nwgc": 1, "ndhwgc": 3}.get(str(spec.layout), 2)
            asked |= {"size": asked["size"][:1] * dims, "filter": asked["filter"][:1] * dims}
            t, p = conv_traits(spec, load(arch).backend), conv_problem(model.read(asked), 1)
            for _ in range(pick.choice([0, 1, 1, 2])):
                t, p = (t, changed(p, pick)) if pick.random() < 0.8 else (changed(t, pick), p)
            if min(conv_checks.out(p, dim) for dim in range(3)) < 1:
                continue
            if arch == "gfx942":
                further = (spec.explicit_gemm, spec.two_stage, 256)
                yield Case(conv_hip.check, "kw_hip_conv_check", conv_hip.HEADER, t, p, further)
            elif arch == "sm_90a":
                yield Case(conv_cuda.check, "kw_cuda_conv_check", conv_cuda.HEADER, t, p)
            else:
                yield Case(conv_checks.traits_match, "kw_conv_traits_match", conv_checks.HEADER, t, p)


def gemms(pick: random.Random) -> Iterator[Case]:
    model = GemmTimeModel()
    specs: list[Any] = [one.spec for one in expand_set("gemm:default", load("sm_90a")).kernels]
    for _ in range(2 * CASES):
        spec = pick.choice(specs)
        asked = {
            "m": pick.choice([0, 7, 64]),
            "n": pick.choice([8, 64]),
            "k": pick.choice([0, 64]),
            "num_d": spec.num_d,
        }
        asked |= {f"dtype_{one}": str(getattr(spec, f"dtype_{one}")) for one in ("a", "b", "c", "acc")}
        activation = str(spec.activation).replace("any", "relu")
        asked |= {"layout": str(spec.layout), "activation": activation, "d_op": str(spec.d_op)}
        problem = model.read({**asked, "batch": 2 if spec.batched else 1})
        t, p = gemm_traits(spec, problem, "cutlass"), gemm_problem(problem)
        p = replace(p, ld_multi_d=(*p.ld_multi_d, 0, 0, 0, 0)[:4], stride_multi_d=(*p.stride_multi_d, 0, 0, 0, 0)[:4])
        for _ in range(pick.choice([0, 1, 1, 2])):
            t, p = (t, changed(p, pick)) if pick.random() < 0.8 else (changed(t, pick), p)
        p = replace(p, num_d=min(p.num_d, 4))
        yield Case(gemm_cuda.check, "kw_cuda_gemm_check", gemm_cuda.HEADER, t, p)
        yield Case(gemm_cuda.check_copied, "kw_cuda_gemm_check_copied", gemm_cuda.HEADER, t, p)
        yield Case(gemm_checks.check_all_leading, "kw_gemm_check_all_leading", gemm_checks.HEADER, None, p)


def attentions(pick: random.Random) -> Iterator[Case]:
    model, modules = AttentionTimeModel(), {"cutlass": attention_cuda, "ck_tile": attention_hip, "cpu": attention_cpu}
    for arch in ("sm_90a", "gfx942", "x86_64_v4"):
        specs: list[Any] = [one.spec for one in expand_set("fmha_ck_default", load(arch)).kernels[::7]]
        backend = load(arch).backend
        for _ in range(2 * CASES):
            spec = pick.choice(specs)
            known, stage = described(spec, load(arch)), STAGES[spec.family]
            further = (known.aligned,) if backend == "ck_tile" else ()
            shared = {"batch": pick.choice([1, 3]), "hdim_q": spec.hdim_q or 64, "dtype": str(spec.dtype.inputs)}
            if stage is Stage.APPEND:
                rotary = {} if spec.rope == "none" else {"rope": str(spec.rope), "rotary_dim": 32, "rotary_places": 64}
                paged = {"page_table": "block", "pages": 4, "page_size": 64, "page_table_stride": 2}
                asked = {**shared, **rotary, **(paged if spec.paged_kv else {}), "heads_kv": 2, "seqlen_new": 64}
                p: Any = append_of(model.read({**asked, "capacity": 128}, APPEND))
                rule, name = attention_checks.append_traits_match, "kw_attention_append_traits_match"
                module: Any = attention_checks if backend == "cpu" else modules[backend]
                if backend != "cpu":
                    rule, name = module.append_check, f"{module.PREFIX}_append_check"
            else:
                module = modules[backend]
                rule, name = module.check, f"{module.PREFIX}_check"
                backward = stage in (Stage.DOT, Stage.DQ_DK_DV, Stage.CONVERT_DQ)
                asked = {**shared, "hdim_v": spec.hdim_v or 64, "direction": "backward" if backward else "forward"}
                asked |= {"heads_q": 8, "heads_kv": pick.choice([2, 8]), "dtype_o": str(spec.dtype.output)}
                asked |= {"seqlen_q": 128, "seqlen_k": 256, "bias": str(spec.bias), "lse": spec.lse and not backward}
                asked |= {
                    "mask": "none" if spec.mask == "none" else "top_left",
                    "soft_cap": 30.0 * spec.logits_soft_cap,
                }
                asked |= {"group": spec.group, "deterministic": spec.deterministic, "dropout_p": 0.5 * spec.dropout}
                asked |= {"total_q": 256, "total_k": 512} if spec.group else {}
                if spec.paged_kv:
                    asked |= {"page_table": "block", "pages": 8, "page_size": 256, "page_table_stride": 2}
                    asked |= {"kv_lengths": True, "total_k": 0}
                problem = replace(model.read(asked), stage=stage, num_splits=1)
                left = attention_checks.leaves(known.traits, 1) if stage is Stage.PART else False
                p = attention_problem(replace(problem, leaves_splits=left))
                slices = attention_checks.dq_slices(known.traits, p) if stage is Stage.DQ_DK_DV else 1
                p = replace(p, dq_slices=slices if backward else 0)
            t = known.traits
            for _ in range(pick.choice([0, 1, 1, 2])):
                t, p = (t, changed(p, pick)) if pick.random() < 0.8 else (changed(t, pick), p)
            yield Case(rule, name, module.HEADER, t, p, further)


FAMILIES = {"convolution": convolutions, "gemm": gemms, "attention": attentions}


def compiled(cases: list[Case], folder: Path) -> Callable[[int], tuple[int, str]]:
    """Status and sentence of a case in C."""
    texts = [f'#include "{header}"' for header in sorted({case.header for case in cases})]
    asked = []
    for index, case in enumerate(cases):
        given = []
        for letter, record in (("t", case.traits), ("p", case.problem)):
            if record is not None:
                struct = RECORDS[type(record)].c_name
                texts.append(f"static const {struct} {letter}{index} = {initialiser(record)};")
                given.append(f"&{letter}{index}")
        given += [str(int(one)) for one in case.further]
        asked.append(f"    case {index}: return {case.function}({', '.join(given)}, reason, bytes);")
    texts.append("int asked(int index, char* reason, size_t bytes) {\n  switch (index) {")
    source = folder / "rules.c"
    source.write_text("\n".join([*texts, *asked, "  }\n  return -1;\n}"]))
    flags = ["-std=c11", "-O1", "-Wall", "-Werror", str(source)]
    library = ctypes.CDLL(str(mocks.compile_shared([*mocks.compilers()[0], *flags], folder / "librules.so")))

    def ask(index: int) -> tuple[int, str]:
        reason = ctypes.create_string_buffer(512)
        return library.asked(index, reason, ctypes.c_size_t(512)), reason.value.decode()

    return ask


@pytest.mark.parametrize("operation", FAMILIES)
def test_python_and_c_refuse_alike(operation: str, tmp_path: Path) -> None:
    cases = [*FAMILIES[operation](random.Random(11))]
    ask, sentences, served = compiled(cases, tmp_path), set(), 0
    for index, case in enumerate(cases):
        given = [one for one in (case.traits, case.problem) if one is not None]
        said = case.rule(*given, *case.further)
        expected = 0 if said is None else 1 if isinstance(said, Invalid) else 2
        assert ask(index) == (expected, said or ""), (case.function, given)
        served += said is None
        sentences.add("".join(one for one in said or "" if not one.isdigit()))
    assert served > len(cases) // 20 and len(sentences) > 20, (served, len(cases), sentences)


def test_every_field_of_a_record_is_one_of_its_struct(tmp_path: Path) -> None:
    """An initialiser that names all of them compiles."""
    for make in FAMILIES.values():
        case = next(make(random.Random(1)))
        assert len(members(case.problem)) == sum(one.init for one in fields(case.problem))
        compiled([case], tmp_path)
