#include "app/model/weights/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>
#include <variant>

#include "app/model/weights/foreign_names.h"
#include "app/model/weights/safetensors.h"

namespace convoy::app {
namespace {

using Extents = std::vector<std::int64_t>;

Extents extents_of(const Shape& shape) {
  Extents extents;
  for (int axis = 0; axis < shape.rank(); ++axis) extents.push_back(shape[axis]);
  return extents;
}

std::int64_t elements_of(std::span<const std::int64_t> extents) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : extents) elements *= extent;
  return elements;
}

Extents without_ones(Extents extents) {
  std::erase(extents, 1);
  return extents;
}

// Returns whether tensors of these two shapes have the same elements in the same order. For
// example, a convolution over its whole input and a linear layer have the same weights in different
// shapes.
bool same_elements(const Extents& a, const Extents& b) {
  if (without_ones(a) == without_ones(b)) return true;
  const bool flattened = std::min(a.size(), b.size()) == 2 && a[0] == b[0];
  return flattened && elements_of(a) == elements_of(b);
}

// Returns a text with the first three names and the number of the remaining names.
std::string shortened(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 3;
  const std::span shown(names.data(), std::min(kMost, names.size()));
  std::string text = fmt::format("{}", fmt::join(shown, ", "));
  if (names.size() > kMost) text += fmt::format(" and {} more", names.size() - kMost);
  return text;
}

class Taker {
 public:
  Taker(Network& network, const std::vector<Weight>& weights, const WeightOptions& options)
      : network_(network), weights_(weights), options_(options), used_(weights.size(), false) {
    std::vector<std::string> names;
    for (const Weight& weight : weights) names.push_back(weight.name);
    names_ = translated_names(names, network);
    for (std::size_t i = 0; i < names_.size(); ++i) by_name_[names_[i]] = i;
    for (const LayerId output : network.outputs()) heads_.push_back(head_of(output));
  }

  FitRows run() {
    for (LayerId id = 0; id < std::ssize(network_.layers()); ++id) {
      std::vector<std::string> keys;
      for (const auto* specs : {&layer(id).parameters, &layer(id).states})
        for (const ParameterSpec& spec : *specs) keys.push_back(spec.key);
      for (const std::string& key : keys) take(id, network_.parameter(id, key));
    }
    if (taken_ == 0) fail_without_match();
    return rows();
  }

  FitRows change_heads() {
    for (const LayerId head : std::set<LayerId>(heads_.begin(), heads_.end())) {
      std::vector<std::string> keys;
      for (const ParameterSpec& spec : layer(head).parameters) keys.push_back(spec.key);
      for (const std::string& key : keys) {
        ParameterSpec& spec = network_.parameter(head, key);
        if (!spec.values) continue;
        if (options_.redraw_head)
          spec.values = nullptr, head_text_ = drawn(head);
        else
          set(spec, in_row_order(head, *spec.values));
      }
    }
    return head_text_.empty() ? FitRows{} : FitRows{{"file", options_.file}, {"head", head_text_}};
  }

 private:
  const Layer& layer(LayerId id) const { return network_.layers()[static_cast<std::size_t>(id)]; }

  LayerId head_of(LayerId id) const {
    while (std::ranges::all_of(layer(id).parameters, &ParameterSpec::constant) && !layer(id).inputs.empty())
      id = layer(id).inputs[0];
    return id;
  }

  void take(LayerId id, ParameterSpec& spec) {
    const auto found = by_name_.find(spec.name);
    if (spec.constant) {  // checkpoints hold it, but it stays as it is
      if (found != by_name_.end()) used_[found->second] = true;
      return;
    }
    ++expected_;
    if (found == by_name_.end()) return missing_.push_back(spec.name);
    used_[found->second] = true;
    const Weight& weight = weights_[found->second];
    const Extents expected = extents_of(spec.shape_in_files());
    const bool head = std::ranges::find(heads_, id) != heads_.end();
    if (head && takes_no_head(id, weight, expected)) return;
    if (same_elements(weight.shape, expected))
      set(spec, head ? in_row_order(id, weight.values()) : weight.values());
    else if (is_first_convolution(id) && spec.key == "weight" && differs_in_channels(weight.shape, expected))
      take_channels(spec, weight, expected);
    else
      other_shape_.push_back(
          fmt::format("{} ({}, here {})", spec.name, fmt::join(weight.shape, "x"), fmt::join(expected, "x")));
  }

  void set(ParameterSpec& spec, std::vector<float> values) {
    if (const std::string fault = fault_in(spec, values); !fault.empty())
      throw std::runtime_error(fmt::format("{}: tensor '{}': {}", options_.file, spec.name, fault));
    spec.values = std::make_shared<const std::vector<float>>(std::move(values));
    ++taken_;
  }

  std::string drawn(LayerId head) const {
    return fmt::format("{} is drawn: the file's classes are others", layer(head).name);
  }

