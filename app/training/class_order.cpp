#include "app/training/class_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace convoy::app {
namespace {

using Names = std::vector<std::string>;

Names sorted(Names names) {
  std::ranges::sort(names);
  return names;
}

// Returns the first of `names` that is not among `others`, or null if there is none. How often a
// name occurs does not matter.
const std::string* first_missing(const Names& names, const Names& others) {
  const auto found = std::ranges::find_if(
      names, [&](const std::string& name) { return std::ranges::find(others, name) == others.end(); });
  return found == names.end() ? nullptr : &*found;
}

}  // namespace

std::vector<std::string> class_names(const CheckpointState& state) {
  Names names = state.class_names;
  for (std::int64_t i = std::ssize(names); i < state.classes; ++i) names.push_back(fmt::format("{}", i));
  return names;
}

std::string match_classes(Dataset& dataset, const std::string& file, const CheckpointState& state,
                          const std::filesystem::path& checkpoint) {
  const Names& found = dataset.info().classes;
  const Names& expected = state.class_names;
  if (std::ssize(found) != state.classes)
    throw std::runtime_error(fmt::format("{}: found {} classes, but {} was trained on {}", file, found.size(),
                                         checkpoint.string(), state.classes));
  if (expected.empty())
    return fmt::format(
        "{}: holds no names of classes, as an older version wrote it; those of {} are taken to be the same",
        checkpoint.string(), file);
  if (found == expected) return {};
  const std::string* stranger = first_missing(found, expected);
  const std::string* absent = first_missing(expected, found);
  if (stranger != nullptr && absent != nullptr)
    throw std::runtime_error(fmt::format("{}: found class '{}', expected '{}' as in {}", file, *stranger,
                                         *absent, checkpoint.string()));
  if (sorted(found) != sorted(expected))
    throw std::runtime_error(fmt::format(
        "{}: some classes have the same name, and their order is not that of {}", checkpoint.string(), file));
  dataset.reorder_classes(expected);
  return fmt::format("{}: its classes have another order than those of {}; labels are mapped by name", file,
                     checkpoint.string());
}

}  // namespace convoy::app
