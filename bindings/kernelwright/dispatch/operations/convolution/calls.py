"""``conv_forward()`` and its gradients: from arrays to a launch, with caches that make repeated calls short."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kernelwright.dispatch.arrays import allocate
from kernelwright.dispatch.arrays.guards import metadata_key
from kernelwright.dispatch.arrays.streams import launch_stream
from kernelwright.dispatch.arrays.view import ArrayView
from kernelwright.dispatch.core.cache import Cache
from kernelwright.dispatch.core.errors import ArrayError
from kernelwright.dispatch.core.native_dispatcher import NativeDispatcher
from kernelwright.dispatch.core.plan import Checked
from kernelwright.dispatch.operations.convolution.operand import NAMES, memory_strides, tensor
from kernelwright.dispatch.operations.convolution.plan import ConvPlan
from kernelwright.files.proposals import closest
from kernelwright.problems.convolution.description import DIMS
from kernelwright.problems.convolution.problem import ConvProblem
from kernelwright.problems.literals import Activation, ConvLayout
from kernelwright.problems.scalars import integer

Padding = int | Sequence[int | Sequence[int]]


_INNERMOST: tuple[ConvLayout, ...] = ("nwgc", "nhwgc", "ndhwgc")  # by spatial dimensions


class ConvOptions(NamedTuple):
    """Options that arrays do not express. ``given`` is the size of dx or the filter of dw if the direction needs it."""

    direction: str
    given: Any = None
    stride: int | Sequence[int] = 1
    padding: Padding = 0
    dilation: int | Sequence[int] = 1
    groups: int = 1
    layout: ConvLayout | None = None
    activation: Activation = "none"
    alpha: float = 1.0
    beta: float = 0.0
    split_k: int | None = None


class ConvCalls:
    """Convolution calls of one dispatcher. Threads may share it."""

    def __init__(self, core: NativeDispatcher) -> None:
        """``core`` owns the plans."""
        self._core = core
        # By metadata of the arrays and options: the plan, what it checked, and what allocates a result.
        self.by_call: Cache[tuple[object, ...], tuple[ConvPlan, Checked, Callable[[], Any] | None]] = core.new_cache()

    def run(self, a: Any, b: Any, bias: Any, residual: Any, out: Any, options: ConvOptions, stream: int | None) -> Any:
        """See :meth:`Dispatcher.conv_forward`, :meth:`Dispatcher.conv_backward_data` and `…weight`."""
        metadata = metadata_key((a, b, bias, residual, out))
        key = None if metadata is None else (metadata, _frozen(options))
        known = None if key is None else self.by_call.get(key)
        if known is not None:
            plan, checked, make = known
            result = out if make is None else self._core.made_on(stream, checked.family, make)
            if plan.relaunch((a, b, bias, residual, result), stream, checked):
                return result
        return self._first(a, b, bias, residual, out, options, stream, key)

    def _first(
        self, a: Any, b: Any, bias: Any, residual: Any, out: Any, options: ConvOptions, stream: int | None,
        key: tuple[object, ...] | None,
    ) -> Any:  # fmt: skip
        """Make a call whose plan is not known."""
        stream = launch_stream((a, b, bias, residual, out), stream, self._core.device.memory)
        names = NAMES[options.direction]
        views, problem = self._posed(a, b, bias, residual, out, options, stream)
        plan = self._core.plan(problem)
        assert isinstance(plan, ConvPlan)
        make = None
        if out is None:
            shape = {"y": problem.y_shape, "dx": problem.x_shape, "dw": problem.w_shape}[names[-1]]
            first = views[names[0]]
            make = allocate.allocator(first.family, shape, problem.dtype, a, first.fnuz)
            out = self._core.made_on(stream, first.family, make)
        operands = (a, b, bias, residual, out)
        plan.launch(operands, stream)
        checked = plan.checked
        if key is not None and checked is not None:
            self.by_call.replace(key, (plan, checked, make))
        return out

    def plan(self, a: Any, b: Any, bias: Any, residual: Any, out: Any, options: ConvOptions) -> ConvPlan:
        """The plan that :meth:`run` launches with these arrays; nothing is launched."""
        stream = launch_stream((a, b, bias, residual, out), None, self._core.device.memory)
        plan = self._core.plan(self._posed(a, b, bias, residual, out, options, stream)[1])
        assert isinstance(plan, ConvPlan)
        return plan

    def _posed(
        self, a: Any, b: Any, bias: Any, residual: Any, out: Any, options: ConvOptions, stream: int | None
    ) -> tuple[dict[str, ArrayView], ConvProblem]:
        """Views of the arrays, and their problem."""
        names = NAMES[options.direction]
        layout = _layout(a, names[0], options.layout, stream)
        dims = DIMS[layout]
        views = {
            name: tensor(array, name, 1 if name == "bias" else dims + 2, stream)
            for name, array in zip(names, (a, b, bias, residual, out), strict=True)
            if array is not None
        }
        self._core.check_memory(views[names[0]].device)
        if out is None and options.beta:
            raise ArrayError(f"beta is {options.beta} but out is not given; pass the old result as out")
        return views, problem_of(views, options, layout)


def problem_of(views: dict[str, ArrayView], options: ConvOptions, layout: ConvLayout) -> ConvProblem:
    """Return the problem of the arrays. ArrayError or ProblemError if they, or the options, contradict each other."""
    first = layout == "ngchw"
    image = views["x" if options.direction != "backward_data" else "dy"]
    groups = integer("groups", options.groups, 1)
    per_group, filter = _filter(views, options, first)
    channels, sizes = _channels(image, first), _points(image, first)
    if options.direction == "backward_data":
        k, c = channels, per_group * groups
        if k != views["w"].shape[0]:
            raise ArrayError(f"dy has {k} channels and w {views['w'].shape[0]}; they must be equal")
        sizes = _listed("size", options.given, len(sizes))
    elif options.direction == "backward_weight":
        c, k = channels, _channels(views["dy"], first)
    else:
        c, k = channels, views["w"].shape[0]
        if c != per_group * groups:
            raise ArrayError(f"c is {c}, and w has {per_group} for each of {groups} groups; they must agree")
    left, right = _padding(options.padding, len(sizes))
    strides = {
        field: memory_strides(views[name], first)
        for field, names in (("stride_x", ("x", "dx")), ("stride_y", ("y", "dy", "residual")))
        for name in names
        if name in views
    }
    return ConvProblem(
        options.direction, image.shape[0], c, k, sizes, filter, groups=groups, stride=options.stride,
        dilation=options.dilation, pad_left=left, pad_right=right, dtype=image.dtype, layout=layout,
        bias="bias" in views, residual="residual" in views, activation=options.activation, split_k=options.split_k,
        alpha=options.alpha, beta=options.beta, **strides,
    )  # fmt: skip


def _filter(views: dict[str, ArrayView], options: ConvOptions, first: bool) -> tuple[int, Sequence[int]]:
    """Input channels of a group, and filter extents."""
    if "w" in views:
        shape = views["w"].shape
        return (shape[1], shape[2:]) if first else (shape[-1], shape[1:-1])
    return 0, _listed("filter", options.given, len(views["x"].shape) - 2)


def _channels(array: ArrayView, first: bool) -> int:
    return array.shape[1] if first else array.shape[-1]


def _points(array: ArrayView, first: bool) -> tuple[int, ...]:
    return array.shape[2:] if first else array.shape[1:-1]


def _layout(a: Any, name: str, given: ConvLayout | None, stream: int | None) -> ConvLayout:
    """The given layout, else the layout with channels innermost for arrays of this rank."""
    if given is not None:
        if given not in DIMS:
            raise ArrayError(f"layout is {given!r}{closest(given, DIMS)}; allowed: {', '.join(DIMS)}")
        return given
    rank = len(getattr(a, "shape", ())) or len(tensor(a, name, 4, stream).shape)
    if not 3 <= rank <= 5:
        raise ArrayError(f"{name} has {rank} dimensions; allowed: 3 to 5, images, one to three of points, channels")
    return _INNERMOST[rank - 3]


def _listed(field: str, value: Any, dims: int) -> tuple[int, ...]:
    listed = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,) * dims
    if len(listed) != dims:
        raise ArrayError(f"{field} is {value!r}; allowed: one integer, or {dims}")
    return listed


def _padding(padding: Any, dims: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Padding on the left and on the right of each dimension; a pair states both."""
    listed: tuple[Any, ...] = _listed("padding", padding, dims)
    pairs = [tuple(each) if isinstance(each, list | tuple) else (each, each) for each in listed]
    if any(len(pair) != 2 for pair in pairs):
        raise ArrayError(f"padding is {padding!r}; allowed: integers, or pairs of left and right")
    return tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)


def _frozen(options: ConvOptions) -> tuple[object, ...]:
    """Options as a key: lists become tuples, and True and 1.0 differ from 1, which is checked in another way."""
    return tuple(_tuple(value) for value in options)


_AS_THEY_ARE = (int, str, type(None))


def _tuple(value: Any) -> Any:
    if type(value) in _AS_THEY_ARE:
        return value
    return tuple(map(_tuple, value)) if isinstance(value, list | tuple) else (type(value), value)
