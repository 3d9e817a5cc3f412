#include "app/commands/simulate_jobs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "app/commands/validators.h"
#include "app/errors.h"
#include "app/json_text.h"
#include "data/atomic_file.h"
#include "partition/graph/brief.h"
#include "partition/graph/read_text.h"
#include "partition/sharing/bound.h"
#include "partition/sharing/client_report.h"
#include "partition/sharing/exact_order.h"
#include "partition/sharing/policies.h"

namespace convoy::app {

namespace sharing = partition::sharing;
using partition::Nanoseconds;

namespace {

double micros(Nanoseconds time) { return static_cast<double>(time) / 1e3; }

// For each kind of engine: its idle time divided by the makespan, from 0 to 1. `compute` is the
// mean over all compute engines.
struct IdleShares {
  double copy_in = 0, compute = 0, copy_back = 0;
};
IdleShares idle_shares(const sharing::ClientSchedule& schedule) {
  const auto share = [&](Nanoseconds busy, std::size_t engines) {
    const double whole = static_cast<double>(schedule.makespan) * static_cast<double>(engines);
    return whole > 0 ? 1 - static_cast<double>(busy) / whole : 0;
  };
  const std::vector<Nanoseconds>& compute = schedule.compute_busy;
  return {share(schedule.copy_in_busy, 1),
          share(std::accumulate(compute.begin(), compute.end(), Nanoseconds{0}), compute.size()),
          share(schedule.copy_back_busy, 1)};
}

std::vector<std::string> names_in_order(const sharing::Workload& workload,
                                        const sharing::ClientSchedule& schedule) {
  std::vector<std::string> names;
  for (const sharing::ClientIndex client : schedule.order) names.push_back(workload.client(client).name);
  return names;
}

class JobsSimulation {
 public:
  JobsSimulation(const JobsSimulationFlags& flags, sharing::Workload workload)
      : flags_(flags), workload_(std::move(workload)), bound_(sharing::Bound(workload_).at_start()) {
    sharing::PolicyOptions options;
    options.seed = static_cast<std::uint64_t>(flags.seed);
    options.window = static_cast<std::int32_t>(flags.window);
    if (flags.time_limit >= 0) options.time_limit = std::chrono::duration<double>(flags.time_limit);
    for (const sharing::Policy policy : sharing::kAllPolicies)
      if (wanted(policy)) results_.push_back(run_policy(workload_, policy, options, bound_));
    chosen_ = sharing::shortest(results_);
  }

  void print_table() const {
    const bool limited = workload_.device().memory != partition::kUnlimited;
    fmt::print("{} clients, {} compute engine{}, memory {}\n", workload_.count(), flags_.compute_engines,
               flags_.compute_engines == 1 ? "" : "s",
               limited ? fmt::format("{} bytes, eviction {}", workload_.device().memory, flags_.eviction)
                       : "unlimited");
    fmt::print("lower bound {:.1f} µs\n\n", micros(bound_));
    fmt::print("{:<8}{:>14}{:>10}{:>14}{:>14}{:>16}{:>15}  {}\n", "policy", "makespan µs", "to bound",
               "copy in idle", "compute idle", "copy back idle", "swapped bytes", "order");
    for (std::size_t i = 0; i < results_.size(); ++i)
      if (shown(i)) print_row(i);
    if (all() && !results_.empty() && workload_.count() > sharing::kMostExactClients)
      fmt::print("exact    left out: it searches up to {} clients\n", sharing::kMostExactClients);
    if (all()) fmt::print("\nauto takes {}\n", policy_name(results_[chosen_].policy));
  }

  void print_json() const {
    for (std::size_t i = 0; i < results_.size(); ++i)
      if (shown(i)) fmt::print("{}\n", json_text(summary(i)));
  }

  // Writes the report and the trace of one schedule: that of the requested policy or, for "all" and
  // "auto", the one that "auto" chooses.
  void write_files(const OutputFlags& output) const {
    if (output.report.empty() && output.trace.empty()) return;
    const sharing::PolicyResult& result = results_[chosen_];
    const sharing::ClientSchedule schedule =
        simulate(workload_, result.schedule.order, prefetch_of(result.policy), partition::Detail::kAll);
    if (!output.report.empty())
      data::write_file_atomically(
          output.report, report_html(fmt::format("Jobs of {} by {}", flags_.jobs, policy_name(result.policy)),
                                     rows(result), workload_, schedule));
    if (!output.trace.empty()) data::write_file_atomically(output.trace, chrome_trace(workload_, schedule));
  }

 private:
  bool all() const { return flags_.policy == "all"; }
  bool wanted(sharing::Policy policy) const {
    if (!all() && flags_.policy != "auto") return flags_.policy == policy_name(policy);
    return policy != sharing::Policy::kExact || workload_.count() <= sharing::kMostExactClients;
  }
  bool shown(std::size_t i) const { return all() || i == chosen_; }

  double to_bound(const sharing::ClientSchedule& schedule) const {
    return bound_ > 0 ? static_cast<double>(schedule.makespan) / static_cast<double>(bound_) : 1;
  }

  void print_row(std::size_t i) const {
    const sharing::ClientSchedule& schedule = results_[i].schedule;
    const IdleShares idle = idle_shares(schedule);
    fmt::print("{:<8}{:>13.1f}{:>10.4f}{:>12.1f} %{:>12.1f} %{:>14.1f} %{:>15}  {}\n",
               policy_name(results_[i].policy), micros(schedule.makespan), to_bound(schedule),
               100 * idle.copy_in, 100 * idle.compute, 100 * idle.copy_back, schedule.swapped_bytes,
               partition::brief(fmt::format("{}", fmt::join(names_in_order(workload_, schedule), " "))));
  }

