// Runs a kernel as a step does, under harder conditions: outputs and workspace start as NaN, guard
// bytes follow every buffer, every launch is done twice and must not allocate, and operands may
// share a buffer. A kernel that can compute several networks in one launch (MemberLayout, kernel.h)
// also runs with three. Compares backends with the reference, and the reference's gradients with
// central differences.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/device/kernel.h"

namespace convoy::kernels::testing {

// A tensor with its values in row-major order. If `bytes` is set, it is the content of the buffer,
// and `values` is not used. Auxiliary outputs (aux) need this, because only their own backend can
// read them.
struct Tensor {
  TensorDesc desc;
  std::vector<double> values;
  std::vector<std::byte> bytes;
};

using Maker = std::function<Kernel(Backend, KernelRequest&)>;

// Returns the maker of an operation, such as relu_forward, with this problem.
template <typename Problem>
Maker maker_of(Kernel (*operation)(Backend, const Problem&, KernelRequest&), const Problem& problem) {
  return [=](Backend backend, KernelRequest& request) { return operation(backend, problem, request); };
}

// Returns an output of one operation as an input of another, in any layout.
inline Tensor operand(const Tensor& result) {
  return {{result.desc.dtype, result.desc.shape, Layout::any, nullptr}, result.values, {}};
}

// One operation with its operands. Images with Layout::any get the layout under test. Inputs in
// `free_layout`, such as weights, get the layout that the maker chooses.
struct Case {
  std::string name = {};
  Maker maker = {};
  std::vector<Tensor> inputs = {};
  std::vector<TensorDesc> outputs = {};
  StepControl control = {};
  std::vector<int> free_layout = {};  // positions of inputs whose layout the maker chooses
  std::vector<int> updated = {};      // positions of inputs that the kernel updates
  std::vector<int> ignored = {};      // positions of auxiliary outputs, which are not compared
  // Positions of outputs that are always f32, such as gradients of weights.
  std::vector<int> single = {};
  double tolerance = 2e-6;  // the bound of each output's relative L2 error
  // Set if the CPU backend uses oneDNN, whose primitives allocate a little memory in each launch.
  bool onednn = false;
  // The type in which backends store f32 tensors of two or more dimensions: f32, or bf16 after
  // in_bf16(). The reference always stores f32.
  DType activations = DType::f32;
};
// Returns the case with bf16 activations. Its inputs are rounded, so that the reference starts from
// the same numbers, and outputs in bf16 may differ by one rounding.
Case in_bf16(Case test);

struct Result {
  std::vector<Tensor> outputs;
  std::vector<Tensor> inputs;  // the inputs' content after the launch
  std::vector<std::pair<int, int>> in_place;
};

using Share = std::optional<std::pair<int, int>>;
Result run(Backend backend, Layout images, const Case& test, Share share = std::nullopt);
inline Result run_reference(const Case& test) { return run(Backend::reference, Layout::row_major, test); }

// The number of networks (members, kernel.h) in a launch that computes several.
inline constexpr int kMembers = 3;
// One operand for compare_members(): its bytes before the launch, for each member.
struct MemberPart {
  std::string name;
  std::array<std::vector<std::byte>, kMembers> bytes;
  bool compared = true;  // false for a workspace, whose content may differ
};
// Launches each member alone, then all members in one launch. `bind` gets the addresses of the
// parts in their order. Returns the name of the first part whose content differs, or an empty
// string.
std::string compare_members(Backend backend, const std::vector<MemberPart>& parts,
                            const std::function<Launch(std::vector<void*>, const MemberLayout&)>& bind);

// Returns how many times this program and its libraries have allocated heap memory through C++ so
// far.
long allocations();

// backends() returns the backends that this machine can compare with the reference. layouts_of()
// returns the layouts of images in which a backend is tested.
std::vector<Backend> backends();
std::vector<Layout> layouts_of(Backend backend);

// Both functions compare the case with the reference in every layout and element type, out of place
// and in place. The first tests all backends(), the second tests those of `under_test`.
void expect_matches_reference(const Case& test);
void expect_matches_reference(const Case& test, const std::vector<Backend>& under_test);
// Runs the case once for every input and output that may share a buffer, and then do. Each run must
// give the bits of `expected`.
void expect_in_place_equals(Backend backend, Layout images, const Case& test, const Result& expected);
void expect_close(const Tensor& actual, const Tensor& expected, double tolerance, const std::string& what);
// Compares the outputs and updated inputs that `test` does not ignore.
void expect_same(const Case& test, const Result& actual, const Result& expected, const std::string& what);

// Differentiates a function of the inputs with respect to all elements of one input, by central
// differences.
std::vector<double> central_differences(const std::function<double(const std::vector<Tensor>&)>& function,
                                        std::vector<Tensor> inputs, int position, double step = 0x1p-7);
// Differentiates sum(projection * output) of a case's forward pass on the reference backend, by
// central differences. Ignores outputs with an empty projection.
std::vector<double> central_differences(const Case& forward, int position,
                                        const std::vector<std::vector<double>>& projection,
                                        double step = 0x1p-7);
double dot(const std::vector<double>& a, const std::vector<double>& b);
// Returns f64 [2, C]: for each channel, the sums of x and of x^2 over the first `valid` samples.
Tensor batch_norm_sums(const Tensor& x, std::int64_t valid);
// Computes the variance from the sums of batch_norm_sums(), and compares it with that of two passes
// over x in double. With `stored_as` bf16, they may differ by as much as rounding x to bf16 changes
// the variance.
void expect_variance(const Tensor& sums, const Tensor& x, std::int64_t valid, DType stored_as,
                     const std::string& what);
// The mean divided by the standard deviation, in tests with expect_variance().
inline constexpr double kRatios[] = {0, 10, 100, 1000};
void expect_gradient(const std::vector<double>& analytic, const std::vector<double>& numeric,
                     const std::string& what, double tolerance = 2e-3);

// Makes random tensors, which are the same in every run.
class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  Tensor uniform(Shape shape, double low = -1, double high = 1);
  // Returns magnitudes in [0.5, 1.5] with random signs, so that no step of a central difference
  // crosses a kink at zero.
  Tensor away_from_zero(Shape shape);
  // Returns equally spaced values in [-1, 1] in random order. If the tensor has at most about a
  // hundred elements, no two of them are within one step of a central difference.
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

// Shapes for operations that treat every element alike.
inline const std::vector<Shape> kElementwiseShapes = {
    {2, 3, 5, 7}, {1, 16, 4, 4}, {3, 33, 1, 1}, {5, 37}, {1, 20, 40, 33}};

// Makes the case of an operation that has one output.
template <typename Problem>
Case case_of(const char* name, Kernel (*maker)(Backend, const Problem&, KernelRequest&), Problem problem,
             std::vector<Tensor> inputs, const Shape& output, double tolerance = 0) {
  return {.name = std::string(name) + " " + inputs[0].desc.shape.to_string() + " to " + output.to_string(),
          .maker = [=](Backend backend, KernelRequest& request) { return maker(backend, problem, request); },
          .inputs = std::move(inputs),
          .outputs = {f32(output)},
          .tolerance = tolerance};
}

}  // namespace convoy::kernels::testing
