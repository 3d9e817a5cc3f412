// Gets the properties of this rank's GPU from CUDA.
#include <fmt/format.h>

#include <array>
#include <optional>

#include "comm/placement/launcher.h"
#include "comm/placement/local_device.h"
#include "kernels/device/cuda_error.h"
#include "kernels/device/device_memory.h"

namespace convoy::comm {
namespace {

std::string text_of(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i)
    text += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                        static_cast<unsigned char>(uuid.bytes[i]));
  return text;
}

}  // namespace

LocalDevice current_device() {
  LocalDevice device;
  CONVOY_CUDA(cudaGetDevice(&device.index));
  cudaDeviceProp properties{};
  CONVOY_CUDA(cudaGetDeviceProperties(&properties, device.index));
  device.name = properties.name;
  device.uuid = text_of(properties.uuid);
  std::array<char, 32> pci{};
  CONVOY_CUDA(cudaDeviceGetPCIBusId(pci.data(), static_cast<int>(pci.size()), device.index));
  device.pci = pci.data();
  device.near_cores = cores_near(device.pci);
  return device;
}

LocalDevice take_local_device() {
  const auto hint = launcher_hint();
  kernels::use_gpu(choose_device(hint ? hint->local_rank : std::nullopt, kernels::gpu_count()));
  return current_device();
}

}  // namespace convoy::comm
