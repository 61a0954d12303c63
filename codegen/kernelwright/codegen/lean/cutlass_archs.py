"""Parts left out of CUTLASS's headers for sm_90a: kernels that we do not use, bodies for hosts, text streams.

Headers that gather the kernels of every architecture, sparse kernels and those that load or scale differently make up
half of the text that a compiler reads, in each of its two passes, and the C++ library's streams and algorithms a
quarter. Kernels for sm_90a use none of it: objects are the same to the byte with and without (``tests/gemm/lean``).
"""

from __future__ import annotations

from kernelwright.codegen.lean.rewrite import Edit, Header, Swap, Without

TARGET = "sm_90a"
"""The compiler's name for the architecture whose code is kept."""
_EPILOGUE = "cutlass/epilogue/collective/"
_STANDARD = '"kernelwright/cuda/common/lean/standard.hpp"'
_EMPTY = Edit("#pragma once\n", "", "")
# CUTLASS selects a scheduler by architecture; these selectors name schedulers that are not included.
_SELECTORS_SM100 = Edit(
    "  using Scheduler = PersistentTileSchedulerSm90Group<GroupProblemShape, SchedulerPipelineStageCount>;\n};\n\n"
    "template <class TileShape, class ClusterShape, uint32_t SchedulerPipelineStageCount>\n",
    "\n////////",
    "struct TileSchedulerSelector<PersistentScheduler, arch::Sm100, TileShape, ClusterShape,\n"
    "                             SchedulerPipelineStageCount>;\n",
)


def _others(times: int, *more: str) -> Without:
    """Leave out ``times`` lines that include kernels of other architectures, sparse ones, or ``more`` (patterns)."""
    names = "|".join(("sm1[02][0-9]_", "sm70_", "sm80_", "sm90_sparse", *more))
    return Without(rf'#include ["<](.*/)?({names})', times)


def _rooted(name: str, times: int = 1) -> Swap:
    """Root the include of a header that no longer lies beside the rewritten one that includes it."""
    return Swap(f'#include "{name}', f'#include "{_EPILOGUE}{name}', times)


def _without_body(name: str) -> Edit:
    return Edit(f"{name}()\n{{", "\n}\n", "")


