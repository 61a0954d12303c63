"""Parts left out of CK Tile's headers: texts for people, which a device pass parses but does not use.

Without them no stream of the C++ library is parsed, which would take a tenth of a compile.
"""

from __future__ import annotations

from kernelwright.codegen.lean.rewrite import Edit, Header

_CK_TILE = "aiter_meta/3rdparty/composable_kernel/include/ck_tile"
_PIPELINE = f"{_CK_TILE}/ops/gemm/pipeline/gemm_pipeline_ag_bg_cr"

HEADERS = (
    Header(
        f"{_CK_TILE}/core/utility/env.hpp",
        "bc9979c444b875d9ec226af91b245f318933720facb04b083827d0f4da94d8cd",
        (Edit("#pragma once\n", "", '\n#include "kernelwright/hip/common/lean/quiet.hpp"\n'),),
    ),
    Header(
        f"{_CK_TILE}/ops/common/utils.hpp",
        "d6da18abbe7fd6eb5234db8297aded29c579f3baedaccaafb9a3108077590be6",
        (Edit("#pragma once\n\n", "#include <string>", ""),),
    ),
    Header(
        f"{_PIPELINE}_scheduler.hpp",
        "54ca24f359108f724fee63498a7d6418c145a3bb033994260ef87d1a194386d2",
        (Edit("#pragma once\n\n", '#include "ck_tile', ""), Edit("} // namespace ck_tile\n", "", "")),
    ),
    Header(
        f"{_PIPELINE}_comp_v3.hpp",
        "a80faa48d02b27f5e02209003f7642aa6d2fd8ef1b00d92d72b210ac07817620",
        (
            Edit(
                "static std::string Print()\n    {\n",
                "    }\n\n    template <GemmPipelineScheduler Scheduler>",
                "        return {};\n",
            ),
        ),
    ),
    Header(
        f"{_CK_TILE}/host/concat.hpp",
        "65f439940ca651050ff57e78fe003993b1fd3cc88cb6b410814b03b6a791fe3f",
        tuple(
            Edit(f"!AllConvertibleToStringView<{names}...>, std::string>\n{{\n", "}\n", "    return {};\n")
            for names in ("Ts", "First, Rest")
        ),
    ),
    # Prints nothing and includes no header for printing.
    Header(
        f"{_CK_TILE}/ops/fmha/kernel/fmha_fwd_pagedkv_kernel.hpp",
        "61a4d81b3d1516b724850e91fc4c22d4dbdbfefd5cf8e230a03eb78ef28403c6",
        (Edit("#pragma once\n", "\n#include", "\n#include <iostream>\n"),),
    ),
)
