// Makes tensor maps, the descriptors by which TMA, Hopper's tensor memory accelerator, reads and
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

// Maps a strided tensor in boxes, which are in shared memory in the 128-byte swizzle. extents, box:
// innermost first. pitches: elements from one index of dimension 1, 2 … to the next.
// Elements outside the tensor read as zero and are not written. Addresses and pitches are multiples
// of 16 bytes. Throws std::runtime_error if the driver refuses.
CUtensorMap tiled_map(DType type, const void* data, const std::vector<std::int64_t>& extents,
                      const std::vector<std::int64_t>& pitches, const std::vector<std::uint32_t>& box);

// Describes an NHWC tensor as columns of an im2col matrix, in boxes of `pixels` positions by
// `channels` channels in the same swizzle.
// Positions run from `first` in steps of `step` along w, h, n: `across` of them in a row, `down`
// rows in an image. Pixels outside the tensor read as zero.
struct Im2colMap {
  DType type = DType::bf16;
  const void* data = nullptr;
  std::int64_t n = 0, h = 0, w = 0, c = 0;
  std::int64_t pitch_n = 0, pitch_h = 0, pitch_w = 0;  // elements from one index to the next
  int first[2] = {0, 0}, step[2] = {1, 1};             // in height and width
  int down = 0, across = 0;
  int pixels = 0, channels = 0;
  // Returns whether the corners of the positions fit into the descriptor's fields.
  bool encodable() const;
  CUtensorMap encode() const;
};

// A tensor's maps, one a member. TMA reads member 0's from a kernel's parameters, and those of the
// others from device memory (sm90::map_of).
struct MemberMap {
  CUtensorMap first;
  const CUtensorMap* others = nullptr;
};

// Makes the maps of a launch. The device memory that they need is freed with held().
class MapMaker {
 public:
  explicit MapMaker(Members members);
  MemberMap tiled(DType type, const void* data, const std::vector<std::int64_t>& extents,
                  const std::vector<std::int64_t>& pitches, const std::vector<std::uint32_t>& box) const;
  MemberMap im2col(const Im2colMap& map) const;
  std::shared_ptr<const void> held() const { return tables_; }

 private:
  // `encode` makes the map of the tensor at an address.
  MemberMap make(const void* data, const std::function<CUtensorMap(const void*)>& encode) const;

  Members members_;
  std::shared_ptr<std::vector<std::shared_ptr<const CUtensorMap>>> tables_;
};

}  // namespace convoy::kernels
