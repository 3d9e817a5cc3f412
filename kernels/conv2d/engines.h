// The interface of the engines. An engine is one way to run a convolution on the GPU. The interface
// says which tasks an engine supports, by which plans, and how a plan is bound to buffers. CUDA
// builds only.
//
// A convolution is a matrix product in which im2col() reads the images through the filter's
// windows:
//   forward           y  [N P Q, K]     = im2col(x)  [N P Q, R S C]  weights [K, R S C]^T
//   backward_data     dx [N H W, C]     = im2col(dy) [N H W, R S K]  weights [R S K, C]
//   backward_weights  dweights [K, R S C] = dy^T [K, N P Q]          im2col(x) [N P Q, R S C]
// Images are NHWC in memory, and weights K, R, S, C.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/conv2d/conv2d.h"
#include "kernels/gemm/gemm.h"

namespace convoy::kernels::conv {

enum class Direction : std::uint8_t { forward, backward_data, backward_weights };

enum class Engine : std::uint8_t {
  direct,  // a thread computes one element; for grouped convolutions that no other engine supports
  // A matrix product by mma_sync or register_tiles kernels, which read im2col(x) from the images as
  // they need it. It supports nearly all tasks, on any chip from sm_80 on.
  gathered,
  matrix,  // for 1x1 filters, stride 1, no padding: a plain product by any kernel of kernels/gemm
  // Like gathered, but with Hopper's wgmma instructions, and with TMA to read the windows.
  im2col,
  folded,     // like im2col, after space_to_depth of the images; for few channels
  depthwise,  // for as many groups as channels
};
inline constexpr Engine kEngines[] = {Engine::direct, Engine::gathered, Engine::matrix,
                                      Engine::im2col, Engine::folded,   Engine::depthwise};

const char* name_of(Direction direction);
const char* name_of(Engine engine);

struct Geometry {
  int n, c, h, w;  // the shape of x
  int k, p, q;     // K, P and Q of the shape of y
  int r, s;        // height and width of the filter
  int stride[2], padding[2], dilation[2];
  int groups;

  std::int64_t x_pixels() const { return std::int64_t{n} * h * w; }
  std::int64_t y_pixels() const { return std::int64_t{n} * p * q; }
  int taps() const { return r * s; }
  bool operator==(const Geometry&) const = default;
};

// The work of an engine: forward or one of the gradients, for one shape.
struct Task {
  Direction direction = Direction::forward;
  Geometry geometry{};
  gemm::Math math = gemm::Math::fp32;  // bf16: images and weights are bf16; else both are f32
  // forward adds the bias; backward_weights also writes the gradient of the bias.
  bool bias = false;
  bool relu = false;        // used by forward only
  bool statistics = false;  // forward also writes batch norm's sums of y
  bool input_relu = false;  // backward_data makes dx zero wherever x is not above zero
  // backward_data fuses a batch norm's backward_reduce (Conv2dProblem::input_norm).
  bool input_norm = false;
  // The groups are neighbouring pixels of a 1x1 convolution, and all have the same filters. Only
  // the im2col engine makes such tasks, and only for itself (joined_pixels.h).
  bool joined = false;
  // forward and backward_weights read x through this function (Conv2dProblem::input_affine).
  std::optional<InputAffine> input_affine = std::nullopt;

  // Returns whether there is work in addition to the product, its bias and its ReLU.
  bool has_extra() const { return statistics || input_relu || input_norm; }

  DType type() const { return math == gemm::Math::bf16 ? DType::bf16 : DType::f32; }
  // Returns the equivalent matrix product.
  gemm::Problem product() const;
  // Returns the number of arithmetic operations, which is the same in all directions.
  double operations() const;
  double bytes() const;  // the bytes to move if each operand is moved once
  std::string to_string() const;
};

// Says how an engine runs a task. `product` has the kernel family, the tile shape and the number of
// splits of k.
struct Plan {
  Engine engine = Engine::direct;
  gemm::Plan product;
  std::size_t workspace_bytes = 0;
  // True if the kernel that writes the result also does the extra work (Task::has_extra). Otherwise
  // a separate pass over the result does it.
  bool fuses_extra = false;
  std::string to_string() const;  // for example "im2col wgmma 128x128p"
};

// The operands of Conv2dProblem::input_norm. x is the norm's input. The convolution writes the
// norm's g in place of dx.
struct InputNorm {
  const void *x = nullptr, *dy2 = nullptr;
  const std::uint8_t* mask = nullptr;
  const double* sums = nullptr;
  double* dsums = nullptr;
  float *dgamma = nullptr, *dbeta = nullptr;
  float epsilon = 0;
  bool synchronised = false;
};

struct Buffers {
  const void* images = nullptr;   // x, or dy in backward_data; aligned to 16 bytes
  const void* weights = nullptr;  // for forward and backward_data
  const void* dy = nullptr;       // for backward_weights
  void* out = nullptr;            // y, dx or dweights
  const float* bias = nullptr;
  float* dbias = nullptr;
  double* sums = nullptr;         // [2, K], for plans that write the sums of y
  const void* x = nullptr;        // for backward_data with input_relu
  InputNorm norm = {};            // for backward_data with input_norm, in plans that fuse it
  const float* affine = nullptr;  // for input_affine
  const StepControl* control = nullptr;
  void* workspace = nullptr;  // aligned to 16 bytes
  MemberLayout members = {};
};

bool supports(Engine engine, const Task& task);
// Returns whether the engine is several times slower than other engines that support the same task.
constexpr bool is_fallback(Engine engine) { return engine == Engine::direct || engine == Engine::gathered; }
// Returns all plans that are worth timing. The plan that is expected to be the fastest comes first.
std::vector<Plan> candidates(Engine engine, const Task& task);
// Returns the plans of all engines, at least one. The plan that is expected to be the fastest comes
// first.
std::vector<Plan> candidates(const Task& task);
// Returns the first `of_each_engine` plans of each engine. Fallbacks are included only if they may
// be the fastest.
std::vector<Plan> worth_timing(const Task& task, int of_each_engine);
// Returns the tuning file's plan. If the file has none, returns the fastest plan if measuring is
// allowed (kernels/device/tuning.h), else the plan that is expected to be the fastest. Do not call
// this inside a capture.
Plan chosen(const Task& task);
// Binds a plan to buffers. A launch computes all members, enqueues on its stream and allocates
// nothing. It can be captured.
Launch bind(const Task& task, const Plan& plan, const Buffers& buffers);

// The functions of an engine. The launches do not compute the gradient of the bias; bind() above
// adds that.
struct EngineEntry {
  bool (*supports)(const Task&);
  std::vector<Plan> (*candidates)(const Task&);
  Launch (*bind)(const Task&, const Plan&, const Buffers&);
};
const EngineEntry& direct_engine();
const EngineEntry& gathered_engine();
const EngineEntry& matrix_engine();
const EngineEntry& im2col_engine();
const EngineEntry& folded_engine();
const EngineEntry& depthwise_engine();

}  // namespace convoy::kernels::conv
