// Resamples images on the device. A cut is the part of a stored image that a crop needs. A thread
// computes one column of kTileRows output rows. For each row of the cut, it computes the weighted
// sum for its column once (this is called narrowing). Shared memory keeps the last kRing sums of
// each thread. From these sums, the thread computes the pixels of its column.
#include "kernels/device/bilinear.h"
#include "kernels/device/cuda_launch.cuh"
#include "kernels/device/divider.h"
#include "kernels/resample/resample.h"

namespace convoy::kernels::cuda {
namespace {

// A block has a thread per column of its tile. There are at least as many columns as a warp has
// threads, so there are enough threads to compute the weights of the 16 rows, one row per thread.
constexpr int kTileRows = 16, kTileColumns = 256;
// The number of weights that can be stored for an output along an axis. (The taps are the source
// pixels that have a weight.) 16 suffice if an image is reduced by a factor up to 7.5. With a
// larger factor, pixel_alone() computes every pixel without stored weights.
constexpr int kStoredTaps = 16;
constexpr int kRing = kStoredTaps;  // a power of two
constexpr int kTapsAtOnce = 4;      // taps whose loads run at the same time

struct Images {
  int channels, height, width;
  // `tiles` divides by the number of tiles of an image. `column_tiles` divides by the number of
  // tiles across an image.
  Divider tiles, column_tiles;
  std::uint8_t fill[kMostImageChannels];
};

struct Shared {
  // For each column, the weighted sums of the latest rows of the cut. A word has up to four
  // channels.
  std::uint32_t narrowed[kRing][kTileColumns];
  // For each column, the weights of its taps, except the first kTapsAtOnce, which are in registers.
  std::int32_t column_weight[kStoredTaps - kTapsAtOnce][kTileColumns];
  std::int32_t row_weight[kTileRows][kStoredTaps];
  // For each output row of the tile: the first row of the cut that it needs, and how many it needs.
  std::int32_t row_first[kTileRows], row_taps[kTileRows];
};

// Returns whether all weights can be stored. An output has at most 2 * scale + 1 taps on an axis.
__device__ bool weights_fit(const SampleTransform& transform) {
  return fmax(transform.rows.scale, transform.columns.scale) <= (kStoredTaps - 1) / 2.0;
}

// Weighted sums of kLanes channels of one pixel.
template <int kLanes>
struct Sums {
  std::int32_t value[kLanes];
  __device__ Sums() {
#pragma unroll
    for (int c = 0; c < kLanes; ++c) value[c] = kHalfWeight;
  }
  // Adds `weight` times a pixel of `lanes` channels from memory.
  __device__ void add(std::int32_t weight, const std::uint8_t* pixel, int lanes) {
#pragma unroll
    for (int c = 0; c < kLanes; ++c)
      if (c < lanes) value[c] += weight * pixel[c];
  }
  __device__ void add(std::int32_t weight, std::uint32_t packed) {
#pragma unroll
    for (int c = 0; c < kLanes; ++c) value[c] += weight * static_cast<std::int32_t>(packed >> 8 * c & 255);
  }
  __device__ std::uint32_t packed() const {
    std::uint32_t result = 0;
#pragma unroll
    for (int c = 0; c < kLanes; ++c) result |= std::uint32_t{rounded_pixel(value[c])} << 8 * c;
    return result;
  }
};

// Computes the output column of one thread, for at most kLanes channels at a time.
template <int kLanes>
class Column {
 public:
  __device__ explicit Column(Shared& shared) : shared_(shared) {}

  // Starts column `output` (before mirroring), which must not be padding. `from` is the first pixel
  // of the cut.
  __device__ void open(const std::uint8_t* from, const SampleTransform& transform, int output, int channels) {
    const BilinearTaps taps = bilinear_taps(transform.columns, output);
    taps_ = taps.count;
    from_ = from + std::int64_t{taps.first - transform.columns.first} * channels;
    pitch_ = std::int64_t{transform.pitch} * channels;
#pragma unroll
    for (int tap = 0; tap < kTapsAtOnce; ++tap) weight_[tap] = tap < taps_ ? bilinear_weight(taps, tap) : 0;
    for (int tap = kTapsAtOnce; tap < taps_; ++tap)
      shared_.column_weight[tap - kTapsAtOnce][threadIdx.x] = bilinear_weight(taps, tap);
  }