  nlohmann::ordered_json summary(std::size_t i) const {
    const sharing::PolicyResult& result = results_[i];
    const sharing::ClientSchedule& schedule = result.schedule;
    nlohmann::ordered_json compute = nlohmann::ordered_json::array();
    for (const Nanoseconds busy : schedule.compute_busy) compute.push_back(micros(schedule.makespan - busy));
    return {{"policy", policy_name(result.policy)},
            {"makespan_us", micros(schedule.makespan)},
            {"order", names_in_order(workload_, schedule)},
            {"idle_us",
             {{"copy_in", micros(schedule.makespan - schedule.copy_in_busy)},
              {"compute", std::move(compute)},
              {"copy_back", micros(schedule.makespan - schedule.copy_back_busy)}}},
            {"swapped_bytes", schedule.swapped_bytes},
            {"bound_us", micros(bound_)},
            {"peak_bytes", schedule.peak_bytes},
            {"optimal", result.optimal},
            {"seconds", result.seconds},
            {"auto", (all() || flags_.policy == "auto") && i == chosen_}};
  }

  partition::ReportRows rows(const sharing::PolicyResult& result) const {
    const sharing::ClientSchedule& schedule = result.schedule;
    const IdleShares idle = idle_shares(schedule);
    return {{"policy", std::string(policy_name(result.policy))},
            {"makespan", fmt::format("{:.1f} µs", micros(schedule.makespan))},
            {"lower bound", fmt::format("{:.1f} µs", micros(bound_))},
            {"ratio", fmt::format("{:.4f}", to_bound(schedule))},
            {"idle: copy in", fmt::format("{:.1f} %", 100 * idle.copy_in)},
            {"idle: compute", fmt::format("{:.1f} %", 100 * idle.compute)},
            {"idle: copy back", fmt::format("{:.1f} %", 100 * idle.copy_back)},
            {"swapped bytes", fmt::format("{}", schedule.swapped_bytes)},
            {"peak bytes", fmt::format("{}", schedule.peak_bytes)}};
  }

  const JobsSimulationFlags& flags_;
  const sharing::Workload workload_;
  const Nanoseconds bound_;
  std::vector<sharing::PolicyResult> results_;
  std::size_t chosen_ = 0;
};

sharing::Workload read_workload(const JobsSimulationFlags& flags) {
  sharing::ClientFile file = sharing::parse_clients(partition::read_text(flags.jobs), flags.jobs);
  sharing::SharedDeviceSpec device;
  device.compute_engines = static_cast<std::int32_t>(flags.compute_engines);
  device.memory = flags.memory_limit > 0 ? flags.memory_limit : file.memory;
  device.eviction = flags.eviction == "off"     ? sharing::EvictionPolicy::kOff
                    : flags.eviction == "whole" ? sharing::EvictionPolicy::kWhole
                                                : sharing::EvictionPolicy::kPartial;
  const auto takes_memory = [](const sharing::Client& client) { return client.bytes > 0; };
  if (device.memory != partition::kUnlimited && !std::ranges::any_of(file.clients, takes_memory))
    throw std::runtime_error(
        fmt::format("{}: no client has bytes, so a memory limit has no effect", flags.jobs));
  if (flags.policy == "exact" && std::ssize(file.clients) > sharing::kMostExactClients)
    throw UsageError(fmt::format("--policy exact: {} has {} clients, expected at most {}", flags.jobs,
                                 file.clients.size(), sharing::kMostExactClients));
  return sharing::Workload(std::move(file.clients), device, flags.jobs);
}

}  // namespace

void JobsSimulationFlags::add_to(CLI::App& verb) {
  verb.option_defaults()->group(kJobsGroup);
  verb.add_option("--jobs", jobs, "simulate these jobs on one device")
      ->check(not_empty())
      ->type_name("JOBS.json");
  verb.add_option("--policy", policy, "all: side by side; auto: the shortest of all; else that one")
      ->check(one_of({"all", "auto", "none", "fifo", "weight", "johnson", "genetic", "exact"}))
      ->capture_default_str();
  verb.add_option("--memory-limit", memory_limit,
                  "of the device; default: memory_bytes of the file, else none")
      ->transform(size_in_bytes())
      ->type_name("SIZE");
  verb.add_option("--eviction", eviction, "of clients that are idle, all their memory or what is needed")
      ->check(one_of({"off", "whole", "partial"}))
      ->capture_default_str();
  verb.add_option("--compute-engines", compute_engines, "kernels that run at a time, none slowing another")
      ->check(whole_number(1, sharing::kMostComputeEngines))
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--window", window, "clients that the weight rule looks at")
      ->check(whole_number(1, 1024))
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--seed", seed, "of the genetic search")->check(whole_number(0))->capture_default_str();
  verb.add_option("--time-limit", time_limit,
                  "seconds of genetic and of exact; default: 1, and none for exact")
      ->check(number_in("[0, 1e9]"))
      ->type_name("S");
  verb.option_defaults()->group("Options");
}

void simulate_jobs(const JobsSimulationFlags& flags, const OutputFlags& output, const CLI::App& verb) {
  const auto check_policy = [&](const char* flag, std::initializer_list<std::string_view> fitting) {
    check_belongs(flag, verb.count(flag) > 0, "--policy", flags.policy, fitting);
  };
  check_policy("--seed", {"all", "auto", "genetic"});
  check_policy("--time-limit", {"all", "auto", "genetic", "exact"});
  check_policy("--window", {"all", "auto", "weight", "genetic", "exact"});
  const JobsSimulation simulation(flags, read_workload(flags));
  simulation.write_files(output);
  if (output.json)
    simulation.print_json();
  else
    simulation.print_table();
}

}  // namespace convoy::app
