#include "app/model/zoo/zoo.h"

#include <fmt/format.h>

#include <array>
#include <stdexcept>
#include <string_view>

#include "app/errors.h"
#include "app/model/import/model_file.h"
#include "app/model/zoo/networks.h"
#include "app/suggest.h"

namespace convoy::app {
namespace {

struct Entry {
  std::string_view name;
  Network (*make)(const std::string& name, const Shape& input, int classes);
};

constexpr std::int64_t kDefaultSize = 224;
constexpr std::string_view kWideResnet = "wrnDEPTH_WIDTH";

constexpr std::array kNetworks{Entry{"linear", zoo::linear},
                               Entry{"mlp", zoo::mlp},
                               Entry{"lenet", zoo::lenet},
                               Entry{"cifar10_quick", zoo::cifar10_quick},
                               Entry{"alexnet", zoo::alexnet},
                               Entry{"vgg11", zoo::vgg},
                               Entry{"vgg16", zoo::vgg},
                               Entry{"vgg16_bn", zoo::vgg},
                               Entry{"googlenet", zoo::googlenet},
                               Entry{"resnet18", zoo::resnet},
                               Entry{"resnet34", zoo::resnet},
                               Entry{"resnet50", zoo::resnet},
                               Entry{"resnet101", zoo::resnet},
                               Entry{"resnet152", zoo::resnet},
                               Entry{"resnext50_32x4d", zoo::resnet},
                               Entry{"resnext101_32x8d", zoo::resnet},
                               Entry{"wide_resnet50_2", zoo::resnet},
                               Entry{"squeezenet1_0", zoo::squeezenet},
                               Entry{"squeezenet1_1", zoo::squeezenet},
                               Entry{"inception_v3", zoo::inception_v3},
                               Entry{"densenet121", zoo::densenet},
                               Entry{"densenet169", zoo::densenet},
                               Entry{"densenet201", zoo::densenet},
                               Entry{"mobilenet_v2", zoo::mobilenet_v2},
                               Entry{"mobilenet_v3_small", zoo::mobilenet_v3},
                               Entry{"mobilenet_v3_large", zoo::mobilenet_v3},
                               Entry{"shufflenet_v2_x0_5", zoo::shufflenet_v2},
                               Entry{"shufflenet_v2_x1_0", zoo::shufflenet_v2},
                               Entry{"mnasnet0_5", zoo::mnasnet},
                               Entry{"mnasnet1_0", zoo::mnasnet},
                               Entry{"efficientnet_b0", zoo::efficientnet},
                               Entry{"efficientnet_b1", zoo::efficientnet},
                               Entry{"efficientnet_b2", zoo::efficientnet},
                               Entry{"efficientnet_b3", zoo::efficientnet},
                               Entry{"efficientnet_b4", zoo::efficientnet},
                               Entry{"regnet_x_400mf", zoo::regnet},
                               Entry{"regnet_y_400mf", zoo::regnet},
                               Entry{"regnet_y_8gf", zoo::regnet},
                               Entry{"convnext_tiny", zoo::convnext_tiny},
                               Entry{"resnet18_cifar", zoo::resnet},
                               Entry{"resnet34_cifar", zoo::resnet},
                               Entry{"resnet50_cifar", zoo::resnet},
                               Entry{"resnet101_cifar", zoo::resnet},
                               Entry{"resnet152_cifar", zoo::resnet},
                               Entry{kWideResnet, zoo::wide_resnet}};

[[noreturn]] void throw_unknown(const std::string& name) {
  std::vector<std::string> candidates = network_names();
  for (const char* example : {"wrn16_4", "wrn28_10", "wrn40_2"}) candidates.emplace_back(example);
  if (const std::string nearest = did_you_mean(name, candidates); !nearest.empty())
    throw UsageError(fmt::format("unknown model \"{:.80}\"{}", name, nearest));
  throw UsageError(
      fmt::format("unknown model \"{:.80}\", expected one of {}", name, fmt::join(network_names(), ", ")));
}

void check_input(const std::string& name, const Shape& input) {
  bool valid = input.rank() == 4;
  for (int axis = 0; axis < input.rank(); ++axis) valid = valid && input[axis] > 0;
  if (!valid)
    throw std::runtime_error(
        fmt::format("network {}: its input is {}, expected images [N, C, H, W]", name, input.to_string()));
}

ModelFile trainable_file(const std::string& path) {
  ModelFile file(path);
  file.require_trainable();
  return file;
}

}  // namespace

Network make_network(const std::string& name, const Shape& input, int classes) {
  if (is_model_file(name)) return trainable_file(name).network(input, classes);
  for (const Entry& entry : kNetworks) {
    const bool matches = entry.name == kWideResnet ? name.starts_with("wrn") : entry.name == name;
    if (!matches) continue;
    check_input(name, input);
    return entry.make(name, input, classes);
  }
  throw_unknown(name);
}

Network make_network(const NetworkRequest& request) {
  const auto given = [](std::int64_t value, std::int64_t otherwise) { return value > 0 ? value : otherwise; };
  if (is_model_file(request.name)) {
    const ModelFile file = trainable_file(request.name);
    const Shape image = file.image();
    return file.network({request.batch, given(request.channels, image[0]), given(request.size, image[1]),
                         given(request.size, image[2])},
                        static_cast<int>(given(request.classes, file.classes())));
  }
  const std::int64_t size = given(request.size, kDefaultSize);
  return make_network(request.name, {request.batch, given(request.channels, 3), size, size},
                      static_cast<int>(given(request.classes, size > 64 ? 1000 : 10)));
}

std::int64_t default_size(const std::string& name) {
  return is_model_file(name) ? ModelFile(name).image()[1] : kDefaultSize;
}

std::int64_t width_of(const std::string& name) {
  return name.starts_with("wrn") && !is_model_file(name) ? zoo::wide_resnet_extent(name).width : 0;
}

std::string with_width(const std::string& name, std::int64_t width) {
  if (width_of(name) == 0)
    throw UsageError(
        fmt::format("model {}: has no width, expected one with a width, such as wrn28_10", name));
  const std::string changed = fmt::format("wrn{}_{}", zoo::wide_resnet_extent(name).depth, width);
  zoo::wide_resnet_extent(changed);
  return changed;
}

std::vector<std::string> network_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kNetworks) names.emplace_back(entry.name);
  return names;
}

}  // namespace convoy::app
