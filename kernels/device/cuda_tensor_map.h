// Makes tensor maps: the descriptors by which TMA, Hopper's tensor memory accelerator, reads and
// writes tensors. Host code; CUDA builds only.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/device/kernel.h"
#include "kernels/device/tensor.h"

namespace convoy::kernels {

// How the rows of a box lie in shared memory: each has as many bytes as the swizzle.
enum class Swizzle : std::uint8_t { bytes_64, bytes_128 };

// Returns the map of a strided tensor. `extents` and `box` start with the innermost dimension.
// `pitches` are distances in elements: pitches[0] between neighbours in dimension 1, pitches[1] in
// dimension 2 and so on. Elements outside the tensor are read as zero and are not written.
// Addresses and pitches must be multiples of 16 bytes. Throws std::runtime_error if the driver
// refuses.
CUtensorMap tiled_map(DType type, const void* data, const std::vector<std::int64_t>& extents,
                      const std::vector<std::int64_t>& pitches, const std::vector<std::uint32_t>& box,
                      Swizzle swizzle = Swizzle::bytes_128);

// An NHWC tensor, as TMA reads it for an im2col matrix. A box has `pixels` positions by `channels`
// channels. Along each axis, positions begin at `first` and have a distance of `step`. A row of an
// image has `across` positions, and an image has `down` rows of positions. Positions outside the
// tensor are read as zeros.
struct Im2colMap {
  DType type = DType::bf16;
  const void* data = nullptr;
  std::int64_t n = 0, h = 0, w = 0, c = 0;
  std::int64_t pitch_n = 0, pitch_h = 0, pitch_w = 0;  // elements from one index to the next
  int first[2] = {0, 0}, step[2] = {1, 1};             // in height and width
  int down = 0, across = 0;
  int pixels = 0, channels = 0;
  Swizzle swizzle = Swizzle::bytes_128;
  // Returns whether TMA's descriptor can describe these positions; its fields have few bits.
  bool encodable() const;
  CUtensorMap encode() const;
};

// The maps of a tensor, one per member (MemberLayout, kernel.h). Kernels get the map of member 0
// among their parameters, and the maps of the other members in device memory (sm90::map_of).
struct MemberMap {
  CUtensorMap first;
  const CUtensorMap* others = nullptr;
};

// Makes the tensor maps of a launch. The device memory of the maps lives as long as held().
class MapMaker {
 public:
  explicit MapMaker(MemberLayout members);
  MemberMap tiled(DType type, const void* data, const std::vector<std::int64_t>& extents,
                  const std::vector<std::int64_t>& pitches, const std::vector<std::uint32_t>& box,
                  Swizzle swizzle = Swizzle::bytes_128) const;
  MemberMap im2col(const Im2colMap& map) const;
  std::shared_ptr<const void> held() const { return tables_; }

 private:
  // Makes one map per member. `encode` makes a map, given the address of the member's tensor.
  MemberMap make(const void* data, const std::function<CUtensorMap(const void*)>& encode) const;

  MemberLayout members_;
  std::shared_ptr<std::vector<std::shared_ptr<const CUtensorMap>>> tables_;
};

}  // namespace convoy::kernels
