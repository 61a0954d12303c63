"""Libraries on a device: which kernel serves a problem best, and running it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, overload

from kernelwright.dispatch.core import simulated
from kernelwright.dispatch.core.device import Device
from kernelwright.dispatch.core.errors import ArchMismatchError, LibraryNotFoundError, SelectionError
from kernelwright.dispatch.core.explanation import Explanation
from kernelwright.dispatch.core.kernel import KernelEntry
from kernelwright.dispatch.core.native_dispatcher import NativeDispatcher
from kernelwright.dispatch.core.operation import Problem
from kernelwright.dispatch.core.plan import OperationPlan, Selection
from kernelwright.dispatch.core.selection import Score, select_measured
from kernelwright.dispatch.loading.heuristic import Heuristic
from kernelwright.dispatch.loading.library import KernelLibrary
from kernelwright.dispatch.operations.attention import AppendPlan, AppendProblem, AttentionPlan, AttentionProblem
from kernelwright.dispatch.operations.attention.calls import AttentionCalls
from kernelwright.dispatch.operations.attention.methods import AttentionMethods
from kernelwright.dispatch.operations.convolution import ConvPlan, ConvProblem
from kernelwright.dispatch.operations.convolution.calls import ConvCalls, ConvOptions, Padding
from kernelwright.dispatch.operations.gemm import GemmProblem, GroupedGemmProblem, GroupedPlan, Plan
from kernelwright.dispatch.operations.gemm.calls import GemmCalls
from kernelwright.dispatch.operations.gemm.grouped_calls import GroupedGemmCalls
from kernelwright.dispatch.operations.gemm.operand import ShuffledB
from kernelwright.dispatch.recording.recorder import record_if_asked

Library = KernelLibrary | str | os.PathLike[str]


class Dispatcher(AttentionMethods):
    """Selects and launches kernels. Threads may share a dispatcher; several may exist at once.

    :param libraries: one library or several, loaded ones or paths.
    :param device: a :class:`Device` or its name.
    :param selection: ``"auto"`` (the learned models that come with the libraries; lowest predicted time for problems
        that none of them judges), ``"analytic"`` (lowest predicted time), ``"first_fit"`` (highest priority, then
        name), the name or identity of one kernel (plans of several stages then have the fastest predicted kernels in
        the others), or a function that maps a problem and its candidates (a sequence of :class:`Candidate`) to one
        score each; the lowest score wins; or a :class:`Heuristic`, a learned model.
    :raises ArchMismatchError: for a library of another kind or architecture than the device.
    :raises LibraryLoadError: for a library that the native dispatcher refuses.
    :raises LibraryNotFoundError: if ``libraries`` is empty.
    :raises SelectionError: for an unknown selection.

    A CPU library is compared with the machine at once, a GPU library at its first launch: selecting and explaining
    touch no GPU.
    """

    def __init__(
        self,
        libraries: Iterable[Library] | Library,
        device: Device | str = "cpu",
        selection: str | Score | Heuristic = "auto",
    ) -> None:
        """Load libraries given as paths and register every kernel."""
        self.device = Device.of(device)
        self.libraries = tuple(_loaded(libraries))
        if not self.libraries:
            raise LibraryNotFoundError("libraries is empty; allowed: one KernelLibrary or more")
        for library in self.libraries:
            _check_kind(library, self.device)
        kernels = {kernel.identity: kernel for library in self.libraries for kernel in library.kernels}
        record_if_asked()
        self._core = NativeDispatcher(self.device, kernels, [library.descriptor for library in self.libraries])
        self._core.select_by(selection)
        self._gemm = GemmCalls(self._core)
        self._grouped_gemm = GroupedGemmCalls(self._core)
        self._conv = ConvCalls(self._core)
        self._attention = AttentionCalls(self._core)

    @property
    def kernels(self) -> tuple[KernelEntry, ...]:
        """Kernels of all libraries."""
        return tuple(self._core.kernels.values())

    def set_priority(self, kernel: str | KernelEntry, priority: int) -> None:
        """Prefer a kernel, given by name or identity, in first fit and in ties; higher first, default 0.

        :raises SelectionError: for an unknown kernel, or a priority that is no integer of 32 bits.
        """
        self._core.set_priority(kernel.identity if isinstance(kernel, KernelEntry) else kernel, priority)

    def set_num_threads(self, threads: int) -> None:
        """Limit the threads of CPU launches, for the whole process, not for this dispatcher alone.

        The limit belongs to the loaded library files: it holds for every dispatcher and plan of the process that uses a
        CPU library of this dispatcher, in all threads, until it is set again. Plans made under a lower limit keep that.
        GPU libraries ignore it.

        :param threads: the most threads of one launch; 0 for what the environment variable
            ``KERNELWRIGHT_NUM_THREADS`` says, else as many as the affinity mask has CPUs.
        :raises SelectionError: for a negative number, or more than a library serves.
        """
        self._core.set_num_threads(threads)

    @overload
    def plan(self, problem: GemmProblem) -> Plan: ...
    @overload
    def plan(self, problem: GroupedGemmProblem) -> GroupedPlan: ...
    @overload
    def plan(self, problem: ConvProblem) -> ConvPlan: ...
    @overload
    def plan(self, problem: AttentionProblem) -> AttentionPlan: ...
    @overload
    def plan(self, problem: AppendProblem) -> AppendPlan: ...
    @overload
    def plan(self, problem: Problem) -> OperationPlan[Any]: ...
    def plan(self, problem: Problem) -> OperationPlan[Any]:
        """The plan for a problem of any operation: the selected kernel, ready to be launched.

        Equal problems get the same plan while it is among the 2048 plans that were used last.

        :raises NoKernelError: if no kernel serves the problem; the message says why.
        """
        return self._core.plan(problem)

    def plan_grouped(self, problem: GroupedGemmProblem) -> GroupedPlan:
        """:meth:`plan` for products of different shapes."""
        return self.plan(problem)

    def select(
        self,
        problem: Problem,
        *,
        measure: bool = False,
        top_k: int | None = None,
        memory: str | os.PathLike[str] | None = None,
    ) -> Selection:
        """The kernel that would run, and why; with ``measure``, the fastest of the ``top_k`` that rank first.

        Measuring checks and times the best few pairs of a kernel and what the problem leaves open (slices of a sum,
        splits of keys) in this process, on operands of its own, once: the file ``memory`` keeps the times for this
        device, driver and library, and processes share it. Plans and calls of this dispatcher with this problem have
        the fastest pair from then on.

        :param top_k: how many pairs are timed, by default 3.
        :param memory: by default ``measured.json`` in the cache folder of kernelwright.
        :raises NoKernelError: if no kernel serves the problem.
        :raises SelectionError: with ``measure`` where ``kernelwright.tile_engine`` is not installed or cannot time the
            problem or the device, and if none of the kernels computes it right; for ``top_k`` or ``memory`` without it.
        """
        if measure:
            select_measured(self, problem, top_k, memory)
        elif top_k is not None or memory is not None:
            raise SelectionError("top_k and memory say what is measured; allowed: with measure=True, or neither")
        return self._core.plan(problem).selection

    def keep(self, problem: Problem, plan: OperationPlan[Any]) -> None:
        """Give a plan of another dispatcher of the same libraries and device to whoever asks for the problem's.

        Selection does not change it; setting a priority does.
        """
        self._core.keep(problem, plan)

    def explain(self, problem: Problem) -> Explanation:
        """Every kernel with its score, or with the reason why it cannot be used. Never raises NoKernelError."""
        simulated_on = self.device.name if self.device.simulated else None
        return Explanation.parse(problem, self._core.explain(problem), simulated_on)

    def export_json(self) -> str:
        """Libraries and kernels in first-fit order, as JSON."""
        return self._core.export_json()

    def gemm(
        self,
        a: Any,
        b: Any,
        c: Any = None,
        out: Any = None,
        *,
        ds: Sequence[Any] = (),
        d_op: str = "add",
        activation: str = "none",
        alpha: float = 1.0,
        beta: float = 0.0,
        layout: str | None = None,
        split_k: int = 0,
        stream: int | None = None,
    ) -> Any:
        """activation((alpha * a @ b + beta * c) op ds[0] op ds[1] …), without a copy of any operand.

        Strides decide the layouts: a transposed view is a column-major matrix. Arrays of three dimensions hold a batch
        of matrices; an ``a`` or ``b`` of two dimensions, or of a batch of 1, is shared by all products.

        :param a: A (m, k).
        :param b: B (k, n), or the result of :meth:`shuffle_b`.
        :param c: C (m, n), needed when ``beta`` is not 0.
        :param out: the result (m, n), allocated when not given.
        :param ds: up to four D tensors of the result's dtype, (m, n), or (n,) or (1, n) for one row for all.
        :param d_op: how they are combined with the product, ``"add"`` or ``"multiply"``.
        :param activation: an activation of :class:`GemmProblem`.
        :param layout: three letters r or c that a, b and out must have, instead of what their strides say.
        :param split_k: number of slices of k; 0 lets the dispatcher choose.
        :param stream: a ``cudaStream_t`` or ``hipStream_t`` as an integer. Results and workspaces are allocated, C is
            copied and the kernel is launched on it, and the caller makes the operands ready on it. By default it is
            the current stream of the operands' array libraries, which must have the same one. In the capture of a
            CUDA graph the workspace is the graph's own, which torch gives; for other arrays bind a plan for that.
        :returns: ``out``.
        :raises ArrayError: for arrays that do not fit together or cannot be addressed, and for a capture that needs a
            workspace where they are not torch's.
        :raises ProblemError: for an unknown ``d_op``, ``activation`` or ``split_k``.
        :raises NoKernelError: if no kernel serves the problem.
        :raises LaunchError: if the kernel or its runtime fails.
        """
        return self._gemm.gemm(a, b, c, out, ds, d_op, activation, alpha, beta, layout, split_k, stream)

    def plan_gemm(
        self,
        a: Any,
        b: Any,
        c: Any = None,
        out: Any = None,
        *,
        ds: Sequence[Any] = (),
        d_op: str = "add",
        activation: str = "none",
        alpha: float = 1.0,
        beta: float = 0.0,
        layout: str | None = None,
        split_k: int = 0,
    ) -> Plan:
        """The plan that :meth:`gemm` launches with these arrays; nothing is launched or copied.

        Where a matrix of one row or column may be read in several layouts, it is the first that some kernel serves.
        Parameters and errors are those of :meth:`gemm`. ``plan_gemm(a, b, out=d).bind(a, b, out=d)()`` owns its
        workspace, which a CUDA graph needs.
        """
        return self._gemm.plan(a, b, c, out, ds, d_op, activation, alpha, beta, layout, split_k)

    def grouped_gemm(
        self,
        a: Sequence[Any],
        b: Sequence[Any],
        outs: Sequence[Any] | None = None,
        cs: Sequence[Any] | None = None,
        *,
        alpha: float = 1.0,
        beta: float = 0.0,
        layout: str | None = None,
        stream: int | None = None,
    ) -> list[Any]:
        """alpha * a[i] @ b[i] + beta * cs[i] for every i in one launch.

        Every group has sizes of its own; all share dtypes and layouts, which follow from strides as for :meth:`gemm`.

        :param a: A (m, k) of each group.
        :param b: B (k, n) of each group.
        :param outs: the result (m, n) of each group, allocated when not given.
        :param cs: C (m, n) of each group; ``cs[i]`` may be ``outs[i]``.
        :param stream: as for :meth:`gemm`.
        :returns: ``outs``.
        :raises ArrayError: for arrays that do not fit together or cannot be addressed.
        :raises NoKernelError: if no kernel serves the problem.
        :raises LaunchError: if the kernel or its runtime fails.
        """
        return self._grouped_gemm.grouped_gemm(a, b, outs, cs, alpha, beta, layout, stream)

    def shuffle_b(
        self, b: Any, *, m: int = 1024, dtype_c: str = "", layout: str | None = None, **fields: Any
    ) -> ShuffledB:
        """B (k, n) in the order of the best kernel that reads an order of its own, for :meth:`gemm` and plans.

        B is copied, through the host if it is on a GPU, and transposed if the kernels want the other layout.

        :param m: the expected number of rows of A, on which the choice of the kernel depends.
        :param dtype_c: the result's dtype; by default that of :class:`GemmProblem`.
        :param layout: three letters r or c that the kernel must have.
        :param fields: fields of :class:`GemmProblem` that the products will have (``activation``, ``num_d``, …).
        :raises ArrayError: for a batch, or an array that cannot be read.
        :raises NoKernelError: if no kernel reads B in an order of its own.
        """
        return self._gemm.shuffle_b(b, m, dtype_c, layout, fields)

    def conv_forward(
        self,
        x: Any,
        w: Any,
        out: Any = None,
        *,
        stride: int | Sequence[int] = 1,
        padding: Padding = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: Any = None,
        residual: Any = None,
        activation: str = "none",
        alpha: float = 1.0,
        beta: float = 0.0,
        layout: str | None = None,
        stream: int | None = None,
    ) -> Any:
        """activation(alpha * convolution of x by w + beta * out + bias + residual), without a copy of any operand.

        Shapes are in the order of the layout, by default with channels innermost, for one, two or three dimensions.

        :param x: input (n, h, w, c); any memory strides with channels side by side.
        :param w: weights (k, filter_h, filter_w, c / groups), dense; (k, c / groups, filter_h, filter_w) in ``ngchw``.
        :param out: the result (n, out_h, out_w, k), allocated when not given; the old result where beta is not 0.
        :param stride: one number, or one for each dimension; ``dilation`` likewise.
        :param padding: one number, or for each dimension a number or a pair of left and right.
        :param bias: k values; ``residual`` is a tensor like ``out``, and may be ``out``.
        :param activation: an activation of :class:`GemmProblem`.
        :param layout: ``nwgc``, ``nhwgc``, ``ndhwgc`` or ``ngchw`` (depthwise).
        :param stream: as for :meth:`gemm`.
        :returns: ``out``.
        :raises ArrayError: for arrays that do not fit together or cannot be addressed.
        :raises ProblemError: for numbers that make no convolution.
        :raises NoKernelError: if no kernel serves the problem.
        :raises LaunchError: if the kernel or its runtime fails.
        """
        options = ConvOptions(
            "forward", None, stride, padding, dilation, groups, layout, activation, alpha, beta, None
        )  # fmt: skip
        return self._conv.run(x, w, bias, residual, out, options, stream)

    def conv_backward_data(
        self,
        dy: Any,
        w: Any,
        size: int | Sequence[int],
        out: Any = None,
        *,
        stride: int | Sequence[int] = 1,
        padding: Padding = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        alpha: float = 1.0,
        beta: float = 0.0,
        layout: str | None = None,
        stream: int | None = None,
    ) -> Any:
        """The gradient of the input: alpha * (dy, w) + beta * out. Every point is written.

        :param dy: gradient of the output (n, out_h, out_w, k).
        :param size: spatial extents of x, which stride may leave open.
        :param out: dx (n, h, w, c), allocated when not given.

        Everything else is as for :meth:`conv_forward`.
        """
        options = ConvOptions(
            "backward_data", size, stride, padding, dilation, groups, layout, "none", alpha, beta, None
        )  # fmt: skip
        return self._conv.run(dy, w, None, None, out, options, stream)

    def conv_backward_weight(
        self,
        x: Any,
        dy: Any,
        filter: int | Sequence[int],
        out: Any = None,
        *,
        stride: int | Sequence[int] = 1,
        padding: Padding = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        split_k: int = 0,
        alpha: float = 1.0,
        beta: float = 0.0,
        layout: str | None = None,
        stream: int | None = None,
    ) -> Any:
        """The gradient of the weights: alpha * (x, dy) + beta * out.

        :param x: input (n, h, w, c); ``dy`` is the gradient of the output (n, out_h, out_w, k).
        :param filter: filter points in each dimension, which stride may leave open.
        :param out: dw (k, filter_h, filter_w, c / groups), allocated when not given.
        :param split_k: slices of the sum that are added up at the end; 0 lets the dispatcher choose.

        Everything else is as for :meth:`conv_forward`.
        """
        options = ConvOptions(
            "backward_weight", filter, stride, padding, dilation, groups, layout, "none", alpha, beta, split_k
        )  # fmt: skip
        return self._conv.run(x, dy, None, None, out, options, stream)


def _loaded(libraries: Iterable[Library] | Library) -> Iterable[KernelLibrary]:
    if isinstance(libraries, KernelLibrary | str | os.PathLike):
        libraries = [libraries]
    for library in libraries:
        yield library if isinstance(library, KernelLibrary) else KernelLibrary.load(library)


def _check_kind(library: KernelLibrary, device: Device) -> None:
    if device.simulated:
        simulated.check_library(library.path, library.descriptor)
    if library.kind != device.library_kind:
        raise ArchMismatchError(
            f"{library.path} is for {library.manifest.target} and runs on {library.kind}; device is {device}"
        )
