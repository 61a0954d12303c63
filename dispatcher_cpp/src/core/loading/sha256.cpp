#include "kernelwright/dispatcher/loading/sha256.hpp"

#include <string.h>

namespace kernelwright {
namespace {

constexpr uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t rotated(uint32_t value, int bits) { return value >> bits | value << (32 - bits); }

uint32_t word(const unsigned char* at) {
  return static_cast<uint32_t>(at[0]) << 24 | static_cast<uint32_t>(at[1]) << 16 | static_cast<uint32_t>(at[2]) << 8 |
         at[3];
}

}  // namespace

void Sha256::block(const unsigned char* data) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i) w[i] = word(data + 4 * i);
  for (int i = 16; i < 64; ++i) {
    const uint32_t low = rotated(w[i - 15], 7) ^ rotated(w[i - 15], 18) ^ w[i - 15] >> 3;
    const uint32_t high = rotated(w[i - 2], 17) ^ rotated(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + low + w[i - 7] + high;
  }
  uint32_t a = state_[0], b = state_[1], c = state_[2], d = state_[3];
  uint32_t e = state_[4], f = state_[5], g = state_[6], h = state_[7];
  for (int i = 0; i < 64; ++i) {
    const uint32_t choice = (e & f) ^ (~e & g), majority = (a & b) ^ (a & c) ^ (b & c);
    const uint32_t first = h + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + choice + kRound[i] + w[i];
    const uint32_t second = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + majority;
    h = g, g = f, f = e, e = d + first;
    d = c, c = b, b = a, a = first + second;
  }
  state_[0] += a, state_[1] += b, state_[2] += c, state_[3] += d;
  state_[4] += e, state_[5] += f, state_[6] += g, state_[7] += h;
}

void Sha256::update(const void* data, size_t bytes) {
  const unsigned char* at = static_cast<const unsigned char*>(data);
  const size_t kept = bytes_ % sizeof rest_;
  bytes_ += bytes;
  if (kept != 0) {
    const size_t room = sizeof rest_ - kept, taken = bytes < room ? bytes : room;
    memcpy(rest_ + kept, at, taken);
    if (taken < room) return;
    block(rest_);
    at += taken, bytes -= taken;
  }
  for (; bytes >= sizeof rest_; at += sizeof rest_, bytes -= sizeof rest_) block(at);
  if (bytes != 0) memcpy(rest_, at, bytes);
}

void Sha256::finish(char (&hex)[kHexBytes]) {
  const uint64_t bits = 8 * bytes_;
  const unsigned char one = 0x80, zeros[64] = {};
  update(&one, 1);
  update(zeros, (sizeof rest_ + 56 - bytes_ % sizeof rest_) % sizeof rest_);
  unsigned char length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(bits >> (56 - 8 * i));
  update(length, sizeof length);
  for (int i = 0; i < 64; ++i) hex[i] = "0123456789abcdef"[state_[i / 8] >> (28 - 4 * (i % 8)) & 15];
  hex[64] = '\0';
}

}  // namespace kernelwright
