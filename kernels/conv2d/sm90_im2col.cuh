// Loaders of the im2col engine's kernels, and its placement for the wgmma rung's. Device code, sm_90a only.
#pragma once

#include "kernels/conv2d/sm90_call.h"
#include "kernels/gemm/sm90_launch.cuh"

namespace convoy::kernels::conv {

struct Sm90Placement {
  Placement place;
  __device__ void store(const CUtensorMap* c, const void* from, int column, int row, int split) const {
    if (place.kind == Placement::Kind::matrix) {
      sm90::store_3d(c, from, column, row, split);
    } else if (place.kind == Placement::Kind::positions) {
      const std::uint32_t n = place.positions(std::uint32_t(row)),
                          inside = std::uint32_t(row) - n * place.positions.divisor;
      const std::uint32_t i = place.across(inside);
      sm90::store_im2col(c, from, column, int(inside - i * place.across.divisor), int(i), int(n));
    } else {
      const bool turned = place.kind == Placement::Kind::turned;
      const std::uint32_t at = std::uint32_t(turned ? row : column), tap = place.blocks(at / 64);
      const int channel = int(at / 64 - tap * place.blocks.divisor) * 64 + int(at % 64);
      if (turned)
        sm90::store_4d(c, from, column, channel, int(tap), split);
      else
        sm90::store_4d(c, from, channel, int(tap), row, split);
    }
  }
  __device__ int sum_rows(int m) const { return min(m, place.control->valid * place.sample_rows); }
};

struct LoaderParameters {
  CUtensorMap images, other;
  WindowLoad window;
  FilterTaps filter_taps;
};

// A: windows of the images. B: the filters' channels of the same tap, which lie contiguous (k contiguous), or those of
// one tap and many filters (n contiguous).
template <class Config>
struct WindowLoader {
  using Parameters = LoaderParameters;
  __device__ static void prefetch(const Parameters& parameters) {
    sm90::prefetch_tensor_map(&parameters.images);
    sm90::prefetch_tensor_map(&parameters.other);
  }
  __device__ static void load(const Parameters& p, std::uint8_t* a, std::uint8_t* b, std::uint64_t* full,
                              int m_tile, int n_tile, int k_block, std::uint32_t) {
    const int row = m_tile * Config::rows, column = n_tile * Config::columns;
    int channel = k_block * Config::depth, tap = p.filter_taps.first;
    if (p.window.matrix) {
      sm90::load_2d(&p.images, a, full, channel, row);
    } else {
      const WindowLoad::Pixel at = p.window.pixel(row);
      const WindowLoad::Block block = p.window.block(k_block);
      channel = block.channel_block * Config::depth, tap = p.filter_taps.at(block.r, block.s);
      sm90::load_im2col(&p.images, a, full, channel, at.w, at.h, at.n,
                        std::uint16_t(block.s * p.window.reach[1]),
                        std::uint16_t(block.r * p.window.reach[0]));
    }
    if constexpr (Config::b_mn_major) {
      for (int i = 0; i < Config::columns / 64; ++i)
        sm90::load_3d(&p.other, b + i * 8192, full, column + i * 64, tap, channel);
    } else {
      sm90::load_3d(&p.other, b, full, channel, tap, column);
    }
  }
};

// A: dy as it is, m contiguous. B: windows of x, a block of columns each box of n; k runs over positions. Boxes are 128
// bytes wide and `depth` positions high. Narrow tiles hold the filters in their columns: A and B change places.
template <class Config>
struct GradientLoader {
  using Parameters = LoaderParameters;
  static constexpr int kWidth = Config::depth, kBoxBytes = Config::depth * 128;
  static constexpr bool turned = Config::columns % kWidth != 0;
  __device__ static void prefetch(const Parameters& parameters) {
    sm90::prefetch_tensor_map(&parameters.images);
    sm90::prefetch_tensor_map(&parameters.other);
  }
  __device__ static void load(const Parameters& p, std::uint8_t* a, std::uint8_t* b, std::uint64_t* full,
                              int m_tile, int n_tile, int k_block, std::uint32_t) {
    constexpr int kRows = Config::rows / kWidth, kColumns = Config::columns / kWidth;
    const int position = k_block * Config::depth;
    if constexpr (turned) {
      load_windows<kRows>(p, a, full, m_tile * kRows, position);
      load_filters<Config::column_boxes>(p, b, full, n_tile * Config::columns, position);
    } else {
      load_filters<kRows>(p, a, full, m_tile * Config::rows, position);
      load_windows<kColumns>(p, b, full, n_tile * kColumns, position);
    }
  }

  template <int boxes>
  __device__ static void load_filters(const Parameters& p, std::uint8_t* to, std::uint64_t* full, int filter,
                                      int position) {
    for (int i = 0; i < boxes; ++i)
      sm90::load_2d(&p.other, to + i * kBoxBytes, full, filter + i * kWidth, position);
  }
  template <int boxes>
  __device__ static void load_windows(const Parameters& p, std::uint8_t* to, std::uint64_t* full, int first,
                                      int position) {
    const WindowLoad::Pixel at = p.window.pixel(position);
    for (int i = 0; i < boxes; ++i) {
      const WindowLoad::Block block = p.window.block(first + i);
      // Beyond the last block: an image that is not there, which reads as zeros.
      const bool there = first + i < p.window.columns;
      sm90::load_im2col(&p.images, to + i * kBoxBytes, full, there ? block.channel_block * kWidth : 0, at.w,
                        at.h, there ? at.n : p.window.images,
                        std::uint16_t(there ? block.s * p.window.reach[1] : 0),
                        std::uint16_t(there ? block.r * p.window.reach[0] : 0));
    }
  }
};

// Every tile shape that has_kernel(); narrow ones do not read filters n contiguous, and take no mask.
template <gemm::Math math, bool a_mn_major, bool b_mn_major, template <class> class Loader,
          gemm::Extra extra = gemm::Extra::none>
void start_conv(const Sm90ConvCall& call, cudaStream_t stream) {
  gemm::with_tile(call.tile, [&]<int tile>(std::integral_constant<int, tile>) {
    constexpr bool kNarrow = gemm::is_narrow(gemm::kSm90Tiles[tile]);
    constexpr bool kLeftOut = kNarrow && ((b_mn_major && !a_mn_major) || extra == gemm::Extra::mask);
    if constexpr (has_kernel(gemm::kSm90Tiles[tile], math, a_mn_major) && !kLeftOut) {
      using Config = gemm::Sm90Config<math, a_mn_major, b_mn_major, tile>;
      gemm::start_wgmma<Config, Loader<Config>, gemm::TileStore<Config, extra, Sm90Placement>>(
          {call.images, call.other, call.window, call.filter_taps},
          {call.c,
           call.m,
           call.n,
           1,
           call.bias,
           call.relu,
           call.bf16,
           call.plain,
           call.mask,
           call.sum_slots,
           {call.placement}},
          call.schedule, call.blocks, stream);
    } else {
      throw std::logic_error("no kernel of this tile");
    }
  });
}

}  // namespace convoy::kernels::conv
