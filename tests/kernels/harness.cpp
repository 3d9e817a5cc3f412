#include "tests/kernels/harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>

#include "kernels/device/host_kernel.h"
#include "tests/kernels/memory.h"

namespace convoy::kernels::testing {
namespace {

constexpr std::size_t kGuard = 64;
constexpr std::byte kGuardByte{0xA5};
constexpr std::byte kPoison{0xFF};        // a float or double of these bytes is a NaN
constexpr double kBf16Rounding = 0x1p-8;  // the largest relative error of one rounding to bf16

// Memory of a backend for one operand. Guard bytes follow it, so that a write beyond its end is
// found.
class Buffer {
 public:
  Buffer(Backend backend, std::size_t bytes)
      : backend_(backend), bytes_(bytes), start_(allocate(backend, bytes + kGuard)) {
    const std::vector<std::byte> guard(kGuard, kGuardByte);
    copy_in(backend_, start_.get() + bytes_, guard.data(), kGuard);
    poison();
  }
  void poison() { write(std::vector<std::byte>(bytes_, kPoison)); }
  void write(const std::vector<std::byte>& bytes) {
    copy_in(backend_, start_.get(), bytes.data(), bytes.size());
  }
  std::vector<std::byte> read() const {
    std::vector<std::byte> bytes(bytes_);
    copy_out(backend_, bytes.data(), start_.get(), bytes_);
    return bytes;
  }
  bool guard_intact() const {
    std::vector<std::byte> guard(kGuard);
    copy_out(backend_, guard.data(), start_.get() + bytes_, kGuard);
    return guard == std::vector<std::byte>(kGuard, kGuardByte);
  }
  void* address() const { return start_.get(); }

 private:
  Backend backend_;
  std::size_t bytes_;
  std::shared_ptr<std::byte> start_;
};

std::vector<std::byte> encode(const TensorDesc& desc, const std::vector<double>& values) {
  std::vector<std::byte> bytes(desc.bytes());
  if (desc.dtype == DType::f64) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
  } else {
    const std::vector<float> floats(values.begin(), values.end());
    from_row_major(desc, floats.data(), bytes.data());
  }
  return bytes;
}

std::vector<double> decode(const TensorDesc& desc, const std::vector<std::byte>& bytes) {
  std::vector<double> values(desc.shape.elements());
  if (desc.dtype == DType::f64) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
  } else {
    std::vector<float> floats(values.size());
    to_row_major(desc, bytes.data(), floats.data());
    std::copy(floats.begin(), floats.end(), values.begin());
  }
  return values;
}

template <typename T>
bool contains(const std::vector<T>& list, T value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Returns the element type in which a backend stores a tensor of a case.
DType stored_type(Backend backend, const Case& test, const TensorDesc& desc) {
  const bool activation = desc.dtype == DType::f32 && desc.shape.rank() >= 2;
  return activation && backend != Backend::reference ? test.activations : desc.dtype;
}

KernelRequest request_of(Backend backend, Layout images, const Case& test) {
  KernelRequest request;
  for (std::size_t i = 0; i < test.inputs.size(); ++i) {
    TensorDesc desc = test.inputs[i].desc;
    if (desc.layout == Layout::any && !contains(test.free_layout, static_cast<int>(i)))
      desc.layout = desc.shape.rank() == 4 && backend != Backend::reference ? images : Layout::row_major;
    if (test.inputs[i].bytes.empty()) desc.dtype = stored_type(backend, test, desc);
    request.inputs.push_back(desc);
  }
  request.outputs = test.outputs;
  for (std::size_t i = 0; i < request.outputs.size(); ++i)
    if (!contains(test.single, static_cast<int>(i)))
      request.outputs[i].dtype = stored_type(backend, test, request.outputs[i]);
  return request;
}

struct Memory {
  std::vector<Buffer> inputs, outputs;
  Buffer workspace;
};

void load_inputs(const KernelRequest& request, const Case& test, Memory& memory) {
  for (std::size_t i = 0; i < test.inputs.size(); ++i)
    memory.inputs[i].write(test.inputs[i].bytes.empty() ? encode(request.inputs[i], test.inputs[i].values)
                                                        : test.inputs[i].bytes);
}

std::vector<Tensor> collect(const std::vector<TensorDesc>& descs, const std::vector<Buffer>& buffers) {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < descs.size(); ++i) {
    std::vector<std::byte> bytes = buffers[i].read();
    tensors.push_back({descs[i], decode(descs[i], bytes), bytes});
  }
  return tensors;
}