_HEADERS: dict[str, tuple[str, tuple[Edit | Swap | Without, ...]]] = {
    "cute/arch/mma_sm90.hpp": (
        "eede4c08af6c2d79a6a956072c91a902026dec8112fa8f43392fd11a2dab9de5",
        (
            _others(1, "mma_sm90_gmma_sparse"),
            _without_body("ss_op_selector_sparse"),
            _without_body("rs_op_selector_sparse"),
        ),
    ),
    "cute/config.hpp": (
        "0abde1dda75c7f8e75f1661ba30815449590da23c7bf86f615d35de5ef86fc3d",
        (Edit("#  include <cstdio>\n", "#endif", f"#  include {_STANDARD}\n"),),
    ),
    "cute/atom/copy_atom.hpp": (
        "bfd81acd706b18e28d7bd7bf33dbd3d6d5d8589af902712ffadd2406661c32b7",
        (_others(2, "copy_traits_sm100"),),
    ),
    "cute/atom/mma_atom.hpp": (
        "115be67d45771698fc1d7f833a1afa44897f45132537496620d5f2622d22fd7e",
        (_others(8, "mma_traits_sm(61|7|8|1[02]0)"),),
    ),
    "cute/atom/mma_traits_sm100.hpp": (
        "06f6ac58f8e3672b9b41bcb47e2e47c78bb8ddb2a26c68d5fb584dfc64f12631",
        (Edit("#pragma once\n", "", "#include <cute/arch/mma_sm100_desc.hpp>\n"),),
    ),
    "cutlass/arch/mma.h": (
        "995520aa528c8c3e8b3f2aceb91fd0f536255dd900eca24184bda0f9af020429",
        (Edit("// Specializations for each compute capability\n//\n", "", ""),),
    ),
    "cutlass/arch/mma_sm90.h": (
        "ecc03c51de3c03a5880ba664c4afe08da409f53f2b8d81e2aeb3ab11f9452e48",
        (Edit("#pragma once\n", "", '#include "cutlass/arch/config.h"\n'),),
    ),
    "cutlass/device_kernel.h": (
        "c5b234f7812d4bee7b2b781851cdc36cafa0fde8799e6b9da0f5ee5630e80363",
        # A host needs only the stub that launches the kernel, not the kernel's body.
        (
            Edit(
                "void device_kernel(CUTLASS_GRID_CONSTANT typename Operator::Params const params)\n{\n",
                "\n}\n",
                "#ifdef __CUDA_ARCH__\n",
                tail="\n#endif",
            ),
        ),
    ),
    f"{_EPILOGUE}collective_builder.hpp": (
        "abac4795e7c13b21a2f01ad54fa45eb2c1390658d9fe2a29acd5559edcdd3ed2",
        (_others(3), _rooted("builders/sm90_")),
    ),
    f"{_EPILOGUE}collective_epilogue.hpp": (
        "36e795254040db105259ec4a2832b9ea74a16145d06d6141dd4d4cef849d4034",
        (
            _others(6),
            _rooted("detail"),
            _rooted("default_epilogue", times=2),
            _rooted("epilogue_tensor_broadcast"),
            _rooted("sm90_epilogue", times=3),
        ),
    ),
    "cutlass/epilogue/fusion/sm120_callbacks_tma_warpspecialized.hpp": (
        "87cfb252459b4ca6085917fbe492cfc762b532744064912b2b6b4c75fc313d1a",
        (_EMPTY,),
    ),
    "cutlass/gemm/collective/builders/sm90_common.inl": (
        "e8eab1d8c31296092e132d5f0a0111dece4c44525de4a6c49ee0e7213d8c9f65",
        (_others(1, "mma_traits_sm90_gmma_sparse"), _without_body("ss_smem_selector_sparse")),
    ),
    "cutlass/gemm/collective/collective_builder.hpp": (
        "0088a3e7ef77f12200ba90246a00c0980f29a37f964e0c11d0979f87a100acea",
        (_others(18),),
    ),
    "cutlass/gemm/collective/collective_mma.hpp": (
        "afff037be45ff4f014b83f9a7d1f02e7197dc6d678f83d442e43636173e8268b",
        # 8-bit kernels with operands that are not K-major take A from registers.
        (_others(35, "sm90_mma_multistage_", ".*_mixed_input", "sm90_mma_tma_gmma_ss.hpp", ".*_blockwise"),),
    ),
    "cutlass/gemm/dispatch_policy.hpp": (
        "4b6f987397a49584ae159750b6f2ee51c5ec5e65f9fd874433baf784a54cbc76",
        # A policy of sm_100 has this instruction as its default.
        (
            Without('#include "cute/atom/copy_traits_sm100', 1),
            Swap("cute::SM100_TMEM_LOAD_32dp32b32x", "void", times=2),
        ),
    ),
    "cutlass/gemm/kernel/gemm_universal.hpp": (
        "6fd71ed541507628ea7cbc5cd9993d7cb500168d86ec3158fe6f7932bec5e925",
        (_others(20, "sm90_gemm_tma.hpp", "sm90_gemm_warp", "sm90_gemm_tma_warpspecialized.hpp"),),
    ),
    "cutlass/gemm/kernel/tile_scheduler.hpp": (
        "ae25f8ab4b75b895a8419f055dbcf1712b1bef9e4d9b5f64eba176901f2672a1",
        (_others(4), _SELECTORS_SM100),
    ),
    "cutlass/platform/platform.h": (
        "bbd3f04c800d32ab68c95a146ebec55b2c2773271d89a200df12a22e2270380e",
        (
            Swap("#include <algorithm>   // Minimum/maximum operations", f"#include {_STANDARD}"),
            Without("#include <functional>", 1),
        ),
    ),
}


def headers(folder: str) -> tuple[Header, ...]:
    """Return the rewritten headers; ``folder`` is CUTLASS's include folder in the wheel."""
    return tuple(Header(f"{folder}/{path}", sha256, edits) for path, (sha256, edits) in _HEADERS.items())
