#include "app/model/weights/foreign_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

namespace convoy::app {
namespace {

// Longer names are not translated, because std::regex is recursive and would overflow the stack.
constexpr std::size_t kLongestName = 256;

using Names = std::vector<std::string>;

struct Rule {
  std::regex name;
  std::string (*translated)(const std::smatch&);
};

const std::vector<Rule>& rules() {
  using M = const std::smatch&;
  static const std::vector<Rule> all{
      // Old names of DenseNet, from before torchvision 0.2.2.
      {std::regex(R"((.*denselayer\d+\.(?:norm|conv))\.([12]\..*))"),
       [](M m) { return m.str(1) + m.str(2); }},
      // timm's names of VGG.
      {std::regex(R"(pre_logits\.fc1\.(.*))"), [](M m) { return "classifier.0." + m.str(1); }},
      {std::regex(R"(pre_logits\.fc2\.(.*))"), [](M m) { return "classifier.3." + m.str(1); }},
      // timm's names of ConvNeXt.
      {std::regex(R"(stem\.([01]\..*))"), [](M m) { return "features.0." + m.str(1); }},
      {std::regex(R"(stages\.(\d)\.downsample\.([01]\..*))"),
       [](M m) { return fmt::format("features.{}.{}", 2 * std::stoi(m.str(1)), m.str(2)); }},
      {std::regex(R"(stages\.(\d)\.blocks\.(\d+)\.(conv_dw|norm|mlp\.fc1|mlp\.fc2)\.(.*))"),
       [](M m) {
         const std::map<std::string, int> place{{"conv_dw", 0}, {"norm", 2}, {"mlp.fc1", 3}, {"mlp.fc2", 5}};
         return fmt::format("features.{}.{}.block.{}.{}", 2 * std::stoi(m.str(1)) + 1, m.str(2),
                            place.at(m.str(3)), m.str(4));
       }},
      {std::regex(R"(stages\.(\d)\.blocks\.(\d+)\.gamma)"),
       [](M m) { return fmt::format("features.{}.{}.layer_scale", 2 * std::stoi(m.str(1)) + 1, m.str(2)); }},
      {std::regex(R"(head\.norm\.(.*))"), [](M m) { return "classifier.0." + m.str(1); }},
      // timm's names of RegNet.
      {std::regex(R"(stem\.(conv|bn)\.(.*))"),
       [](M m) { return fmt::format("stem.{}.{}", m.str(1) == "conv" ? 0 : 1, m.str(2)); }},
      {std::regex(R"(s(\d)\.b(\d{1,4})\.conv([123])\.(conv|bn)\.(.*))"),
       [](M m) {
         return fmt::format("trunk_output.block{}.block{}-{}.f.{}.{}.{}", m.str(1), m.str(1),
                            std::stoi(m.str(2)) - 1, "abc"[m.str(3)[0] - '1'], m.str(4) == "conv" ? 0 : 1,
                            m.str(5));
       }},
      {std::regex(R"(s(\d)\.b(\d{1,4})\.(se\.fc[12]\..*))"),
       [](M m) {
         return fmt::format("trunk_output.block{}.block{}-{}.f.{}", m.str(1), m.str(1),
                            std::stoi(m.str(2)) - 1, m.str(3));
       }},
      {std::regex(R"(s(\d)\.b(\d{1,4})\.downsample\.(conv|bn)\.(.*))"), [](M m) {
         return fmt::format("trunk_output.block{}.block{}-{}.proj.{}.{}", m.str(1), m.str(1),
                            std::stoi(m.str(2)) - 1, m.str(3) == "conv" ? 0 : 1, m.str(4));
       }}};
  return all;
}

std::string by_rules(const std::string& name) {
  std::smatch match;
  for (const Rule& rule : rules())
    if (std::regex_match(name, match, rule.name)) return rule.translated(match);
  return name;
}

// Translates timm's names by rules(). `head` is the name of the last layer in our network. timm
// calls it "head.fc" in several networks.
Names by_rules(const Names& names, const std::string& head) {
  Names translated;
  for (const std::string& name : names)
    translated.push_back(name.starts_with("head.fc.") ? head + name.substr(7) : by_rules(name));
  return translated;
}

// Splits a name such as "blocks.0.0.bn1.weight" at its last dot.
std::pair<std::string, std::string> layer_and_key(const std::string& name) {
  const auto dot = name.rfind('.');
  if (dot == std::string::npos) return {name, ""};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

// The position of a layer in timm's networks of the EfficientNet family, by which layers are
// sorted: the part of the network (0 stem, 1 blocks, 2 head, 3 classifier), the stage, the block,
// and the position in the block.
using Place = std::tuple<int, int, int, int>;

std::optional<int> place_in_block(const std::string& role, const std::set<std::string>& roles) {
  using Roles = std::span<const std::string_view>;
  static constexpr std::array<std::string_view, 8> kInverted{
      "conv_pw", "bn1", "conv_dw", "bn2", "se.conv_reduce", "se.conv_expand", "conv_pwl", "bn3"};
  static constexpr std::array<std::string_view, 6> kSeparable{"conv_dw",        "bn1",     "se.conv_reduce",
                                                              "se.conv_expand", "conv_pw", "bn2"};
  static constexpr std::array<std::string_view, 6> kFused{"conv_exp",       "bn1",      "se.conv_reduce",
                                                          "se.conv_expand", "conv_pwl", "bn2"};
  static constexpr std::array<std::string_view, 2> kPlain{"conv", "bn1"};
  const Roles order = roles.contains("conv_exp")   ? Roles(kFused)
                      : roles.contains("conv_pwl") ? Roles(kInverted)
                      : roles.contains("conv_dw")  ? Roles(kSeparable)
                                                   : Roles(kPlain);
  const auto found = std::ranges::find(order, role);
  if (found == order.end()) return std::nullopt;
  return static_cast<int>(found - order.begin());
}

std::map<Place, std::string> layers_of_efficientnet(const Names& names) {
  static const std::regex block(R"(blocks\.(\d{1,3})\.(\d{1,3})\.(.+))");
  const std::map<std::string, Place> fixed{{"conv_stem", {0, 0, 0, 0}},
                                           {"bn1", {0, 0, 0, 1}},
                                           {"conv_head", {2, 0, 0, 0}},
                                           {"bn2", {2, 0, 0, 1}},
                                           {"classifier", {3, 0, 0, 0}}};
  // Maps each "stage.block" to the names of its layers.
  std::map<std::string, std::set<std::string>> roles;
  std::set<std::string> layers;
  std::smatch m;
  for (const std::string& name : names) {
    const std::string layer = layer_and_key(name).first;
    if (!layers.insert(layer).second || !std::regex_match(layer, m, block)) continue;
    roles[m.str(1) + "." + m.str(2)].insert(m.str(3));
  }
  std::map<Place, std::string> places;
  for (const std::string& layer : layers) {
    if (const auto found = fixed.find(layer); found != fixed.end()) places[found->second] = layer;
    if (!std::regex_match(layer, m, block)) continue;
    if (const auto place = place_in_block(m.str(3), roles[m.str(1) + "." + m.str(2)]))
      places[{1, std::stoi(m.str(1)), std::stoi(m.str(2)), *place}] = layer;
  }
  return places;
}

// Translates names by the order of the layers, which is the same in timm and torchvision. The
// numbers in names are of no use: timm counts blocks within a stage, and torchvision counts
// differently in every network. Returns the names unchanged if the numbers of layers differ.
Names by_order(const Names& names, const Network& network) {
  const std::map<Place, std::string> places = layers_of_efficientnet(names);
  std::vector<const Layer*> layers;
  for (const Layer& layer : network.layers())
    if (!layer.parameters.empty()) layers.push_back(&layer);
  if (places.size() != layers.size()) return names;
  std::map<std::string, const Layer*> layer_of;
  auto next = layers.begin();
  for (const auto& [place, name] : places) layer_of[name] = *next++;
  Names translated = names;
  for (std::string& name : translated) {
    const auto [layer, key] = layer_and_key(name);
    const auto found = layer_of.find(layer);
    if (found == layer_of.end()) continue;
    for (const auto* specs : {&found->second->parameters, &found->second->states})
      for (const ParameterSpec& spec : *specs)
        if (spec.key == key) name = spec.name;
  }
  return translated;
}

std::string without_wrappers(std::string name) {
  for (bool again = true; std::exchange(again, false);)
    for (const std::string_view prefix : {"module.", "_orig_mod."})
      if (name.starts_with(prefix)) name.erase(0, prefix.size()), again = true;
  return name;
}

}  // namespace

Names translated_names(const Names& names, const Network& network) {
  std::set<std::string> known;
  std::string head;  // the name of the last layer with parameters
  for (const Layer& layer : network.layers())
    for (const auto* specs : {&layer.parameters, &layer.states})
      for (const ParameterSpec& spec : *specs) {
        known.insert(spec.name);
        head = layer_and_key(spec.name).first;
      }
  Names plain;
  for (const std::string& name : names)
    plain.push_back(name.size() > kLongestName ? name : without_wrappers(name));
  if (std::ranges::any_of(plain, [](const std::string& name) { return name.size() > kLongestName; }))
    return plain;
  const auto hits = [&](const Names& list) {
    return std::ranges::count_if(list, [&](const std::string& name) { return known.contains(name); });
  };
  Names best = plain;
  for (Names other : {by_rules(plain, head), by_order(plain, network)})
    if (hits(other) > hits(best)) best = std::move(other);
  return best;
}

}  // namespace convoy::app
