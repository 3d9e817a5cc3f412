// A View describes one im2col matrix of a task, as TMA reads it in one launch.
#pragma once

#include <vector>

#include "kernels/conv2d/engines.h"
#include "kernels/conv2d/im2col/sm90_call.h"
#include "kernels/device/cuda_tensor_map.h"
#include "kernels/gemm/rungs.h"

namespace convoy::kernels::conv {

// Returns the number of channels in a block of channels, which fills 128 bytes.
inline int depth_of(const Task& task) { return task.math == gemm::Math::bf16 ? 64 : 32; }

struct View {
  Im2colMap map;
  int taps[2] = {1, 1}, reach[2] = {1, 1};
  FilterTaps filter_taps{};
  // For backward_data: the offset in dx of the first pixel that this view computes.
  std::int64_t out_offset = 0;

  std::int64_t rows() const { return map.n * map.down * map.across; }
  // Returns the number of blocks of im2col columns if the tensor has `channels` channels.
  int blocks(int channels, int depth) const {
    return taps[0] * taps[1] * int(gemm::ceil_div(channels, depth));
  }
};

// Returns the views of a task. All tasks have one view, except backward_data with a stride: there,
// each pair of residues modulo the stride has a view of the pixels of dx whose row and column have
// these residues. Each view is a convolution of dy without stride.
std::vector<View> views_of(const Task& task, Engine engine);

}  // namespace convoy::kernels::conv
