// The pipeline with transposing LDS reads: it uses exp2 whatever CK_TILE_FMHA_FWD_FAST_EXP2 says.
#include "attention.hpp"

namespace known_bad {
using trload = attention<64, 64, false, false, false, true, BlockFmhaPipelineQRKSVSAsyncTrload>;
}

extern "C" __global__ __launch_bounds__(256) void attention(attention_arguments x) { known_bad::trload::run(x); }
