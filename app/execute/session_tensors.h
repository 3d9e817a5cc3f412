// The persistent tensors of a session between two steps: parameters, optimizer state, statistics
// and averages. They are initialised, read and written here, in row-major order whatever their
// layouts on the device are. All functions require that no step is in flight.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "app/compile/compiled_steps.h"
#include "app/execute/device_gate.h"
#include "app/execute/model_memory.h"
#include "app/model/network.h"

namespace convoy::app {

class SessionTensors {
 public:
  // All arguments must outlive this object. `graph` is the graph of the session's main step.
  SessionTensors(const StepGraph& graph, const StepOptions& options, const RankGroups& groups,
                 ModelMemory& memory)
      : graph_(graph), options_(options), groups_(groups), memory_(memory) {}

  // Initialises the parameters and statistics of all members.
  void initialise();
  // Initialises a member's parameters and statistics with the initial values of this network. The
  // network must have the same parameters and statistics as the compiled network.
  void initialise(const Network& network, int member);
  // Brings all memory except the images back to its state after the session was made. Call it only
  // if no step has run.
  void reset();

  // Waits until the parameters, the optimizer state and the statistics are in device memory, and
  // keeps them there while the returned object lives. Hold this object while you read or write many
  // tensors: otherwise other sessions could move the memory to the host after each tensor.
  [[nodiscard]] Admission use_memory() const { return {options_.gate, DeviceGate::Use::memory}; }
  // Copy tensors to or from row-major host memory. read() of a list uses the device's memory only
  // while it copies, not while it changes layouts.
  std::vector<float> read(const PersistentTensor& tensor, int member = 0) const;
  std::vector<std::vector<float>> read(std::span<const PersistentTensor* const> tensors,
                                       int member = 0) const;
  void write(const PersistentTensor& tensor, const std::vector<float>& row_major, int member = 0);
  // Stores `count` images on the device, from number `index` on. `pixels` are as in the data set.
  void put_image(std::int64_t index, const std::uint8_t* pixels, std::int64_t count);
  // Returns the bytes of all persistent tensors of all members, which a checkpoint holds.
  std::int64_t checkpoint_bytes() const;

  // Replaces the running statistics by their mean over the replicas (RankGroups::replicas). Changes
  // nothing with synchronised batch norm, because all replicas then have the same statistics.
  void average_states();
  // Swaps parameters and statistics with their moving averages, for all members. Evaluations then
  // test the averages. A second call restores the parameters.
  void exchange_averages();

  // Sets the launch that makes the bf16 copies of the parameters. It is empty if there are none.
  void set_copying(kernels::Launch copy_parameters) { copy_parameters_ = std::move(copy_parameters); }
  // Makes the bf16 copies of the parameters. copy_written() does so only if parameters have been
  // written since the last copy.
  void copy_parameters() const;
  void copy_written();

 private:
  void initialise(int member);
  // Fills a tensor with its first initial values, again and again, whatever its layout.
  void repeat_values(const PersistentTensor& tensor, const ParameterSpec& spec, std::uint64_t seed,
                     int member);

  const StepGraph& graph_;
  const StepOptions& options_;
  const RankGroups& groups_;
  ModelMemory& memory_;
  kernels::Launch copy_parameters_;
  bool copies_are_stale_ = false;  // whether parameters have changed since copy_parameters_ ran
};

}  // namespace convoy::app
