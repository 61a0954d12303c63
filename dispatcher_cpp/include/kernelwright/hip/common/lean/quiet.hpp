// The log of CK Tile's host functions. A device pass parses them and calls none.
#ifndef KERNELWRIGHT_HIP_COMMON_LEAN_QUIET_HPP
#define KERNELWRIGHT_HIP_COMMON_LEAN_QUIET_HPP

#include <string>

#define CK_TILE_ENV(name) \
  ck_tile::env::name {}

namespace ck_tile {

namespace env {
struct CK_TILE_LOGGING {};
}  // namespace env

template <class Variable>
inline bool EnvIsEnabled(Variable) {
  return false;
}
template <class... Values>
void CK_TILE_ERROR(Values&&...) noexcept {}

}  // namespace ck_tile

#endif