// Fills outputs and workspace with NaN and launches once. If an input shares the buffer of an
// output (`share`), writes the input there first. Returns how many allocations the launch made.
long launch_once(const KernelRequest& request, const Case& test, Share share, const Launch& launch,
                 Memory& memory) {
  for (Buffer& output : memory.outputs) output.poison();
  memory.workspace.poison();
  load_inputs(request, test, memory);
  if (share) memory.outputs[share->second].write(memory.inputs[share->first].read());
  const long before = allocations();
  launch({});
  return allocations() - before;
}

// Checks that a launch changed neither guard bytes nor read-only inputs, and that channel padding
// is zero.
void check_surroundings(const KernelRequest& request, const Case& test, const Memory& memory) {
  for (std::size_t i = 0; i < memory.inputs.size(); ++i) {
    EXPECT_TRUE(memory.inputs[i].guard_intact()) << test.name << " wrote beyond input " << i;
    if (contains(test.updated, static_cast<int>(i)) || !test.inputs[i].bytes.empty()) continue;
    EXPECT_EQ(memory.inputs[i].read(), encode(request.inputs[i], test.inputs[i].values))
        << test.name << " changed input " << i;
  }
  for (std::size_t i = 0; i < memory.outputs.size(); ++i) {
    EXPECT_TRUE(memory.outputs[i].guard_intact()) << test.name << " wrote beyond output " << i;
    if (contains(test.ignored, static_cast<int>(i))) continue;
    const TensorDesc& desc = request.outputs[i];
    const std::vector<std::byte> bytes = memory.outputs[i].read();
    if (desc.layout == Layout::blocked16 || desc.layout == Layout::blocked8) {
      EXPECT_EQ(bytes, encode(desc, decode(desc, bytes)))
          << test.name << " left something in the channel padding of output " << i;
    }
  }
  EXPECT_TRUE(memory.workspace.guard_intact()) << test.name << " wrote beyond its workspace";
}

// Returns the bytes of an input for one of several networks computed together (MemberLayout,
// kernel.h). Their values differ, so that a kernel that reads another network's memory fails.
std::vector<std::byte> input_of_member(const TensorDesc& desc, const Tensor& input, int member) {
  const bool number = desc.dtype == DType::f32 || desc.dtype == DType::bf16 || desc.dtype == DType::f64;
  std::vector<double> values = input.values;
  if (number)
    for (double& value : values) value *= 1 + 0.25 * member;
  std::vector<std::byte> bytes = input.bytes.empty() ? encode(desc, values) : input.bytes;
  const std::int64_t samples = desc.shape.rank() > 0 ? desc.shape[0] : 1;
  if ((!number || !input.bytes.empty()) && samples > 0)
    std::rotate(bytes.begin(), bytes.begin() + std::ptrdiff_t(bytes.size()) / samples * (member % samples),
                bytes.end());
  return bytes;
}

StepControl control_of_member(StepControl control, int member) {
  control.valid = std::max(control.valid - member, 0);
  control.seed += std::uint64_t(member);
  control.step += std::uint64_t(member);
  control.first_sample += std::uint64_t(member);
  control.learning_rate *= 1 + 0.25f * float(member);
  control.gradient_scale *= 1 + 0.25f * float(member);
  control.part += member;
  control.share *= 1 + 0.25f * float(member);
  return control;
}

// Checks that one launch for several networks (MemberLayout, kernel.h) gives the bits of one launch
// for each of them.
void check_members(Backend backend, const Kernel& kernel, const KernelRequest& request, const Case& test,
                   Share share) {
  const std::size_t inputs = request.inputs.size(), outputs = request.outputs.size();
  std::vector<MemberPart> parts;
  const auto add = [&](std::string name, std::size_t bytes) -> MemberPart& {
    parts.push_back({std::move(name), {}});
    for (std::vector<std::byte>& of : parts.back().bytes) of.assign(bytes, kPoison);
    return parts.back();
  };
  for (std::size_t i = 0; i < inputs; ++i) {
    MemberPart& part = add("input " + std::to_string(i), 0);
    for (int member = 0; member < kMembers; ++member)
      part.bytes[std::size_t(member)] = input_of_member(request.inputs[i], test.inputs[i], member);
  }
  for (std::size_t i = 0; i < outputs; ++i) {
    MemberPart& part = add("output " + std::to_string(i), request.outputs[i].bytes());
    if (share && std::size_t(share->second) == i) part.bytes = parts[std::size_t(share->first)].bytes;
  }
  add("the workspace", kernel.workspace_bytes).compared = false;
  MemberPart& control = add("the control", sizeof(StepControl));
  for (int member = 0; member < kMembers; ++member) {
    const StepControl values = control_of_member(test.control, member);
    std::memcpy(control.bytes[std::size_t(member)].data(), &values, sizeof values);
  }
  const auto bind = [&](std::vector<void*> addresses, const MemberLayout& members) {
    if (share) addresses[std::size_t(share->first)] = addresses[inputs + std::size_t(share->second)];
    const std::span<void* const> all = addresses;
    return kernel.bind({all.first(inputs), all.subspan(inputs, outputs), addresses[inputs + outputs],
                        static_cast<const StepControl*>(addresses.back()), members});
  };
  const std::string different = compare_members(backend, parts, bind);
  EXPECT_TRUE(different.empty()) << test.name << ", all members in one launch: " << different
                                 << " differs from a launch of its own";
}

}  // namespace

