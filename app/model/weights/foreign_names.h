// Names that other programs give to the weights of networks that the zoo has with torchvision's
// names: timm's for VGG, ConvNeXt, RegNet and the family of MobileNet, EfficientNet and MNASNet,
// and those of DenseNet in torchvision's older files. timm's ResNets, DenseNets and Inception have
// torchvision's names.
#pragma once

#include <string>
#include <vector>

#include "app/model/network.h"

namespace convoy::app {

// Returns the given names, or other names for the same tensors, one for each: those of which the
// network has most. Prefixes of wrapped models, "module." and "_orig_mod.", are left out.
std::vector<std::string> translated_names(const std::vector<std::string>& names, const Network& network);

}  // namespace convoy::app
