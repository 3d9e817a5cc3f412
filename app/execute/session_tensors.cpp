#include "app/execute/session_tensors.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernels/device/device_memory.h"

namespace convoy::app {

std::int64_t SessionTensors::checkpoint_bytes() const {
  std::int64_t elements = 0;
  for (const auto* tensors :
       {&memory_.parameters(), &memory_.states(), &memory_.optimizer_states(), &memory_.averages()})
    for (const PersistentTensor& tensor : *tensors) elements += tensor.desc.shape.elements();
  return elements * memory_.members() * std::int64_t{sizeof(float)};
}

void SessionTensors::initialise() {
  for (int member = 0; member < memory_.members(); ++member) initialise(member);
}

void SessionTensors::initialise(int member) {
  const std::uint64_t seed = options_.members[static_cast<std::size_t>(member)].seed;
  const auto fill = [&](const PersistentTensor& tensor, const ParameterSpec& spec) {
    if (!options_.initialise_all && !spec.values) return repeat_values(tensor, spec, seed, member);
    std::vector<float> values(static_cast<std::size_t>(spec.shape.elements()));
    app::initialize(spec, seed, values.data());
    write(tensor, values, member);
  };
  for (std::size_t i = 0; i < graph_.parameters.size(); ++i)
    fill(memory_.parameters()[i], graph_.parameters[i].spec);
  for (std::size_t i = 0; i < graph_.states.size(); ++i) fill(memory_.states()[i], graph_.states[i].spec);
}

void SessionTensors::repeat_values(const PersistentTensor& tensor, const ParameterSpec& spec,
                                   std::uint64_t seed, int member) {
  constexpr std::int64_t kMost = 1 << 16;
  ParameterSpec few = spec;
  few.shape = {std::min(spec.shape.elements(), kMost)};
  std::vector<float> values(static_cast<std::size_t>(few.shape.elements()));
  app::initialize(few, seed, values.data());
  const Admission admitted = use_memory();
  copies_are_stale_ = true;
  auto* const address = static_cast<std::byte*>(memory_.of_member(tensor.address, member));
  const std::size_t block = values.size() * sizeof(float);
  kernels::copy_in(options_.backend, address, values.data(), block);
  kernels::repeat(options_.backend, address, block, tensor.desc.bytes());
}

void SessionTensors::initialise(const Network& network, int member) {
  const Admission admitted = use_memory();
  const std::uint64_t seed = options_.members[static_cast<std::size_t>(member)].seed;
  std::map<std::string, const ParameterSpec*> specs;
  for (const Layer& layer : network.layers())
    for (const auto* list : {&layer.parameters, &layer.states})
      for (const ParameterSpec& spec : *list) specs[spec.name] = &spec;
  for (const auto* list : {&memory_.parameters(), &memory_.states()})
    for (const PersistentTensor& tensor : *list) {
      std::vector<float> values(static_cast<std::size_t>(tensor.desc.shape.elements()));
      app::initialize(*specs.at(tensor.name), seed, values.data());
      write(tensor, values, member);
    }
}

void SessionTensors::reset() {
  const Admission admitted = use_memory();
  memory_.clear(options_.backend);
  initialise();
}

void SessionTensors::copy_parameters() const {
  if (copy_parameters_) copy_parameters_({});
}

void SessionTensors::copy_written() {
  if (copies_are_stale_ && copy_parameters_) {
    const Admission admitted = use_memory();
    copy_parameters();
    kernels::synchronize(options_.backend);
  }
  copies_are_stale_ = false;
}

void SessionTensors::put_image(std::int64_t index, const std::uint8_t* pixels, std::int64_t count) {
  const std::int64_t bytes = options_.input.stored.bytes();
  kernels::copy_in(options_.backend, static_cast<std::byte*>(memory_.images()) + index * bytes, pixels,
                   static_cast<std::size_t>(count * bytes));
}

std::vector<float> SessionTensors::read(const PersistentTensor& tensor, int member) const {
  const PersistentTensor* const one = &tensor;
  return std::move(read({&one, 1}, member).front());
}

std::vector<std::vector<float>> SessionTensors::read(std::span<const PersistentTensor* const> tensors,
                                                     int member) const {
  const bool on_host = options_.backend != kernels::Backend::cuda;
  std::vector<std::vector<float>> values(tensors.size());
  // Tensors whose order in device memory is not row-major are copied here first.
  std::vector<std::vector<std::byte>> copies(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const kernels::TensorDesc& desc = tensors[i]->desc;
    if (on_host || kernels::is_row_major_f32(desc))
      values[i].resize(static_cast<std::size_t>(desc.shape.elements()));
    else
      copies[i].resize(desc.bytes());
  }
  {
    const Admission admitted = use_memory();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const kernels::TensorDesc& desc = tensors[i]->desc;
      const void* const address = memory_.of_member(tensors[i]->address, member);
      void* const to = copies[i].empty() ? static_cast<void*>(values[i].data()) : copies[i].data();
      if (on_host)
        kernels::to_row_major(desc, address, values[i].data());
      else
        kernels::copy_out(options_.backend, to, address, desc.bytes(), kernels::After::nothing);
    }
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (copies[i].empty()) continue;
    values[i].resize(static_cast<std::size_t>(tensors[i]->desc.shape.elements()));
    kernels::to_row_major(tensors[i]->desc, copies[i].data(), values[i].data());
    copies[i] = {};
  }
  return values;
}

