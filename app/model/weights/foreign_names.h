// Translates the names of weights in files of other programs to torchvision's names, which the zoo
// uses. It knows timm's names of VGG, ConvNeXt, RegNet and the family of MobileNet, EfficientNet
// and MNASNet, and DenseNet's names in old files of torchvision. timm's ResNets, DenseNets and
// Inception already have torchvision's names.
#pragma once

#include <string>
#include <vector>

#include "app/model/network.h"

namespace convoy::app {

// Returns one name per given name: the name itself or its translation, whichever list has most
// names in common with the network. Removes the prefixes "module." and "_orig_mod." of wrapped
// models.
std::vector<std::string> translated_names(const std::vector<std::string>& names, const Network& network);

}  // namespace convoy::app
