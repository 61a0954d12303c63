from __future__ import annotations

import pytest

from kernelwright.codegen.formulas.translate import Source, translate
from kernelwright.codegen.formulas.types import FormulaError

HEAD = (
    '"""Of a test."""\n\nfrom __future__ import annotations\n\n'
    "from dataclasses import dataclass\nfrom typing import NamedTuple\n\n"
)
OTHERS = {
    "other": Source("@dataclass(frozen=True)\nclass Base:\n    x: float\n\n\n"
                    "class Pair(NamedTuple):\n    a: float\n    b: bool = True\n\n\n"
                    "def sum_of(p: Pair) -> float:\n    return p.a + (1 if p.b else 0)\n",
                    "kw_other", "other.h", "other.py"),
}  # fmt: skip


def lines(text: str) -> list[str]:
    """What C makes of it, without the frame of the header."""
    whole = translate(Source(HEAD + text, "kw_t", "t.h", "t.py"), OTHERS.__getitem__)
    return [
        line for line in whole.splitlines() if line and not line.startswith(("/*", "#include", "#ifndef", "#endif"))
    ]


def body(text: str) -> list[str]:
    translated = lines(f"def f(a: float, b: float, c: bool) -> float:\n{text}\n")
    return [line.strip() for line in translated[2:-1]]


@pytest.mark.parametrize(
    ("expression", "written"),
    [
        ("a + b * 2", "a + b * 2.0"),
        ("(a + b) * 2", "(a + b) * 2.0"),
        ("a - (b - 1)", "a - (b - 1.0)"),
        ("a / (b / 3)", "a / (b / 3.0)"),
        ("-a * -(a + b)", "-a * -(a + b)"),
        ("a if a < b and not c else b", "a < b && !c ? a : b"),
        ("(a if c else b) + 1", "(c ? a : b) + 1.0"),
        ("a if c else b if a == b else 0", "c ? a : a == b ? b : 0.0"),
        ("1 if (a < b or c) and c else 2", "(a < b || c) && c ? 1.0 : 2.0"),
        ("max(a, b, 3)", "kw_max(kw_max(a, b), 3.0)"),
        ("min(abs(a), ceil(b / 2))", "kw_min(kw_abs(a), kw_ceil(b / 2.0))"),
    ],
)
def test_expressions(expression: str, written: str) -> None:
    assert body(f"    return {expression}") == [f"return {written};"]


def test_variables_that_change_are_declared_first() -> None:
    text = "    x = a\n    once = b * 2\n    while x < once:\n        x += 1\n    if c:\n        y = 1.0\n"
    text += "    elif x == 0:\n        y = 2.0\n    else:\n        y = 3.0\n    return x + y"
    assert body(text) == [
        "double x = 0;", "double y = 0;", "x = a;", "const double once = b * 2.0;", "while (x < once) {", "x += 1.0;",
        "}", "if (c) {", "y = 1.0;", "} else {", "if (x == 0.0) {", "y = 2.0;", "} else {", "y = 3.0;", "}", "}",
        "return x + y;",
    ]  # fmt: skip


def test_constants_records_and_functions() -> None:
    text = "A = 2\nB = 1 / A\n\n\nclass R(NamedTuple):\n    x: float\n    y: float = B\n    z: bool = False\n\n\n"
    text += "def g(r: R) -> R:\n    return R(r.y, z=r.z)\n\n\ndef h() -> float:\n    return g(R(1)).x\n"
    assert lines(text) == [
        "#define KW_T_H", "#define KW_T_A 2.0", "#define KW_T_B 0.5", "typedef struct kw_t_R {", "  double x;",
        "  double y;", "  bool z;", "} kw_t_R;", "static inline kw_t_R kw_t_g(KW_GIVEN(kw_t_R) r) {",
        "  return KW_RECORD(kw_t_R, r.y, KW_T_B, r.z);", "}", "static inline double kw_t_h(void) {",
        "  return kw_t_g(KW_RECORD(kw_t_R, 1.0, KW_T_B, false)).x;", "}",
    ]  # fmt: skip


def test_dataclasses_have_the_fields_of_their_base_first() -> None:
    text = "from kernelwright.codegen.other import Base\n\n\n@dataclass(frozen=True)\nclass R(Base):\n    y: bool\n\n\n"
    assert lines(text + "def f(r: R) -> R:\n    return R(r.x, y=True)\n")[1:] == [
        "typedef struct kw_t_R {", "  double x;", "  bool y;", "} kw_t_R;",
        "static inline kw_t_R kw_t_f(KW_GIVEN(kw_t_R) r) {", "  return KW_RECORD(kw_t_R, r.x, true);", "}",
    ]  # fmt: skip


