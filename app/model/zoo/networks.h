// The networks, one file each. `name` is that of --model: a family tells its members by it.
#pragma once

#include <string>

#include "app/model/network.h"

namespace convoy::app::zoo {

Network alexnet(const std::string& name, const Shape& input, int classes);
Network cifar10_quick(const std::string& name, const Shape& input, int classes);
Network googlenet(const std::string& name, const Shape& input, int classes);
Network lenet(const std::string& name, const Shape& input, int classes);
Network linear(const std::string& name, const Shape& input, int classes);
Network mlp(const std::string& name, const Shape& input, int classes);
Network resnet(const std::string& name, const Shape& input, int classes);
Network vgg16(const std::string& name, const Shape& input, int classes);
Network wide_resnet(const std::string& name, const Shape& input, int classes);

}  // namespace convoy::app::zoo
