"""Adopted models against the same models before: results, training, what torch does with modules. Mocks are fp32."""

from __future__ import annotations

import copy
import importlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import torch
from kernelwright.dispatch.testdata import mocks
from kernelwright.torch import AdoptionError, adopt, dispatchers, release, report, reset_report
from kernelwright.torch.adoption import attention
from torch import nn
from torch.nn import functional
from torch.nn.modules.module import register_module_forward_hook
from torch.nn.utils import parametrizations, parametrize
from torch.utils.checkpoint import checkpoint

FALLS_BACK = True
TORCHS = functional.scaled_dot_product_attention

pytestmark = pytest.mark.usefixtures("mocks_in_use")


@pytest.fixture(autouse=True)
def attention_is_torchs_again() -> Iterator[None]:
    yield
    attention._adopted.clear()  # of models that wait for the garbage collector
    functional.scaled_dot_product_attention = TORCHS


class Attention(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


class Block(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(16), Attention()
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm(x))
        return x + self.mlp(x)


class Language(nn.Module):  # type: ignore[misc]
    """The weights of the last layer are those of the embedding."""

    def __init__(self, again: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 16)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(16, 11, bias=False)
        self.head.weight = self.embedding.weight
        self.again = again

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.again else block(x)
        return self.head(x)


class Images(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, groups=2), nn.SiLU(), nn.Conv2d(8, 4, 1, padding_mode="reflect"),
        )  # fmt: skip
        self.head = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x).view(x.shape[0], -1))  # which takes torch's memory format


def tokens() -> torch.Tensor:
    return torch.randint(0, 11, (2, 6))


def pair(model: nn.Module) -> tuple[nn.Module, nn.Module]:
    """The model as it is, and a copy that is adopted."""
    other = copy.deepcopy(model)
    adopt(other)
    return model, other


def gradients(model: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
    model.zero_grad()
    model(x).square().mean().backward()
    return {name.removeprefix("_orig_mod."): one.grad.clone() for name, one in model.named_parameters()}


def agree(model: nn.Module, other: nn.Module, x: torch.Tensor) -> None:
    torch.testing.assert_close(other(x), model(x), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(gradients(other, x), gradients(model, x), rtol=1e-3, atol=1e-5)


def calls() -> dict[str, tuple[int, int]]:
    return {one.operator: (one.ours, one.torchs) for one in report().operators}


def test_two_lines_adopt_a_model() -> None:
    model, other = pair(Language())
    agree(model, other, tokens())
    assert calls()["attention"] == (4, 0) and calls()["gemm"][0] > 0


def test_the_report_names_what_was_done() -> None:
    class Own(nn.Linear):  # type: ignore[misc]
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) + 1

    model = nn.Sequential(Language(), Own(4, 4), nn.Linear(4, 4).double(), Images())
    done = adopt(model, channels_last=True)
    names = [name for name, _ in done.replaced]
    assert "0.blocks.0.attention.qkv" in names and ("0.head", "Linear") in done.replaced and "3.body.0" in names
    left = dict(done.left)
    assert set(left) == {"1", "2"} and "forward of its own" in left["1"] and "torch.float64" in left["2"]
    assert done.converted == ("3.body.0", "3.body.4")  # weights of one point have both formats
    assert "0.blocks.0.attention" in done.attention and "0.blocks.0.mlp" in done.fused and "3.body" in done.fused
    assert dict(done.others) == {"BatchNorm2d": 1, "Embedding": 1, "LayerNorm": 2}
    text = str(done)
    assert "replaced: 3 Conv2d, 10 Linear" in text and "left: 1: " in text and "not ours: 1 BatchNorm2d" in text
    with pytest.raises(AdoptionError, match=r"1: .*Own has a forward of its own; 2: .*pass strict=False"):
        adopt(copy.deepcopy(model), strict=True)
    with pytest.raises(AdoptionError, match="model is a function"):
        adopt(lambda x: x)


def test_strict_changes_nothing_where_it_raises() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4).double())
    with pytest.raises(AdoptionError):
        adopt(model, strict=True)
    assert type(model[0]) is nn.Linear
    assert adopt(nn.Sequential(nn.Linear(4, 4)), strict=True).left == ()


@pytest.mark.parametrize("model", [Language, Images])
def test_release_undoes_it_exactly(model: Any) -> None:
    made = model()

    def state() -> Any:
        modules = [(name, type(one), sorted(vars(one))) for name, one in made.named_modules()]
        tensors = {name: (id(one), one.stride()) for name, one in made.named_parameters()}
        return modules, tensors, functional.scaled_dot_product_attention

    before, values = state(), copy.deepcopy(made.state_dict())
    adopt(made, channels_last=True)
    assert state() != before and list(made.state_dict()) == list(values)
    adopt(made, channels_last=True)
    release(made)
    assert state() == before
    torch.testing.assert_close(dict(made.state_dict()), dict(values), rtol=0, atol=0)
    release(made)
    assert state() == before


