// Image operations on the device. A block applies all operations of one sample, one after the
// other. Each operation reads one buffer and writes another, because some operations need the old
// values of neighbouring pixels. The last operation writes y.
#include "kernels/device/cuda_launch.cuh"
#include "kernels/device/pixel_ops.h"
#include "kernels/image_ops/image_ops.h"

namespace convoy::kernels::cuda {
namespace {

constexpr int kBlock = 512, kWarps = kBlock / 32;
// Each histogram has this many copies. The warps are spread over the copies, so that fewer warps
// add to the same counter at the same time.
constexpr int kCopies = 4;

struct Image {
  int height, width;
  __device__ int pixels() const { return height * width; }
};

// The shared memory of a block.
template <int kChannels>
struct Shared {
  std::uint8_t table[kChannels][256];  // maps each level (0 to 255) to its new level
  std::uint32_t histogram[kCopies][kChannels][256];
  unsigned long long sum;
  int low[kChannels], high[kChannels];
};

template <int kChannels>
struct Pixel {
  std::uint8_t channel[kChannels];
};

// The pixels that a thread reads and writes at a time: four pixels, as 32-bit words, if a row of
// the image is a multiple of four pixels (kQuads), else one pixel.
template <int kChannels, bool kQuads>
struct Group {
  static constexpr int kPixels = kQuads ? 4 : 1;
  Pixel<kChannels> pixel[kPixels];

  static __device__ Group load(const std::uint8_t* image, int group) {
    Group result;
    if constexpr (kQuads) {
      const auto* words = reinterpret_cast<const std::uint32_t*>(image) + std::int64_t{group} * kChannels;
#pragma unroll
      for (int w = 0; w < kChannels; ++w) {
        const std::uint32_t word = words[w];
#pragma unroll
        for (int b = 0; b < 4; ++b)
          result.pixel[(4 * w + b) / kChannels].channel[(4 * w + b) % kChannels] =
              static_cast<std::uint8_t>(word >> 8 * b);
      }
    } else {
#pragma unroll
      for (int c = 0; c < kChannels; ++c)
        result.pixel[0].channel[c] = image[std::int64_t{group} * kChannels + c];
    }
    return result;
  }

