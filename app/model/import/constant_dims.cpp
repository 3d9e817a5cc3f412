// Computes the shapes that ONNX's Reshape, Unsqueeze and Squeeze give.
#include <fmt/format.h>

#include "app/model/import/constants.h"

namespace convoy::app::onnx_import {

std::int64_t axis_of(const FileNode& node, std::int64_t axis, std::int64_t rank) {
  if (axis < -rank || axis >= rank)
    node.fail(fmt::format("has axis {}, but a tensor of {} axes", axis, rank));
  return axis < 0 ? axis + rank : axis;
}

std::optional<Dims> axes_of(const FileNode& node, const Constant* input) {
  if (input == nullptr) return node.integers("axes");
  if (!input->is_integer) node.fail("has axes that are not integers");
  return input->integers;
}

Dims reshaped_dims(const FileNode& node, const Dims& from, const Dims& target) {
  Dims dims = target;
  std::ptrdiff_t open = -1;
  std::int64_t known = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && node.integer("allowzero", 0) == 0) {
      if (i >= from.size()) node.fail("keeps an extent that its input does not have");
      dims[i] = from[i];
    }
    if (dims[i] == -1 && open < 0) {
      open = static_cast<std::ptrdiff_t>(i);
      continue;
    }
    if (dims[i] < 0 || dims[i] > kMostElements || (dims[i] > 0 && known > kMostElements / dims[i]))
      node.fail(fmt::format("makes the shape {}", to_string(target)));
    known *= dims[i];
  }
  const std::int64_t count = elements_of(from);
  if (open >= 0) dims[static_cast<std::size_t>(open)] = known > 0 ? count / known : 0;
  if (elements_of(dims) != count)
    node.fail(fmt::format("makes the shape {} of {}, which has other elements", to_string(target),
                          to_string(from)));
  return dims;
}

Dims unsqueezed_dims(const FileNode& node, const Dims& from, const Constant* axes) {
  const auto listed = axes_of(node, axes);
  if (!listed || std::ssize(*listed) > 8) node.fail("lacks its axes");
  const auto rank = std::ssize(from) + std::ssize(*listed);
  std::vector<bool> added(static_cast<std::size_t>(rank), false);
  for (const std::int64_t axis : *listed) {
    const auto place = static_cast<std::size_t>(axis_of(node, axis, rank));
    if (added[place]) node.fail("names an axis twice");
    added[place] = true;
  }
  Dims dims;
  std::size_t next = 0;
  for (const bool one : added) dims.push_back(one ? 1 : from[next++]);
  return dims;
}

Dims squeezed_dims(const FileNode& node, const Dims& from, const Constant* axes, std::size_t first) {
  const auto listed = axes_of(node, axes);
  std::vector<bool> removed(from.size(), false);
  for (std::size_t i = first; i < from.size() && !listed; ++i) removed[i] = from[i] == 1;
  for (const std::int64_t axis : listed.value_or(Dims{})) {
    const auto place = static_cast<std::size_t>(axis_of(node, axis, std::ssize(from)));
    if (from[place] != 1)
      node.fail(fmt::format("removes axis {} of {}, which is not of extent 1", axis, to_string(from)));
    removed[place] = true;
  }
  Dims dims;
  for (std::size_t i = 0; i < from.size(); ++i)
    if (!removed[i]) dims.push_back(from[i]);
  return dims;
}

}  // namespace convoy::app::onnx_import
