// Device code of the im2col engine for the wgmma kernels: loaders, which read operands, and
// store targets, which say where results are stored. sm_90a only.
#pragma once

#include "kernels/conv2d/im2col/sm90_call.h"
#include "kernels/device/cuda_members.cuh"
#include "kernels/gemm/wgmma/sm90_affine.cuh"
#include "kernels/gemm/wgmma/sm90_launch.cuh"

namespace convoy::kernels::conv {

// Returns how many of `m` rows belong to valid samples; other rows do not count in column sums.
// `offset` is the distance in bytes from the memory of member 0 to that of the member
// (MemberLayout, kernels/device/kernel.h) that the block computes.
__device__ inline int valid_rows(const StoreTarget& target, int m, std::ptrdiff_t offset) {
  return min(m, cuda::moved(target.control, offset)->valid * target.sample_rows);
}

template <class Config>
struct Sm90StoreTarget : StoreTarget {
  __device__ int sum_rows(int m, std::ptrdiff_t offset) const { return valid_rows(*this, m, offset); }
  __device__ void store(const CUtensorMap* c, const void* from, int column, int row, int split) const {
    if (kind == StoreTarget::Kind::matrix) {
      sm90::store_3d(c, from, column, row, split);
    } else if (kind == StoreTarget::Kind::positions) {
      const Position at = position_of(row, positions, across);
      sm90::store_im2col(c, from, column, at.j, at.i, at.n);
    } else {
      const bool filters_in_columns = kind == StoreTarget::Kind::transposed_filters;
      constexpr std::uint32_t kBlock = Config::b_width;  // channels
      const std::uint32_t at = std::uint32_t(filters_in_columns ? row : column), tap = blocks(at / kBlock);
      const int channel = int((at / kBlock - tap * blocks.divisor) * kBlock + at % kBlock);
      if (filters_in_columns)
        sm90::store_4d(c, from, column, channel, int(tap), split);
      else
        sm90::store_4d(c, from, channel, int(tap), row, split);
    }
  }
  static constexpr bool has_gaps = false;
};

// The target of tiles whose taps share pixels (Sm90Tile::taps). In these tiles, gap rows follow
// the positions of each row of an image. Gap rows belong to no output. TMA cannot skip them when it
// stores (it ends in an illegal instruction), so threads store the results.
struct GapStoreTarget : StoreTarget {
  __device__ int sum_rows(int m, std::ptrdiff_t offset) const { return valid_rows(*this, m, offset); }
  // Loads a TMA box of 64 rows.
  __device__ void load(const CUtensorMap* map, void* to, std::uint64_t* full, int column, int row) const {
    const Position at = position_of(row, positions, across);
    sm90::load_im2col(map, to, full, column, at.j, at.i, at.n, 0, 0);
  }
  static constexpr bool has_gaps = true;
  __device__ int next_gap() const { return int(across.divisor); }
  __device__ int first_gap(int row) const {
    const auto r = std::uint32_t(row);
    return int((across(r) + 1) * across.divisor) - gap - row;
  }
  __device__ int element_row(int row) const {
    return first_gap(row) <= 0 ? -1 : row - int(across(std::uint32_t(row))) * gap;
  }
};
template <class Config>
using StoreTargetOf = std::conditional_t<(Config::k_taps > 1), GapStoreTarget, Sm90StoreTarget<Config>>;

struct LoaderParameters {
  CUtensorMap images, other, half;
  const CUtensorMap *images_of_others, *other_of_others, *half_of_others;
  WindowLoad window;
  FilterTaps filter_taps;
  PackSteps packing;
  int left_out_bytes;
  gemm::AffineOperand affine;
  std::ptrdiff_t member_stride;
  __device__ gemm::AffineOperand affine_of(int member) const {
    gemm::AffineOperand of_member = affine;
    of_member.of_channels = cuda::moved(affine.of_channels, member_stride * member);
    return of_member;
  }
  __device__ const CUtensorMap* images_map(int member) const {
    return sm90::map_of(images, images_of_others, member);
  }
  __device__ const CUtensorMap* other_map(int member) const {
    return sm90::map_of(other, other_of_others, member);
  }
  __device__ const CUtensorMap* half_map(int member) const {
    return sm90::map_of(half, half_of_others, member);
  }
  __device__ void prefetch(int member) const {
    sm90::prefetch_tensor_map(images_map(member));
    sm90::prefetch_tensor_map(other_map(member));
  }
};

// Loads pipeline stages of forward and backward_data: A is windows of the images, B is filters.
// Divisions are slow, so only the constructor divides, once per work item (TileScheduler).
template <class Config>
class WindowLoader {
 public:
  using Parameters = LoaderParameters;
  __device__ static void prefetch(const Parameters& parameters, int member) { parameters.prefetch(member); }
  // If there are fewer filters than columns in a tile, the other columns are not loaded. They hold
  // what was in shared memory, which reaches no other column.
  __device__ static int left_out_bytes(const Parameters& parameters) { return parameters.left_out_bytes; }
  __device__ WindowLoader(const Parameters& parameters, int member, int m_tile, int n_tile, int k_begin,
                          std::uint32_t)
      : p_(parameters),
        member_(member),
        at_(p_.window.matrix ? WindowLoad::Pixel{0, 0, m_tile * Config::rows}
                             : p_.window.pixel(m_tile * Config::rows)),
        block_(p_.window.block(k_begin)) {
    const int pack = p_.packing.of(n_tile);
    first_channel_ = pack * p_.packing.channels;
    column_ = n_tile * Config::columns - pack * p_.packing.filter_columns;
    if constexpr (Config::b_mn_major) filter_row_ = pack * p_.packing.filter_rows;
  }
  __device__ void load(std::uint8_t* a, std::uint8_t* b, std::uint64_t* full) {
    load_a(a, full);
    load_tap(0, b, full);
    if constexpr (Config::affine_bytes > 0)
      sm90::load_bytes(p_.affine_of(member_).of_channels + 2 * channel(), affine_bytes(), b + Config::b_bytes,
                       full);
    advance();
  }
  // Returns the bytes of the scales and shifts in a stage.
  __device__ int affine_bytes() const { return 8 * min(Config::depth, p_.affine.channels - channel()); }
  // Loads A without B. In tiles whose taps share pixels, one box of A serves several taps.
  __device__ void load_a(std::uint8_t* a, std::uint64_t* full) const {
    if (p_.window.matrix)
      sm90::load_2d(p_.images_map(member_), a, full, first_channel_ + channel(), at_.w);
    else
      sm90::load_im2col(p_.images_map(member_), a, full, first_channel_ + channel(), at_.w, at_.h, at_.n,
                        std::uint16_t(block_.s * p_.window.reach[1]),
                        std::uint16_t(block_.r * p_.window.reach[0]));
  }
  __device__ void load_tap(int s, std::uint8_t* b, std::uint64_t* full) const {
    const int tap = p_.filter_taps.at(block_.r, block_.s + s);
    if constexpr (Config::b_mn_major) {
      for (int i = 0; i < Config::column_boxes; ++i)
        sm90::load_3d(p_.other_map(member_), b + i * Config::column_box_bytes, full, column_ + i * 64, tap,
                      filter_row_ + channel());
    } else {
      sm90::load_3d(p_.other_map(member_), b, full, channel(), tap, column_);
    }
  }
  __device__ void advance() { p_.window.advance(block_); }

