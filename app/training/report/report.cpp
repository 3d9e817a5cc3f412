#include "app/training/report/report.h"

#include <fmt/chrono.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "app/json_text.h"
#include "app/training/report/build_info.h"
#include "data/atomic_file.h"

namespace convoy::app {
namespace {

using Json = nlohmann::ordered_json;

void write(const std::filesystem::path& path, const Json& json) {
  data::write_file_atomically(path, json_text(json, 2) + "\n");
}

Json object_of(const std::vector<std::pair<std::string, std::string>>& pairs) {
  Json object = Json::object();
  for (const auto& [key, value] : pairs) object[key] = value;
  return object;
}

Json rank_times_of(const Summary& summary) {
  Json list = Json::array();
  for (const RankTimes& times : summary.rank_times)
    list.push_back({{"step_ms", times.step_ms},
                    {"compute_ms", times.compute_ms},
                    {"exposed_comm_ms", times.exposed_comm_ms},
                    {"data_wait_ms", times.data_wait_ms}});
  return list;
}

Json memory_of(const Summary& summary) {
  Json object = Json::object();
  for (const MemoryUse& use : summary.memory_bytes) object[use.purpose] = use.bytes;
  return object;
}

}  // namespace

void write_manifest(const std::filesystem::path& path, const Manifest& manifest,
                    const nlohmann::json& options) {
  Json ranks = Json::array();
  for (const auto& place : manifest.ranks) {
    ranks.push_back(
        {{"rank", ranks.size()}, {"host", place.host}, {"device", place.device}, {"cores", place.cores}});
  }
  Json json{{"command_line", manifest.command_line},
            {"version", convoy_version()},
            {"git_hash", git_hash()},
            {"libraries", object_of(library_versions())},
            {"build", object_of(build_settings())},
            {"ranks", ranks},
            {"options", options}};
  const auto seconds = std::chrono::time_point_cast<std::chrono::seconds>(manifest.start_time);
  json["start_time"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(seconds));
  json["resumed_step"] = manifest.resumed_step ? Json(*manifest.resumed_step) : Json(nullptr);
  write(path, json);
}

void write_summary(const std::filesystem::path& path, const Summary& summary) {
  Json json{{"model", summary.model},
            {"backend", summary.backend},
            {"precision", summary.precision},
            {"ranks", summary.ranks},
            {"devices", summary.devices},
            {"global_batch", summary.global_batch},
            {"epochs", summary.epochs},
            {"steps", summary.steps},
            {"images_per_second", summary.images_per_second},
            {"step_ms_median", summary.step_ms_median},
            {"step_ms_p95", summary.step_ms_p95},
            {"train_loss", summary.train_loss},
            {"test_accuracy", summary.test_accuracy},
            {"exposed_comm_ms", summary.exposed_comm_ms},
            {"data_wait_ms", summary.data_wait_ms},
            {"peak_device_bytes", summary.peak_device_bytes},
            {"peak_host_bytes", summary.peak_host_bytes},
            {"memory_bytes", memory_of(summary)},
            {"limited_by", summary.limited_by},
            {"slowest_rank", summary.slowest_rank},
            {"rank_times", rank_times_of(summary)},
            {"parameters_sha256", summary.parameters_sha256}};
  if (summary.ema_test_accuracy) json["ema_test_accuracy"] = *summary.ema_test_accuracy;
  if (summary.predicted_step_ms) json["predicted_step_ms"] = *summary.predicted_step_ms;
  write(path, json);
}

std::int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (std::int64_t kibibytes = 0; word == "VmHWM:" && status >> kibibytes) return kibibytes * 1024;
  return 0;
}

PeakMemory largest_peaks(const comm::Communicator& ranks, std::int64_t arena_bytes) {
  std::array<std::int64_t, 2> bytes{arena_bytes, peak_resident_bytes()};
  ranks.all_reduce(std::span<std::int64_t>(bytes), comm::ReduceOp::max, "peak memory");
  return {bytes[0], bytes[1]};
}

}  // namespace convoy::app
