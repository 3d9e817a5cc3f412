// Blocks that several networks have in common, with torchvision's names of layers.
#pragma once

#include <optional>

#include "app/model/zoo/builder.h"

namespace convoy::app::zoo {

// Adds three layers: the convolution PREFIX.0, the batch norm PREFIX.1 and, if there is an
// activation, PREFIX.2.
void add_conv_norm(Builder& net, const std::string& prefix, const Conv2d& conv, const BatchNorm& norm,
                   const std::optional<LayerOp>& activation);

// Adds the layers NAME.conv with normally distributed weights, NAME.bn and NAME.relu, as in the
// Inception networks.
void add_inception_conv(Builder& net, const std::string& name, Conv2d conv, double deviation);

// Returns a convolution with a separate kernel for every channel, without a bias.
Conv2d depthwise(std::int64_t channels, int kernel, int stride);

// Adds squeeze-and-excitation (Hu et al. 2018) after the last layer. The averages of the channels
// go through PREFIX.fc1, an activation, PREFIX.fc2 and a gate. Each channel of the last layer is
// multiplied by the gate's output for this channel.
void add_squeeze_excitation(Builder& net, const std::string& prefix, std::int64_t squeezed,
                            const LayerOp& activation, const LayerOp& gate);

// Rounds a number of channels to the nearest multiple of `divisor`, but at least to `divisor`. If
// the result is more than a tenth below `channels`, takes the next multiple.
std::int64_t rounded_channels(double channels, std::int64_t divisor = 8);

}  // namespace convoy::app::zoo
