"""An AMD assembly with a main loop, to be counted: ``shift`` is the distance of lanes in LDS, ``rest`` an extra line.

``ASSEMBLY`` includes the metadata that a compiler appends.
"""

from __future__ import annotations

LOOP = """\
k_gemm:
\tv_lshlrev_b32_e32 v1, {shift}, v0
\tv_mov_b32_e32 v2, s9
.LBB0_1:
\tv_mfma_f32_32x32x8_f16 v[32:47], v[4:5], v[6:7], v[32:47]
\tv_exp_f32_e32 v3, v3
\tds_write_b128 v1, v[4:7] offset:4096
\tds_read2_b32 v[8:9], v1 offset0:1 offset1:3
\tbuffer_load_dwordx4 v[4:7], v1, s[4:7], 0 offen
\ts_waitcnt lgkmcnt(0)
\ts_barrier
\ts_cbranch_scc1 .LBB0_1
\t{rest}
\ts_endpgm
.Lfunc_end0:
k_one:
\ts_endpgm
.Lfunc_end1:
"""
METADATA = """\
\t.amdgpu_metadata
---
amdhsa.kernels:
  - .max_flat_workgroup_size: 256
    .symbol:         k_gemm.kd
  - .max_flat_workgroup_size: 1024
    .symbol:         k_one.kd
...
\t.end_amdgpu_metadata
"""
ASSEMBLY = LOOP.format(shift=4, rest="s_nop 0") + METADATA
