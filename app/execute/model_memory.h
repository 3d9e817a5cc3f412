// Reserves the memory of one rank's run, divided into the regions of compile/memory_plan.h. The
// gradients are outside the arena if the ranks of a host sum them in memory that the ranks share. A
// session may have several members (trainings that run together). All addresses are those of member
// 0, and of_member() converts them to the addresses of another member.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "app/compile/compiled_steps.h"
#include "app/compile/memory_plan.h"
#include "app/execute/device_gate.h"
#include "kernels/device/arena.h"
#include "kernels/device/mix_parameters.h"
#include "kernels/optimizer/optimizer.h"

namespace convoy::app {

// A tensor that lives as long as the run, for example "conv1.weight", "bn1.running_mean",
// "conv1.weight.optimizer0" or "conv1.weight.ema".
struct PersistentTensor {
  std::string name;
  kernels::TensorDesc desc;
  void* address = nullptr;
};

// Functions that reserve memory which others use, too: `parts` with other sessions of this process,
// the others with other ranks, of which all must call them. If a function is empty, or if
// gradients() or arena() returns null, the data are in this rank's own arena.
struct SharedMemory {
  // Reserves gradients that the ranks of a host share.
  std::function<std::shared_ptr<std::byte>(std::size_t bytes)> gradients;
  // Returns the bytes of scratch memory that summing `bytes` bytes of shared gradients needs.
  std::function<std::size_t(std::size_t bytes)> scratch;
  // Reserves the whole arena in memory from which transfers between stages are fastest.
  std::function<std::shared_ptr<std::byte>(std::size_t bytes)> arena;
  // Reserves the arena in three parts (MemoryPart). The parts `state` and `scratch` may lie in
  // memory that other sessions of this process use, too.
  std::function<MemoryPlace(const MemoryNeed& need)> parts;
};

class ModelMemory {
 public:
  // Reserves host memory for the activations that are copied there, then the gradients, then the
  // arena. Throws std::runtime_error if the plan exceeds options.memory_limit or the host has too
  // little memory.
  ModelMemory(const CompiledSteps& steps, const StepOptions& options, const SharedMemory& shared = {});

  int members() const { return plan_.members(); }
  std::ptrdiff_t stride() const { return plan_.stride(); }
  template <typename T>
  T* of_member(T* address, int member) const {
    return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(address) +
                                static_cast<std::uintptr_t>(member * stride()));
  }
  // Returns whether the address is in the stored images, which all members share. A kernel of
  // member m gets the pointer of_member(images(), m), which is m strides too far. To make up for
  // this, the offsets of the member's samples are smaller by m strides, so the kernel reads the
  // shared images.
  bool is_shared(const void* address) const;
  kernels::StepControl* control() const {
    return reinterpret_cast<kernels::StepControl*>(base(Region::control));
  }

  void* address(const CompiledGraph& compiled, TensorId tensor) const;
  void* workspace(const CompiledGraph& compiled, std::size_t node) const;
  std::int64_t host_bytes() const { return static_cast<std::int64_t>(host_.bytes()); }
  // On CUDA all addresses below are in device memory.
  void* update_workspace() const { return base(Region::activations); }
  void* images() const { return base(Region::images); }
  std::int32_t* labels() const { return reinterpret_cast<std::int32_t*>(base(Region::labels)); }
  void* transforms() const { return base(Region::transforms); }
  kernels::MixParameters* mix() const { return reinterpret_cast<kernels::MixParameters*>(base(Region::mix)); }
  // Describes the tensor at images(). It is the input of the first layer. If the device makes that
  // input from stored pixels, it is a vector of bytes: the ring of batches or all stored images.
  const kernels::TensorDesc& images_desc() const { return images_desc_; }
  // Returns the number of samples in a full batch. It is 0 in a stage that has neither labels nor
  // transforms.
  std::int64_t capacity() const { return capacity_; }
  // A stage of a partitioned step has images and labels only if its nodes read them.
  bool has_images() const { return has_images_; }
  bool has_labels() const { return has_labels_; }
  bool has_transforms() const { return plan_.has(Region::transforms); }
  bool has_mix() const { return plan_.has(Region::mix); }
  // Whether other sessions may overwrite activations and gradients between two steps.
  bool lends_scratch() const { return divided_; }
  // Returns the memory whose content may be moved to host memory between two steps; empty if none
  // may.
  MemoryRange state() const;
  // The fields of StepMetrics: four sums over the samples, then the number of ranks that want to
  // stop. The ranks sum these values in every step.
  double* metrics() const { return reinterpret_cast<double*>(base(Region::metrics)); }
  static constexpr int kMetrics = 5;
  double* gradient_norm() const { return metrics() + kMetrics; }