def test_formulas_import_records_and_functions_of_others() -> None:
    imported = "from kernelwright.codegen.other import sum_of\n\n\n"
    translated = lines(f"{imported}def f(p: Pair) -> float:\n    return sum_of(p) + p.a\n")
    assert translated[1:] == [
        "static inline double kw_t_f(KW_GIVEN(kw_other_Pair) p) {", "  return kw_other_sum_of(p) + p.a;", "}",
    ]  # fmt: skip
    with pytest.raises(FormulaError, match="imports nothing, which is no record or function"):
        lines("from kernelwright.codegen.other import nothing\n")
    with pytest.raises(FormulaError, match="imports what is no formula"):
        lines("from os import path\n")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("    return c", "is bool, where float is needed"),
        ("    return a < b", "is bool, where float is needed"),
        ("    return a % b", "is no expression of a formula"),
        ("    return a < b < 3", "is no expression of a formula"),
        ("    return 1 if a else 2", "is float, where bool is needed"),
        ("    return print(a)", "calls print; allowed: min, max, abs, ceil, floor"),
        ("    return min(a)", "has another number of arguments"),
        ("    return unknown", "is not known here; known: a, b, c"),
        ("    return a.b", "is no field of float"),
        ("    if c:\n        return a", "can end without returning a value"),
        ("    x = a", "can end without returning a value"),
        ("    x = a\n    x = c\n    return a", "makes x bool, which was float"),
        ("    for x in a:\n        pass\n    return a", "is no statement of a formula"),
        ("    a, b = b, a\n    return a", "is no statement of a formula"),
        ("    c += 1\n    return a", "changes what is no number here"),
        ("    return 'text'", "is str, where float is needed"),
    ],
)
def test_what_the_language_lacks_is_refused_with_its_line(text: str, problem: str) -> None:
    with pytest.raises(FormulaError, match=r"^line \d+: ") as refused:
        body(text)
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a = 1\n", "is no constant, whose name is in capitals"),
        ("A = unknown\n", "is not known here"),
        ("A = __import__('os')\n", "calls __import__"),
        ("class R:\n    x: float\n", "is no NamedTuple and no frozen dataclass"),
        ("@dataclass\nclass R:\n    x: float\n", "is no NamedTuple and no frozen dataclass"),
        ("@dataclass(frozen=True)\nclass R(Q):\n    x: float\n", "extends what is not one record; known: "),
        ("class R(NamedTuple):\n    x: bytes\n", "is no type here; allowed: float, bool, int"),
        ("def f(a) -> float:\n    return 1\n", "has no annotation"),
        ("def f(*a: float) -> float:\n    return 1\n", "has other than plain arguments"),
        ("import os\n", "is no constant, record or function"),
        ("class R(NamedTuple):\n    x: float\n\n\ndef f() -> R:\n    return R()\n", "leaves x out"),
        ("class R(NamedTuple):\n    x: float\n\n\ndef f() -> R:\n    return R(1, y=2)\n", "gives y, which R lacks"),
    ],
)
def test_modules_are_refused_likewise(text: str, problem: str) -> None:
    with pytest.raises(FormulaError) as refused:
        lines(text)
    assert problem in str(refused.value)


RULES = (
    "from kernelwright.codegen.dtypes import DType\nfrom kernelwright.codegen.formulas.refusals import Refusal\n\n\n"
)


def rule(text: str, given: str = "a: int, b: int, c: bool, d: DType, s: frozenset[DType]") -> list[str]:
    """The body of a rule in C."""
    source = f"{HEAD}{RULES}def f({given}) -> Refusal:\n{text}\n"
    whole = translate(Source(source, "kw_t", "kernelwright/t.h", "t.py", rules=True), OTHERS.__getitem__)
    inner = whole.partition("kw_t_f(")[2].partition("{\n")[2].rpartition("\n}\n")[0]
    return [line.strip() for line in inner.splitlines()]


