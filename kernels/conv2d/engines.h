// Interface between the makers (cuda/makers.cpp) and the engines, which are the ways in which a
// convolution can run on the GPU. It says which tasks an engine supports, with which plans, and how
// a plan is bound to buffers. CUDA builds only.
//
// A convolution is a matrix product whose operands are seen through windows:
//   forward           y  [N P Q, K]     = im2col(x)  [N P Q, R S C]  weights [K, R S C]^T
//   backward_data     dx [N H W, C]     = im2col(dy) [N H W, R S K]  weights [R S K, C]
//   backward_weights  dweights [K, R S C] = dy^T [K, N P Q]          im2col(x) [N P Q, R S C]
// with images NHWC and weights K, R, S, C in memory.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/conv2d/conv2d.h"
#include "kernels/gemm/gemm.h"

namespace convoy::kernels::conv {

enum class Direction : std::uint8_t { forward, backward_data, backward_weights };

enum class Engine : std::uint8_t {
  direct,  // one thread for each element; for groups that other engines do not support
  // An implicit product by mma_sync or register_tiles; serves nearly all tasks, any chip from sm_80
  // on.
  gathered,
  matrix,  // 1x1, stride 1, no padding: a plain product by any kernel of kernels/gemm
  // Hopper: implicit product by wgmma, with windows read by TMA. It joins pixels where that pays.
  im2col,
  folded,     // as im2col, after space_to_depth of the images; for few channels
  depthwise,  // as many groups as channels: no product, sums in registers
};
inline constexpr Engine kEngines[] = {Engine::direct, Engine::gathered, Engine::matrix,
                                      Engine::im2col, Engine::folded,   Engine::depthwise};

const char* name_of(Direction direction);
const char* name_of(Engine engine);

struct Geometry {
  int n, c, h, w;  // the shape of x
  int k, p, q;     // the rest of y's shape
  int r, s;        // the filter
  int stride[2], padding[2], dilation[2];
  int groups;

  std::int64_t x_pixels() const { return std::int64_t{n} * h * w; }
  std::int64_t y_pixels() const { return std::int64_t{n} * p * q; }
  int taps() const { return r * s; }
  bool operator==(const Geometry&) const = default;
};

// One operation on one shape.
struct Task {
  Direction direction = Direction::forward;
  Geometry geometry{};
  gemm::Math math = gemm::Math::fp32;  // bf16: images and weights are bf16; else both are f32
  // forward adds the bias; backward_weights also writes its gradient.
  bool bias = false;
  bool relu = false;        // forward only
  bool statistics = false;  // forward: also writes batch norm's sums of y
  bool input_relu = false;  // backward_data: dx is zero where x is not above zero
  // backward_data writes a batch norm's g in place of dx, and its sums.
  bool input_norm = false;
  // The groups are neighbouring pixels and all have the first group's filters. Only the im2col
  // engine makes such tasks (joined_pixels.h).
  bool joined = false;

  // Returns whether there is work besides the product, its bias and its ReLU.
  bool has_extra() const { return statistics || input_relu || input_norm; }

  DType type() const { return math == gemm::Math::bf16 ? DType::bf16 : DType::f32; }
  // Returns the equivalent product, whose rows have no gaps.
  gemm::Problem product() const;
  // The same in all directions. The zeros between the elements of a strided gradient do not count.
  double operations() const;
  double bytes() const;  // if each operand is moved once
  std::string to_string() const;
};

// How an engine runs a task. The product's plan names the kernel family, tile shape and split_k.
struct Plan {
  Engine engine = Engine::direct;
  gemm::Plan product;
  std::size_t workspace_bytes = 0;
  // True if the kernel that writes the result also does the work of has_extra(); else a pass of its
  // own does.
  bool fuses_extra = false;
  std::string to_string() const;  // for example "im2col wgmma 128x128p"
};

// The operands of Conv2dProblem::input_norm.
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
  const void* weights = nullptr;  // forward, backward_data
  const void* dy = nullptr;       // backward_weights
  void* out = nullptr;            // y, dx or dweights
  const float* bias = nullptr;
  float* dbias = nullptr;
  double* sums = nullptr;   // [2, K], for plans that write the sums of y
  const void* x = nullptr;  // for backward_data with input_relu
  InputNorm norm = {};      // for backward_data with input_norm, and plans that fuse it
  const StepControl* control = nullptr;
  void* workspace = nullptr;  // aligned to 16 bytes
  Members members = {};
};

bool supports(Engine engine, const Task& task);
// Returns whether the engine is several times slower than the others if they support the task.
constexpr bool is_fallback(Engine engine) { return engine == Engine::direct || engine == Engine::gathered; }
// Returns all plans worth timing, the expected best first.
std::vector<Plan> candidates(Engine engine, const Task& task);
// Returns the plans of all engines, the one expected to be fastest first. There is always one.
std::vector<Plan> candidates(const Task& task);
// Returns the first few plans of each engine. Fallbacks are only included if there is nothing else.
std::vector<Plan> worth_timing(const Task& task, int of_each_engine);
// Returns the tuning file's plan or, if it measures (kernels/device/tuning.h), the fastest, else
// the expected best. Do not call it inside a capture.
Plan chosen(const Task& task);
// Binds a plan to buffers. A launch, of all members, enqueues on its stream, allocates nothing, and
// can be captured.
Launch bind(const Task& task, const Plan& plan, const Buffers& buffers);

// The functions of an engine. Its launches leave the bias gradient to bind().
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
