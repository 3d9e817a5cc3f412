// The interface of every kernel. A maker makes a kernel for given tensors: it chooses the layouts
// that are still open, and says how much workspace the kernel needs. When the memory plan has given
// an address to every tensor, the kernel is bound to these addresses. Binding returns a
// Launch, a function that runs in every step. A Launch allocates nothing and makes no choices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/device/stream.h"
#include "kernels/device/tensor.h"

namespace convoy::kernels {

enum class Backend : std::uint8_t { reference, cpu, cuda };
const char* name_of(Backend backend);
[[noreturn]] void throw_no_backend(Backend backend);

// The numbers of a training's update rule and loss. Kernels read them from memory, because
// trainings that share a compiled step may have different numbers.
struct Hyperparameters {
  float momentum = 0.9f;
  float weight_decay = 0;
  float trust_coefficient = 0.001f;  // for LARS
  float beta1 = 0.9f;                // for AdamW
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  float label_smoothing = 0;
  std::int32_t nesterov = 0;   // 1: Nesterov momentum; 0: plain momentum
  double average_decay = 0.9;  // in (0, 1), the decay of the moving averages
  // Clipping scales all gradients down if their Euclidean norm together is larger than this.
  double largest_norm = 1;
};

// Scalars that may change between steps. They lie in memory that the kernels can read (device
// memory on CUDA), so that a captured step never has to be captured again. Only the first `valid`
// rows of a batch stand for samples. The other rows, and those of samples that could not be read,
// are zero images with label -1. The other rows add nothing to losses, statistics or gradients.
struct StepControl {
  std::int32_t valid = 0;         // the samples of this rank's batch
  std::int32_t global_valid = 0;  // the samples of all ranks' batches, more than 0
  std::uint64_t seed = 0;         // the seed of the whole run, for dropout
  std::uint64_t step = 0;
  // The position of this rank's first sample in the global batch, for dropout.
  std::uint64_t first_sample = 0;
  float learning_rate = 0;
  float gradient_scale = 1;  // set by gradient clipping, applied by the optimizer
  // If a step's batch is computed in parts, one after the other: `part` is the number of the
  // current part, and `share` is its number of samples divided by the step's.
  std::int32_t part = 0;
  float share = 1;
  Hyperparameters hyperparameters;  // the same in all steps of a training
};

struct KernelRequest {
  std::vector<TensorDesc> inputs;
  std::vector<TensorDesc> outputs;
};

// Members are trainings that share a compiled step and run in the same launches. All members have
// the same layout of memory: operands, workspace and control of member m lie m * stride bytes after
// those of member 0.
struct MemberLayout {
  int count = 1;
  std::ptrdiff_t stride = 0;  // in bytes, a multiple of 256
};

struct Operands {
  std::span<void* const> inputs;
  std::span<void* const> outputs;
  void* workspace = nullptr;
  // The control values, which must outlive the launch. Null if the kernel reads none.
  const StepControl* control = nullptr;
  MemberLayout members = {};  // more than one only if Kernel::takes_members
};

using Launch = std::function<void(Stream)>;

struct Kernel {
  std::function<Launch(const Operands&)> bind;
  std::size_t workspace_bytes = 0;
  // Pairs (input, output). In each pair, the output may be in the buffer of the input.
  std::vector<std::pair<int, int>> in_place;
  // True if one launch can compute all members. Each member's results have the same bits as in a
  // launch for this member alone.
  bool takes_members = false;
};

// Returns the maker of a backend. Throws std::runtime_error if this build has no maker for the
// backend. When a maker is called, it writes the layouts that it chose into `request`. It never
// changes a layout that the caller has set.
template <typename Maker>
Maker* select(Backend backend, Maker* reference, std::type_identity_t<Maker>* cpu,
              std::type_identity_t<Maker>* cuda) {
  Maker* const maker = backend == Backend::reference ? reference : backend == Backend::cpu ? cpu : cuda;
  if (maker == nullptr) throw_no_backend(backend);
  return maker;
}

// The macro CONVOY_KERNEL below declares the makers of the CUDA backend. Only in builds without
// CUDA, and only in no_cuda_makers.cpp (which CMake writes), this macro gives them a body that
// throws.
#ifndef CONVOY_CUDA_MAKER_BODY
#define CONVOY_CUDA_MAKER_BODY ;
#endif

// Declares the makers of an operation, one in the namespace of each backend. In builds without
// CUDA, cuda::name throws. Use these macros in namespace convoy::kernels.
#define CONVOY_MAKERS(name, Problem)                           \
  namespace cpu {                                              \
  Kernel name(const Problem& problem, KernelRequest& request); \
  }                                                            \
  CONVOY_MAKERS_WITHOUT_CPU(name, Problem)

#define CONVOY_MAKERS_WITHOUT_CPU(name, Problem)                     \
  namespace reference {                                              \
  Kernel name(const Problem& problem, KernelRequest& request);       \
  }                                                                  \
  namespace cuda {                                                   \
  Kernel name(const Problem&, KernelRequest&) CONVOY_CUDA_MAKER_BODY \
  }                                                                  \
  static_assert(true, "takes the semicolon")

// Declares the makers of an operation, and name(backend, problem, request), which calls one of
// them.
#define CONVOY_KERNEL(name, Problem)                           \
  namespace cpu {                                              \
  Kernel name(const Problem& problem, KernelRequest& request); \
  }                                                            \
  CONVOY_KERNEL_WITH_CPU(name, Problem, cpu::name)

// Does the same as CONVOY_KERNEL, for an operation that has no cpu::name. The CPU backend uses the
// function `cpu_maker`, or has no maker if this is nullptr.
#define CONVOY_KERNEL_WITH_CPU(name, Problem, cpu_maker)                                \
  CONVOY_MAKERS_WITHOUT_CPU(name, Problem);                                             \
  inline Kernel name(Backend backend, const Problem& problem, KernelRequest& request) { \
    return select(backend, reference::name, cpu_maker, cuda::name)(problem, request);   \
  }                                                                                     \
  static_assert(true, "takes the semicolon")

}  // namespace convoy::kernels