 private:
  __device__ int channel() const { return block_.channel_block * Config::depth; }

  const Parameters& p_;
  const int member_;
  const WindowLoad::Pixel at_;  // the first pixel; for a plain matrix `w` is the row
  WindowLoad::Block block_;
  int first_channel_, column_, filter_row_ = 0;
};

// One TMA box of windows: output positions by one block of im2col columns. If the block lies beyond
// the last block of the matrix, the box refers to an image that does not exist, so that TMA reads
// zeros.
struct WindowBox {
  int channel, first_image;
  std::uint16_t right, down;  // the tap's offsets in pixels from the window's first pixel
  __device__ WindowBox(const LoaderParameters& p, int index, int first_channel, int width) {
    const WindowLoad::Block block = p.window.block(index);
    const bool there = index < p.window.columns;
    channel = there ? first_channel + block.channel_block * width : 0;
    first_image = there ? 0 : p.window.images;
    right = std::uint16_t(there ? block.s * p.window.reach[1] : 0);
    down = std::uint16_t(there ? block.r * p.window.reach[0] : 0);
  }
  __device__ void load(const LoaderParameters& p, int member, std::uint8_t* to, std::uint64_t* full,
                       const WindowLoad::Pixel& at) const {
    sm90::load_im2col(p.images_map(member), to, full, channel, at.w, at.h, first_image + at.n, right, down);
  }
};

// Loads pipeline stages of backward_weights: A is dy and B is windows of x. With
// filters_in_columns, A and B are exchanged. If a tile ends in half a TMA box, the last box of dy
// is half as wide, because TMA is slow outside a tensor.
template <class Config, bool filters_in_columns>
class GradientLoader {
 public:
  using Parameters = LoaderParameters;
  __device__ static int left_out_bytes(const Parameters&) { return 0; }
  __device__ static void prefetch(const Parameters& parameters, int member) {
    parameters.prefetch(member);
    if constexpr (kEndsInHalfBox) sm90::prefetch_tensor_map(parameters.half_map(member));
  }
  __device__ GradientLoader(const Parameters& parameters, int member, int a_tile, int b_tile, int k_begin,
                            std::uint32_t = 0)
      : GradientLoader(parameters, member, filters_in_columns ? b_tile : a_tile,
                       filters_in_columns ? a_tile : b_tile, k_begin,
                       std::make_integer_sequence<int, kWindows>{}) {}
  __device__ void load(std::uint8_t* a, std::uint8_t* b, std::uint64_t* full) {
    std::uint8_t *const filters = filters_in_columns ? b : a, *const windows = filters_in_columns ? a : b;
#pragma unroll
    for (int i = 0; i < kFilters; ++i)
      sm90::load_2d((i + 1) * kWidth <= kTileFilters ? p_.other_map(member_) : p_.half_map(member_),
                    filters + i * kBoxBytes, full, filter_ + i * kWidth, position_);
#pragma unroll
    for (int i = 0; i < kWindows; ++i) boxes_[i].load(p_, member_, windows + i * kWindowBytes, full, at_);
    position_ += Config::depth;
    at_ = p_.window.pixel(position_);
  }

