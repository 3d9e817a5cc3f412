// Measures the memory-bound operations of the CUDA backend on shapes of networks, mostly ResNet-50.
// Prints a Markdown table with microseconds, bandwidth (the bytes that must move, over that time)
// and its share of the bandwidth of a copy. Operands rotate through more memory than the L2 cache
// holds. Usage: kernels_bandwidth [part of an operation's name]
#include "tests/kernels/bandwidth/bandwidth.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>

#include "kernels/add/add.h"
#include "kernels/batch_norm/batch_norm.h"
#include "kernels/concat/concat.h"
#include "kernels/device/cuda_runtime.h"
#include "kernels/dropout/dropout.h"
#include "kernels/image_ops/image_ops.h"
#include "kernels/local_response_norm/local_response_norm.h"
#include "kernels/mix/mix.h"
#include "kernels/normalise/normalise.h"
#include "kernels/optimizer/optimizer.h"
#include "kernels/pool/pool.h"
#include "kernels/relu/relu.h"
#include "kernels/reorder/reorder.h"
#include "kernels/resample/resample.h"
#include "kernels/softmax_cross_entropy/softmax_cross_entropy.h"

namespace convoy::kernels::testing {
namespace {

constexpr int kLaunches = 20, kRepeats = 7;
constexpr std::size_t kRotate = std::size_t{400} << 20;

// Fills the tensor with normally distributed values, as in training. A constant pattern, such as
// zeros, takes less energy and can run faster.
void fill(const TensorDesc& desc, std::byte* to) {
  static std::mt19937 engine(1);
  const std::size_t bytes = desc.bytes(), some = std::min<std::size_t>(bytes, 1 << 20);
  std::vector<std::byte> host(some);
  std::normal_distribution<float> normal;
  const Shape flat{static_cast<std::int64_t>(some / bytes_of(desc.dtype))};
  std::vector<float> values(static_cast<std::size_t>(flat[0]));
  for (float& value : values)
    value = desc.dtype == DType::f64   ? 1000.0f
            : desc.dtype == DType::i32 ? 0.0f
            : desc.dtype == DType::u8  ? static_cast<float>(engine() % 9)
                                       : normal(engine);
  from_row_major({desc.dtype, flat, Layout::row_major, nullptr}, values.data(), host.data());
  for (std::size_t done = 0; done < bytes; done += some)
    CONVOY_CUDA(cudaMemcpy(to + done, host.data(), std::min(some, bytes - done), cudaMemcpyHostToDevice));
}

// Returns the median time of one launch in microseconds. The graph holds kLaunches launches.
double time_graph(const CapturedGraph& graph) {
  const CudaStream stream;
  const CudaEvent begin(CudaEvent::Timing::on), end(CudaEvent::Timing::on);
  graph.launch(stream.get());
  std::vector<double> times;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    begin.record(stream.get());
    graph.launch(stream.get());
    end.record(stream.get());
    stream.synchronize();
    times.push_back(CudaEvent::microseconds(begin, end) / kLaunches);
  }
  std::nth_element(times.begin(), times.begin() + kRepeats / 2, times.end());
  return times[kRepeats / 2];
}

// Returns the GB/s of a copy within the device's memory, counting bytes read and written. The copy
// is not captured, because copies in a graph run slower.
double copy_bandwidth() {
  const std::size_t bytes = std::size_t{2} << 30;
  const DeviceBuffer from(bytes), to(bytes);
  fill(desc(DType::f32, {static_cast<std::int64_t>(bytes / 4)}), from.data());
  const CudaStream stream;
  const CudaEvent begin(CudaEvent::Timing::on), end(CudaEvent::Timing::on);
  for (const bool timed : {false, true}) {
    if (timed) begin.record(stream.get());
    for (int i = 0; i < kLaunches; ++i)
      CONVOY_CUDA(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice, stream.get()));
  }
  end.record(stream.get());
  stream.synchronize();
  return 2 * static_cast<double>(bytes) * kLaunches / CudaEvent::microseconds(begin, end) / 1e3;
}