std::string compare_members(Backend backend, const std::vector<MemberPart>& parts,
                            const std::function<Launch(std::vector<void*>, const MemberLayout&)>& bind) {
  std::vector<std::size_t> offsets;
  std::size_t stride = 0;
  for (const MemberPart& part : parts) {
    offsets.push_back(stride);
    stride = (stride + part.bytes[0].size() + kGuard + 255) / 256 * 256;
  }
  std::vector<std::byte> initial(kMembers * stride, kGuardByte);
  for (int member = 0; member < kMembers; ++member)
    for (std::size_t i = 0; i < parts.size(); ++i)
      std::copy(parts[i].bytes[std::size_t(member)].begin(), parts[i].bytes[std::size_t(member)].end(),
                initial.data() + std::size_t(member) * stride + offsets[i]);
  Buffer memory(backend, initial.size());
  const auto bound = [&](int first, const MemberLayout& members) {
    std::vector<void*> addresses;
    for (const std::size_t offset : offsets)
      addresses.push_back(static_cast<std::byte*>(memory.address()) + std::size_t(first) * stride + offset);
    return bind(addresses, members);
  };
  const auto after = [&](const std::vector<Launch>& launches) {
    memory.write(initial);
    for (const Launch& launch : launches) launch({});
    return memory.read();
  };
  std::vector<Launch> own;
  for (int member = 0; member < kMembers; ++member) own.push_back(bound(member, {}));
  const std::vector<std::byte> expected = after(own);
  const std::vector<Launch> together{bound(0, {kMembers, std::ptrdiff_t(stride)})};
  for (const char* turn : {"", ", in a second launch,"}) {
    const std::vector<std::byte> actual = after(together);
    if (!memory.guard_intact()) return "the memory after all members";
    for (int member = 0; member < kMembers; ++member)
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::size_t begin = offsets[i] + (parts[i].compared ? 0 : parts[i].bytes[0].size());
        const std::size_t end = i + 1 < parts.size() ? offsets[i + 1] : stride;
        const std::size_t from = std::size_t(member) * stride + begin;
        if (std::memcmp(&actual[from], &expected[from], end - begin) != 0)
          return parts[i].name + " of member " + std::to_string(member) + " or the bytes after it" + turn;
      }
  }
  return {};
}

Result run(Backend backend, Layout images, const Case& test, Share share) {
  Buffer control(backend, sizeof(StepControl));
  const auto* control_bytes = reinterpret_cast<const std::byte*>(&test.control);
  control.write({control_bytes, control_bytes + sizeof(StepControl)});
  KernelRequest request = request_of(backend, images, test);
  const Kernel kernel = test.maker(backend, request);
  Memory memory{{}, {}, Buffer(backend, kernel.workspace_bytes)};
  for (const TensorDesc& desc : request.inputs) memory.inputs.emplace_back(backend, desc.bytes());
  for (const TensorDesc& desc : request.outputs) memory.outputs.emplace_back(backend, desc.bytes());
  std::vector<void*> inputs, outputs;
  for (const Buffer& buffer : memory.inputs) inputs.push_back(buffer.address());
  for (const Buffer& buffer : memory.outputs) outputs.push_back(buffer.address());
  if (share) inputs[share->first] = outputs[share->second];
  Launch launch;
  {
    // These vectors end before the launch, so binding must copy the addresses.
    const std::vector<void*> in = inputs, out = outputs;
    launch = kernel.bind(
        {in, out, memory.workspace.address(), static_cast<const StepControl*>(control.address())});
  }
  launch_once(request, test, share, launch, memory);
  Result first{collect(request.outputs, memory.outputs), collect(request.inputs, memory.inputs),
               kernel.in_place};
  check_surroundings(request, test, memory);
  const long allocated = launch_once(request, test, share, launch, memory);
  if (backend == Backend::cuda || (backend == Backend::cpu && !test.onednn)) {
    EXPECT_EQ(allocated, 0) << test.name << " allocates memory when it is launched";
  }
  for (std::size_t i = 0; i < first.outputs.size(); ++i)
    EXPECT_EQ(first.outputs[i].bytes, memory.outputs[i].read())
        << test.name << ": a second launch gives other bits in output " << i;
  if (kernel.takes_members) check_members(backend, kernel, request, test, share);
  return first;
}

