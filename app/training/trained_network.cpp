#include "app/training/trained_network.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "app/model/zoo/zoo.h"
#include "app/training/checkpoint/folder.h"
#include "app/training/checkpoint/session_state.h"
#include "app/training/run_network.h"

namespace convoy::app {

CheckpointState load_trained(std::string& checkpoint, bool ema) {
  checkpoint = checkpoint_file(checkpoint);
  CheckpointState state = load_checkpoint(checkpoint);
  if (ema) use_averages(state, checkpoint);
  return state;
}

void take_over_options(const CheckpointState& state, const std::string& checkpoint, TrainOptions& run) {
  const TrainOptions saved = options_from_json(nlohmann::json::parse(state.options_json), checkpoint);
  run.model = state.model;
  run.size = saved.size;
  run.test_resize = saved.test_resize;
  run.loss_weights = saved.loss_weights;
  run.classes = state.classes;
  run.seed = static_cast<std::int64_t>(state.seed);
}

void take_over_size(const CheckpointState& state, TrainOptions& run) {
  const kernels::Shape& image = state.input_shape;
  if (run.size == 0 && image[1] == image[2]) run.size = image[1];
}

int encoded_channels(const CheckpointState& state, const std::string& checkpoint) {
  const std::int64_t channels = state.input_shape[0];
  if (channels != 1 && channels != 3)
    throw std::runtime_error(
        fmt::format("{}: was trained on images of {} channels, expected 1 or 3 of JPEG and PNG files",
                    checkpoint, channels));
  return static_cast<int>(channels);
}

Network make_trained_network(const CheckpointState& state, const std::string& checkpoint,
                             const TrainOptions& run, const Shape& input, int classes) {
  Network network = make_network(run.model, input, classes);
  check_structure(state, checkpoint, structure_sha256(network));
  return with_outputs(std::move(network), run.loss_weights.size());
}

std::string describe_trained(const CheckpointState& state, bool ema) {
  return fmt::format("{}{} after step {}", ema ? "moving average of " : "", state.model, state.step);
}

}  // namespace convoy::app