 private:
  static constexpr int kWidth = Config::depth, kBoxBytes = Config::depth * 128;
  static constexpr int kTileFilters = filters_in_columns ? Config::columns : Config::rows,
                       kFilters = (kTileFilters + kWidth - 1) / kWidth,
                       kWindowWidth = filters_in_columns ? kWidth : Config::b_width,
                       kWindowBytes = kBoxBytes / kWidth * kWindowWidth,
                       kWindows = (filters_in_columns ? Config::rows : Config::columns) / kWindowWidth;
  static constexpr bool kEndsInHalfBox = kTileFilters % kWidth != 0;
  static_assert(!kEndsInHalfBox || kTileFilters % kWidth == kWidth / 2);
  template <int... box>
  __device__ GradientLoader(const Parameters& parameters, int member, int filter_tile, int window_tile,
                            int k_begin, std::integer_sequence<int, box...>)
      : p_(parameters),
        member_(member),
        filter_(filter_tile * kTileFilters),
        position_(k_begin * Config::depth),
        at_(p_.window.pixel(position_)),
        boxes_{WindowBox(p_, window_tile * kWindows + box, p_.packing.of(filter_tile) * p_.packing.channels,
                         kWindowWidth)...} {}

  const Parameters& p_;
  const int member_;
  const int filter_;
  int position_;
  WindowLoad::Pixel at_;
  const WindowBox boxes_[kWindows];
};

// Loads pipeline stages of backward_weights for tiles whose columns are the taps of a filter's row.
// Tap s reads at each position the pixel that tap 0 reads s positions later, so one TMA box of x
// serves all taps. Each row of y is followed by a gap (gemm::gap_of), where dy is zero. Zero times
// NaN or infinity is NaN. So a pixel at the end of a row that is not finite also affects the
// gradients of other taps.
template <class Config>
class RowGradientLoader {
 public:
  using Parameters = LoaderParameters;
  __device__ static int left_out_bytes(const Parameters&) { return 0; }
  __device__ static void prefetch(const Parameters& parameters, int member) { parameters.prefetch(member); }
  __device__ RowGradientLoader(const Parameters& parameters, int member, int m_tile, int n_tile, int k_begin,
                               std::uint32_t)
      : p_(parameters),
        member_(member),
        filter_(m_tile * Config::rows),
        down_(std::uint16_t(n_tile * p_.window.reach[0])),
        position_(k_begin * Config::depth),
        at_(p_.window.pixel(position_)) {}
  __device__ void load(std::uint8_t* a, std::uint8_t* b, std::uint64_t* full) {
#pragma unroll
    for (int i = 0; i < Config::rows / 64; ++i)
      sm90::load_im2col(p_.other_map(member_), a + i * 8192, full, filter_ + i * 64,
                        at_.w - p_.window.first[1], at_.h - p_.window.first[0], at_.n, 0, 0);
    sm90::load_im2col(p_.images_map(member_), b, full, 0, at_.w, at_.h, at_.n, 0, down_);
    position_ += Config::depth;
    at_ = p_.window.pixel(position_);
  }

