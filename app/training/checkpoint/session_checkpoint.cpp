#include "app/training/checkpoint/session_checkpoint.h"

#include <fmt/format.h>

#include <stdexcept>

namespace convoy::app {
namespace {

std::vector<SavedTensor> save(const Session& session, const std::vector<PersistentTensor>& tensors) {
  std::vector<SavedTensor> saved;
  for (const PersistentTensor& tensor : tensors) {
    SavedTensor& target = saved.emplace_back();
    target.name = tensor.name;
    target.shape = tensor.desc.shape;
    target.values = session.read(tensor);
  }
  return saved;
}

std::vector<TensorName> names(const std::vector<PersistentTensor>& tensors) {
  std::vector<TensorName> list;
  for (const PersistentTensor& tensor : tensors) list.push_back({tensor.name, tensor.desc.shape});
  return list;
}

// check_fingerprint has seen to it that the lists agree.
void load(Session& session, const std::vector<PersistentTensor>& tensors,
          const std::vector<SavedTensor>& saved) {
  for (std::size_t i = 0; i < tensors.size(); ++i) session.write(tensors[i], saved[i].values);
}

}  // namespace

void capture(const Session& session, CheckpointState& state) {
  state.parameters = save(session, session.memory().parameters());
  state.statistics = save(session, session.memory().states());
  state.optimizer = save(session, session.memory().optimizer_states());
  state.averages = save(session, session.memory().averages());
}

void restore(Session& session, const CheckpointState& state, const std::filesystem::path& path,
             const std::string& model, std::int64_t classes, const kernels::Shape& input_shape) {
  const ModelMemory& memory = session.memory();
  check_fingerprint(path, state,
                    {model, classes, input_shape, names(memory.parameters()), names(memory.states()),
                     names(memory.optimizer_states()), names(memory.averages())});
  load(session, memory.parameters(), state.parameters);
  load(session, memory.states(), state.statistics);
  load(session, memory.optimizer_states(), state.optimizer);
  load(session, memory.averages(), state.averages);
}

void take_averages(CheckpointState& state, const std::filesystem::path& path) {
  if (state.averages.empty())
    throw std::runtime_error(
        fmt::format("--ema: {} holds no moving averages, expected a run with --ema", path.string()));
  if (state.averages.size() != state.parameters.size() + state.statistics.size())
    throw std::runtime_error(fmt::format("{}: found {} averages, expected {}", path.string(),
                                         state.averages.size(),
                                         state.parameters.size() + state.statistics.size()));
  auto average = state.averages.begin();
  for (auto* list : {&state.parameters, &state.statistics})
    for (SavedTensor& tensor : *list) {
      if (average->name != tensor.name + ".ema" || average->shape != tensor.shape)
        throw std::runtime_error(
            fmt::format("{}: average '{}' is not that of '{}'", path.string(), average->name, tensor.name));
      tensor.values = std::move((average++)->values);
    }
}

std::string parameters_sha256(const Session& session) {
  return parameters_sha256(save(session, session.memory().parameters()));
}

}  // namespace convoy::app
