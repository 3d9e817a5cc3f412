// Translates the names of weights in files of other programs to torchvision's names, which our
// networks use. It knows timm's names of VGG, ConvNeXt, RegNet, MobileNet, EfficientNet and
// MNASNet, and the DenseNet names in old files of torchvision. timm's ResNets, DenseNets and
// Inception already have torchvision's names.
#pragma once

#include <string>
#include <vector>

#include "app/model/network.h"

namespace convoy::app {

// Removes the prefixes "module." and "_orig_mod.", which PyTorch adds to wrapped models. Then tries
// several ways to translate the names. Returns the list with the most names in common with the
// network, or the untranslated names if no way is better.
std::vector<std::string> translated_names(const std::vector<std::string>& names, const Network& network);

}  // namespace convoy::app
