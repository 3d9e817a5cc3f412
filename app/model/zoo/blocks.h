// Blocks that several mobile networks share, with torchvision's names.
#pragma once

#include <optional>

#include "app/model/zoo/builder.h"

namespace convoy::app::zoo {

// Adds PREFIX.0, the convolution; PREFIX.1, the batch norm; and PREFIX.2, the activation if there
// is one.
void add_conv_norm(Builder& net, const std::string& prefix, const Conv2d& conv, const BatchNorm& norm,
                   const std::optional<LayerOp>& activation);

// Adds NAME.conv with normal weights, NAME.bn and NAME.relu, as the Inception networks do.
void add_inception_conv(Builder& net, const std::string& name, Conv2d conv, double deviation);

// Returns a convolution of every channel with a kernel of its own, without a bias.
Conv2d depthwise(std::int64_t channels, int kernel, int stride);

// Adds squeeze-and-excitation (Hu et al. 2018) of the last layer: the average of every channel goes
// through PREFIX.fc1, an activation, PREFIX.fc2 and a gate, and multiplies the channel.
void add_squeeze_excitation(Builder& net, const std::string& prefix, std::int64_t squeezed,
                            const LayerOp& activation, const LayerOp& gate);

// Rounds channels to the nearest multiple of `divisor`, but never down by more than a tenth.
std::int64_t rounded_channels(double channels, std::int64_t divisor = 8);

}  // namespace convoy::app::zoo
