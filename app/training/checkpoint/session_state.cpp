// Implements session_state.h. With --partition a step is divided into stages, each of which runs on
// a rank of its own.
#include "app/training/checkpoint/session_state.h"

#include <fmt/format.h>

#include <iterator>
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

template <typename Tensor>
std::vector<Tensor> owned_by_session(const std::vector<PersistentTensor>& tensors) {
  std::vector<Tensor> list;
  for (const PersistentTensor& tensor : tensors) list.push_back({{tensor.name, tensor.desc.shape}});
  return list;
}

template <typename Tensor>
std::vector<TensorName> names(const std::vector<Tensor>& tensors) {
  return {tensors.begin(), tensors.end()};
}

}  // namespace

SessionState::SessionState(Session& session, int member)
    : session_(session),
      member_(member),
      parameters_(owned_by_session<OwnedTensor>(session.memory().parameters())),
      statistics_(owned_by_session<OwnedTensor>(session.memory().states())),
      optimizer_(owned_by_session<OwnedTensor>(session.memory().optimizer_states())),
      averages_(owned_by_session<OwnedTensor>(session.memory().averages())) {}

SessionState::SessionState(Session& session, const StepGraph& whole,
                           const kernels::OptimizerProblem& optimizer, const comm::Communicator& stages)
    : session_(session), stages_(&stages), host_(comm::make_mpi_collectives(stages)) {
  for (const GraphParameter& parameter : whole.parameters)
    parameters_.push_back({{parameter.spec.name, parameter.spec.shape}});
  for (const auto& [tensor, spec] : whole.states) statistics_.push_back({{spec.name, spec.shape}});
  for (const int index : whole.parameters_by_gradient()) {
    const ParameterSpec& spec = whole.parameters[index].spec;
    if (!spec.trained()) continue;
    for (int state = 0; state < kernels::optimizer_states(optimizer); ++state)
      optimizer_.push_back({{fmt::format("{}.optimizer{}", spec.name, state), spec.shape}});
  }
  if (optimizer.averages)
    for (const auto* list : {&parameters_, &statistics_})
      for (const OwnedTensor& tensor : *list) averages_.push_back({{tensor.name + ".ema", tensor.shape}});
  find_owners();
}

// Finds the stage (part of a partitioned step) that holds each tensor. Every stage sends the names
// of its tensors to the first stage.
void SessionState::find_owners() {
  std::string mine;
  for (const auto* list : {&parameters_, &statistics_, &optimizer_, &averages_})
    for (const OwnedTensor& tensor : *list)
      if (find(session_, tensor.name) != nullptr) mine += tensor.name + "\n";
  std::map<std::string, int> owner;
  const std::vector<std::string> all = stages_->gather(mine, 0, "tensors of the stages");
  for (int stage = 0; stage < std::ssize(all); ++stage) {
    std::istringstream lines(all[stage]);
    for (std::string name; std::getline(lines, name);) owner[name] = stage;
  }
  if (!on_first_stage()) return;
  for (auto* list : {&parameters_, &statistics_, &optimizer_, &averages_})
    for (OwnedTensor& tensor : *list) tensor.stage = owner.at(tensor.name);
}

// Collects the tensors on the first stage and returns them in the network's order. Every other
// stage sends the tensors that it holds.
std::vector<SavedTensor> SessionState::gather(const std::vector<OwnedTensor>& tensors) const {
  std::vector<const PersistentTensor*> own;
  for (const OwnedTensor& tensor : tensors)
    if (const PersistentTensor* found = find(session_, tensor.name)) own.push_back(found);
  std::vector<std::vector<float>> values = session_.tensors().read(own, member_);
  std::vector<SavedTensor> gathered;
  auto next = values.begin();
  for (const OwnedTensor& tensor : tensors) {
    const bool is_own = next != values.end() && own[next - values.begin()]->name == tensor.name;
    const std::int64_t count = tensor.shape.elements();
    if (!on_first_stage()) {
      if (is_own) host_->send((next++)->data(), count, kernels::DType::f32, 0, {}, tensor.name);
      continue;
    }
    SavedTensor& saved = gathered.emplace_back(SavedTensor{{tensor.name, tensor.shape}, {}});
    if (is_own) {
      saved.values = std::move(*next++);
    } else {
      saved.values.resize(count);
      host_->receive(saved.values.data(), count, kernels::DType::f32, tensor.stage, {}, tensor.name);
    }
  }
  return gathered;
}

void SessionState::capture(CheckpointState& state) const {
  const auto lists = {std::pair(&parameters_, &state.parameters),
                      {&statistics_, &state.statistics},
                      {&optimizer_, &state.optimizer},
                      {&averages_, &state.averages}};
  std::vector<OwnedTensor> all;
  for (const auto& [owned, saved] : lists) all.insert(all.end(), owned->begin(), owned->end());
  std::vector<SavedTensor> gathered = gather(all);
  if (!on_first_stage()) return;
  auto next = std::make_move_iterator(gathered.begin());
  for (const auto& [owned, saved] : lists) {
    saved->assign(next, next + std::ssize(*owned));
    next += std::ssize(*owned);
  }
}

std::string SessionState::parameters_sha256() const {
  const std::vector<SavedTensor> parameters = gather(parameters_);
  return on_first_stage() ? app::parameters_sha256(parameters) : std::string();
}

void SessionState::restore(const CheckpointState& state, const std::filesystem::path& path,
                           const std::string& model, std::int64_t classes,
                           const kernels::Shape& input_shape) {
  check_fingerprint(path, state,
                    {model, classes, input_shape, names(parameters_), names(statistics_), names(optimizer_),
                     names(averages_)});
  const Admission admitted = session_.tensors().use_memory();
  for (const auto* list : {&state.parameters, &state.statistics, &state.optimizer, &state.averages})
    for (const SavedTensor& tensor : *list)
      if (const PersistentTensor* own = find(session_, tensor.name))
        session_.tensors().write(*own, tensor.values, member_);
}

void use_averages(CheckpointState& state, const std::filesystem::path& path) {
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

}  // namespace convoy::app