void measure(const Measured& m, const StepControl* control, double copy) {
  KernelRequest request{m.inputs, m.outputs};
  const Kernel kernel = m.make(request);
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < request.inputs.size(); ++i)
    if (std::find(m.unread.begin(), m.unread.end(), static_cast<int>(i)) == m.unread.end())
      bytes += request.inputs[i].bytes();
  for (const TensorDesc& output : request.outputs) bytes += output.bytes();
  if (m.name.starts_with("optimizer"))
    // The optimizer updates its inputs in place, so it also writes them, except the gradients.
    bytes += bytes - request.inputs[1].bytes();
  const std::size_t sets = std::clamp<std::size_t>(kRotate / bytes, 1, kLaunches);
  const DeviceBuffer workspace(std::max<std::size_t>(kernel.workspace_bytes, 1));
  std::vector<DeviceBuffer> memory;
  std::vector<Launch> launches;
  for (std::size_t set = 0; set < sets; ++set) {
    std::vector<void*> inputs, outputs;
    for (const auto& [descs, addresses] : {std::pair{&request.inputs, &inputs}, {&request.outputs, &outputs}})
      for (const TensorDesc& operand : *descs) {
        memory.emplace_back(operand.bytes());
        fill(operand, memory.back().data());
        addresses->push_back(memory.back().data());
      }
    if (!m.transforms.empty())
      CONVOY_CUDA(cudaMemcpy(inputs.back(), m.transforms.data(), request.inputs.back().bytes(),
                             cudaMemcpyHostToDevice));
    launches.push_back(kernel.bind({inputs, outputs, workspace.data(), control}));
  }
  const double us = time_graph(CapturedGraph::capture([&](Stream stream) {
    for (int i = 0; i < kLaunches; ++i) launches[static_cast<std::size_t>(i) % sets](stream);
  }));
  const double rate = static_cast<double>(bytes) / us / 1e3;
  fmt::print("| {} | {} | {:.1f} | {:.1f} | {:.0f} | {:.2f} |\n", m.name, request.inputs[0].shape.to_string(),
             static_cast<double>(bytes) / 1e6, us, rate, rate / copy);
  std::fflush(stdout);
}

void add_batch_norm(std::vector<Measured>& rows, DType type, const Shape& shape) {
  const std::int64_t c = shape[1];
  const TensorDesc x = desc(type, shape), sums = desc(DType::f64, {2, c}), v = desc(DType::f32, {c});
  const BatchNormProblem plain{.relu = true}, joined{.relu = true, .residual = true, .write_gradient = true};
  const BatchNormProblem split{
      .relu = true, .residual = true, .second_gradient = true, .write_gradient = true};
  rows.push_back({"batch_norm_statistics",
                  [=](auto& r) { return batch_norm_statistics(Backend::cuda, plain, r); },
                  {x},
                  {sums}});
  rows.push_back({"batch_norm_forward relu",
                  [=](auto& r) { return batch_norm_forward(Backend::cuda, plain, r); },
                  {x, sums, v, v, v, v},
                  {x}});
  rows.push_back({"batch_norm_forward residual relu",
                  [=](auto& r) { return batch_norm_forward(Backend::cuda, joined, r); },
                  {x, sums, v, v, v, v, x},
                  {x}});
  rows.push_back({"batch_norm_backward_reduce relu",
                  [=](auto& r) { return batch_norm_backward_reduce(Backend::cuda, plain, r); },
                  {x, sums, v, v, x},
                  {sums, v, v}});
  rows.push_back({"batch_norm_backward_reduce residual relu",
                  [=](auto& r) { return batch_norm_backward_reduce(Backend::cuda, joined, r); },
                  {x, sums, v, v, x, x},
                  {sums, v, v, x}});
  rows.push_back({"batch_norm_backward_reduce residual relu dy2",
                  [=](auto& r) { return batch_norm_backward_reduce(Backend::cuda, split, r); },
                  {x, sums, v, v, x, x, x},
                  {sums, v, v, x}});
  rows.push_back({"batch_norm_backward relu",
                  [=](auto& r) { return batch_norm_backward(Backend::cuda, plain, r); },
                  {x, sums, v, v, x, sums},
                  {x}});
}

