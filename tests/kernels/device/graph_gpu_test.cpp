// Tests steps that are captured as CUDA graphs. Kernels must only enqueue work, read StepControl on
// the device, and leave nothing in memory that changes the next replay.
#include <gtest/gtest.h>

#include "kernels/batch_norm/batch_norm.h"
#include "kernels/device/cuda_runtime.h"
#include "kernels/dropout/dropout.h"
#include "kernels/optimizer/optimizer.h"
#include "kernels/softmax_cross_entropy/softmax_cross_entropy.h"
#include "tests/kernels/harness.h"
#include "tests/kernels/memory.h"

namespace convoy::kernels::testing {
namespace {

template <typename T>
class OnDevice {
 public:
  explicit OnDevice(std::vector<T> values)
      : count_(values.size()), memory_(allocate(Backend::cuda, count_ * sizeof(T))) {
    write(values);
  }
  void write(const std::vector<T>& values) {
    copy_in(Backend::cuda, memory_.get(), reinterpret_cast<const std::byte*>(values.data()),
            count_ * sizeof(T));
  }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    copy_out(Backend::cuda, reinterpret_cast<std::byte*>(values.data()), memory_.get(), count_ * sizeof(T));
    return values;
  }
  T* get() const { return reinterpret_cast<T*>(memory_.get()); }

 private:
  std::size_t count_;
  std::shared_ptr<std::byte> memory_;
};

std::vector<float> random_floats(std::int64_t count, unsigned seed) {
  const std::vector<double> values = Random(seed).uniform({count}).values;
  return {values.begin(), values.end()};
}

// A step of dropout, batch norm, loss, the norm of the gradients and LARS, in this order.
struct Step {
  static constexpr std::int64_t kSamples = 64, kClasses = 520, kElements = kSamples * kClasses;
  OnDevice<StepControl> control{{all_valid(kSamples)}};
  OnDevice<float> x{random_floats(kElements, 1)}, gamma{random_floats(kClasses, 2)},
      beta{random_floats(kClasses, 3)}, mean{random_floats(kClasses, 4)},
      variance{std::vector<float>(kClasses, 1)}, dropped{random_floats(kElements, 5)},
      y{random_floats(kElements, 6)}, probabilities{random_floats(kElements, 7)},
      parameters{random_floats(kElements, 8)}, velocity{std::vector<float>(kElements, 0)};
  OnDevice<double> sums{std::vector<double>(2 * kClasses)}, metrics{std::vector<double>(kLossMetrics)},
      squares{std::vector<double>(1)};
  OnDevice<std::int32_t> labels{std::vector<std::int32_t>(kSamples, 17)};
  std::vector<std::shared_ptr<std::byte>> workspaces;
  std::vector<Launch> launches;

  template <typename Make>
  void add(Make make, std::vector<TensorDesc> in, std::vector<void*> inputs, std::vector<TensorDesc> out,
           std::vector<void*> outputs) {
    KernelRequest request{std::move(in), std::move(out)};
    const Kernel kernel = make(request);
    workspaces.push_back(allocate(Backend::cuda, kernel.workspace_bytes));
    launches.push_back(kernel.bind({inputs, outputs, workspaces.back().get(), control.get()}));
  }

  Step() {
    const TensorDesc matrix = f32({kSamples, kClasses}), vector = f32({kClasses}), flat = f32({kElements});
    const TensorDesc label_desc{DType::i32, {kSamples}, Layout::row_major, nullptr};
    const OptimizerProblem lars{.kind = OptimizerKind::lars,
                                .segments = {{0, 30'000}, {30'000, kElements - 30'000}}};
    add([](auto& r) { return dropout_forward(Backend::cuda, {}, r); }, {matrix}, {x.get()}, {matrix},
        {dropped.get()});
    add([](auto& r) { return batch_norm_statistics(Backend::cuda, {}, r); }, {matrix}, {dropped.get()},
        {f64({2, kClasses})}, {sums.get()});
    add([](auto& r) { return batch_norm_forward(Backend::cuda, {}, r); },
        {matrix, f64({2, kClasses}), vector, vector, vector, vector},
        {dropped.get(), sums.get(), gamma.get(), beta.get(), mean.get(), variance.get()}, {matrix},
        {y.get()});
    add([](auto& r) { return softmax_cross_entropy_forward(Backend::cuda, {}, r); }, {matrix, label_desc},
        {y.get(), labels.get()}, {matrix, f64({kLossMetrics})}, {probabilities.get(), metrics.get()});
    add([](auto& r) { return squared_norm(Backend::cuda, {}, r); }, {flat}, {probabilities.get()}, {f64({1})},
        {squares.get()});
    add([&](auto& r) { return optimizer_update(Backend::cuda, lars, r); }, {flat, flat, flat},
        {parameters.get(), probabilities.get(), velocity.get()}, {}, {});
  }

  void run(Stream stream) const {
    for (const Launch& launch : launches) launch(stream);
  }
  void set(std::uint64_t step, int valid) {
    StepControl values = all_valid(kSamples);
    values.step = step;
    values.valid = valid;
    values.learning_rate = 0.1f * static_cast<float>(step + 1);
    control.write({values});
  }
};

TEST(CudaGraph, ReplaysGiveTheBitsOfLaunchesAndFollowTheControl) {
  if (!gpu_present()) GTEST_SKIP() << "no GPU here: captured graphs were not tested";
  Step launched, replayed;
  const CapturedGraph graph = CapturedGraph::capture([&](Stream stream) { replayed.run(stream); });
  EXPECT_EQ(graph.nodes(), 7u) << "one kernel an operation, two for LARS";
  const CudaStream stream;
  std::vector<float> last;
  for (int step = 0; step < 4; ++step) {
    const int valid = step % 2 == 0 ? 64 : 50;
    launched.set(static_cast<std::uint64_t>(step), valid);
    replayed.set(static_cast<std::uint64_t>(step), valid);
    launched.run({});
    graph.launch(stream.get());
    stream.synchronize();
    EXPECT_EQ(launched.metrics.read(), replayed.metrics.read()) << "step " << step;
    EXPECT_EQ(launched.squares.read(), replayed.squares.read()) << "step " << step;
    EXPECT_EQ(launched.parameters.read(), replayed.parameters.read()) << "step " << step;
    EXPECT_EQ(launched.variance.read(), replayed.variance.read()) << "step " << step;
    EXPECT_NE(replayed.parameters.read(), last) << "step " << step << " updated nothing";
    last = replayed.parameters.read();
  }
}

}  // namespace
}  // namespace convoy::kernels::testing
