// Where everything of one rank's run lives: one arena, with parameters, gradients and optimizer states as flat buffers
// in the order in which backward finishes gradients, so that what a collective sends is a contiguous slice and the
// optimizer is one kernel; the running statistics, the batch, and the step's activations, whose space training and
// evaluation share. Gradients that ranks of one host sum where they lie are in memory of their own.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/compile/compiled_graph.h"
#include "kernels/device/arena.h"
#include "kernels/device/mix_parameters.h"
#include "kernels/optimizer/optimizer.h"

namespace convoy::app {

// A tensor that lives as long as the run: "conv1.weight", "bn1.running_mean",
// "conv1.weight.optimizer0", "conv1.weight.ema".
struct PersistentTensor {
  std::string name;
  kernels::TensorDesc desc;
  void* address = nullptr;
};

struct MemoryUse {
  std::string purpose;
  std::int64_t bytes = 0;
};

// Where every parameter lies in the flat buffers, in elements; segments in ascending order, one a parameter, each from a
// multiple of 128 on.
struct FlatLayout {
  explicit FlatLayout(const CompiledGraph& compiled);
  std::int64_t elements = 0;
  std::vector<kernels::ParameterSegment> segments;
  std::vector<int> parameter;  // of every segment: index into the graph's list
  bool copied = false;         // whether products read any of them as bf16
};

struct MemoryRequest {
  int optimizer_states = 0;
  std::size_t update_workspace = 0;  // bytes; shares the activations' place, as the update comes behind them
  std::int64_t limit = 0;            // of all bytes; 0: none
  // Memory that the ranks of a host share, for the gradients; null where there is none.
  std::function<std::shared_ptr<std::byte>(std::size_t bytes)> shared_memory = nullptr;
  std::function<std::size_t(std::size_t bytes)> shared_scratch = nullptr;  // what it reserves beside that
  // Memory that is best for transfers between the parts of a step, for the arena; asked for after that of the gradients.
  std::function<std::shared_ptr<std::byte>(std::size_t bytes)> transfer_memory = nullptr;
  bool accumulates = false;  // gradients are summed over the parts of a batch
  bool averages = false;     // moving averages of parameters and statistics are kept
};

// What a ModelMemory of these holds, in the arena's order; the limit is not looked at.
std::vector<MemoryUse> plan_memory(const CompiledGraph* train, const CompiledGraph& evaluate,
                                   const FlatLayout& flat, const MemoryRequest& request);
std::int64_t total_bytes(const std::vector<MemoryUse>& uses);

class ModelMemory {
 public:
  // `train` may be null (evaluation only); `flat` is that of `train`, else of `evaluate`. Throws std::runtime_error when
  // the arena would exceed the limit.
  ModelMemory(kernels::Backend backend, const CompiledGraph* train, const CompiledGraph& evaluate,
              FlatLayout flat, const MemoryRequest& request);

  void* address(const CompiledGraph& compiled, TensorId tensor) const;
  void* workspace(const CompiledGraph& compiled, std::size_t node) const;
  // On CUDA all of these are addresses of the device.
  void* update_workspace() const { return base("activations"); }
  void* images() const { return base("images"); }
  std::int32_t* labels() const { return reinterpret_cast<std::int32_t*>(base("labels")); }
  void* transforms() const { return base("transforms"); }
  kernels::MixParameters* mix() const { return reinterpret_cast<kernels::MixParameters*>(base("mix")); }
  // The images: the first layer's input, or the bytes of the whole ring or set of stored pixels.
  // The capacity of a batch is 0 in a part of a partitioned step that has neither its labels nor
  // its transforms.
  const kernels::TensorDesc& images_desc() const { return images_desc_; }
  std::int64_t capacity() const { return capacity_; }
  // In a part of a partitioned step only where its nodes read them.
  bool has_images() const { return has_images_; }
  bool has_labels() const { return has_labels_; }
  bool has_transforms() const { return offset_.contains("transforms"); }
  bool has_mix() const { return offset_.contains("mix"); }
  // What is summed over the ranks at the end of a step: the loss's four sums, then how many ranks want to stop.
  double* metrics() const { return reinterpret_cast<double*>(base("metrics")); }
  static constexpr int kMetrics = 5;
  double* gradient_norm() const { return metrics() + kMetrics; }

  // Flat buffers of flat_elements() floats each.
  float* flat_parameters() const { return reinterpret_cast<float*>(base("parameters")); }
  float* flat_gradients() const {
    return reinterpret_cast<float*>(shared_gradients_ ? shared_gradients_.get() : base("gradients"));
  }
  float* flat_optimizer_state(int index) const;
  // Only if MemoryRequest asked for them. Averages: of the flat parameters, then of statistics().
  float* flat_accumulated() const { return reinterpret_cast<float*>(base("accumulated gradients")); }
  float* flat_averages() const { return reinterpret_cast<float*>(base("averages")); }
  float* statistics_averages() const { return flat_averages() + flat_.elements; }
  // All running statistics as one buffer, with gaps between them.
  float* statistics() const { return reinterpret_cast<float*>(base("statistics")); }
  std::int64_t statistics_elements() const { return statistics_elements_; }
  // The parameters in bf16, null where nothing reads them.
  void* flat_copy() const { return offset_.contains("bf16 parameters") ? base("bf16 parameters") : nullptr; }
  std::int64_t flat_elements() const { return flat_.elements; }
  const std::vector<kernels::ParameterSegment>& segments() const { return flat_.segments; }
  // The parameter (index into the graph's list) of every segment.
  const std::vector<int>& segment_parameter() const { return flat_.parameter; }

  const std::vector<PersistentTensor>& parameters() const { return parameters_; }  // in the network's order
  const std::vector<PersistentTensor>& states() const { return states_; }
  const std::vector<PersistentTensor>& optimizer_states() const { return optimizer_states_; }
  // Averages of all parameters, then of all states; empty if none are kept.
  const std::vector<PersistentTensor>& averages() const { return averages_; }

  const std::vector<MemoryUse>& uses() const { return uses_; }
  std::int64_t bytes() const { return planned_; }

 private:
  void set_offsets();
  void list_tensors(const CompiledGraph& compiled, int optimizer_states);
  std::byte* base(const std::string& purpose) const {
    return (transfer_memory_ ? transfer_memory_.get() : arena_.data()) + offset_.at(purpose);
  }

  kernels::Arena arena_;
  std::shared_ptr<std::byte> transfer_memory_;   // instead of the arena
  std::shared_ptr<std::byte> shared_gradients_;  // instead of the arena's last part
  std::vector<MemoryUse> uses_;
  std::map<std::string, std::int64_t> offset_;
  std::int64_t planned_ = 0;
  FlatLayout flat_;
  kernels::TensorDesc images_desc_;
  std::int64_t capacity_ = 0;
  bool has_images_ = false, has_labels_ = false;
  std::int64_t statistics_elements_ = 0;
  std::vector<PersistentTensor> parameters_, states_, optimizer_states_, averages_;
  std::map<std::string, void*>
      by_name_;  // parameters, their gradients ("….gradient"), their copies ("….bf16") and states
};

}  // namespace convoy::app