void add_pools(std::vector<Measured>& rows, DType type) {
  const PoolProblem stem{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
  const PoolProblem inception{.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}};
  const PoolProblem global{.kind = PoolKind::average, .kernel = {7, 7}, .stride = {1, 1}};
  for (const auto& [problem, shape] :
       {std::pair{stem, Shape{256, 64, 112, 112}}, {inception, {256, 256, 28, 28}}}) {
    const TensorDesc x = desc(type, shape), y = desc(type, pool_output_shape(problem, shape));
    rows.push_back({"pool_forward max",
                    [=](auto& r) { return pool_forward(Backend::cuda, problem, r); },
                    {x},
                    {y, desc(DType::u8, y.shape)}});
    rows.push_back({"pool_backward max",
                    [=](auto& r) { return pool_backward(Backend::cuda, problem, r); },
                    {desc(DType::u8, y.shape), y},
                    {x}});
  }
  for (const std::int64_t n : {256, 32}) {
    const TensorDesc x = desc(type, {n, 2048, 7, 7}), y = desc(type, {n, 2048, 1, 1});
    rows.push_back(
        {"pool_forward global", [=](auto& r) { return pool_forward(Backend::cuda, global, r); }, {x}, {y}});
    rows.push_back(
        {"pool_backward global", [=](auto& r) { return pool_backward(Backend::cuda, global, r); }, {y}, {x}});
  }
}

void add_others(std::vector<Measured>& rows, DType type) {
  const TensorDesc x = desc(type, {256, 256, 56, 56}), fc = desc(type, {256, 4096}),
                   wide = desc(type, {128, 160, 32, 32});
  rows.push_back({"relu_forward", [](auto& r) { return relu_forward(Backend::cuda, {}, r); }, {x}, {x}});
  rows.push_back({"relu_backward", [](auto& r) { return relu_backward(Backend::cuda, {}, r); }, {x, x}, {x}});
  rows.push_back({"add_forward", [](auto& r) { return add_forward(Backend::cuda, {}, r); }, {x, x}, {x}});
  const auto drop = [](auto& r) { return dropout_forward(Backend::cuda, {}, r); };
  rows.push_back({"dropout", drop, {fc}, {fc}});
  rows.push_back({"dropout", drop, {wide}, {wide}});
  const auto part = [&](std::int64_t c) { return desc(type, {256, c, 28, 28}); };
  rows.push_back({"concat_forward",
                  [](auto& r) { return concat_forward(Backend::cuda, {}, r); },
                  {part(64), part(128), part(32), part(32)},
                  {part(256)}});
  rows.push_back({"concat_backward",
                  [](auto& r) { return concat_backward(Backend::cuda, {}, r); },
                  {part(256)},
                  {part(64), part(128), part(32), part(32)}});
  const TensorDesc l = desc(type, {256, 192, 56, 56}), aux = desc(DType::f32, {1});
  rows.push_back({"local_response_norm_forward",
                  [](auto& r) { return local_response_norm_forward(Backend::cuda, {}, r); },
                  {l},
                  {l, aux}});
  rows.push_back({"local_response_norm_backward",
                  [](auto& r) { return local_response_norm_backward(Backend::cuda, {}, r); },
                  {l, l, aux, l},
                  {l},
                  {1}});
  const TensorDesc logits = desc(type, {256, 1000}), labels = desc(DType::i32, {256});
  rows.push_back({"softmax_cross_entropy_forward",
                  [](auto& r) { return softmax_cross_entropy_forward(Backend::cuda, {}, r); },
                  {logits, labels},
                  {logits, desc(DType::f64, {kLossMetrics})}});
  rows.push_back({"softmax_cross_entropy_backward",
                  [](auto& r) { return softmax_cross_entropy_backward(Backend::cuda, {}, r); },
                  {logits, labels},
                  {logits}});
  const TensorDesc rows_first{DType::f32, {256, 64, 56, 56}, Layout::row_major, nullptr};
  rows.push_back({"reorder from f32 row_major",
                  [](auto& r) { return reorder_forward(Backend::cuda, {}, r); },
                  {rows_first},
                  {desc(type, {256, 64, 56, 56})}});
}

