/* Selection models of version MOCK_MODEL: one that ranks no problem, and one that prefers large tiles. */
static kw_status other_score(void* user, const kw_problem* problem, kw_candidate* candidates, uint64_t count) {
  (void)user, (void)problem, (void)candidates, (void)count;
  return KW_UNSUPPORTED;
}

static kw_status score(void* user, const kw_problem* problem, kw_candidate* candidates, uint64_t count) {
  const kw_gemm_problem* p = (const kw_gemm_problem*)problem;
  if (problem->op != KW_OP_GEMM || p->dtype_a != KW_FP32 || p->m > 100) return KW_UNSUPPORTED;
  const uint32_t units = *(const uint32_t*)user;
  for (uint64_t i = 0; i < count; ++i) {
    candidates[i].score = -(double)((const kw_gemm_traits*)candidates[i].kernel->traits)->tile_m - units;
  }
  return KW_OK;
}

static const kw_heuristic other_model = {sizeof(kw_heuristic), MOCK_MODEL, "other", MOCK_ARCH, "", "", other_score};
static const kw_heuristic model = {sizeof(kw_heuristic), MOCK_MODEL, "large_tiles", MOCK_ARCH, "", "", score};
static const kw_heuristic* const models[] = {&other_model, &model};