  __device__ void store(std::uint8_t* image, int group) const {
    if constexpr (kQuads) {
      auto* words = reinterpret_cast<std::uint32_t*>(image) + std::int64_t{group} * kChannels;
#pragma unroll
      for (int w = 0; w < kChannels; ++w) {
        std::uint32_t word = 0;
#pragma unroll
        for (int b = 0; b < 4; ++b)
          word |= std::uint32_t{pixel[(4 * w + b) / kChannels].channel[(4 * w + b) % kChannels]} << 8 * b;
        words[w] = word;
      }
    } else {
#pragma unroll
      for (int c = 0; c < kChannels; ++c) image[std::int64_t{group} * kChannels + c] = pixel[0].channel[c];
    }
  }
};

// Calls visit(pixel) for the pixels that this thread handles.
template <int kChannels, bool kQuads, typename Visit>
__device__ void for_pixels(const std::uint8_t* from, Image image, Visit visit) {
  using G = Group<kChannels, kQuads>;
  for (int i = threadIdx.x; i < image.pixels() / G::kPixels; i += kBlock) {
    const G group = G::load(from, i);
#pragma unroll
    for (int p = 0; p < G::kPixels; ++p) visit(group.pixel[p]);
  }
}

// Writes change(pixel) to `to` for every pixel of `from`.
template <int kChannels, bool kQuads, typename Change>
__device__ void change_pixels(const std::uint8_t* from, std::uint8_t* to, Image image, Change change) {
  using G = Group<kChannels, kQuads>;
  for (int i = threadIdx.x; i < image.pixels() / G::kPixels; i += kBlock) {
    G group = G::load(from, i);
#pragma unroll
    for (int p = 0; p < G::kPixels; ++p) group.pixel[p] = change(group.pixel[p]);
    group.store(to, i);
  }
}

template <int kChannels, bool kQuads>
__device__ int mean_grey(const std::uint8_t* from, Image image, Shared<kChannels>& shared) {
  if (threadIdx.x == 0) shared.sum = 0;
  __syncthreads();
  // A thread adds up at most 8192^2 / 512 pixels of value 255, so the sum of a warp is below 2^31.
  std::uint32_t sum = 0;
  for_pixels<kChannels, kQuads>(from, image, [&](const Pixel<kChannels>& pixel) {
    if constexpr (kChannels == 3)
      sum += pixel::grey(pixel.channel[0], pixel.channel[1], pixel.channel[2]);
    else
      sum += pixel.channel[0];
  });
  sum = __reduce_add_sync(0xffffffffu, sum);
  if (threadIdx.x % 32 == 0) atomicAdd(&shared.sum, static_cast<unsigned long long>(sum));
  __syncthreads();
  return pixel::mean_level(shared.sum, image.pixels());
}

template <int kChannels, bool kQuads>
__device__ void find_ranges(const std::uint8_t* from, Image image, Shared<kChannels>& shared) {
  if (threadIdx.x < kChannels) shared.low[threadIdx.x] = 255, shared.high[threadIdx.x] = 0;
  __syncthreads();
  int low[kChannels], high[kChannels];
#pragma unroll
  for (int c = 0; c < kChannels; ++c) low[c] = 255, high[c] = 0;
  for_pixels<kChannels, kQuads>(from, image, [&](const Pixel<kChannels>& pixel) {
#pragma unroll
    for (int c = 0; c < kChannels; ++c) {
      low[c] = min(low[c], int{pixel.channel[c]});
      high[c] = max(high[c], int{pixel.channel[c]});
    }
  });
#pragma unroll
  for (int c = 0; c < kChannels; ++c) {
    low[c] = __reduce_min_sync(0xffffffffu, low[c]);
    high[c] = __reduce_max_sync(0xffffffffu, high[c]);
    if (threadIdx.x % 32 == 0) atomicMin(&shared.low[c], low[c]), atomicMax(&shared.high[c], high[c]);
  }
  __syncthreads();
}

template <int kChannels, bool kQuads>
__device__ void count_levels(const std::uint8_t* from, Image image, Shared<kChannels>& shared) {
  for (int i = threadIdx.x; i < kCopies * kChannels * 256; i += kBlock) (&shared.histogram[0][0][0])[i] = 0;
  __syncthreads();
  auto& mine = shared.histogram[threadIdx.x / 32 % kCopies];
  for_pixels<kChannels, kQuads>(from, image, [&](const Pixel<kChannels>& pixel) {
#pragma unroll
    for (int c = 0; c < kChannels; ++c) atomicAdd(&mine[c][pixel.channel[c]], 1u);
  });
  __syncthreads();
}

// Makes the tables of new levels for ImageOpKind::equalize. A warp makes the table of one channel.
// Each lane computes eight levels.
template <int kChannels>
__device__ void make_equalizing_table(Image image, Shared<kChannels>& shared) {
  const int c = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (c >= kChannels) return;
  std::uint32_t count[8], sum = 0, last = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    count[i] = 0;
    for (int copy = 0; copy < kCopies; ++copy) count[i] += shared.histogram[copy][c][8 * lane + i];
    sum += count[i];
    if (count[i] > 0) last = count[i];
  }
  std::uint32_t below = sum;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const std::uint32_t lower = __shfl_up_sync(0xffffffffu, below, distance);
    if (lane >= distance) below += lower;
  }
  below -= sum;
  const int highest = 31 - __clz(static_cast<int>(__ballot_sync(0xffffffffu, sum > 0)));
  last = __shfl_sync(0xffffffffu, last, highest);
  const std::uint32_t step = (static_cast<std::uint32_t>(image.pixels()) - last) / 255;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    shared.table[c][8 * lane + i] = pixel::equalized(8 * lane + i, below, step);
    below += count[i];
  }
}

template <int kChannels, bool kQuads>
__device__ void change_levels(const ImageOp& op, const std::uint8_t* from, std::uint8_t* to, Image image,
                              Shared<kChannels>& shared) {
  if (op.kind == ImageOpKind::equalize) {
    count_levels<kChannels, kQuads>(from, image, shared);
    make_equalizing_table(image, shared);
  } else {
    int mean = 0;
    if (op.kind == ImageOpKind::contrast) mean = mean_grey<kChannels, kQuads>(from, image, shared);
    if (op.kind == ImageOpKind::autocontrast) find_ranges<kChannels, kQuads>(from, image, shared);
    for (int i = threadIdx.x; i < kChannels * 256; i += kBlock) {
      const int c = i / 256;
      shared.table[c][i % 256] = pixel::new_level(op, i % 256, mean, {shared.low[c], shared.high[c]});
    }
  }
  __syncthreads();
  change_pixels<kChannels, kQuads>(from, to, image, [&](Pixel<kChannels> pixel) {
#pragma unroll
    for (int c = 0; c < kChannels; ++c) pixel.channel[c] = shared.table[c][pixel.channel[c]];
    return pixel;
  });
}

