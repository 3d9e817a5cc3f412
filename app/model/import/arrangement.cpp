#include "app/model/import/arrangement.h"

#include <algorithm>
#include <deque>

namespace convoy::app::onnx_import {
namespace {

std::int64_t product(const std::vector<Factor>& factors) {
  std::int64_t size = 1;
  for (const Factor& factor : factors) size *= factor.size;
  return size;
}

// Appends a factor, or joins it with the last factor if both are consecutive parts of one axis.
void append(std::vector<Factor>& factors, const Factor& next) {
  if (!factors.empty()) {
    Factor& last = factors.back();
    if (last.axis == next.axis && last.stride == next.stride * next.size) {
      last = {next.axis, next.stride, last.size * next.size};
      return;
    }
  }
  factors.push_back(next);
}

// Removes factors from the front whose sizes multiply to `size`, and returns them. The last of them
// may be split off from a larger factor. Returns nothing if no factors have exactly this size.
std::optional<std::vector<Factor>> take(std::deque<Factor>& from, std::int64_t size) {
  std::vector<Factor> taken;
  if (size == 1 && !from.empty() && from.front().size == 1) {
    taken.push_back(from.front());
    from.pop_front();
  }
  for (std::int64_t left = size; left > 1;) {
    if (from.empty()) return std::nullopt;
    Factor& next = from.front();
    if (left % next.size == 0) {
      left /= next.size;
      append(taken, next);
      from.pop_front();
    } else if (next.size % left == 0) {
      append(taken, {next.axis, next.stride * (next.size / left), left});
      next.size /= left;
      left = 1;
    } else {
      return std::nullopt;
    }
  }
  return taken;
}

}  // namespace

Arrangement::Arrangement(const Dims& layer) : layer_(layer), axes_(layer.size()) {
  for (std::size_t i = 0; i < layer.size(); ++i)
    if (i < 2 || layer[i] > 1) axes_[i] = {{static_cast<int>(i), 1, layer[i]}};
}

Dims Arrangement::dims() const {
  Dims dims;
  for (const auto& axis : axes_) dims.push_back(product(axis));
  return dims;
}

std::optional<Arrangement> Arrangement::reshaped(const Dims& dims) const {
  std::deque<Factor> factors;
  for (const auto& axis : axes_) factors.insert(factors.end(), axis.begin(), axis.end());
  Arrangement result;
  result.layer_ = layer_;
  for (const std::int64_t extent : dims) {
    if (extent < 1) return std::nullopt;
    auto axis = take(factors, extent);
    if (!axis) return std::nullopt;
    result.axes_.push_back(std::move(*axis));
  }
  for (const Factor& factor : factors) {
    if (factor.size != 1 || result.axes_.empty()) return std::nullopt;
    result.axes_.back().push_back(factor);
  }
  return result;
}

std::optional<Arrangement> Arrangement::transposed(const std::vector<std::int64_t>& order) const {
  if (order.size() != axes_.size()) return std::nullopt;
  Arrangement result;
  result.layer_ = layer_;
  std::vector<bool> used(axes_.size(), false);
  for (const std::int64_t from : order) {
    if (from < 0 || from >= std::ssize(axes_) || used[static_cast<std::size_t>(from)]) return std::nullopt;
    used[static_cast<std::size_t>(from)] = true;
    result.axes_.push_back(axes_[static_cast<std::size_t>(from)]);
  }
  return result;
}

bool Arrangement::is_plain() const { return *this == Arrangement(layer_); }

bool Arrangement::is_flat() const {
  if (axes_.size() != 2) return false;
  const auto flat = Arrangement(layer_).reshaped({layer_[0], elements_of(layer_) / layer_[0]});
  return flat && *this == *flat;
}

int Arrangement::shuffle_groups() const {
  if (axes_.size() != layer_.size() || axes_.size() < 2 || axes_[1].size() != 2) return 0;
  Arrangement other = *this;
  other.axes_[1] = Arrangement(layer_).axes_[1];
  const Factor inner = axes_[1][0], outer = axes_[1][1];
  const bool shuffled = inner == Factor{1, 1, inner.size} && outer == Factor{1, inner.size, outer.size} &&
                        inner.size * outer.size == layer_[1];
  return shuffled && other.is_plain() ? static_cast<int>(outer.size) : 0;
}

int Arrangement::place_of(int layer_axis) const {
  if (layer_axis >= std::ssize(layer_)) return -1;
  const Factor whole{layer_axis, 1, layer_[static_cast<std::size_t>(layer_axis)]};
  const auto found = std::ranges::find(axes_, std::vector{whole});
  return found == axes_.end() ? -1 : static_cast<int>(found - axes_.begin());
}

bool Arrangement::has_order_of(const Arrangement& other) const {
  if (axes_.size() != other.axes_.size()) return false;
  for (const int axis : {0, 1})
    if (place_of(axis) < 0 || place_of(axis) != other.place_of(axis)) return false;
  return true;
}

Arrangement Arrangement::with_channels(std::int64_t channels) const {
  Arrangement result = *this;
  result.layer_[1] = channels;
  result.axes_[static_cast<std::size_t>(place_of(1))] = {{1, 1, channels}};
  return result;
}

std::optional<Arrangement::ChannelRange> Arrangement::channel_range(int place, std::int64_t begin,
                                                                    std::int64_t count) const {
  const auto& axis = axes_[static_cast<std::size_t>(place)];
  if (axis.size() != 1 || axis[0].axis != 1 || axis[0].stride * axis[0].size != layer_[1])
    return std::nullopt;
  if (begin < 0 || count < 1 || begin + count > axis[0].size) return std::nullopt;
  const std::int64_t stride = axis[0].stride;
  Arrangement view = *this;
  view.layer_[1] = count * stride;
  view.axes_[static_cast<std::size_t>(place)] = {{1, stride, count}};
  return ChannelRange{begin * stride, count * stride, std::move(view)};
}

}  // namespace convoy::app::onnx_import