@pytest.mark.parametrize(
    ("expression", "written"),
    [
        ("a + b * 2 - 1 >= 3", "kw_add(a, kw_mul(b, 2)) - 1 >= 3"),
        ("a // 2 % b == 1 << 3", "a / 2 % b == 8"),
        ("max(a, b, 3) > min(a, 2)", "kw_larger(kw_larger(a, b), 3) > kw_smaller(a, 2)"),
        ("a in (1, b)", "a == 1 || a == b"),
        ("d not in (DType.FP32, DType.INT8)", "d != KW_FP32 && d != KW_INT8"),
        ("d in s and DType.BF16 not in s", "kw_in_set(s, d) && !kw_in_set(s, KW_BF16)"),
        ("(a == b) != c", "(a == b) != c"),
        ("a <= INT32_MAX or fits_int32(a * b)", "a <= INT32_MAX || kw_fits_int32(kw_mul(a, b))"),
        ("(1 if c else element_bytes(d)) == 4", "(c ? 1 : kw_dtype_bytes(d)) == 4"),
    ],
)
def test_conditions_of_rules(expression: str, written: str) -> None:
    assert rule(f"    if {expression}:\n        return 'no'\n    return None")[0] == f"if ({written}) {{"


def test_refusals_are_sentences_and_a_status() -> None:
    text = "    if c:\n        return Invalid(f'{a} of {d} at 5 %')\n    return 'no'"
    assert rule(text) == [
        "if (c) {", 'snprintf(reason, bytes, "%lld of %s at 5 %%", (long long)(a), kw_dtype_name(d));',
        "return KW_INVALID_ARGUMENT;", "}", 'snprintf(reason, bytes, "%s", "no");', "return KW_UNSUPPORTED;",
    ]  # fmt: skip
    assert rule("    return f'{a:g}'", "a: float") == ['snprintf(reason, bytes, "%g", a);', "return KW_UNSUPPORTED;"]


def test_rules_in_turn_end_at_the_first_refusal() -> None:
    text = "    return f(a, b, c, d, s) or ('no' if c else None) or (f(a, b, c, d, s) if a > 1 else None)"
    with pytest.raises(FormulaError, match="calls f; allowed"):
        rule(text)  # rules call what stands above them
    above = f"{HEAD}{RULES}def g(a: int) -> Refusal:\n    return None\n\n\ndef f(a: int, c: bool) -> Refusal:\n"
    above += "    return g(a) or ('no' if c else None) or (g(1) if a > 1 else None)\n"
    whole = translate(Source(above, "kw_t", "kernelwright/t.h", "t.py", rules=True), OTHERS.__getitem__)
    assert [line.strip() for line in whole.partition("kw_t_f(")[2].splitlines()[1:-2]] == [
        "kw_status status = KW_OK;", "if ((status = kw_t_g(a, reason, bytes)) != KW_OK) return status;", "if (c) {",
        'snprintf(reason, bytes, "%s", "no");', "return KW_UNSUPPORTED;", "}",
        "if (a > 1 && (status = kw_t_g(1, reason, bytes)) != KW_OK) return status;", "return KW_OK;", "}",
    ]  # fmt: skip


def test_loops_count_whole_numbers() -> None:
    text = "    x = 1\n    for i in range(1, b):\n        x = x * i\n    return None if x > a else 'no'"
    assert rule(text)[:6] == [
        "int64_t x = 0;", "x = 1;", "for (int64_t i = 1; i < b; ++i) {", "x = kw_mul(x, i);", "}",
        "if (x > a) return KW_OK;",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("    return f'{c}'", "is bool, which no sentence prints"),
        ("    return f'{a:03}'", "is printed in a form that rules lack"),
        ("    return 'no' or None", "refuses on no condition"),
        ("    return ('no' if c else 'never') or None", "refuses in either case"),
        ("    return a", "is int, where Refusal is needed"),
        ("    return None if a / 2 == 1 else 'no'", "is no expression of a formula"),
        ("    return None if a == 1.5 else 'no'", "compares numbers of two types"),
        ("    return None if d < DType.FP16 else 'no'", "compares values that are DType"),
        ("    return None if d == DType.FP64 else 'no'", "is no member of DType"),
        ("    return None if a in s else 'no'", "is frozenset of DType, where frozenset of int is needed"),
        ("    for i in range(1, 2, 3):\n        pass\n    return None", "is no loop of a formula"),
    ],
)
def test_what_rules_lack_is_refused(text: str, problem: str) -> None:
    with pytest.raises(FormulaError) as refused:
        rule(text)
    assert problem in str(refused.value)
