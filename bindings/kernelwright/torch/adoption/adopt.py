"""``adopt`` and ``release``: have a model's layers and attention run kernels, and undo that."""

from __future__ import annotations

import weakref
from collections import Counter
from dataclasses import dataclass
from typing import Any

from kernelwright.dispatch import Dispatcher, KernelLibrary, KernelwrightError, LibraryNotFoundError
from kernelwright.dispatch.loading import installed
from kernelwright.torch import dispatchers
from kernelwright.torch.adoption import attention as attentions
from kernelwright.torch.adoption import fusion, layers
from kernelwright.torch.adoption.classes import adopt_class, adopted_forward, inherited, is_adopted, release_class
from torch import nn  # pants: no-infer-dep

_STRIDES: weakref.WeakKeyDictionary[nn.Module, tuple[int, ...]] = weakref.WeakKeyDictionary()


class AdoptionError(KernelwrightError, TypeError):
    """``adopt`` is strict and layers must be left as they are, or its argument is not a module."""


@dataclass(frozen=True)
class Adoption:
    """The result of :func:`adopt`.

    :ivar replaced: names of layers that run kernels, with their classes.
    :ivar left: names of layers that kernels could compute but that stay as they are, with the reason.
    :ivar converted: names of convolutions whose weights were converted to ``torch.channels_last``.
    :ivar attention: names of modules whose ``forward`` runs attention kernels.
    :ivar fused: names of ``nn.Sequential`` modules whose neighbours are fused if nothing observes what lies between.
    :ivar others: classes of further modules with parameters, which stay as they are, with their counts.
    :ivar libraries: libraries loaded because no dispatcher was in use for the model's device.
    """

    replaced: tuple[tuple[str, str], ...]
    left: tuple[tuple[str, str], ...]
    converted: tuple[str, ...]
    attention: tuple[str, ...]
    fused: tuple[str, ...]
    others: tuple[tuple[str, int], ...]
    libraries: tuple[str, ...]

    def __str__(self) -> str:
        """Counts, and each layer left as it is with the reason."""
        kinds = Counter(kind for _, kind in self.replaced)
        replaced = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "nothing"
        lines = [f"replaced: {replaced}; attention within {len(self.attention)} modules, {len(self.fused)} fused"]
        lines += [f"weights converted: {', '.join(self.converted)}"] if self.converted else []
        lines += [f"left: {name or 'the model'}: {reason}" for name, reason in self.left]
        lines += [f"not ours: {', '.join(f'{n} {kind}' for kind, n in self.others)}"] if self.others else []
        return "\n".join(lines)


def adopt(
    model: nn.Module, *, attention: bool = True, fuse: bool = True, channels_last: bool = False, strict: bool = False
) -> Adoption:
    """Have a model's linear layers, convolutions and attention run kernels; calls that no kernel serves run as before.

    Modules keep their identity, parameters, hooks and names in ``state_dict``; their classes become subclasses of their
    original classes. ``torch.compile``, ``torch.export``, autocast, gradient checkpointing, copies and pickles keep
    working. :func:`release` undoes it. A second call adopts modules added since the first.

    If no dispatcher is in use for the device of the parameters, the installed libraries for it are put in use.

    :param attention: whether ``torch.nn.functional.scaled_dot_product_attention`` runs kernels within the model.
    :param fuse: whether neighbours in an ``nn.Sequential`` run as one kernel: a layer and its activation; at inference
        a convolution, its batch norm, which is folded into the weights, and the activation.
    :param channels_last: whether weights of convolutions are converted to ``torch.channels_last``, the format that
        kernels read. torch's own convolutions then return that format too, which ``view`` may refuse.
    :param strict: whether to raise AdoptionError, before any change, if a layer must be left as it is. Whether a *call*
        may run torch's operators is decided by :func:`kernelwright.torch.strict`.
    :raises AdoptionError: if ``model`` is not an ``nn.Module``, and as ``strict`` says.
    """
    if not isinstance(model, nn.Module):
        raise AdoptionError(f"model is a {type(model).__name__}; allowed: a torch.nn.Module; pass the module itself")
    modules = {module: name for name, module in model.named_modules()}
    ours = {module: name for module, name in modules.items() if layers.forward_of(module) is not None}
    left = {name: reason for module, name in ours.items() if (reason := layers.why_left(module)) is not None}
    if strict and left:
        listed = "; ".join(f"{name or 'the model'}: {reason}" for name, reason in left.items())
        raise AdoptionError(f"layers that cannot run kernels: {listed}; pass strict=False to leave them")
    libraries = _ensure_dispatchers(model)
    try:
        converted = _replace({m: n for m, n in ours.items() if n not in left}, channels_last)
        fused = [name for module, name in modules.items() if fuse and _fuse(module)]
        within = [name for module, name in modules.items() if attention and _watch(module)]
    except BaseException:
        release(model)
        raise
    replaced = tuple((name, _class(module)) for module, name in ours.items() if name not in left)
    others = Counter(
        _class(module)
        for module in modules
        if module not in ours and any(True for _ in module.parameters(recurse=False))
    )
    return Adoption(
        replaced, tuple(left.items()), tuple(converted), tuple(within), tuple(fused), tuple(sorted(others.items())),
        libraries,
    )  # fmt: skip


def release(model: nn.Module) -> None:
    """Restore the classes and memory formats that a model's modules had before :func:`adopt`."""
    for module in model.modules():
        while release_class(module):
            pass
        attentions.end(module)
        fusion.forget_folded(module)
        strides = _STRIDES.pop(module, None)
        if strides is not None:
            layers.restore_weights(module, strides)


def _class(module: nn.Module) -> str:
    return inherited(module).__name__


def _replace(targets: dict[nn.Module, str], channels_last: bool) -> list[str]:
    converted = []
    for layer, name in targets.items():
        if not is_adopted(layer):
            forward: Any = layers.forward_of(layer)
            adopt_class(layer, forward)
        strides = layers.convert_weights(layer) if channels_last else None
        if strides is not None:
            _STRIDES[layer] = strides
            converted.append(name)
    return converted


def _fuse(module: nn.Module) -> bool:
    if isinstance(module, nn.Sequential) and not is_adopted(module) and fusion.may_fuse(module):
        adopt_class(module, fusion.sequential_forward)
    return adopted_forward(module) is fusion.sequential_forward


def _watch(module: nn.Module) -> bool:
    if not is_adopted(module) and layers.forward_of(module) is None and attentions.may_call(module):
        attentions.begin(module)
        adopt_class(module, attentions.forward)
    return adopted_forward(module) is attentions.forward


def _ensure_dispatchers(model: nn.Module) -> tuple[str, ...]:
    """Load installed libraries for parameter devices that no dispatcher serves. Returns those loaded, if any."""
    paths: list[str] = []
    names = sorted({manifest.parents[1].name for manifest in installed.manifests()})
    for device in {parameter.device for parameter in model.parameters()}:
        if device.type not in ("cpu", "cuda") or dispatchers.serves(device):
            continue
        place = dispatchers.place(device)
        libraries = []
        for name in names:
            try:
                libraries.append(KernelLibrary.load_installed(place, name))
            except LibraryNotFoundError:
                continue
        if libraries:
            dispatchers.use(Dispatcher(libraries, device=place))
            paths += [str(library.path) for library in libraries]
    return tuple(paths)
