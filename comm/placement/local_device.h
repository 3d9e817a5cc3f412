// The GPU of this rank. It is chosen before MPI_Init from what the launcher says, so that MPI and every library
// after it meet the right device, and checked once the ranks can talk: two ranks never share one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"

namespace convoy::comm {

// Without a device (index -1) it stands for the host's processor.
struct LocalDevice {
  int index = -1;    // CUDA's, among those that this process sees
  std::string name;  // "NVIDIA H200"
  std::string uuid;  // "GPU-5e9a…": the same in every process, whatever CUDA_VISIBLE_DEVICES says
  std::string pci;   // "0000:1b:00.0"
  std::vector<int> near_cores;  // logical processors next to it; empty when the system does not say

  std::string short_name() const;  // "cuda:1"; empty without a device
  std::string to_string() const;   // "cuda:1 NVIDIA H200", or "cpu"
};

// Chooses this rank's GPU by its local rank (launcher.h) and makes it current. A process that sees one GPU alone,
// because the launcher or the batch system has set CUDA_VISIBLE_DEVICES for each rank, takes that one. Throws
// std::runtime_error when there is no GPU, fewer than ranks on this host, or a build without CUDA. To be called
// before MPI_Init.
LocalDevice take_local_device();
// The current device, as the calling thread has set it.
LocalDevice current_device();

// The choice: an index from 0 to visible - 1. Throws std::runtime_error naming both numbers.
int choose_device(std::optional<int> local_rank, int visible);

// The device of one rank, for the search for doubles.
struct DeviceUse {
  std::string host;
  LocalDevice device;
};
// The message when two ranks are on one GPU: it names the first such pair, the host and the device. Empty
// otherwise. Element r is rank r.
std::string shared_device_problem(const std::vector<DeviceUse>& uses);
// Collective. Throws the same std::runtime_error on every rank when two of them share a GPU.
void refuse_shared_devices(const Communicator& ranks, const LocalDevice& mine);

// Logical processors from the kernel's list format, "0-3,8,10-11". Throws std::runtime_error for other text.
std::vector<int> parse_core_list(std::string_view text);
// Those next to a PCI device, from <sysfs>/bus/pci/devices/<pci>/local_cpulist; empty when it is not there or
// not readable, as in some virtual machines.
std::vector<int> cores_near(const std::string& pci, const std::string& sysfs = "/sys");

}  // namespace convoy::comm
