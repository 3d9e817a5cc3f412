// Inner loops of batch normalisation on the host. Channels come in blocks of 16 or 8 (blocked
// layouts) or 1 (row_major).
#include "kernels/batch_norm/cpu_passes.h"

namespace convoy::kernels::cpu {
namespace {

// The number of pixels that are summed in float before the sum is added to a double. In the sums
// of x and x^2, every rounding changes the variance, so their runs are shorter.
constexpr std::int64_t kRun = 256, kStatisticsRun = 64;

// The block size B is a template argument of the functions below, so that the compiler turns loops
// over a block's channels into vector instructions.

// The float sums are those of x - shift, where shift is the first value of the run. Sums of x
// itself would lose the variance if the mean is far above the standard deviation.
template <int B>
[[gnu::always_inline]] inline void sum_run(const float* x, std::int64_t pixels, double* sum,
                                           double* squares) {
  for (std::int64_t begin = 0; begin < pixels; begin += kStatisticsRun) {
    float shift[B], s[B] = {}, q[B] = {};
    for (int c = 0; c < B; ++c) shift[c] = x[begin * B + c];
    const std::int64_t end = std::min(pixels, begin + kStatisticsRun);
    for (std::int64_t p = begin; p < end; ++p)
#pragma omp simd
      for (int c = 0; c < B; ++c) {
        const float value = x[p * B + c] - shift[c];
        s[c] += value;
        q[c] += value * value;
      }
    for (int c = 0; c < B; ++c) {
      const double from = shift[c], all = double(end - begin) * from;
      sum[c] += s[c] + all;
      squares[c] += q[c] + from * (2.0 * s[c] + all);
    }
  }
}

template <int B, bool kRelu, bool kResidual>
[[gnu::always_inline]] inline void normalise_run(const float* __restrict x, const float* __restrict residual,
                                                 float* __restrict y, std::int64_t pixels,
                                                 const Coefficients& with, std::int64_t channel) {
  float mean[B], scale[B], shift[B];
  for (int c = 0; c < B; ++c)
    mean[c] = with.mean[channel + c], scale[c] = with.scale[channel + c], shift[c] = with.shift[channel + c];
  for (std::int64_t p = 0; p < pixels; ++p)
    for (int c = 0; c < B; ++c) {
      float value = (x[p * B + c] - mean[c]) * scale[c] + shift[c];
      if constexpr (kResidual) value += residual[p * B + c];
      if constexpr (kRelu) value = value < 0.0f ? 0.0f : value;  // keeps a NaN
      y[p * B + c] = value;
    }
}

// dy, dy2 and g may be one buffer, because every element is read before it is written.
template <int B, MaskSource kMask, bool kSecond, bool kWrite>
[[gnu::always_inline]] inline void reduce_run(const float* x, const float* y, const float* dy,
                                              const float* dy2, const float* factors, float* g,
                                              std::int64_t pixels, const Coefficients& with,
                                              std::int64_t channel, double* sum, double* product) {
  float mean[B], scale[B], shift[B];
  for (int c = 0; c < B; ++c)
    mean[c] = with.mean[channel + c], scale[c] = with.scale[channel + c], shift[c] = with.shift[channel + c];
  for (std::int64_t begin = 0; begin < pixels; begin += kRun) {
    float s[B] = {}, q[B] = {};
    const std::int64_t end = std::min(pixels, begin + kRun);
#pragma GCC ivdep
    for (std::int64_t p = begin; p < end; ++p) {
#pragma GCC ivdep
      for (int c = 0; c < B; ++c) {
        const std::int64_t i = p * B + c;
        const float centred = x[i] - mean[c];
        float value = dy[i];
        if constexpr (kSecond) value += dy2[i];
        if constexpr (kMask == MaskSource::from_x)
          value = centred * scale[c] + shift[c] > 0.0f ? value : 0.0f;
        if constexpr (kMask == MaskSource::from_y) value = y[i] > 0.0f ? value : 0.0f;
        if constexpr (kMask == MaskSource::factors) value *= factors[i];
        if constexpr (kWrite) g[i] = value;
        s[c] += value;
        q[c] += value * centred;
      }
    }
    for (int c = 0; c < B; ++c) sum[c] += s[c], product[c] += q[c];
  }
}

// x, g, dx2 and dx may be one buffer, because every element is read before it is written.
template <int B, MaskSource kMask, bool kSecond>
[[gnu::always_inline]] inline void backward_run(const float* x, const float* g, const float* dx2,
                                                const float* factors, float* dx, std::int64_t pixels,
                                                const Coefficients& with, std::int64_t channel) {
  float mean[B], scale[B], shift[B], slope[B], offset[B];
  for (int c = 0; c < B; ++c) {
    mean[c] = with.mean[channel + c], scale[c] = with.scale[channel + c], shift[c] = with.shift[channel + c];
    slope[c] = with.slope[channel + c], offset[c] = with.offset[channel + c];
  }
#pragma GCC ivdep
  for (std::int64_t p = 0; p < pixels; ++p) {
#pragma GCC ivdep
    for (int c = 0; c < B; ++c) {
      const std::int64_t i = p * B + c;
      const float centred = x[i] - mean[c];
      float value = g[i];
      if constexpr (kMask == MaskSource::from_x) value = centred * scale[c] + shift[c] > 0.0f ? value : 0.0f;
      if constexpr (kMask == MaskSource::factors) value *= factors[i];
      value = scale[c] * value + slope[c] * centred + offset[c];
      if constexpr (kSecond) value += dx2[i];
      dx[i] = value;
    }
  }
}

template <int B, MaskSource kMask>
[[gnu::always_inline]] inline void backward_as(const Pass& pass, std::int64_t channel, bool second) {
  const auto run = [&]<bool kSecond>() __attribute__((always_inline)) {
    backward_run<B, kMask, kSecond>(pass.x, pass.dy, pass.other, pass.factors, pass.out, pass.pixels,
                                    pass.with, channel);
  };
  if (second) return run.template operator()<true>();
  run.template operator()<false>();
}

template <int B, MaskSource kMask>
[[gnu::always_inline]] inline void reduce_as(const Pass& pass, std::int64_t channel, bool second, bool write,
                                             double* sum, double* product) {
  const auto run = [&]<bool kSecond, bool kWrite>() __attribute__((always_inline)) {
    reduce_run<B, kMask, kSecond, kWrite>(pass.x, pass.other, pass.dy, pass.dy2, pass.factors, pass.out,
                                          pass.pixels, pass.with, channel, sum, product);
  };
  if (second) return run.template operator()<true, true>();
  if (write) return run.template operator()<false, true>();
  run.template operator()<false, false>();
}

}  // namespace

// Each function below handles all pixels of one channel block of one sample. The compiler makes a
// version for each set of vector instructions (CONVOY_VECTORISED, parallel.h).

#define CONVOY_FOR_BLOCK(block, call) \
  switch (block) {                    \
    case 16:                          \
      call(16);                       \
      break;                          \
    case 8:                           \
      call(8);                        \
      break;                          \
    default:                          \
      call(1);                        \
      break;                          \
  }

CONVOY_VECTORISED void sum_task(const Pass& pass, int block, double* sum, double* squares){
#define CONVOY_CALL(B) sum_run<B>(pass.x, pass.pixels, sum, squares)
    CONVOY_FOR_BLOCK(block, CONVOY_CALL)
#undef CONVOY_CALL
}

CONVOY_VECTORISED
    void normalise_task(const Pass& pass, int block, std::int64_t channel, bool relu, bool residual){
#define CONVOY_CALL(B)                                                                                       \
  relu                                                                                                       \
      ? (residual                                                                                            \
             ? normalise_run<B, true, true>(pass.x, pass.other, pass.out, pass.pixels, pass.with, channel)   \
             : normalise_run<B, true, false>(pass.x, pass.other, pass.out, pass.pixels, pass.with, channel)) \
      : (residual                                                                                            \
             ? normalise_run<B, false, true>(pass.x, pass.other, pass.out, pass.pixels, pass.with, channel)  \
             : normalise_run<B, false, false>(pass.x, pass.other, pass.out, pass.pixels, pass.with,          \
                                              channel))
        CONVOY_FOR_BLOCK(block, CONVOY_CALL)
#undef CONVOY_CALL
    }

CONVOY_VECTORISED void reduce_task(const Pass& pass, int block, std::int64_t channel, MaskSource mask,
                                   bool second, bool write, double* sum, double* product){
#define CONVOY_CALL(B)                                                                                  \
  mask == MaskSource::none ? reduce_as<B, MaskSource::none>(pass, channel, second, write, sum, product) \
  : mask == MaskSource::from_x                                                                          \
      ? reduce_as<B, MaskSource::from_x>(pass, channel, second, write, sum, product)                    \
  : mask == MaskSource::from_y                                                                          \
      ? reduce_as<B, MaskSource::from_y>(pass, channel, second, write, sum, product)                    \
      : reduce_as<B, MaskSource::factors>(pass, channel, second, write, sum, product)
    CONVOY_FOR_BLOCK(block, CONVOY_CALL)
#undef CONVOY_CALL
}

CONVOY_VECTORISED
    void backward_task(const Pass& pass, int block, std::int64_t channel, MaskSource mask, bool second) {
#define CONVOY_CALL(B)                                                                     \
  mask == MaskSource::none     ? backward_as<B, MaskSource::none>(pass, channel, second)   \
  : mask == MaskSource::from_x ? backward_as<B, MaskSource::from_x>(pass, channel, second) \
                               : backward_as<B, MaskSource::factors>(pass, channel, second)
  CONVOY_FOR_BLOCK(block, CONVOY_CALL)
#undef CONVOY_CALL
}

#undef CONVOY_FOR_BLOCK

}  // namespace convoy::kernels::cpu
