#include "data/image/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/device/bilinear.h"

namespace convoy::data {
namespace {

using kernels::AxisMap;

// Fills `filter` for the outputs axis.begin to axis.end: the first source pixel of each output,
// counted from axis.first, and the weights of its source pixels (taps). `mirrored` reverses the
// order of the outputs.
void prepare(BilinearFilter& filter, const AxisMap& axis, bool mirrored) {
  const std::int32_t outputs = axis.end - axis.begin;
  filter.taps = std::min(axis.size, static_cast<std::int32_t>(std::ceil(2 * std::max(axis.scale, 1.0))));
  filter.first.resize(static_cast<std::size_t>(outputs));
  filter.weight.assign(static_cast<std::size_t>(outputs) * filter.taps, 0);
  for (std::int32_t i = 0; i < outputs; ++i) {
    const kernels::BilinearTaps taps = bilinear_taps(axis, mirrored ? axis.end - 1 - i : axis.begin + i);
    if (taps.count > filter.taps) {  // one more tap by rounding: start again with more taps
      filter.taps = taps.count;
      filter.weight.assign(static_cast<std::size_t>(outputs) * filter.taps, 0);
      i = -1;
      continue;
    }
    const std::int32_t place = taps.first - axis.first, first = std::min(place, axis.size - filter.taps);
    std::int32_t* weight = filter.weight.data() + std::ptrdiff_t{i} * filter.taps + (place - first);
    for (std::int32_t tap = 0; tap < taps.count; ++tap) weight[tap] = bilinear_weight(taps, tap);
    filter.first[static_cast<std::size_t>(i)] = first;
  }
}

void mirror(const std::uint8_t* from, std::int64_t pixels, std::int64_t channels, std::uint8_t* to) {
  from += (pixels - 1) * channels;
  for (std::int64_t x = 0; x < pixels; ++x, from -= channels, to += channels)
    for (std::int64_t c = 0; c < channels; ++c) to[c] = from[c];
}

void fill_pixels(std::uint8_t* to, std::int64_t pixels, std::int64_t channels, const std::uint8_t* fill) {
  for (std::int64_t x = 0; x < pixels; ++x, to += channels) std::copy_n(fill, channels, to);
}

}  // namespace

AxisMap resized_axis(std::int64_t extent, std::int64_t resized, std::int64_t begin, std::int64_t size) {
  AxisMap axis;
  axis.scale = static_cast<double>(extent) / static_cast<double>(resized);
  axis.extent = static_cast<std::int32_t>(extent);
  axis.skipped = static_cast<std::int32_t>(begin);
  axis.end = static_cast<std::int32_t>(size);
  set_cut(axis);
  return axis;
}

void set_cut(AxisMap& axis) {
  axis.first = axis.size = 0;
  if (axis.begin >= axis.end) return;
  const kernels::BilinearTaps last = bilinear_span(axis, axis.end - 1);
  axis.first = bilinear_span(axis, axis.begin).first;
  axis.size = last.first + last.count - axis.first;
}

std::int64_t half_rounded_to_even(std::int64_t pixels) {
  const std::int64_t half = pixels / 2;
  return half + (pixels % 2) * (half % 2);
}

void BilinearFilter::reserve(std::int64_t extent, std::int64_t outputs) {
  // The triangle filter is as wide as two output pixels. Rounding may add one source pixel on
  // either side.
  const std::int64_t most = std::min(extent, 2 * (extent / outputs + 1) + 2);
  first.reserve(static_cast<std::size_t>(outputs));
  weight.reserve(static_cast<std::size_t>(outputs * most));
}

void Resampler::reserve(ImageShape stored, ImageShape output) {
  columns_filter_.reserve(stored.width, output.width);
  rows_filter_.reserve(stored.height, output.height);
  scratch_.reserve(static_cast<std::size_t>(horizontal_scratch(stored.width)));
  narrowed_.reserve(static_cast<std::size_t>(stored.height * output.width * output.channels));
}

// Resamples along the rows of `cut` and writes to `to`, whose rows lie `pitch` bytes apart. If the
// pixels would not change, writes nothing and returns `cut`.
Resampler::Rows Resampler::pass_horizontally(Rows cut, const kernels::SampleTransform& transform,
                                             std::int64_t channels, std::uint8_t* to, std::int64_t pitch) {
  const AxisMap& axis = transform.columns;
  const std::int64_t rows = transform.rows.size;
  if (is_copy(axis)) {
    if (transform.flip == 0) return cut;
    for (std::int64_t y = 0; y < rows; ++y)
      mirror(cut.data + y * cut.pitch, axis.size, channels, to + y * pitch);
    return {to, pitch};
  }
  prepare(columns_filter_, axis, transform.flip != 0);
  scratch_.resize(std::max(scratch_.size(), static_cast<std::size_t>(horizontal_scratch(axis.size))));
  for (std::int64_t y = 0; y < rows; y += kRowsAtOnce) {
    const std::uint8_t* sources[kRowsAtOnce];
    std::uint8_t* targets[kRowsAtOnce];
    for (std::int64_t i = 0; i < kRowsAtOnce; ++i) {
      const std::int64_t row = std::min(y + i, rows - 1);
      sources[i] = cut.data + row * cut.pitch;
      targets[i] = to + row * pitch;
    }
    rows_->horizontal(columns_filter_, sources, axis.size, channels, scratch_.data(), targets);
  }
  return {to, pitch};
}

void Resampler::pass_vertically(Rows from, const AxisMap& axis, std::int64_t bytes, std::uint8_t* to,
                                std::int64_t pitch) {
  if (is_copy(axis)) {
    if (from.data == to) return;
    for (std::int64_t y = 0; y < axis.size; ++y)
      std::memcpy(to + y * pitch, from.data + y * from.pitch, static_cast<std::size_t>(bytes));
    return;
  }
  prepare(rows_filter_, axis, false);
  const std::int32_t* weight = rows_filter_.weight.data();
  for (std::size_t y = 0; y < rows_filter_.first.size(); ++y, weight += rows_filter_.taps, to += pitch)
    rows_->vertical(weight, rows_filter_.taps, from.data + rows_filter_.first[y] * from.pitch, from.pitch,
                    bytes, to);
}

void Resampler::resample(const std::uint8_t* bytes, const kernels::SampleTransform& transform,
                         ImageShape shape, const std::uint8_t* fill, std::uint8_t* to) {
  const AxisMap &rows = transform.rows, &columns = transform.columns;
  const std::int64_t channels = shape.channels, pitch = shape.width * channels;
  // `pixels` is the number of output columns that show the image, without the padding. `left` is
  // the first of these columns.
  const std::int64_t pixels = std::int64_t{columns.end} - columns.begin;
  const std::int64_t left = transform.flip != 0 ? shape.width - columns.end : columns.begin;
  if (rows.size == 0 || columns.size == 0) return fill_pixels(to, shape.height * shape.width, channels, fill);
  std::uint8_t* inside = to + rows.begin * pitch + left * channels;
  const Rows cut{bytes + transform.offset, transform.pitch * channels};
  const bool one_pass = is_copy(rows);
  const std::int64_t narrow = pixels * channels;
  if (!one_pass) narrowed_.resize(std::max(narrowed_.size(), static_cast<std::size_t>(rows.size * narrow)));
  const Rows narrowed = pass_horizontally(cut, transform, channels, one_pass ? inside : narrowed_.data(),
                                          one_pass ? pitch : narrow);
  pass_vertically(narrowed, rows, narrow, inside, pitch);
  fill_pixels(to, rows.begin * shape.width, channels, fill);
  fill_pixels(to + rows.end * pitch, (shape.height - rows.end) * shape.width, channels, fill);
  if (pixels == shape.width) return;
  for (std::int64_t y = rows.begin; y < rows.end; ++y) {
    fill_pixels(to + y * pitch, left, channels, fill);
    fill_pixels(to + y * pitch + (left + pixels) * channels, shape.width - left - pixels, channels, fill);
  }
}

void Resampler::resize(const std::uint8_t* image, ImageShape shape, const AxisMap& rows,
                       const AxisMap& columns, std::uint8_t* to) {
  kernels::SampleTransform transform;
  transform.rows = rows;
  transform.columns = columns;
  transform.pitch = static_cast<std::int32_t>(shape.width);
  transform.offset = (rows.first * shape.width + columns.first) * shape.channels;
  resample(image, transform, {rows.end, columns.end, shape.channels}, nullptr, to);
}

}  // namespace convoy::data