// Applies an affine operation. A warp writes a tile of 8 x 4 groups of pixels. So even if the image
// is rotated, the pixels that the warp reads lie in few cache lines.
template <int kChannels, bool kQuads>
__device__ void move(const ImageOp& op, const std::uint8_t* from, std::uint8_t* to, Image image) {
  using G = Group<kChannels, kQuads>;
  std::int32_t matrix[6];
#pragma unroll
  for (int i = 0; i < 6; ++i) matrix[i] = op.matrix[i];
  const int columns = image.width / G::kPixels;  // groups of pixels in a row
  const int tile_columns = (columns + 7) / 8, tiles = tile_columns * ((image.height + 3) / 4);
  for (int tile = threadIdx.x / 32; tile < tiles; tile += kWarps) {
    const int column = tile % tile_columns * 8 + threadIdx.x % 8;
    const int y = tile / tile_columns * 4 + threadIdx.x / 8 % 4;
    if (column >= columns || y >= image.height) continue;
    G group;
#pragma unroll
    for (int p = 0; p < G::kPixels; ++p) {
      const pixel::Place place = pixel::mapped(matrix, column * G::kPixels + p, y);
      const bool inside = place.x >= 0 && place.x < image.width && place.y >= 0 && place.y < image.height;
      const std::int64_t first = (std::int64_t{place.y} * image.width + place.x) * kChannels;
#pragma unroll
      for (int c = 0; c < kChannels; ++c)
        group.pixel[p].channel[c] = inside ? from[first + c] : std::uint8_t{0};
    }
    group.store(to, y * columns + column);
  }
}

// Sharpens byte by byte. For every channel, the neighbours of a byte are kChannels bytes away.
// Pixels at the border stay as they are.
template <int kChannels, bool kQuads>
__device__ void sharpen(float factor, const std::uint8_t* from, std::uint8_t* to, Image image) {
  const int pitch = image.width * kChannels;
  const auto sharper = [&](int byte, int sum, int own) {
    const bool border = byte < kChannels || byte >= pitch - kChannels;
    return border ? static_cast<std::uint8_t>(own) : pixel::blend(pixel::smooth(sum + 4 * own), own, factor);
  };
  if constexpr (kQuads) {
    const int columns = pitch / 4;
    const auto* words = reinterpret_cast<const std::uint32_t*>(from);
    for (int i = threadIdx.x; i < columns * image.height; i += kBlock) {
      const int y = i / columns, column = i % columns;
      std::uint32_t result = words[i];
      if (y > 0 && y < image.height - 1) {
        // The bytes of the left word, of this word and of the right word are 12 columns. sums[b] is
        // the sum of column b over three rows.
        int sums[12] = {};
        const std::uint32_t own = result;
#pragma unroll
        for (int row = -1; row <= 1; ++row) {
          const std::uint32_t* at = words + i + row * columns;
          const std::uint32_t three[3] = {column > 0 ? at[-1] : 0, at[0], column + 1 < columns ? at[1] : 0};
#pragma unroll
          for (int b = 0; b < 12; ++b) sums[b] += three[b / 4] >> 8 * (b % 4) & 255;
        }
        result = 0;
#pragma unroll
        for (int b = 0; b < 4; ++b) {
          const int sum = sums[4 + b - kChannels] + sums[4 + b] + sums[4 + b + kChannels];
          const int level = static_cast<int>(own >> 8 * b & 255);
          result |= std::uint32_t{sharper(4 * column + b, sum, level)} << 8 * b;
        }
      }
      reinterpret_cast<std::uint32_t*>(to)[i] = result;
    }
  } else {
    for (int i = threadIdx.x; i < pitch * image.height; i += kBlock) {
      const int y = i / pitch, byte = i % pitch, own = from[i];
      int sum = 0;
      const bool border = y == 0 || y == image.height - 1 || byte < kChannels || byte >= pitch - kChannels;
      if (!border)
        for (int row = -1; row <= 1; ++row)
          for (int neighbour = -1; neighbour <= 1; ++neighbour)
            sum += from[i + row * pitch + neighbour * kChannels];
      to[i] = border ? static_cast<std::uint8_t>(own) : sharper(byte, sum, own);
    }
  }
}

