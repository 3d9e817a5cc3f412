#include "app/commands/bench/backward_sample.h"

#include "kernels/conv2d/conv2d.h"
#include "kernels/device/device_memory.h"
#include "kernels/relu/relu.h"

namespace convoy::app {
namespace {

using kernels::DType;
using kernels::KernelRequest;
using kernels::Layout;
using kernels::TensorDesc;

TensorDesc activations(std::int64_t n, std::int64_t side) {
  return {DType::bf16, {n, 256, side, side}, Layout::channels_last, nullptr};
}

}  // namespace

// Takes the shape of a convolution in ResNet-50's third stage, and of a ReLU in the first stage.
// The ReLU gets a quarter of the images, so that both operations take about the same time.
BackwardSample::BackwardSample(std::int64_t images) {
  constexpr auto kCuda = kernels::Backend::cuda;
  KernelRequest gradient;
  gradient.inputs = {activations(images, 14),
                     {DType::bf16, {256, 256, 3, 3}, Layout::channels_last, nullptr}};
  gradient.outputs = {activations(images, 14)};
  kernels::Conv2dProblem convolution;
  convolution.padding = {1, 1};
  add(kernels::conv2d_backward_data(kCuda, convolution, gradient), gradient);
  KernelRequest pass;
  pass.inputs = {activations(images / 4, 56), activations(images / 4, 56)};
  pass.outputs = {activations(images / 4, 56)};
  add(kernels::relu_backward(kCuda, {}, pass), pass);
}

void BackwardSample::Release::operator()(std::byte* data) const { kernels::release_gpu_memory(data); }

void* BackwardSample::reserve(std::size_t bytes) {
  return memory_.emplace_back(kernels::reserve_gpu_memory(bytes)).get();
}

void BackwardSample::add(const kernels::Kernel& kernel, const KernelRequest& request) {
  std::vector<void*> inputs, outputs;
  for (const TensorDesc& input : request.inputs) inputs.push_back(reserve(input.bytes()));
  for (const TensorDesc& output : request.outputs) outputs.push_back(reserve(output.bytes()));
  void* const workspace = kernel.workspace_bytes > 0 ? reserve(kernel.workspace_bytes) : nullptr;
  launches_.push_back(kernel.bind({inputs, outputs, workspace}));
}

}  // namespace convoy::app
