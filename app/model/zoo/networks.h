// Declares the functions that make the networks. Each has a file of its own. A function that makes
// a whole family chooses the network by `name`, which is the name in --model.
#pragma once

#include <string>

#include "app/model/network.h"

namespace convoy::app::zoo {

Network alexnet(const std::string& name, const Shape& input, int classes);
Network cifar10_quick(const std::string& name, const Shape& input, int classes);
Network convnext_tiny(const std::string& name, const Shape& input, int classes);
Network densenet(const std::string& name, const Shape& input, int classes);
Network efficientnet(const std::string& name, const Shape& input, int classes);
Network googlenet(const std::string& name, const Shape& input, int classes);
Network inception_v3(const std::string& name, const Shape& input, int classes);
Network lenet(const std::string& name, const Shape& input, int classes);
Network linear(const std::string& name, const Shape& input, int classes);
Network mlp(const std::string& name, const Shape& input, int classes);
Network mnasnet(const std::string& name, const Shape& input, int classes);
Network mobilenet_v2(const std::string& name, const Shape& input, int classes);
Network mobilenet_v3(const std::string& name, const Shape& input, int classes);
Network regnet(const std::string& name, const Shape& input, int classes);
Network resnet(const std::string& name, const Shape& input, int classes);
Network shufflenet_v2(const std::string& name, const Shape& input, int classes);
Network squeezenet(const std::string& name, const Shape& input, int classes);
Network vgg(const std::string& name, const Shape& input, int classes);
Network wide_resnet(const std::string& name, const Shape& input, int classes);

struct WideResnetExtent {
  int depth = 0, width = 0;
};
// Returns the depth and width in a name such as "wrn28_10". Throws UsageError unless there is such
// a network.
WideResnetExtent wide_resnet_extent(const std::string& name);

}  // namespace convoy::app::zoo