template <int kChannels, bool kQuads>
__device__ void copy(const std::uint8_t* from, std::uint8_t* to, Image image) {
  change_pixels<kChannels, kQuads>(from, to, image, [](Pixel<kChannels> pixel) { return pixel; });
}

// Handles one pixel at a time, because the colour arithmetic of four would need too many registers.
template <typename Change>
__device__ void change_colours(const std::uint8_t* from, std::uint8_t* to, Image image, Change change) {
  change_pixels<3, false>(from, to, image, [&](const Pixel<3>& pixel) {
    const pixel::Rgb after = change(pixel::Rgb{pixel.channel[0], pixel.channel[1], pixel.channel[2]});
    return Pixel<3>{{after.red, after.green, after.blue}};
  });
}

template <int kChannels, bool kQuads>
__device__ void apply_op(const ImageOp& op, const std::uint8_t* from, std::uint8_t* to, Image image,
                         Shared<kChannels>& shared) {
  const bool colour = op.kind == ImageOpKind::saturation || op.kind == ImageOpKind::hue;
  if (op.kind == ImageOpKind::affine) return move<kChannels, kQuads>(op, from, to, image);
  if (op.kind == ImageOpKind::sharpness) return sharpen<kChannels, kQuads>(op.value, from, to, image);
  if (!colour) return change_levels<kChannels, kQuads>(op, from, to, image, shared);
  if constexpr (kChannels == 3) {
    const float value = op.value;
    if (op.kind == ImageOpKind::hue)
      return change_colours(from, to, image,
                            [&](pixel::Rgb rgb) { return pixel::hue_turned(rgb, static_cast<int>(value)); });
    return change_colours(from, to, image, [&](pixel::Rgb rgb) { return pixel::saturated(rgb, value); });
  }
  copy<kChannels, kQuads>(from, to, image);
}

template <int kChannels, bool kQuads>
__global__ void __launch_bounds__(kBlock, 2)
    apply_ops(const std::uint8_t* images, const SampleTransform* transforms, std::uint8_t* y,
              std::uint8_t* scratch, const StepControl* control, Image image, int most,
              std::ptrdiff_t member_stride) {
  move_to_member(member_stride, images, transforms, y, scratch, control);
  __shared__ Shared<kChannels> shared;
  const ImageOp* ops = transforms[blockIdx.x].ops;
  int count = 0;
  if (static_cast<int>(blockIdx.x) < control->valid)
    while (count < most && ops[count].kind != ImageOpKind::none) ++count;
  const std::int64_t first = std::int64_t{blockIdx.x} * image.pixels() * kChannels;
  const std::uint8_t* from = images + first;
  if (count == 0) return copy<kChannels, kQuads>(from, y + first, image);
  for (int i = 0; i < count; ++i) {
    std::uint8_t* to = ((count - i) % 2 == 1 ? y : scratch) + first;
    apply_op<kChannels, kQuads>(ops[i], from, to, image, shared);
    __syncthreads();
    from = to;
  }
}

}  // namespace

Kernel image_ops_forward(const ImageOpsProblem& problem, KernelRequest& request) {
  check_image_ops(problem, request);
  const Shape shape = request.inputs[0].shape;
  const Image image{static_cast<int>(shape[2]), static_cast<int>(shape[3])};
  const bool colour = shape[1] == 3, quads = shape[3] % 4 == 0;
  auto* kernel = colour ? (quads ? apply_ops<3, true> : apply_ops<3, false>)
                        : (quads ? apply_ops<1, true> : apply_ops<1, false>);
  const auto body = [=, samples = static_cast<unsigned>(shape[0])](const BoundOperands& b, Stream stream) {
    launch(kernel, samples, kBlock, stream, b.members, b.in<std::uint8_t>(0), b.in<SampleTransform>(1),
           b.out<std::uint8_t>(0), b.scratch<std::uint8_t>(), b.control(), image, problem.most);
  };
  return device_kernel(body, {}, problem.most > 1 ? static_cast<std::size_t>(shape.elements()) : 0);
}

}  // namespace convoy::kernels::cuda