// Returns the transforms that resize 256 square images to 224 x 224. The images are `extent` pixels
// wide and lie one after the other in memory.
std::vector<SampleTransform> transforms_to_224(std::int32_t extent) {
  AxisMap axis{.scale = extent / 224.0, .extent = extent, .size = extent, .end = 224};
  std::vector<SampleTransform> transforms(256);
  for (std::size_t n = 0; n < transforms.size(); ++n) {
    transforms[n].rows = transforms[n].columns = axis;
    transforms[n].pitch = extent;
    transforms[n].offset = static_cast<std::int64_t>(n) * extent * extent * 3;
    transforms[n].flip = static_cast<std::int32_t>(n % 2);
  }
  return transforms;
}

void add_image_input(std::vector<Measured>& rows, DType type) {
  const TensorDesc images = desc(DType::u8, {256, 3, 224, 224}), transforms = transforms_desc(256);
  for (const std::int32_t extent : {112, 180, 224, 300, 440, 1024, 2048})
    rows.push_back({fmt::format("resample from {} to 224 pixels", extent),
                    [](auto& r) {
                      return resample_forward(Backend::cuda, {{1, 2, 3}}, r);
                    },
                    {desc(DType::u8, {std::int64_t{256} * extent * extent * 3}), transforms},
                    {images},
                    {},
                    transforms_to_224(extent)});
  const NormaliseProblem normalise{{0.017f, 0.017f, 0.017f}, {-2, -2, -2}};
  for (const std::int64_t padded : {4, 8})
    rows.push_back({fmt::format("normalise to {} channels", padded),
                    [=](auto& r) { return normalise_forward(Backend::cuda, normalise, r); },
                    {images, transforms},
                    {desc(type, {256, padded, 224, 224})},
                    {},
                    transforms_to_224(224)});
}

// Operations among which TrivialAugment chooses at random (three of them affine), no operation, and
// hue. Each is also timed alone, to show its cost.
const std::vector<std::pair<const char*, ImageOp>> kImageOps = {
    {"no operation", {}},
    {"shear", {ImageOpKind::affine, 0, {65536, 30000, -3000000, 0, 65536, 0}}},
    {"rotate by 20 degrees", {ImageOpKind::affine, 0, {61584, -22415, 2900000, 22415, 61584, -2200000}}},
    {"rotate by 90 degrees", {ImageOpKind::affine, 0, {0, -65536, 224 * 65536 - 32768, 65536, 0, 32768}}},
    {"brightness", {ImageOpKind::brightness, 1.3f, {}}},
    {"contrast", {ImageOpKind::contrast, 1.3f, {}}},
    {"saturation", {ImageOpKind::saturation, 1.3f, {}}},
    {"sharpness", {ImageOpKind::sharpness, 1.3f, {}}},
    {"solarize", {ImageOpKind::solarize, 128, {}}},
    {"autocontrast", {ImageOpKind::autocontrast, 0, {}}},
    {"equalize", {ImageOpKind::equalize, 0, {}}},
    {"hue", {ImageOpKind::hue, 20, {}}}};

void add_image_ops(std::vector<Measured>& rows, DType type) {
  const TensorDesc images = desc(DType::u8, {256, 3, 224, 224});
  const auto add = [&](const std::string& name, int most, auto op_of) {
    std::vector<SampleTransform> transforms(256);
    for (int n = 0; n < 256; ++n)
      for (int i = 0; i < most; ++i) transforms[static_cast<std::size_t>(n)].ops[i] = op_of(n, i);
    rows.push_back({"image_ops, " + name,
                    [=](auto& r) { return image_ops_forward(Backend::cuda, {most}, r); },
                    {images, transforms_desc(256)},
                    {images},
                    {},
                    transforms});
  };
  // Chooses one operation at random, but neither the first (no operation) nor the last (hue).
  const auto drawn = [](int n, int i) {
    return kImageOps[philox(1, n, i).word[0] % (kImageOps.size() - 2) + 1].second;
  };
  add("TrivialAugment", 1, drawn);
  add("RandAugment", 2, drawn);
  add("colour jitter", 4, [](int n, int i) {
    constexpr int kJitter[] = {4, 5, 6, 11};
    return kImageOps[kJitter[(n + i) % 4]].second;
  });
  for (const auto& [name, op] : kImageOps) add(name, 1, [op = op](int, int) { return op; });
  rows.push_back({"mix_forward",
                  [](auto& r) { return mix_forward(Backend::cuda, {}, r); },
                  {desc(type, {256, 8, 224, 224}), desc(DType::i32, {kMixWords})},
                  {desc(type, {256, 8, 224, 224})}});
}

