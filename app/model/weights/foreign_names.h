// Translates the names of weights in files of other programs to torchvision's names, which the zoo
// uses. It knows timm's names of VGG, ConvNeXt, RegNet and the family of MobileNet, EfficientNet
// and MNASNet, and DenseNet's names in old files of torchvision. timm's ResNets, DenseNets and
// Inception already have torchvision's names.
#pragma once

#include <string>
#include <vector>

#include "app/model/network.h"

namespace convoy::app {

// Translates all names in several ways, and returns the list that has the most names in common with
// the network; one of the ways leaves the names as they are. First removes the prefixes "module."
// and "_orig_mod.", which PyTorch adds to wrapped models.
std::vector<std::string> translated_names(const std::vector<std::string>& names, const Network& network);

}  // namespace convoy::app