def test_other_models_keep_torchs_attention() -> None:
    model, other = pair(Language())
    x = tokens()
    model(x)
    assert "attention" not in calls()
    other(x)
    assert calls()["attention"] == (2, 0)
    copied = copy.deepcopy(other)
    release(other)
    assert functional.scaled_dot_product_attention is TORCHS
    other(x)
    assert calls()["attention"] == (2, 0)
    copied(x)
    assert calls()["attention"] == (4, 0)
    release(copied)
    assert functional.scaled_dot_product_attention is TORCHS


def test_state_dicts_are_those_of_the_model() -> None:
    model, other = pair(Language())
    fresh = Language()
    fresh.load_state_dict(other.state_dict(), strict=True)
    x = tokens()
    torch.testing.assert_close(fresh(x), model(x))
    other.load_state_dict(Language().state_dict(), strict=True)
    assert other.head.weight is other.embedding.weight


@pytest.mark.parametrize("dynamic", [None, True])
def test_compiled(dynamic: bool | None) -> None:
    model, other = pair(Language())
    agree(model, torch.compile(other, backend="aot_eager", fullgraph=True, dynamic=dynamic), tokens())
    reset_report()
    images, others = pair(Images().eval())
    x = torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        compiled = torch.compile(others, backend="aot_eager", fullgraph=True, dynamic=dynamic)
        torch.testing.assert_close(compiled(x), images(x), rtol=1e-4, atol=1e-5)


def test_exported() -> None:
    model, other = pair(Language())
    x = tokens()
    program = torch.export.export(other, (x,))
    torch.testing.assert_close(program.module()(x), model(x), rtol=1e-4, atol=1e-5)
    assert sum("kernelwright.attention" in str(node.target) for node in program.graph.nodes) == 2
    assert set(program.state_dict) == set(model.state_dict())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(dtype: torch.dtype) -> None:
    model, other = pair(Language())
    x = tokens()
    with torch.autocast("cpu", dtype):
        actual, expected = other(x), model(x)
    assert actual.dtype == expected.dtype == dtype
    assert torch.equal(actual, expected)  # mocks have no kernels of 16 bits


def test_checkpointed() -> None:
    model = Language(again=True)
    _, other = pair(model)
    reset_report()
    agree(model, other, tokens())
    assert calls()["attention"] == (2 + 2 + 2, 0)  # a forward pass, another one, and that again