void SessionTensors::write(const PersistentTensor& tensor, const std::vector<float>& row_major, int member) {
  const Admission admitted = use_memory();
  copies_are_stale_ = true;
  void* const address = memory_.of_member(tensor.address, member);
  if (options_.backend != kernels::Backend::cuda)
    return kernels::from_row_major(tensor.desc, row_major.data(), address);
  if (kernels::is_row_major_f32(tensor.desc))
    return kernels::copy_in(options_.backend, address, row_major.data(), tensor.desc.bytes(),
                            kernels::After::nothing);
  std::vector<std::byte> bytes(tensor.desc.bytes());
  kernels::from_row_major(tensor.desc, row_major.data(), bytes.data());
  kernels::copy_in(options_.backend, address, bytes.data(), bytes.size(), kernels::After::nothing);
}

void SessionTensors::average_states() {
  const Admission admitted = use_memory();
  if (groups_.replicas->size() == 1 || options_.synchronised_batch_norm) return;
  std::vector<PersistentTensor> all = memory_.states();
  const auto& averages = memory_.averages();
  if (!averages.empty()) all.insert(all.end(), averages.end() - std::ssize(all), averages.end());
  for (const PersistentTensor& state : all) {
    groups_.replicas->all_reduce(state.address, state.desc.shape.elements(), kernels::DType::f32,
                                 comm::ReduceOp::sum, {}, state.name);
    kernels::synchronize(options_.backend);
    std::vector<float> values = read(state);
    for (float& value : values) value /= static_cast<float>(groups_.replicas->size());
    write(state, values);
  }
}

// Swaps the values through host memory, which is slow but rare. Swapping the addresses instead
// would make all programs invalid, which hold these addresses.
void SessionTensors::exchange_averages() {
  const Admission admitted = use_memory();
  const auto exchange = [&](float* a, float* b, std::int64_t elements) {
    const auto bytes = static_cast<std::size_t>(elements) * sizeof(float);
    std::vector<std::byte> of_a(bytes), of_b(bytes);
    kernels::copy_out(options_.backend, of_a.data(), a, bytes, kernels::After::nothing);
    kernels::copy_out(options_.backend, of_b.data(), b, bytes, kernels::After::nothing);
    kernels::copy_in(options_.backend, a, of_b.data(), bytes, kernels::After::nothing);
    kernels::copy_in(options_.backend, b, of_a.data(), bytes, kernels::After::nothing);
  };
  for (int member = 0; member < memory_.members(); ++member) {
    const auto own = [&](float* address) { return memory_.of_member(address, member); };
    exchange(own(memory_.flat_parameters()), own(memory_.flat_averages()), memory_.trained_elements());
    exchange(own(memory_.statistics()), own(memory_.statistics_averages()), memory_.statistics_elements());
  }
  copies_are_stale_ = true;
}

}  // namespace convoy::app
