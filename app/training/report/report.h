// Writes manifest.json before the first step and summary.json after the last, whole or not at all.
// Errors are std::runtime_error naming the file.
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
  std::string host, device;  // device: "cpu" or "cuda:0 NVIDIA H200"
  std::vector<int> cores;
};

struct Manifest {
  std::vector<std::string> command_line;
  std::vector<RankPlace> ranks;  // by rank
  std::chrono::system_clock::time_point start_time;
  std::optional<std::int64_t> resumed_step;
};

// Writes the keys command_line, version, git_hash, libraries, build, ranks [{rank, host, device,
// cores}], options, start_time (ISO 8601, UTC) and resumed_step (or null).
void write_manifest(const std::filesystem::path& path, const Manifest& manifest,
                    const nlohmann::json& options);

// Means over one rank's steps: compute + exposed communication + data wait = step.
struct RankTimes {
  double step_ms = 0, compute_ms = 0, exposed_comm_ms = 0, data_wait_ms = 0;
};

struct Summary {
  std::string model, backend, precision;
  int ranks = 1;
  std::vector<std::string> devices;  // one a rank
  std::int64_t global_batch = 0;
  std::int64_t epochs = 0, steps = 0;                                 // finished
  double images_per_second = 0, step_ms_median = 0, step_ms_p95 = 0;  // after warm-up
  std::optional<double> predicted_step_ms;  // of a partitioned run, by the partitioner
  double train_loss = 0;
  double test_accuracy = 0;                 // top-1, 0 to 1; NaN (null in the file) if nothing was tested
  std::optional<double> ema_test_accuracy;  // of the moving average, if there is one
  double exposed_comm_ms = 0, data_wait_ms = 0;             // means of a step
  std::int64_t peak_device_bytes = 0, peak_host_bytes = 0;  // as in PeakMemory
  std::vector<MemoryUse> memory_bytes;  // of the first rank's arena, by purpose; an object in the file
  std::string limited_by;               // "compute", "communication", "input", "stragglers"
  int slowest_rank = 0;
  std::vector<RankTimes> rank_times;  // by rank
  std::string parameters_sha256;
};

struct PeakMemory {
  // The largest arena of a rank. It is reserved once on the device and limited by --memory-limit;
  // host backends reserve it in the host's memory.
  std::int64_t device_bytes = 0;
  // The largest resident set of a rank's process: touched pages of the arena, batches, libraries,
  // and memory that ranks share.
  std::int64_t host_bytes = 0;
};

// Returns the peak resident set of this process so far (VmHWM of /proc/self/status), 0 if the
// system does not tell.
std::int64_t peak_resident_bytes();

// Returns on all ranks the largest arena and the largest resident set of any rank. Collective.
PeakMemory largest_peaks(const comm::Communicator& ranks, std::int64_t arena_bytes);

// Writes one key for each member, under its name; predicted_step_ms and ema_test_accuracy only if
// they are known.
void write_summary(const std::filesystem::path& path, const Summary& summary);

}  // namespace convoy::app