  // Returns the flat buffer of all parameters, which has flat_elements() floats. The frozen
  // parameters come last. They have no optimizer states and averages, so the flat buffers of these
  // have only trained_elements() floats. The flat buffer of gradients has gradient_elements().
  float* flat_parameters() const { return reinterpret_cast<float*>(base(Region::parameters)); }
  float* flat_gradients() const {
    return reinterpret_cast<float*>(shared_gradients_ ? shared_gradients_.get() : base(Region::gradients));
  }
  float* flat_optimizer_state(int index) const;
  // Returns the gradients that are summed over the parts of a batch. Call it only if
  // StepOptions::accumulate is set.
  float* flat_accumulated() const { return reinterpret_cast<float*>(base(Region::accumulated_gradients)); }
  // Returns the averages of the trained parameters, then the averages of statistics(). Call it only
  // if the optimizer keeps averages.
  float* flat_averages() const { return reinterpret_cast<float*>(base(Region::averages)); }
  float* statistics_averages() const { return flat_averages() + flat_.trained_elements; }
  // Returns the buffer of all running statistics. Each of them is padded to kStateAlignment bytes.
  float* statistics() const { return reinterpret_cast<float*>(base(Region::statistics)); }
  std::int64_t statistics_elements() const { return statistics_elements_; }
  // Returns the parameters in bf16, or null if no kernel reads them.
  void* flat_copy() const {
    return plan_.has(Region::bf16_parameters) ? base(Region::bf16_parameters) : nullptr;
  }
  std::int64_t flat_elements() const { return flat_.elements; }
  std::int64_t trained_elements() const { return flat_.trained_elements; }
  // Returns the elements of flat_gradients(): those of the parameters that are updated together.
  std::int64_t gradient_elements() const { return flat_.gradient_elements; }
  // Returns where the parameters that are updated together are in the flat buffers: one segment per
  // parameter.
  std::span<const kernels::ParameterSegment> segments() const {
    return std::span(flat_.segments).first(flat_.gradients);
  }
  // Returns for each segment the index of its parameter in StepGraph::parameters.
  const std::vector<int>& segment_parameter() const { return flat_.parameter; }

  // Returns the parameters in the network's order.
  const std::vector<PersistentTensor>& parameters() const { return parameters_; }
  const std::vector<PersistentTensor>& states() const { return states_; }
  const std::vector<PersistentTensor>& optimizer_states() const { return optimizer_states_; }
  // Returns the averages of all parameters, then of all states. The list is empty if the run keeps
  // no averages. For a frozen parameter it has the parameter itself.
  const std::vector<PersistentTensor>& averages() const { return averages_; }

  const MemoryPlan& plan() const { return plan_; }
  // Fills all but the images with zeros, and waits until that is done. Throws std::logic_error for
  // a stage of a partitioned step.
  void clear(kernels::Backend backend);

 private:
  void list_tensors(const CompiledGraph& compiled, int optimizer_states);
  void divide(const std::function<MemoryPlace(const MemoryNeed& need)>& reserve);
  std::byte* base(Region region) const {
    if (!plan_.has(region)) throw std::logic_error("the plan has no such region");
    if (divided_) return starts_[static_cast<std::size_t>(region)];
    return start_ + plan_.offset(region);
  }

  kernels::Arena arena_, host_;
  std::shared_ptr<std::byte> transfer_memory_;  // replaces arena_ if it is not null
  std::byte* start_ = nullptr;                  // the start of all regions, unless they are divided
  // Whether the regions are in the three parts of a DeviceGate. If so, starts_ has their addresses.
  bool divided_ = false;
  std::array<std::byte*, static_cast<std::size_t>(Region::count)> starts_{};
  // If this is not null, the gradients are here and not in the last regions of the arena.
  std::shared_ptr<std::byte> shared_gradients_;
  MemoryPlan plan_;
  FlatLayout flat_;
  kernels::TensorDesc images_desc_;
  std::int64_t capacity_ = 0;
  bool has_images_ = false, has_labels_ = false;
  std::int64_t statistics_elements_ = 0;
  std::vector<PersistentTensor> parameters_, states_, optimizer_states_, averages_;
  // The addresses of parameters, gradients ("….gradient"), bf16 copies ("….bf16"), states, and
  // the tensors in optimizer_states_ and averages_.
  std::map<std::string, void*> by_name_;
};

}  // namespace convoy::app
