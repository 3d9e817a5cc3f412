// The GPU of this rank. It is chosen before MPI_Init from the launcher's variables, so that MPI and
// all libraries that are initialised after MPI use the right device. Once the ranks can
// communicate, they check that no two of them share a GPU.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"

namespace convoy::comm {

// The device of a rank. Index -1 stands for the host's processor.
struct LocalDevice {
  int index = -1;    // CUDA's index among the devices that this process sees
  std::string name;  // for example "NVIDIA H200"
  // For example "GPU-5e9a…": the same in every process, whatever CUDA_VISIBLE_DEVICES says.
  std::string uuid;
  std::string pci;  // for example "0000:1b:00.0"
  // Logical processors near the device; empty if the system does not say.
  std::vector<int> near_cores;

  std::string short_name() const;  // for example "cuda:1"; empty without a device
  std::string to_string() const;   // for example "cuda:1 NVIDIA H200", or "cpu"
};

// Chooses this rank's GPU by its local rank (launcher.h) and makes it current. If the launcher has
// set CUDA_VISIBLE_DEVICES to one GPU per rank, takes that GPU. Call it before MPI_Init. Throws
// std::runtime_error without a GPU, with fewer GPUs than ranks on this host, and in builds without
// CUDA.
LocalDevice take_local_device();
// Returns the calling thread's current device.
LocalDevice current_device();

// Returns the index of this rank's GPU, from 0 to visible - 1. Throws std::runtime_error with the
// local rank and the number of visible GPUs if there are too few.
int choose_device(std::optional<int> local_rank, int visible);

// The host and the device of a rank, for the check that no two ranks share a GPU.
struct RankDevice {
  std::string host;
  LocalDevice device;
};
// Returns a message that names the first two ranks that share a GPU, with host and device. Returns
// an empty text if no ranks share a GPU. Element r of `uses` describes the device of rank r.
std::string shared_device_problem(const std::vector<RankDevice>& uses);
// Collective. Throws the same std::runtime_error on every rank if two ranks share a GPU.
void refuse_shared_devices(const Communicator& ranks, const LocalDevice& mine);

// Parses the Linux kernel's format of a list of cores, "0-3,8,10-11". Throws std::runtime_error for
// other text.
std::vector<int> parse_core_list(std::string_view text);
// Returns the logical processors next to a PCI device, read from
// <sysfs>/bus/pci/devices/<pci>/local_cpulist, or none if that is not readable, as in some virtual
// machines.
std::vector<int> cores_near(const std::string& pci, const std::string& sysfs = "/sys");

}  // namespace convoy::comm