void add_optimizers(std::vector<Measured>& rows) {
  // The segments have the sizes of ResNet-50's layers, and together its number of parameters.
  constexpr std::int64_t kParameters = 25'557'032;
  OptimizerProblem problem;
  for (std::int64_t at = 0, i = 0; at < kParameters; ++i) {
    const std::int64_t count = std::min<std::int64_t>(i % 3 == 0 ? 480'256 : 512, kParameters - at);
    problem.segments.push_back({at, count, i % 3 == 0 ? 1.0f : 0.0f, i % 3 == 0});
    at += count;
  }
  const TensorDesc flat = desc(DType::f32, {kParameters});
  for (const auto& [kind, name] : {std::pair{OptimizerKind::sgd, "optimizer sgd"},
                                   {OptimizerKind::lars, "optimizer lars"},
                                   {OptimizerKind::adamw, "optimizer adamw"}}) {
    problem.kind = kind;
    std::vector<TensorDesc> buffers(static_cast<std::size_t>(2 + optimizer_states(problem)), flat);
    rows.push_back({name, [=](auto& r) { return optimizer_update(Backend::cuda, problem, r); }, buffers, {}});
  }
  rows.push_back({"squared_norm",
                  [](auto& r) { return squared_norm(Backend::cuda, {}, r); },
                  {flat},
                  {desc(DType::f64, {1})}});
}

void run(const std::string& only) {
  StepControl values;
  values.valid = values.global_valid = 256;
  values.seed = values.step = 1;
  values.learning_rate = 1e-3f;
  const DeviceBuffer control(sizeof values);
  CONVOY_CUDA(cudaMemcpy(control.data(), &values, sizeof values, cudaMemcpyHostToDevice));
  const double copy = copy_bandwidth();
  fmt::print("device-to-device copy: {:.0f} GB/s, bytes read and written\n\n", copy);
  fmt::print("| operation | shape | MB | us | GB/s | of the copy |\n|---|---|---|---|---|---|\n");
  std::vector<Measured> rows;
  for (const Shape& shape : {Shape{256, 64, 112, 112},
                             {256, 64, 56, 56},
                             {256, 256, 56, 56},
                             {256, 128, 28, 28},
                             {256, 512, 28, 28},
                             {256, 1024, 14, 14},
                             {256, 512, 7, 7},
                             {256, 2048, 7, 7},
                             {32, 256, 56, 56},
                             {32, 512, 7, 7},
                             {128, 64, 32, 32},
                             {128, 160, 32, 32}})
    add_batch_norm(rows, DType::bf16, shape);
  add_batch_norm(rows, DType::f32, {256, 256, 56, 56});
  add_pools(rows, DType::bf16);
  add_others(rows, DType::bf16);
  add_image_input(rows, DType::bf16);
  add_image_ops(rows, DType::bf16);
  add_optimizers(rows);
  add_mobile_layers(rows, DType::bf16);
  for (const Measured& row : rows)
    if (row.name.find(only) != std::string::npos)
      measure(row, reinterpret_cast<const StepControl*>(control.data()), copy);
}

}  // namespace
}  // namespace convoy::kernels::testing

int main(int argc, char** argv) {
  try {
    convoy::kernels::testing::run(argc > 1 ? argv[1] : "");
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "kernels_bandwidth: {}\n", error.what());
    return 1;
  }
}
