// The im2col engine's kernels of backward_weights, tf32: k runs over positions, so that neither operand's is contiguous.
#include "kernels/conv2d/sm90_im2col.cuh"
#include "kernels/gemm/sm90_mn_major.cuh"

namespace convoy::kernels::conv {
namespace {

struct PositionParameters {
  LoaderParameters of;
  bool turned;  // the filters, which are m, are the shorter side
};

template <class Config>
struct PositionLoader {
  using Parameters = PositionParameters;
  __device__ static void prefetch(const Parameters& parameters) {
    sm90::prefetch_tensor_map(&parameters.of.images);
    sm90::prefetch_tensor_map(&parameters.of.other);
  }
  __device__ static void load(const Parameters& p, std::uint8_t* x, std::uint8_t* y, std::uint64_t* full,
                              int x_tile, int y_tile, int k_block) {
    constexpr int kX = Config::x / 32, kY = Config::y / 32;
    const int position = k_block * Config::depth;
    if (p.turned) {
      load_windows<kX>(p.of, x, full, x_tile * kX, position, y_tile);
      load_filters<kY>(p.of, y, full, y_tile * Config::y, position);
    } else {
      load_filters<kX>(p.of, x, full, x_tile * Config::x, position);
      load_windows<kY>(p.of, y, full, y_tile * kY, position, x_tile);
    }
  }

 private:
  template <int boxes>
  __device__ static void load_filters(const LoaderParameters& p, std::uint8_t* to, std::uint64_t* full,
                                      int filter, int position) {
    for (int i = 0; i < boxes; ++i)
      sm90::load_2d(&p.other, to + i * Config::box_bytes, full, filter + i * 32, position);
  }
  template <int boxes>
  __device__ static void load_windows(const LoaderParameters& p, std::uint8_t* to, std::uint64_t* full,
                                      int first, int position, int filter_tile) {
    const WindowLoad::Pixel at = p.window.pixel(position);
    const int first_channel = p.bundles.of(filter_tile) * p.bundles.channels;
    for (int i = 0; i < boxes; ++i)
      WindowBox(p, first + i, first_channel, 32).load(p, to + i * Config::box_bytes, full, at);
  }
};

struct GradientResult {
  float* data;  // [pieces][K][taps][C]
  int k, taps, c;
  cuda::Divider blocks;  // of 32 channels a tap

  struct Piece {
    const GradientResult& of;
    float* data;
    // Neighbours are of one tap, and C is a multiple of four.
    template <int count>
    __device__ void store(const float (&values)[count], int row, int column) const {
      const std::uint32_t block = std::uint32_t(column) / 32, tap = of.blocks(block);
      const int channel = int(block - tap * of.blocks.divisor) * 32 + column % 32;
      if (row >= of.k || int(tap) >= of.taps || channel >= of.c) return;
      using Vector = std::conditional_t<count == 4, float4, float2>;
      *reinterpret_cast<Vector*>(data + (std::int64_t{row} * of.taps + tap) * of.c + channel) =
          *reinterpret_cast<const Vector*>(values);
    }
  };
  template <class Store>
  __device__ void with_piece(int split, Store store) const {
    store(Piece{*this, data + std::int64_t{split} * k * taps * c});
  }
};

template <int tile>
void start_tile(const Sm90ConvCall& call, cudaStream_t stream) {
  constexpr gemm::Sm90Tile kTile = gemm::kMnMajorTiles[tile];
  constexpr bool kTurned = gemm::is_turned(kTile);
  using Config =
      gemm::MnMajorConfig<std::max(kTile.rows, kTile.columns), std::min(kTile.rows, kTile.columns)>;
  gemm::start_early<Config::threads, Config::shared_bytes>(
      gemm::mn_major_kernel<Config, PositionLoader<Config>, GradientResult>, call.blocks, 1, stream,
      PositionParameters{loader_parameters(call), kTurned},
      GradientResult{call.gradient, call.m, call.taps, call.channels, call.window.blocks}, call.schedule,
      kTurned);
}

}  // namespace

void sm90_conv_backward_weights_tf32(const Sm90ConvCall& call, cudaStream_t stream) {
  [&]<int... tile>(std::integer_sequence<int, tile...>) {
    ((call.tile == tile ? start_tile<tile>(call, stream) : void()), ...);
  }
  (std::make_integer_sequence<int, int(std::size(gemm::kMnMajorTiles))>{});
}

}  // namespace convoy::kernels::conv
