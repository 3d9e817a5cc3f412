// Sets up the network of a checkpoint for evaluation. These functions do not communicate with other
// ranks.
#pragma once

#include <string>

#include "app/model/network.h"
#include "app/training/checkpoint/checkpoint.h"
#include "app/training/train_options.h"

namespace convoy::app {

// Loads a checkpoint for evaluation. If `checkpoint` is the folder of a run, replaces it by the
// path of the best checkpoint in the folder. With `ema` the parameters and statistics are replaced
// by their moving averages. Throws std::runtime_error that names the file.
CheckpointState load_trained(std::string& checkpoint, bool ema);

// Replaces those options of `run` that decide how an image reaches the network by the options of
// the checkpoint. The seed is one of them, because it determines synthetic images.
void take_over_options(const CheckpointState& state, const std::string& checkpoint, TrainOptions& run);

// Sets run.size, the size to which encoded images are resized, to the size of the images in the
// checkpoint. Does nothing if run.size is already set or if those images are not square.
void take_over_size(const CheckpointState& state, TrainOptions& run);

// Returns the number of channels that JPEG and PNG files are decoded to. Throws std::runtime_error
// that names the checkpoint unless its network takes images of 1 or 3 channels.
int encoded_channels(const CheckpointState& state, const std::string& checkpoint);

// Makes the network for a batch `input` of shape [N, C, H, W]. `run` must have the options of the
// checkpoint's run. Throws std::runtime_error if the model file has changed since the training.
Network make_trained_network(const CheckpointState& state, const std::string& checkpoint,
                             const TrainOptions& run, const Shape& input, int classes);

// Returns the name of the network for messages, for example "resnet18 after step 300".
std::string describe_trained(const CheckpointState& state, bool ema);

}  // namespace convoy::app
