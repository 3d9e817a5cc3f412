// Where everything of one rank's run lives: one arena, with parameters, gradients and optimizer states as flat buffers
// in the order in which backward finishes gradients, so that what a collective sends is a contiguous slice and the
// optimizer is one kernel. After them the running statistics, the batch, and the step's activations, whose space training
// and evaluation share.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/runtime/prepared_graph.h"
#include "kernels/device/arena.h"
#include "kernels/optimizer/optimizer.h"

namespace convoy::app {

// A tensor that lives as long as the run: "conv1.weight", "bn1.running_mean", "conv1.weight.optimizer0".
struct PersistentTensor {
  std::string name;
  kernels::TensorDesc desc;
  void* address = nullptr;
};

struct MemoryUse {
  std::string purpose;
  std::int64_t bytes = 0;
};

class ModelMemory {
 public:
  // `train` may be null (evaluation only). Throws std::runtime_error when the arena would exceed `limit` (0: none).
  ModelMemory(kernels::Backend backend, const PreparedGraph* train, const PreparedGraph& evaluate,
              int optimizer_states, std::int64_t limit);

  // Of the arena that the constructor would make.
  static std::int64_t planned_bytes(const PreparedGraph* train, const PreparedGraph& evaluate,
                                    int optimizer_states);

  void* address(const PreparedGraph& prepared, TensorId tensor) const;
  void* workspace(const PreparedGraph& prepared, std::size_t node) const;
  float* images() const { return reinterpret_cast<float*>(base("images")); }
  std::int32_t* labels() const { return reinterpret_cast<std::int32_t*>(base("labels")); }
  // What is summed over the ranks at the end of a step: the loss's four sums, then how many ranks want to stop.
  double* metrics() const { return reinterpret_cast<double*>(base("metrics")); }
  static constexpr int kMetrics = 5;
  double* gradient_norm() const { return metrics() + kMetrics; }

  // Flat buffers of flat_elements() floats each; segments in ascending order, one a parameter.
  float* flat_parameters() const { return reinterpret_cast<float*>(base("parameters")); }
  float* flat_gradients() const { return reinterpret_cast<float*>(base("gradients")); }
  float* flat_optimizer_state(int index) const;
  std::int64_t flat_elements() const { return flat_elements_; }
  const std::vector<kernels::ParameterSegment>& segments() const { return segments_; }
  // The parameter (index into the graph's list) of every segment.
  const std::vector<int>& segment_parameter() const { return segment_parameter_; }

  const std::vector<PersistentTensor>& parameters() const { return parameters_; }  // in the network's order
  const std::vector<PersistentTensor>& states() const { return states_; }
  const std::vector<PersistentTensor>& optimizer_states() const { return optimizer_states_; }

  const std::vector<MemoryUse>& uses() const { return uses_; }
  std::int64_t bytes() const { return static_cast<std::int64_t>(arena_.bytes()); }

 private:
  ModelMemory() = default;
  void plan(const PreparedGraph* train, const PreparedGraph& evaluate, int optimizer_states);
  void lay_out_segments(const PreparedGraph& prepared);
  void list_tensors(const PreparedGraph& prepared, int optimizer_states);
  void use(const std::string& purpose, std::int64_t bytes);
  std::byte* base(const std::string& purpose) const { return arena_.data() + offset_.at(purpose); }

  kernels::Arena arena_;
  std::vector<MemoryUse> uses_;
  std::map<std::string, std::int64_t> offset_;
  std::int64_t planned_ = 0;
  std::int64_t flat_elements_ = 0;
  std::vector<kernels::ParameterSegment> segments_;
  std::vector<int> segment_parameter_;
  std::vector<PersistentTensor> parameters_, states_, optimizer_states_;
  std::map<std::string, void*> by_name_;  // parameters, their gradients ("….gradient") and states
};

}  // namespace convoy::app
