// Runs a kernel the way the runtime does, only harder: outputs and workspace start as NaN, buffers have guard
// bytes behind them, every launch is done twice and must not allocate, operands may share a buffer. And the two checks that every
// operation gets: a backend against the reference, and the reference against central differences.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/device/kernel.h"

namespace convoy::kernels::testing {

// A tensor with its values in row-major order of the logical shape; `bytes`, where set, is the exact buffer
// (what only the kernel that wrote it can read: aux).
struct Tensor {
  TensorDesc desc;
  std::vector<double> values;
  std::vector<std::byte> bytes;
};

using Maker = std::function<Kernel(Backend, KernelRequest&)>;

// One operation with its operands. Inputs of four extents whose layout is open are given the layout under
// test; those marked `free_layout` (weights) are left to the maker.
struct Case {
  std::string name = {};
  Maker maker = {};
  std::vector<Tensor> inputs = {};
  std::vector<TensorDesc> outputs = {};
  StepControl control = {};
  std::vector<int> free_layout = {};  // inputs that the maker lays out
  std::vector<int> updated = {};      // inputs that the kernel writes
  std::vector<int> ignored = {};      // outputs not to be compared between backends (aux)
  std::vector<int> single = {};  // outputs that stay f32 whatever the activations are (gradients of weights)
  double tolerance = 2e-6;       // on the relative L2 error of every output against the reference
  bool onednn = false;  // on the cpu executes oneDNN primitives, which allocate a little of their own
  // What f32 tensors of two and more extents are stored as outside the reference: f32 or bf16 (in_bf16 sets it).
  DType activations = DType::f32;
};
// The case with bf16 activations: the values of its inputs are rounded, so that the reference starts from the same
// numbers, and outputs in bf16 may differ by a rounding.
Case in_bf16(Case test);

struct Result {
  std::vector<Tensor> outputs;
  std::vector<Tensor> inputs;  // after the launch
  std::vector<std::pair<int, int>> in_place;
};

using Share = std::optional<std::pair<int, int>>;
Result run(Backend backend, Layout images, const Case& test, Share share = std::nullopt);
inline Result run_reference(const Case& test) { return run(Backend::reference, Layout::row_major, test); }

// What this program and its libraries have taken from the heap through C++ so far.
long allocations();

// The backends under test on this machine and the layouts of images that each takes.
std::vector<Backend> backends();
std::vector<Layout> layouts_of(Backend backend);

// The case in every layout and element type of every backend (or of those given), out of place and in place,
// against the reference.
void expect_matches_reference(const Case& test);
void expect_matches_reference(const Case& test, const std::vector<Backend>& under_test);
// Every permitted in-place pair gives the bits of `expected`.
void expect_in_place_equals(Backend backend, Layout images, const Case& test, const Result& expected);
void expect_close(const Tensor& actual, const Tensor& expected, double tolerance, const std::string& what);
// The outputs and updated inputs that `test` does not ignore.
void expect_same(const Case& test, const Result& actual, const Result& expected, const std::string& what);

// Derivative of a function of the inputs by all elements of one of them, by central differences.
std::vector<double> central_differences(const std::function<double(const std::vector<Tensor>&)>& function,
                                        std::vector<Tensor> inputs, int position, double step = 0x1p-7);
// The function being sum(projection * output) of a case on the reference backend. `projection` has one tensor
// per output; an empty one leaves that output out.
std::vector<double> central_differences(const Case& forward, int position,
                                        const std::vector<std::vector<double>>& projection,
                                        double step = 0x1p-7);
double dot(const std::vector<double>& a, const std::vector<double>& b);
// Batch norm's sums over the first `valid` samples of a tensor: f64 [2, C].
Tensor batch_norm_sums(const Tensor& x, std::int64_t valid);
void expect_gradient(const std::vector<double>& analytic, const std::vector<double>& numeric,
                     const std::string& what, double tolerance = 2e-3);

// Random tensors, the same in every run.
class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  Tensor uniform(Shape shape, double low = -1, double high = 1);
  // Magnitudes in [0.5, 1.5], random signs: nothing within a step of a kink at zero.
  Tensor away_from_zero(Shape shape);
  // A permutation of equally spaced values in [-1, 1]: no two within a step of each other in a tensor of up
  // to a hundred elements or so.
  Tensor distinct(Shape shape);
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  bool coin() { return pick(0, 1) == 1; }
  std::mt19937& engine() { return engine_; }

 private:
  std::mt19937 engine_;
};

inline TensorDesc f32(Shape shape) { return {DType::f32, shape, Layout::any, nullptr}; }
inline TensorDesc f64(Shape shape) { return {DType::f64, shape, Layout::any, nullptr}; }
Tensor labels(const std::vector<int>& values);
Tensor floats(Shape shape, std::vector<double> values);
Tensor doubles(Shape shape, std::vector<double> values);
StepControl all_valid(std::int64_t samples);

}  // namespace convoy::kernels::testing