def test_hooks_see_what_they_saw() -> None:
    model, other = pair(Language())
    x = tokens()
    seen: list[tuple[str, torch.Size, torch.Tensor]] = []

    def watch(named: nn.Module) -> Any:
        for name, module in named.named_modules():
            module.register_forward_hook(lambda m, i, o, name=name: seen.append((name, o.shape, o.detach())))
            module.register_full_backward_hook(lambda m, i, o, name=name: seen.append((name, o[0].shape, o[0])))
        for name, parameter in named.named_parameters():
            parameter.register_post_accumulate_grad_hook(lambda p, name=name: seen.append((name, p.shape, p.grad)))
        named(x).square().mean().backward()
        events = list(seen)
        seen.clear()
        return events

    for (name, shape, one), (other_name, other_shape, expected) in zip(watch(other), watch(model), strict=True):
        assert (name, shape) == (other_name, other_shape)
        torch.testing.assert_close(one, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("released", [True, False])
def test_parametrized_before_and_after(first: bool, released: bool) -> None:
    x = torch.randn(3, 16)
    layer = nn.Linear(16, 16)
    adopted = copy.deepcopy(layer)
    if first:
        adopt(adopted)
    for one in (layer, adopted):
        torch.manual_seed(1)
        parametrizations.weight_norm(one)
    if not first:
        assert adopt(adopted).left == ()
    reset_report()
    agree(layer, adopted, x)
    assert calls()["gemm"][0] + calls()["gemm"][1] > 0
    assert list(adopted.state_dict()) == list(layer.state_dict())
    if released:
        release(adopted)
        assert type(adopted).__bases__ == (nn.Linear,) and parametrize.is_parametrized(adopted)
        reset_report()
        agree(layer, adopted, x)
        assert calls() == {}
    parametrize.remove_parametrizations(adopted, "weight")
    torch.testing.assert_close(adopted(x), layer(x))
    release(adopted)
    assert type(adopted) is nn.Linear
    torch.testing.assert_close(adopted(x), layer(x))


def test_copies_and_pickles_are_adopted() -> None:
    model, other = pair(Language())
    x = tokens()
    stream = io.BytesIO()
    torch.save(other, stream)
    stream.seek(0)
    for one in (copy.deepcopy(other), torch.load(stream, weights_only=False)):
        reset_report()
        torch.testing.assert_close(one(x), model(x), rtol=1e-4, atol=1e-5)
        assert calls()["attention"] == (2, 0) and isinstance(one.head, nn.Linear)
        release(one)
        assert type(one.head) is nn.Linear and type(one) is Language


def test_neighbours_are_one_kernel_where_nobody_looks_between_them() -> None:
    x = torch.randn(5, 6)
    model = nn.Sequential(nn.Linear(6, 7, bias=False), nn.ReLU(), nn.Linear(7, 7, bias=False))
    adopt(model)
    expected = torch.relu(x @ model[0].weight.t()) @ model[2].weight.t()
    with torch.no_grad():
        torch.testing.assert_close(model(x), expected)
        assert any("rcr 5x7x6 relu" in one.message for one in report().unserved)  # mocks have no relu without a D
        for register in (model[0].register_forward_hook, register_module_forward_hook):
            reset_report()
            handle = register(lambda m, i, o: None)
            torch.testing.assert_close(model(x), expected)
            assert report().unserved == () and calls()["gemm"] == (2, 0)
            handle.remove()
        model(x)
        assert len(report().unserved) == 1


def test_batch_norms_are_folded_at_inference() -> None:
    model, other = pair(Images())
    x = torch.randn(4, 3, 8, 8)
    agree(model, other, x)  # training: statistics of the batch
    torch.testing.assert_close(other.body[1].running_mean, model.body[1].running_mean)
    model.eval(), other.eval()
    agree(model, other, x)
    asked: list[str] = []
    for norm in (model.body[1], other.body[1]):
        original = norm.forward

        def counted(y: torch.Tensor, original: Any = original) -> torch.Tensor:
            asked.append("norm")
            return original(y)

        norm.forward = counted
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            expected = model(x)
            assert asked == ["norm"]
            torch.testing.assert_close(other(x), expected, rtol=1e-4, atol=1e-5)
            assert asked == ["norm"]
            asked.clear()
    with torch.no_grad():
        for one in (model, other):
            one.body[0].weight.mul_(2)
            one.body[1].running_var.add_(1)
        torch.testing.assert_close(other(x), model(x), rtol=1e-4, atol=1e-5)
    model(x), other(x)
    assert asked == ["norm"] * 3  # gradients may be recorded: not folded


def test_memory_formats_of_results_are_torchs() -> None:
    layer = nn.Conv2d(3, 4, 3)
    x = torch.randn(2, 3, 5, 5)
    for given in (x, x.contiguous(memory_format=torch.channels_last)):
        expected = layer(given).stride()
        adopt(layer)
        assert layer(given).stride() == expected
        release(layer)
    adopt(layer, channels_last=True)
    assert layer.weight.is_contiguous(memory_format=torch.channels_last)
    assert layer(x).is_contiguous(memory_format=torch.channels_last)


def test_layers_that_must_stay() -> None:
    lazy = nn.LazyLinear(4)
    watched = nn.Linear(4, 4)
    watched.forward = lambda x: x
    scripted = torch.jit.script(nn.Linear(4, 4))
    for layer, reason in ((lazy, "no shape yet"), (watched, "forward of its own")):
        assert reason in dict(adopt(layer).left)[""]
    adopt(nn.Sequential(scripted))
    torch.testing.assert_close(nn.Sequential(scripted)(torch.ones(1, 4)).shape, torch.Size([1, 4]))


def test_functional_calls_and_other_devices() -> None:
    model, other = pair(Block())
    x = torch.randn(2, 3, 16)
    actual = torch.func.functional_call(other, dict(model.named_parameters()), (x,))
    torch.testing.assert_close(actual, model(x), rtol=1e-4, atol=1e-5)
    with torch.device("meta"):
        adopted = Block()
        adopt(adopted)
    assert adopted(x.to("meta")).device.type == "meta"


def test_installed_libraries_are_put_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dispatchers.forget("cpu")
    layer, x = nn.Linear(4, 4, bias=False), torch.randn(2, 4)
    assert adopt(layer).libraries == ()  # none is installed
    release(layer)
    library = mocks.write_library(tmp_path / "kernelwright_kernels" / "gemm" / "x86_64_v3")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    done = adopt(layer)
    assert [Path(one).parent for one in done.libraries] == [library.parent if library.is_file() else library]
    layer(x)
    assert calls() == {"gemm": (1, 0)}
    assert adopt(layer).libraries == ()  # a dispatcher is in use