  // Returns the pixel of this column in row `row` of the tile. Call this for the rows in ascending
  // order.
  __device__ std::uint32_t down_to(int row, int channels, int lanes) {
    const int first = shared_.row_first[row], taps = shared_.row_taps[row];
    for (next_ = max(next_, first); next_ < first + taps; ++next_)
      shared_.narrowed[next_ & (kRing - 1)][threadIdx.x] = narrow(next_, channels, lanes);
    Sums<kLanes> sums;
#pragma unroll 1
    for (int begin = 0; begin < taps; begin += kTapsAtOnce)
#pragma unroll
      // Weights after the last tap are 0.
      for (int tap = begin; tap < begin + kTapsAtOnce; ++tap)
        sums.add(shared_.row_weight[row][tap], shared_.narrowed[(first + tap) & (kRing - 1)][threadIdx.x]);
    return sums.packed();
  }

 private:
  // Returns this column's weighted sum of one row of the cut.
  __device__ std::uint32_t narrow(int row, int channels, int lanes) const {
    const std::uint8_t* pixel = from_ + row * pitch_;
    Sums<kLanes> sums;
    std::int32_t value[kTapsAtOnce][kLanes] = {};
#pragma unroll
    for (int tap = 0; tap < kTapsAtOnce; ++tap)
#pragma unroll
      for (int c = 0; c < kLanes; ++c)
        if (tap < taps_ && c < lanes) value[tap][c] = pixel[tap * channels + c];
#pragma unroll
    for (int tap = 0; tap < kTapsAtOnce; ++tap)
#pragma unroll
      for (int c = 0; c < kLanes; ++c) sums.value[c] += weight_[tap] * value[tap][c];
#pragma unroll 2
    for (int tap = kTapsAtOnce; tap < taps_; ++tap)
      sums.add(shared_.column_weight[tap - kTapsAtOnce][threadIdx.x], pixel + tap * channels, lanes);
    return sums.packed();
  }