Case in_bf16(Case test) {
  test.activations = DType::bf16;
  for (Tensor& input : test.inputs)
    if (stored_type(Backend::cuda, test, input.desc) == DType::bf16 && input.bytes.empty()) {
      const TensorDesc rounded{DType::bf16, {input.desc.shape.elements()}, Layout::row_major, nullptr};
      input.values = decode(rounded, encode(rounded, input.values));
    }
  test.name += " in bf16";
  return test;
}

std::vector<Backend> backends() {
  if (gpu_present()) return {Backend::cpu, Backend::cuda};
  return {Backend::cpu};
}

std::vector<Layout> layouts_of(Backend backend) {
  if (backend == Backend::cpu) return {Layout::row_major, Layout::blocked16, Layout::blocked8};
  if (backend == Backend::cuda) return {Layout::channels_last};
  return {Layout::row_major};
}

void expect_close(const Tensor& actual, const Tensor& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(actual.values.size(), expected.values.size()) << what;
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < actual.values.size(); ++i) {
    const double d = actual.values[i] - expected.values[i];
    difference += d * d;
    norm += expected.values[i] * expected.values[i];
  }
  // A NaN makes this comparison false, so it fails the test.
  EXPECT_TRUE(difference <= tolerance * tolerance * norm)
      << what << ": relative L2 error " << std::sqrt(difference / norm) << ", bound " << tolerance;
}

void expect_same(const Case& test, const Result& actual, const Result& expected, const std::string& what) {
  for (std::size_t i = 0; i < actual.outputs.size(); ++i) {
    if (contains(test.ignored, static_cast<int>(i))) continue;
    const double rounding = actual.outputs[i].desc.dtype == DType::bf16 ? kBf16Rounding : 0;
    expect_close(actual.outputs[i], expected.outputs[i], test.tolerance + rounding,
                 what + ", output " + std::to_string(i));
  }
  for (const int i : test.updated)
    expect_close(actual.inputs[i], expected.inputs[i], test.tolerance, what + ", input " + std::to_string(i));
}

void expect_in_place_equals(Backend backend, Layout images, const Case& test, const Result& expected) {
  for (const auto& pair : expected.in_place) {
    const Result shared = run(backend, images, test, pair);
    for (std::size_t i = 0; i < shared.outputs.size(); ++i)
      EXPECT_EQ(shared.outputs[i].values, expected.outputs[i].values)
          << test.name << ": input " << pair.first << " and output " << pair.second
          << " in one buffer change output " << i;
  }
}

void expect_matches_reference(const Case& test) { expect_matches_reference(test, backends()); }