 private:
  const Parameters& p_;
  const int member_;
  const int filter_;
  const std::uint16_t down_;  // the tap's offset in rows from the window's first row
  int position_;
  WindowLoad::Pixel at_;
};

// With input_affine, x is A of the product, because A may be in registers.
template <class Config>
using AffineGradientLoader = GradientLoader<Config, true>;

inline LoaderParameters loader_parameters(const Sm90ConvCall& call) {
  return {call.images.first, call.other.first,    call.half.first, call.images.others,
          call.other.others, call.half.others,    call.window,     call.filter_taps,
          call.packing,      call.left_out_bytes, call.affine,     call.members.stride};
}

// Launches the kernel of a tile for which has_kernel() is true.
template <gemm::Math math, bool a_mn_major, bool b_mn_major, template <class> class Loader,
          gemm::Extra extra = gemm::Extra::none, bool affine = false>
void start_conv(const Sm90ConvCall& call, cudaStream_t stream) {
  gemm::with_tile<gemm::kSm90Tiles>(call.tile, [&]<int tile>(std::integral_constant<int, tile>) {
    constexpr bool kHalfBox = gemm::ends_in_half_box(gemm::kSm90Tiles[tile], math);
    constexpr bool kLeftOut = kHalfBox && ((b_mn_major && !a_mn_major) || extra == gemm::Extra::mask);
    constexpr bool kExists = affine ? has_affine_kernel(gemm::kSm90Tiles[tile], a_mn_major)
                                    : has_kernel(gemm::kSm90Tiles[tile], math, a_mn_major) && !kLeftOut;
    if constexpr (kExists) {
      using Config = gemm::Sm90Config<math, a_mn_major, b_mn_major, tile, affine>;
      static_assert(Config::k_taps == gemm::depth_taps(gemm::kSm90Tiles[tile]));
      gemm::start_wgmma<Config, Loader<Config>, gemm::TileStore<Config, extra, StoreTargetOf<Config>>>(
          loader_parameters(call),
          {call.c.first,
           call.c.others,
           call.m,
           call.n,
           1,
           call.bias,
           call.relu,
           call.bf16,
           call.plain,
           call.mask,
           call.sum_slots,
           {call.target},
           call.members.stride},
          call.schedule, call.blocks, call.members, stream);
    } else {
      throw std::logic_error("no kernel of this tile");
    }
  });
}

}  // namespace convoy::kernels::conv