  Shared& shared_;
  const std::uint8_t* from_ = nullptr;
  std::int64_t pitch_ = 0;
  std::int32_t weight_[kTapsAtOnce] = {};
  int taps_ = 0;
  int next_ = 0;  // the first row of the cut whose sum is not computed yet
};

// Computes one pixel without stored weights, from any number of taps. This function is not inlined,
// because a call needs fewer registers.
template <int kLanes>
__device__ __noinline__ std::uint32_t pixel_alone(const std::uint8_t* from, const SampleTransform& transform,
                                                  int row, int column, int channels, int lanes) {
  const BilinearTaps rows = bilinear_taps(transform.rows, row);
  const BilinearTaps columns = bilinear_taps(transform.columns, column);
  from += (std::int64_t{rows.first - transform.rows.first} * transform.pitch + columns.first -
           transform.columns.first) *
          channels;
  Sums<kLanes> sums;
  for (int y = 0; y < rows.count; ++y, from += std::int64_t{transform.pitch} * channels) {
    Sums<kLanes> narrowed;
    for (int x = 0; x < columns.count; ++x)
      narrowed.add(bilinear_weight(columns, x), from + std::int64_t{x} * channels, lanes);
    sums.add(bilinear_weight(rows, y), narrowed.packed());
  }
  return sums.packed();
}

// Computes and stores the weights for row `row` of the tile, followed by zeros.
__device__ void store_row_weights(Shared& shared, int row, const AxisMap& rows, int output) {
  const BilinearTaps taps = bilinear_taps(rows, output);
  shared.row_first[row] = taps.first - rows.first;
  shared.row_taps[row] = taps.count;
  for (int tap = 0; tap < kStoredTaps; ++tap)
    shared.row_weight[row][tap] = tap < taps.count ? bilinear_weight(taps, tap) : 0;
}

// Stores one pixel of the output. With three channels, four pixels are stored as three words. For
// this, the threads of a warp exchange pixels, so all of them must call this.
template <int kChannels>
__device__ void store(std::uint8_t* row, int column, const Images& m, int group, int lanes,
                      std::uint32_t packed, bool active) {
  if constexpr (kChannels == 3) {
    if (m.width % 4 == 0) {
      const std::uint32_t next = __shfl_down_sync(0xffffffffu, packed, 1);
      const int part = column % 4;
      if (active && part < 3)
        reinterpret_cast<std::uint32_t*>(row + (column - part) * 3)[part] =
            packed >> 8 * part | next << (24 - 8 * part);
      return;
    }
  }
  if (!active) return;
  if constexpr (kChannels == 4) {
    reinterpret_cast<std::uint32_t*>(row)[column] = packed;
  } else {
#pragma unroll
    for (int c = 0; c < 4; ++c)
      if (c < lanes)
        row[std::int64_t{column} * m.channels + group + c] = static_cast<std::uint8_t>(packed >> 8 * c);
  }
}

// Computes a tile of the output. kChannels is the number of channels if that is 1, 3 or 4.
// Otherwise kChannels is 0, and up to four channels are computed at a time.
template <int kChannels>
__global__ void __launch_bounds__(kTileColumns, 4)
    resample(const std::uint8_t* __restrict__ cuts, const SampleTransform* __restrict__ transforms,
             std::uint8_t* images, const StepControl* control, const __grid_constant__ Images m,
             std::ptrdiff_t member_stride) {
  cuts = of_member(cuts, member_stride);
  transforms = of_member(transforms, member_stride);
  move_to_member(member_stride, images, control);
  constexpr int kLanes = kChannels > 0 ? kChannels : 4;
  const int channels = kChannels > 0 ? kChannels : m.channels;
  __shared__ Shared shared;
  const std::uint32_t sample = m.tiles(blockIdx.x), tile = blockIdx.x - sample * m.tiles.divisor;
  const std::uint32_t row_tile = m.column_tiles(tile);
  const int column = static_cast<int>((tile - row_tile * m.column_tiles.divisor) * blockDim.x + threadIdx.x);
  const int first_row = static_cast<int>(row_tile) * kTileRows;
  const int row_count = min(kTileRows, m.height - first_row);
  const SampleTransform& transform = transforms[sample];
  const bool valid = static_cast<int>(sample) < control->valid, stored = valid && weights_fit(transform);
  const auto has_pixels = [&](int row) {
    return first_row + row >= transform.rows.begin && first_row + row < transform.rows.end;
  };
  if (const int row = static_cast<int>(threadIdx.x); stored && row < row_count && has_pixels(row))
    store_row_weights(shared, row, transform.rows, first_row + row);
  __syncthreads();
  const bool active = column < m.width;
  const int output = valid && transform.flip != 0 ? m.width - 1 - column : column;
  const bool inside = valid && active && output >= transform.columns.begin && output < transform.columns.end;
  std::uint8_t* to = images + (std::int64_t{sample} * m.height + first_row) * m.width * m.channels;
  for (int group = 0; group < m.channels; group += kLanes) {
    const int lanes = kChannels > 0 ? kChannels : min(kLanes, m.channels - group);
    std::uint32_t fill = 0;
#pragma unroll
    for (int c = 0; c < kLanes; ++c)
      if (c < lanes) fill |= std::uint32_t{m.fill[group + c]} << 8 * c;
    const std::uint8_t* from = cuts + (valid ? transform.offset : 0) + group;
    Column<kLanes> source(shared);
    if (inside && stored) source.open(from, transform, output, channels);
    for (int row = 0; row < row_count; ++row) {
      std::uint32_t packed = fill;
      if (inside && has_pixels(row))
        packed = stored ? source.down_to(row, channels, lanes)
                        : pixel_alone<kLanes>(from, transform, first_row + row, output, channels, lanes);
      store<kChannels>(to + std::int64_t{row} * m.width * channels, column, m, group, lanes, packed, active);
    }
  }
}

}  // namespace

Kernel resample_forward(const ResampleProblem& problem, KernelRequest& request) {
  const char* operation = "resample_forward";
  check_resample(problem, request);
  require_layout(operation, request.inputs[0], Layout::row_major);
  require_layout(operation, request.inputs[1], Layout::row_major);
  require_layout(operation, request.outputs[0], Layout::channels_last);
  const Shape images = request.outputs[0].shape;
  // All tiles of an image have the same width, which is a multiple of 32 because a block has a
  // thread per column.
  const std::int64_t column_tiles = ceil_div(images[3], kTileColumns);
  const std::int64_t threads = ceil_div(ceil_div(images[3], column_tiles), 32) * 32;
  const std::int64_t tiles = column_tiles * ceil_div(images[2], kTileRows), blocks = images[0] * tiles;
  require_below_2g(operation, blocks);
  Images m{static_cast<int>(images[1]), static_cast<int>(images[2]),
           static_cast<int>(images[3]), Divider(tiles),
           Divider(column_tiles),       {}};
  std::copy(problem.fill.begin(), problem.fill.end(), m.fill);
  return device_kernel([=](const BoundOperands& b, Stream stream) {
    const StepControl* control = b.control();
    auto* kernel = m.channels == 1   ? resample<1>
                   : m.channels == 3 ? resample<3>
                   : m.channels == 4 ? resample<4>
                                     : resample<0>;
    launch(kernel, static_cast<unsigned>(blocks), static_cast<int>(threads), stream, b.members,
           b.in<std::uint8_t>(0), static_cast<const SampleTransform*>(b.inputs[1]), b.out<std::uint8_t>(0),
           control, m);
  });
}

}  // namespace convoy::kernels::cuda
