#include "app/training/checkpoint/partitioned_checkpoint.h"

#include <fmt/format.h>

#include <map>
#include <sstream>
#include <stdexcept>

namespace convoy::app {
namespace {

const PersistentTensor* find(const Session& session, const std::string& name) {
  const ModelMemory& memory = session.memory();
  for (const auto* list :
       {&memory.parameters(), &memory.states(), &memory.optimizer_states(), &memory.averages()})
    for (const PersistentTensor& tensor : *list)
      if (tensor.name == name) return &tensor;
  return nullptr;
}

template <typename Owned>
std::vector<TensorName> names(const std::vector<Owned>& tensors) {
  return {tensors.begin(), tensors.end()};
}

}  // namespace

PartitionedCheckpoint::PartitionedCheckpoint(const StepGraph& whole,
                                             const kernels::OptimizerProblem& optimizer,
                                             const Session& session, const comm::Communicator& parts)
    : parts_(parts), host_(comm::make_mpi_collectives(parts)) {
  const auto owned = [](const ParameterSpec& spec, std::string name) {
    Owned tensor;
    tensor.name = std::move(name);
    tensor.shape = spec.shape;
    return tensor;
  };
  for (const TrainableParameter& parameter : whole.parameters)
    parameters_.push_back(owned(parameter.spec, parameter.spec.name));
  for (const auto& [tensor, spec] : whole.states) statistics_.push_back(owned(spec, spec.name));
  for (const int index : whole.parameters_by_gradient()) {
    const ParameterSpec& spec = whole.parameters[static_cast<std::size_t>(index)].spec;
    for (int state = 0; state < kernels::optimizer_states(optimizer); ++state)
      optimizer_.push_back(owned(spec, fmt::format("{}.optimizer{}", spec.name, state)));
  }
  if (optimizer.average_decay > 0)
    for (const auto* list : {&parameters_, &statistics_})
      for (Owned tensor : *list) {
        tensor.name += ".ema";
        averages_.push_back(std::move(tensor));
      }
  find_owners(session);
}

// Every part says which tensors are its own.
void PartitionedCheckpoint::find_owners(const Session& session) {
  std::string mine;
  for (const auto* list : {&parameters_, &statistics_, &optimizer_, &averages_})
    for (const Owned& tensor : *list)
      if (find(session, tensor.name) != nullptr) mine += tensor.name + "\n";
  std::map<std::string, int> owner;
  const std::vector<std::string> all = parts_.gather(mine, 0, "tensors of the parts");
  for (int part = 0; part < std::ssize(all); ++part) {
    std::istringstream lines(all[static_cast<std::size_t>(part)]);
    for (std::string name; std::getline(lines, name);) owner[name] = part;
  }
  if (parts_.rank() != 0) return;
  for (auto* list : {&parameters_, &statistics_, &optimizer_, &averages_})
    for (Owned& tensor : *list) tensor.part = owner.at(tensor.name);
}

// Each owner sends its tensors in the network's order.
std::vector<SavedTensor> PartitionedCheckpoint::gather(const Session& session,
                                                       const std::vector<Owned>& tensors) const {
  std::vector<SavedTensor> gathered;
  for (const Owned& tensor : tensors) {
    const PersistentTensor* own = find(session, tensor.name);
    const std::int64_t count = tensor.shape.elements();
    if (parts_.rank() != 0) {
      if (own == nullptr) continue;
      const std::vector<float> values = session.read(*own);
      host_->send(values.data(), count, kernels::DType::f32, 0, {}, tensor.name);
      continue;
    }
    SavedTensor& saved = gathered.emplace_back();
    saved.name = tensor.name;
    saved.shape = tensor.shape;
    if (own != nullptr) {
      saved.values = session.read(*own);
    } else {
      saved.values.resize(static_cast<std::size_t>(count));
      host_->receive(saved.values.data(), count, kernels::DType::f32, tensor.part, {}, tensor.name);
    }
  }
  return gathered;
}

void PartitionedCheckpoint::capture(const Session& session, CheckpointState& state) const {
  std::vector<SavedTensor> parameters = gather(session, parameters_);
  std::vector<SavedTensor> statistics = gather(session, statistics_);
  std::vector<SavedTensor> optimizer = gather(session, optimizer_);
  std::vector<SavedTensor> averages = gather(session, averages_);
  if (parts_.rank() != 0) return;
  state.parameters = std::move(parameters);
  state.statistics = std::move(statistics);
  state.optimizer = std::move(optimizer);
  state.averages = std::move(averages);
}

std::string PartitionedCheckpoint::parameters_sha256(const Session& session) const {
  const std::vector<SavedTensor> parameters = gather(session, parameters_);
  return parts_.rank() == 0 ? app::parameters_sha256(parameters) : std::string();
}

void PartitionedCheckpoint::restore(Session& session, const CheckpointState& state,
                                    const std::filesystem::path& path, const std::string& model,
                                    std::int64_t classes, const kernels::Shape& input_shape) const {
  check_fingerprint(path, state,
                    {model, classes, input_shape, names(parameters_), names(statistics_), names(optimizer_),
                     names(averages_)});
  for (const auto* list : {&state.parameters, &state.statistics, &state.optimizer, &state.averages})
    for (const SavedTensor& tensor : *list)
      if (const PersistentTensor* own = find(session, tensor.name)) session.write(*own, tensor.values);
}

}  // namespace convoy::app
