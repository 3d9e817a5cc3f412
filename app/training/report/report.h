// Writes manifest.json before the first step and summary.json after the last step, both atomically.
// Errors are std::runtime_error that names the file.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/execute/model_memory.h"
#include "comm/communicator.h"

namespace convoy::app {

// The host, device and cores of one rank.
struct RankPlace {
  std::string host, device;  // for example "cpu" or "cuda:0 NVIDIA H200"
  std::vector<int> cores;
};

struct Manifest {
  std::vector<std::string> command_line;
  std::vector<RankPlace> ranks;  // one element per rank
  std::chrono::system_clock::time_point start_time;
  std::optional<std::int64_t> resumed_step;
};

// Writes the keys command_line, version, git_hash, libraries, build, ranks [{rank, host, device,
// cores}], options, start_time (ISO 8601, UTC) and resumed_step (or null).
void write_manifest(const std::filesystem::path& path, const Manifest& manifest,
                    const nlohmann::json& options);

// The mean times of one rank's steps: step_ms = compute_ms + exposed_comm_ms + data_wait_ms. In
// exposed_comm_ms the rank waits for communication and computes nothing.
struct RankTimes {
  double step_ms = 0, compute_ms = 0, exposed_comm_ms = 0, data_wait_ms = 0;
};

struct Summary {
  std::string model, backend, precision;
  int ranks = 1;
  std::vector<std::string> devices;  // the device of each rank
  std::int64_t global_batch = 0;
  std::int64_t epochs = 0, steps = 0;  // the numbers of finished epochs and steps
  // Statistics of the steps after the first ones, which are slower and do not count (StepTimes).
  double images_per_second = 0, step_ms_median = 0, step_ms_p95 = 0;
  // The time of a step that the planner predicted; set only with --partition.
  std::optional<double> predicted_step_ms;
  double train_loss = 0;
  // Top-1 accuracy from 0 to 1; NaN (null in the file) if nothing was tested.
  double test_accuracy = 0;
  // Top-1 accuracy of the moving average, if there is one.
  std::optional<double> ema_test_accuracy;
  double exposed_comm_ms = 0, data_wait_ms = 0;             // mean milliseconds per step
  std::int64_t peak_device_bytes = 0, peak_host_bytes = 0;  // the largest values of all ranks (PeakMemory)
  // Bytes of the memory arena of rank 0 by purpose; a JSON object in the file.
  std::vector<MemoryUse> memory_bytes;
  // The largest part of a step: "compute", "communication", "input" or "stragglers".
  std::string limited_by;
  int slowest_rank = 0;
  std::vector<RankTimes> rank_times;  // the times of each rank
  std::string parameters_sha256;
};

struct PeakMemory {
  // The size of the largest memory arena of all ranks. A rank reserves its arena once, in device
  // memory or, for CPU backends, in host memory. --memory-limit limits this size.
  std::int64_t device_bytes = 0;
  // The largest resident set of all ranks' processes. It includes the used pages of an arena in
  // host memory, batches, libraries, and memory that ranks share.
  std::int64_t host_bytes = 0;
};

// Returns the largest resident set of this process so far (VmHWM of /proc/self/status), or 0 if it
// is not known.
std::int64_t peak_resident_bytes();

// Returns on all ranks the largest arena and the largest resident set of any rank. Collective.
PeakMemory largest_peaks(const comm::Communicator& ranks, std::int64_t arena_bytes);

// Writes one key per field of Summary, with the field's name. Leaves out predicted_step_ms and
// ema_test_accuracy if they are not known.
void write_summary(const std::filesystem::path& path, const Summary& summary);

}  // namespace convoy::app