void expect_matches_reference(const Case& test, const std::vector<Backend>& under_test) {
  SCOPED_TRACE(test.name);
  const Result expected = run_reference(test);
  expect_in_place_equals(Backend::reference, Layout::row_major, test, expected);
  for (const Backend backend : under_test)
    for (const Layout layout : layouts_of(backend)) {
      const std::string what =
          test.name + " on " + name_of(backend) + ", layout " + std::to_string(int(layout));
      const Result actual = run(backend, layout, test);
      expect_same(test, actual, expected, what);
      expect_in_place_equals(backend, layout, test, actual);
    }
  if (test.activations == DType::f32 && contains(under_test, Backend::cuda))
    expect_matches_reference(in_bf16(test), {Backend::cuda});
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

std::vector<double> central_differences(const std::function<double(const std::vector<Tensor>&)>& function,
                                        std::vector<Tensor> inputs, int position, double step) {
  std::vector<double> derivative;
  for (double& value : inputs[position].values) {
    const double middle = value;
    // Both values are rounded to float, so their difference is not exactly 2 * step.
    const auto above = static_cast<float>(middle + step), below = static_cast<float>(middle - step);
    value = above;
    const double up = function(inputs);
    value = below;
    const double down = function(inputs);
    value = middle;
    derivative.push_back((up - down) / (double(above) - double(below)));
  }
  return derivative;
}

std::vector<double> central_differences(const Case& forward, int position,
                                        const std::vector<std::vector<double>>& projection, double step) {
  const auto projected = [&](const std::vector<Tensor>& inputs) {
    Case moved = forward;
    moved.inputs = inputs;
    const Result result = run_reference(moved);
    double sum = 0;
    for (std::size_t i = 0; i < projection.size(); ++i)
      if (!projection[i].empty()) sum += dot(projection[i], result.outputs[i].values);
    return sum;
  };
  return central_differences(projected, forward.inputs, position, step);
}

Tensor batch_norm_sums(const Tensor& x, std::int64_t valid) {
  const ImageExtents e = image_extents(x.desc.shape);
  Tensor sums = doubles({2, e.c}, std::vector<double>(2 * e.c));
  for (std::int64_t i = 0; i < valid * e.c * e.pixels(); ++i) {
    sums.values[i / e.pixels() % e.c] += x.values[i];
    sums.values[e.c + i / e.pixels() % e.c] += x.values[i] * x.values[i];
  }
  return sums;
}

void expect_variance(const Tensor& sums, const Tensor& x, std::int64_t valid, DType stored_as,
                     const std::string& what) {
  const ImageExtents e = image_extents(x.desc.shape);
  const double count = static_cast<double>(valid * e.pixels());
  std::vector<double> mean(e.c), variance(e.c);
  const auto for_each = [&](auto visit) {
    for (std::int64_t i = 0; i < valid * e.c * e.pixels(); ++i) visit(x.values[i], i / e.pixels() % e.c);
  };
  for_each([&](double value, std::int64_t c) { mean[c] += value / count; });
  for_each(
      [&](double value, std::int64_t c) { variance[c] += (value - mean[c]) * (value - mean[c]) / count; });
  for (std::int64_t c = 0; c < e.c; ++c) {
    const double found_mean = sums.values[c] / count;
    const double found = sums.values[e.c + c] / count - found_mean * found_mean;
    // bf16 has eight significant bits. Rounding to steps of size s adds s^2 / 12 to the variance.
    const double step = std::exp2(std::floor(std::log2(std::abs(mean[c]))) - 7);
    const double bound =
        stored_as == DType::bf16 ? std::max(1e-5 * variance[c], step * step / 12) : 2e-6 * variance[c];
    EXPECT_NEAR(found, variance[c], bound) << what << ", channel " << c << ", mean " << mean[c];
  }
}

void expect_gradient(const std::vector<double>& analytic, const std::vector<double>& numeric,
                     const std::string& what, double tolerance) {
  expect_close({{}, analytic, {}}, {{}, numeric, {}}, tolerance, what + " against central differences");
}

Tensor Random::uniform(Shape shape, double low, double high) {
  Tensor tensor{f32(shape), std::vector<double>(shape.elements()), {}};
  std::uniform_real_distribution<float> distribution(static_cast<float>(low), static_cast<float>(high));
  for (double& value : tensor.values) value = distribution(engine_);
  return tensor;
}

Tensor Random::away_from_zero(Shape shape) {
  Tensor tensor = uniform(shape, 0.5, 1.5);
  for (double& value : tensor.values) value = coin() ? value : -value;
  return tensor;
}

Tensor Random::distinct(Shape shape) {
  Tensor tensor = uniform(shape);
  std::iota(tensor.values.begin(), tensor.values.end(), 0.0);
  std::shuffle(tensor.values.begin(), tensor.values.end(), engine_);
  const double count = static_cast<double>(tensor.values.size());
  for (double& value : tensor.values) value = static_cast<float>(value * 2 / count - 1);
  return tensor;
}

Tensor labels(const std::vector<int>& values) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  return {{DType::i32, shape, Layout::any, nullptr}, {values.begin(), values.end()}, {}};
}

Tensor floats(Shape shape, std::vector<double> values) { return {f32(shape), std::move(values), {}}; }

Tensor doubles(Shape shape, std::vector<double> values) { return {f64(shape), std::move(values), {}}; }

StepControl all_valid(std::int64_t samples) {
  StepControl control;
  control.valid = control.global_valid = static_cast<std::int32_t>(samples);
  return control;
}

}  // namespace convoy::kernels::testing
