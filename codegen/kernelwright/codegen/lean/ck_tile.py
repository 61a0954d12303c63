"""Rewrites of CK Tile's headers: definitions that instantiate a template for each element of a tile.

Our code in ``kernelwright/hip/common/lean`` takes their place. The device code of kernels is the same to the byte with
and without (``tests/gemm/lean``).
"""

from __future__ import annotations

from kernelwright.codegen.lean import ck_tile_host
from kernelwright.codegen.lean.rewrite import Edit, Header

FOLDER = "aiter_meta/3rdparty/composable_kernel/"
_CORE = f"{FOLDER}include/ck_tile/core"
_OPEN, _CLOSE = "namespace ck_tile {\n", "} // namespace ck_tile\n"
_LEAN = "kernelwright::lean::"


def _ours(header: str) -> str:
    return f'#include "kernelwright/hip/common/lean/{header}.hpp"\n'


def _include(header: str, last: str) -> Edit:
    """Include our header after the ``last`` one that the file includes."""
    return Edit(f'{last}.hpp"\n\n', _OPEN, _ours(header))


def _lines(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


_SLICE = (
    f"        using part = {_LEAN}part<StaticTileDistribution, sequence<YSliceOrigins...>,",
    "                           sequence<YSliceLengths...>, PackedSize>;",
)

_CONTAINERS = (
    Header(
        f"{_CORE}/container/sequence.hpp",
        "88cb0fbcc74e84b65aaa1a193ad14e1f33eb26beb5af0cedd08de7e2dfcc43e4",
        (
            Edit("// generate sequence\n", "// split sequence\n", f"{_CLOSE}{_ours('sequence')}{_OPEN}"),
            Edit("using type = Seq;\n};\n#endif\n", "template <index_t... Xs, index_t... Ys>\n", ""),
        ),
    ),
    Header(
        f"{_CORE}/algorithm/space_filling_curve.hpp",
        "577794312b631f8325311946ad18dc32516904586673d2d8842d4f190eda3542",
        (
            Edit('functional.hpp"\n', "#include", _ours("curve")),
            Edit(
                "using Index = multi_index<nDim>;\n",
                "    static constexpr index_t ScalarPerVector",
                _lines(
                    f"    using curve = {_LEAN}curve<remove_cvref_t<TensorLengths>, remove_cvref_t<DimAccessOrder>,",
                    "                        remove_cvref_t<ScalarsPerAccess>, SnakeCurved>;",
                ),
            ),
            # An unused tensor adaptor.
            Edit("given_new2old(access_lengths, dim_access_order);\n", "    static constexpr auto I0", ""),
            Edit(
                '"1D index out of range");\n\n        constexpr auto idx_head',
                "    }\n",
                _lines(
                    " = number<AccessIdx1dHead>{};",
                    "        return curve::template step<idx_head, AccessIdx1dTail>(typename curve::all{});",
                ),
            ),
            Edit("// Do not use this function directly!\n", "// FIXME: return tuple of number<>", ""),
            Edit(
                "constexpr auto get_index(number<AccessIdx1d>)\n    {\n",
                "    }\n",
                _lines("        return curve::template begin<AccessIdx1d>(typename curve::all{});"),
            ),
        ),
    ),
)

_COORDINATES = (
    Header(
        f"{_CORE}/tensor/tensor_adaptor.hpp",
        "7fe51f4a50724f680723c05ed6745876c067f747a568aeb0e00098c584bae114",
        (
            _include("adaptor", "numeric/numeric"),
            Edit(
                "initialize_element_size(const Transforms& transforms)\n    {\n",
                "    }\n\n    template <index_t IDimHidden>",
                _lines(
                    f"        return {_LEAN}size_of(transforms, UpperDimensionHiddenIdss{{}},",
                    "                              TopDimensionHiddenIds{});",
                ),
            ),
            Edit(
                '"wrong! not implemented");\n',
                "    }\n\n    CK_TILE_HOST_DEVICE static",
                _lines(
                    f"        constexpr auto at = {_LEAN}find(IDimHidden, UpperDimensionHiddenIdss{{}});",
                    "        return tuple<index_t, index_t, bool>{at.which, at.at, at.found};",
                ),
            ),
            Edit(
                "get_num_of_hidden_dimension()\n    {\n",
                "    }\n\n    constexpr static index_t ntransform_",
                _lines(
                    f"        return {_LEAN}count_distinct(LowerDimensionHiddenIdss{{}},",
                    "                                     UpperDimensionHiddenIdss{});",
                ),
            ),
        ),
    ),
    Header(
        f"{_CORE}/tensor/tensor_adaptor_coordinate.hpp",
        "b0e12de43a28d73ac1544d2bfb7ceb82f11b9e939edfac4e49b8fc5cd5c3815f",
        (
            _include("move", "type_traits"),
            Edit(
                "BottomIndex& idx_diff_bottom)\n{\n",
                "    constexpr index_t ndim_hidden",
                _lines(
                    f"    if constexpr({_LEAN}is_known_step<TopIndex>) {{",
                    f"        {_LEAN}move(adaptor, coord, idx_diff_top, idx_diff_bottom);",
                    "    } else {",
                ),
            ),
            Edit("idx_diff_hidden, Adaptor::get_bottom_dimension_hidden_ids());\n", "}\n", "    }\n"),
        ),
    ),
    Header(
        f"{_CORE}/tensor/tile_distribution.hpp",
        "e2fd03a816f255320a0914b3abcf11b95c80be7347f595fca4a676e47e85559a",
        (
            _include("distribution", "type_traits"),
            Edit(
                "constexpr auto make_static_tile_distribution(StaticTileDistributionEncoding_)\n{\n",
                "}\n\n//*****",
                _lines(
                    "    using encode = remove_cvref_t<StaticTileDistributionEncoding_>;",
                    f"    using parts  = {_LEAN}distribution_parts<encode>;",
                    "    return tile_distribution<typename parts::to_x, typename parts::to_d, encode,",
                    "                             detail::tile_distribution_detail<typename parts::ids>>{};",
                ),
            ),
        ),
    ),
)

_TILES = (
    Header(
        f"{_CORE}/tensor/tile_window.hpp",
        "fedbc19c16bc17fd3426bffc33763df83f656f8ff36c36d8d2afbfd41a9a652a",
        (
            _include("window", "type_traits"),
            # Coordinates of the first access of each of `NumCoord` groups. There is one group, whose coordinates exist
            # already.
            Edit(
                "using SFC_Ys = typename Traits::SFC_Ys;\n\n        static_for<0, NumCoord, 1>{}([&](auto iCoord) {\n",
                "        });\n    }\n",
                _lines(
                    "            pre_computed_coords_(iCoord) =",
                    "                make_tuple(window_adaptor_thread_coord_tmp, bottom_tensor_thread_coord_tmp);",
                ),
                times=2,
            ),
            Edit(
                "auto load(DistributedTensor& dst_tensor,\n                             number<",
                "    template <typename DstTile,",
                _lines(
                    "i_access_unsupport_> = {}, bool_constant<oob_conditional_check> = {}) const",
                    f"    {{\n        {_LEAN}load<oob_conditional_check>(*this, dst_tensor);\n    }}\n",
                ),
            ),
            Edit(
                "CK_TILE_DEVICE void store(const static_distributed_tensor<",
                "    template <index_t i_access_unsupport_ = -1>\n",
                _lines(
                    "typename Base::DataType, typename Base::TileDstr>& dstr_tensor,",
                    "        number<i_access_unsupport_> = {}, bool_constant<oob_conditional_check> = {}) const",
                    f"    {{\n        {_LEAN}store<oob_conditional_check>(*this, dstr_tensor);\n    }}\n",
                ),
            ),
        ),
    ),
    Header(
        f"{_CORE}/tensor/static_distributed_tensor.hpp",
        "dd5553f767aac482d2b76c1feba1c5f583192b0aaec7b0c72442289a20625acf",
        (
            _include("tile", "thread_buffer"),
            Edit(
                "            sliced_thread_data;\n",
                "        return sliced_thread_data;",
                _lines(*_SLICE, "        part::get(thread_buf_, sliced_thread_data, typename part::all{});"),
            ),
            Edit(
                "const SlicedThreadData& sliced_thread_data)\n    {\n",
                "    }\n\n    template <typename TileDistributedIndices>",
                _lines(*_SLICE, "        part::set(thread_buf_, sliced_thread_data, typename part::all{});"),
            ),
        ),
    ),
    Header(
        f"{_CORE}/tensor/tile_elementwise.hpp",
        "0ed9dd2f6475517d90a43a37e4c2e0e34003b0571a526e16017257a019f68147",
        (
            _include("tile", "type_traits"),
            Edit(
                "__type_pack_element<0, InOutDstrTensors...>::get_thread_buffer_size();\n",
                "}\n\ntemplate",
                _lines(
                    f"    {_LEAN}for_each_element(",
                    "        make_index_sequence<thread_buffer_size>{}, inout_element_func, inout_dstr_tensors...);",
                ),
            ),
            Edit(
                "__type_pack_element<0, InTensor...>::get_thread_buffer_size();\n",
                "    return out_dstr_tensor;",
                _lines(
                    "    auto out_dstr_tensor = make_static_distributed_tensor<OutDataType>(in_tile_dstr);",
                    f"    {_LEAN}assign_each_element(make_index_sequence<thread_buffer_size>{{}}, in_element_func,",
                    "                              out_dstr_tensor, in_dstr_tensors...);",
                ),
            ),
        ),
    ),
)

_POLICIES = (
    Header(
        f"{FOLDER}include/ck_tile/ops/gemm/block/block_gemm_areg_breg_creg_v1_default_policy.hpp",
        "56e1fdcd93a1733a029c816c06e4cc68521a8d893eed03b2f373fd00383f174f",
        (
            Edit('warp_gemm.hpp"\n', "\nnamespace", _ours("later")),
            # Otherwise its types are instantiated, with everything that they need, wherever it is parsed.
            Edit(
                "constexpr auto GetWarpGemmMWarpNWarp()\n    {\n",
                "    }\n};",
                _lines(
                    "        using A    = typename Problem::ADataType;",
                    f"        using half = {_LEAN}later<A, WarpGemmMfmaF16F16F32M32N32K8TransposedCDistribution>;",
                    f"        using bf16 = {_LEAN}later<A, WarpGemmMfmaBf16Bf16F32M32N32K8TransposedCDistribution>;",
                    "        if constexpr(std::is_same_v<A, typename Problem::BDataType> &&",
                    "                     std::is_same_v<typename Problem::CDataType, float>)",
                    "        {",
                    "            if constexpr(std::is_same_v<A, half_t>)",
                    "                return make_tuple(typename half::type{}, 4, 1);",
                    "            else if constexpr(std::is_same_v<A, bf16_t>)",
                    "                return make_tuple(typename bf16::type{}, 4, 1);",
                    "        }",
                ),
            ),
        ),
    ),
)

HEADERS = (*_CONTAINERS, *_COORDINATES, *_TILES, *_POLICIES, *ck_tile_host.HEADERS)