  // Returns whether the head keeps its random initial values, because its classes differ from the
  // file's.
  bool takes_no_head(LayerId head, const Weight& weight, const Extents& expected) {
    const std::int64_t rows = weight.shape.empty() ? 1 : weight.shape[0];
    if (options_.redraw_head)
      head_text_ = drawn(head);
    else if (rows != expected[0])
      head_text_ =
          fmt::format("{} is drawn for {} classes: the file has {}", layer(head).name, expected[0], rows);
    else
      return false;
    return true;
  }

  std::vector<float> in_row_order(LayerId head, std::vector<float> values) {
    if (options_.head_rows.empty()) return values;
    head_text_ = fmt::format("{} is reordered: the file's classes have another order", layer(head).name);
    const std::size_t row = values.size() / options_.head_rows.size();
    std::vector<float> ordered;
    for (const std::int64_t from : options_.head_rows)
      ordered.insert(ordered.end(), values.begin() + from * static_cast<std::int64_t>(row),
                     values.begin() + (from + 1) * static_cast<std::int64_t>(row));
    return ordered;
  }

  bool is_first_convolution(LayerId id) const {
    const auto* conv = std::get_if<Conv2d>(&layer(id).op);
    return conv != nullptr && conv->groups == 1 && layer(id).inputs[0] == network_.input();
  }

  static bool differs_in_channels(const Extents& a, const Extents& b) {
    return a.size() == 4 && b.size() == 4 && a[0] == b[0] && a[1] > 0 && a[2] == b[2] && a[3] == b[3];
  }

  void take_channels(ParameterSpec& spec, const Weight& weight, const Extents& expected) {
    set(spec, adapt_channels(weight.values(), weight.shape[1], expected[1], expected[2] * expected[3]));
    channels_text_ = fmt::format("{} for {} channels {} those of the file's {}", spec.name, expected[1],
                                 expected[1] == 1 ? "sums" : "repeats", weight.shape[1]);
  }

  FitRows rows() const {
    std::vector<std::string> superfluous;
    for (std::size_t i = 0; i < weights_.size(); ++i)
      if (!used_[i] && !weights_[i].name.ends_with("num_batches_tracked"))
        superfluous.push_back(weights_[i].name);
    FitRows rows{{"file", options_.file}, {"taken", fmt::format("{} of {} tensors", taken_, expected_)}};
    const auto add = [&](const char* what, const std::string& text) {
      if (!text.empty()) rows.emplace_back(what, text);
    };
    add("head", head_text_);
    add("channels", channels_text_);
    add("not in the file", shortened(missing_));
    add("of another shape", shortened(other_shape_));
    add("not used", shortened(superfluous));
    return rows;
  }

  // Says why nothing was taken: the names are others, or the shapes are, or only the head would fit
  // and its classes are others.
  [[noreturn]] void fail_without_match() const {
    const auto stranger = std::ranges::find(used_, false);
    std::string reason;
    if (!other_shape_.empty())
      reason = "found other shapes: " + shortened(other_shape_);
    else if (!head_text_.empty() && (missing_.empty() || stranger == used_.end()))
      reason = fmt::format(
          "only names of the last layer fit, and {}; expected a file with the same classes, or no --init",
          head_text_);
    else
      reason = fmt::format("found names such as {}, expected some such as '{}'",
                           stranger == used_.end()
                               ? "nothing"
                               : "'" + names_[static_cast<std::size_t>(stranger - used_.begin())] + "'",
                           missing_.empty() ? network_.parameters().front().name : missing_.front());
    throw std::runtime_error(fmt::format("{}: none of its {} tensors fits {}: {}", options_.file,
                                         weights_.size(), network_.name(), reason));
  }

  Network& network_;
  const std::vector<Weight>& weights_;
  const WeightOptions& options_;
  // The file's weights under their names in the network.
  std::vector<std::string> names_;
  std::map<std::string, std::size_t> by_name_;
  std::vector<bool> used_;
  // The last layer with parameters before each output.
  std::vector<LayerId> heads_;
  int taken_ = 0, expected_ = 0;
  std::vector<std::string> missing_, other_shape_;
  std::string head_text_, channels_text_;
};

}  // namespace

std::vector<Weight> read_safetensors_weights(const std::filesystem::path& path) {
  const auto file = std::make_shared<const SafetensorsFile>(path);
  std::vector<Weight> weights;
  for (const FileTensor& tensor : file->tensors())
    weights.push_back({tensor.name, tensor.shape, [file, &tensor, path] {
                         try {
                           return tensor.values();
                         } catch (const std::runtime_error& error) {
                           throw std::runtime_error(fmt::format("{}: {}", path.string(), error.what()));
                         }
                       }});
  return weights;
}

FitRows take_weights(Network& network, const std::vector<Weight>& weights, const WeightOptions& options) {
  return Taker(network, weights, options).run();
}

FitRows change_heads(Network& network, const WeightOptions& options) {
  const std::vector<Weight> none;
  return Taker(network, none, options).change_heads();
}

}  // namespace convoy::app
