#include <cudaTypedefs.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "app/concurrency/resources.h"
#include "kernels/device/cuda_driver.h"
#include "kernels/device/cuda_runtime.h"

namespace convoy::app {
namespace {

using kernels::driver_function;

void check(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS)
    throw std::runtime_error(fmt::format("{} failed with {}", call, static_cast<int>(result)));
}

// Functions of the CUDA driver. Unlike those of the runtime, they can also query kernels that
// belong to libraries such as cuBLAS.
struct Driver {
  PFN_cuGraphKernelNodeGetParams_v12000 params =
      driver_function<PFN_cuGraphKernelNodeGetParams_v12000>("cuGraphKernelNodeGetParams");
  PFN_cuKernelGetFunction_v12000 function_of =
      driver_function<PFN_cuKernelGetFunction_v12000>("cuKernelGetFunction");
  PFN_cuFuncGetAttribute_v2020 attribute =
      driver_function<PFN_cuFuncGetAttribute_v2020>("cuFuncGetAttribute");
  PFN_cuOccupancyMaxActiveBlocksPerMultiprocessor_v6050 occupancy =
      driver_function<PFN_cuOccupancyMaxActiveBlocksPerMultiprocessor_v6050>(
          "cuOccupancyMaxActiveBlocksPerMultiprocessor");
};

KernelUse use_of(const Driver& driver, cudaGraphNode_t node) {
  CUDA_KERNEL_NODE_PARAMS params{};
  check(driver.params(node, &params), "cuGraphKernelNodeGetParams");
  CUfunction function = params.func;
  if (function == nullptr) check(driver.function_of(&function, params.kern), "cuKernelGetFunction");
  const auto attribute = [&](CUfunction_attribute name) {
    int value = 0;
    check(driver.attribute(&value, name, function), "cuFuncGetAttribute");
    return value;
  };
  KernelUse use;
  use.blocks = std::int64_t{params.gridDimX} * params.gridDimY * params.gridDimZ;
  use.threads = static_cast<int>(params.blockDimX * params.blockDimY * params.blockDimZ);
  use.registers = attribute(CU_FUNC_ATTRIBUTE_NUM_REGS);
  use.static_shared = attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  use.dynamic_shared = params.sharedMemBytes;
  check(driver.occupancy(&use.resident, function, use.threads, params.sharedMemBytes),
        "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  use.resident = std::max(use.resident, 1);
  return use;
}

// Captures a launch without running it, and returns the resources of its kernels.
std::vector<KernelUse> uses_of(const Driver& driver, const kernels::Launch& launch,
                               const kernels::CudaStream& stream) {
  const kernels::CudaGraph graph = kernels::capture_on(stream, [&] { launch(stream.view()); });
  std::size_t count = 0;
  CONVOY_CUDA(cudaGraphGetNodes(graph.get(), nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  CONVOY_CUDA(cudaGraphGetNodes(graph.get(), nodes.data(), &count));
  std::vector<KernelUse> uses;
  for (const cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type{};
    CONVOY_CUDA(cudaGraphNodeGetType(node, &type));
    if (type == cudaGraphNodeTypeKernel) uses.push_back(use_of(driver, node));
  }
  return uses;
}

DeviceLimits limits_of_device() {
  int device = 0;
  CONVOY_CUDA(cudaGetDevice(&device));
  cudaDeviceProp properties{};
  CONVOY_CUDA(cudaGetDeviceProperties(&properties, device));
  DeviceLimits limits;
  limits.name = properties.name;
  limits.multiprocessors = properties.multiProcessorCount;
  limits.threads = properties.maxThreadsPerMultiProcessor;
  limits.blocks = properties.maxBlocksPerMultiProcessor;
  limits.registers = properties.regsPerMultiprocessor;
  limits.shared_bytes = static_cast<std::int64_t>(properties.sharedMemPerMultiprocessor);
  limits.shared_bytes_of_system = static_cast<std::int64_t>(properties.reservedSharedMemPerBlock);
  return limits;
}

}  // namespace

ResourceTable track_resources(const Program& program) {
  static const Driver driver;
  ResourceTable table{limits_of_device(), {}};
  const kernels::CudaStream stream;
  for (const Instruction& instruction : program.instructions()) {
    const bool communicates = instruction.communicates || instruction.follow;
    table.kernels.push_back(communicates ? std::vector<KernelUse>()
                                         : uses_of(driver, instruction.launch, stream));
  }
  return table;
}

}  // namespace convoy::app
