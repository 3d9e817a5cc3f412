#include "app/commands/simulate_training.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "app/commands/validators.h"
#include "app/errors.h"
#include "app/model/zoo/zoo.h"
#include "app/prediction/predict.h"
#include "comm/nccl/nccl_collectives.h"

namespace convoy::app {
namespace {

struct Row {
  Scaling scaling = Scaling::weak;
  std::int64_t ranks = 1, batch = 0, global_batch = 0;
  StepPrediction step;
  double images_per_second = 0, efficiency = 1;
};

class Simulator {
 public:
  explicit Simulator(const TrainingSimulationFlags& flags)
      : flags_(flags), cluster_(Cluster::read(flags.topology)), default_size_(default_size(flags.model)) {
    for (const std::string& file : flags.collectives) cluster_.use_measurements(file);
    for (const std::string& file : flags.profiles) add_profile(file);
    if (batch() == 0) throw UsageError("--batch is missing: images of one rank's step (or a --profile)");
  }

  std::int64_t batch() const {
    return flags_.batch > 0 ? flags_.batch : profiles_.empty() ? 0 : profiles_.front().batch;
  }
  std::int64_t global_batch() const { return flags_.global_batch > 0 ? flags_.global_batch : batch(); }
  const Cluster& cluster() const { return cluster_; }
  bool measured() const { return !profiles_.empty(); }
  std::vector<int> measured_ranks() const { return cluster_.measured_ranks(); }
  Precision precision() const {
    if (measured()) return profiles_.front().precision;
    if (flags_.precision) return *flags_.precision;
    return cluster_.device().backend == kernels::Backend::cuda ? Precision::bf16 : Precision::fp32;
  }
  std::int64_t size() const {
    return measured() ? profiles_.front().size : flags_.size > 0 ? flags_.size : default_size_;
  }
  kernels::Backend backend() const {
    return measured() ? profiles_.front().backend : cluster_.device().backend;
  }

  // Returns the rank counts above the global batch. Strong scaling leaves them out, because some
  // ranks would have no sample.
  std::vector<std::int64_t> too_many() const {
    std::vector<std::int64_t> counts;
    std::ranges::copy_if(flags_.ranks, std::back_inserter(counts),
                         [&](std::int64_t ranks) { return ranks > global_batch(); });
    return counts;
  }

  std::vector<Row> rows(Scaling scaling) const {
    std::vector<Row> rows;
    for (const std::int64_t ranks : flags_.ranks) {
      Row row;
      row.scaling = scaling, row.ranks = ranks;
      if (scaling == Scaling::strong && ranks > global_batch()) continue;  // too_many() reports it
      row.batch = scaling == Scaling::strong ? (global_batch() + ranks - 1) / ranks : batch();
      row.global_batch = scaling == Scaling::strong ? global_batch() : batch() * ranks;
      row.step = predict(row.batch, static_cast<int>(ranks));
      row.images_per_second = static_cast<double>(row.global_batch) / row.step.step_ms * 1e3;
      row.efficiency = row.images_per_second / static_cast<double>(ranks) / rate_of_one(scaling);
      rows.push_back(row);
    }
    return rows;
  }

 private:
  void add_profile(const std::string& file) {
    StepProfile profile = read_profile(file);
    if (profile.model != flags_.model)
      throw UsageError(
          fmt::format("--profile {}: is of {}, expected one of {}", file, profile.model, flags_.model));
    if (!profiles_.empty() && profile.size != profiles_.front().size)
      throw UsageError(fmt::format("--profile {}: is of {} pixels a side, the others of {}", file,
                                   profile.size, profiles_.front().size));
    if (!profiles_.empty() && profile.backend != profiles_.front().backend)
      throw UsageError(fmt::format("--profile {}: is of {}, the others of {}", file, name_of(profile.backend),
                                   name_of(profiles_.front().backend)));
    if (flags_.precision && *flags_.precision != profile.precision)
      throw UsageError(fmt::format("--precision: found {}, but --profile {} is of {}",
                                   name_of(*flags_.precision), file, name_of(profile.precision)));
    if (flags_.size > 0 && flags_.size != profile.size)
      throw UsageError(
          fmt::format("--size: found {}, but --profile {} is of {}", flags_.size, file, profile.size));
    profiles_.push_back(std::move(profile));
  }
  Network network(std::int64_t batch) const {
    return make_network({flags_.model, batch, 0, size(), flags_.classes});
  }
  StepPrediction predict(std::int64_t batch, int ranks) const {
    const Network net = network(batch);
    const StepProfile profile = measured() ? at_batch(profiles_, batch, cluster_.device().launch_us)
                                           : estimate_profile(net, precision(), cluster_.device());
    comm::BucketSizes sizes =
        profile.backend == kernels::Backend::cuda ? comm::kNcclBucketSizes : comm::BucketSizes{};
    if (flags_.bucket_bytes > 0)
      sizes = {flags_.bucket_bytes, std::min(sizes.edge_bytes, flags_.bucket_bytes)};
    return predict_step(profile, buckets_of(net, profile, sizes), cluster_, ranks);
  }
  double rate_of_one(Scaling scaling) const {
    const std::int64_t samples = scaling == Scaling::strong ? global_batch() : batch();
    return static_cast<double>(samples) / predict(samples, 1).step_ms * 1e3;
  }

  const TrainingSimulationFlags& flags_;
  Cluster cluster_;
  const std::int64_t default_size_;
  std::vector<StepProfile> profiles_;
};

void print_json(const Row& row, const Simulator& simulator, const TrainingSimulationFlags& flags) {
  fmt::print("{}\n",
             nlohmann::ordered_json({{"prediction", flags.model},
                                     {"precision", name_of(simulator.precision())},
                                     {"size", simulator.size()},
                                     {"backend", name_of(simulator.backend())},
                                     {"topology", simulator.cluster().name()},
                                     {"op_times", simulator.measured() ? "measured" : "estimated"},
                                     {"network", simulator.measured_ranks().empty() ? "given" : "measured"},
                                     {"network_ranks", simulator.measured_ranks()},
                                     {"scaling", name_of(row.scaling)},
                                     {"ranks", row.ranks},
                                     {"nodes", simulator.cluster().nodes(static_cast<int>(row.ranks))},
                                     {"batch", row.batch},
                                     {"global_batch", row.global_batch},
                                     {"step_ms", row.step.step_ms},
                                     {"compute_ms", row.step.compute_ms},
                                     {"communication_ms", row.step.communication_ms},
                                     {"exposed_comm_ms", row.step.exposed_comm_ms},
                                     {"images_per_second", row.images_per_second},
                                     {"efficiency", row.efficiency}})
                 .dump());
}

void print_table(const std::vector<Row>& rows, const Simulator& simulator) {
  fmt::print("\n{} scaling\n{:>6} {:>6} {:>7} {:>9} {:>10} {:>10} {:>10} {:>10} {:>13} {:>10}\n",
             rows[0].scaling == Scaling::weak ? "Weak" : "Strong", "ranks", "nodes", "batch", "global",
             "step ms", "compute", "commun.", "exposed", "images/s", "efficiency");
  for (const Row& row : rows)
    fmt::print("{:>6} {:>6} {:>7} {:>9} {:>10.3f} {:>10.3f} {:>10.3f} {:>10.3f} {:>13.1f} {:>9.1f}%\n",
               row.ranks, simulator.cluster().nodes(static_cast<int>(row.ranks)), row.batch, row.global_batch,
               row.step.step_ms, row.step.compute_ms, row.step.communication_ms, row.step.exposed_comm_ms,
               row.images_per_second, 100 * row.efficiency);
}

}  // namespace

void TrainingSimulationFlags::add_to(CLI::App& verb) {
  verb.option_defaults()->group(kTrainingGroup);
  verb.add_option("--model", model, "predict how training this network scales")
      ->check(not_empty())
      ->type_name("NAME");
  verb.add_option("--ranks", ranks, "rank counts")
      ->check(whole_number(1, 1 << 20))
      ->delimiter(',')
      ->type_name("N,N,...");
  verb.add_option("--topology", topology,
                  "the cluster, as in jobs/topologies/; with --graph also links of each pair of devices")
      ->check(not_empty())
      ->type_name("FILE");
  verb.add_option(
          "--profile", profiles,
          "measured times: output of bench step --layers --json of one rank; several for several batches; "
          "without: an estimate")
      ->check(not_empty())
      ->type_name("FILE");
  verb.add_option("--collectives", collectives,
                  "measured all-reduces: output of bench collectives --json; several for several rank counts")
      ->check(not_empty())
      ->type_name("FILE");
  add_choice(verb, "--scaling", scaling, "weak: same batch a rank; strong: same global batch");
  verb.add_option("--batch", batch, "images of one rank, weak scaling; default: the first profile's")
      ->check(whole_number(1, 1 << 24))
      ->type_name("B");
  verb.add_option("--global-batch", global_batch, "images of all ranks, strong scaling; default: --batch")
      ->check(whole_number(1, 1 << 30))
      ->type_name("B");
  verb.add_option("--size", size,
                  "pixels a side; default: the profile's, of an estimate the file's, else 224")
      ->check(whole_number(1, 1 << 14));
  verb.add_option("--classes", classes, "default: the file's, else 1000 above 64 pixels and 10 below")
      ->check(whole_number(2, 1 << 24));
  verb.add_option_function<std::string>(
          "--precision", [this](const std::string& name) { precision = find_choice<Precision>(name); },
          "default: the profile's, of an estimate bf16, of CPUs fp32")
      ->check(one_of(names_of<Precision>()));
  verb.add_option("--bucket-size", bucket_bytes, "of a gradient bucket; default: as the backend has them")
      ->transform(size_in_bytes())
      ->type_name("SIZE");
  verb.option_defaults()->group("Options");
}

void simulate_training(const TrainingSimulationFlags& flags, bool json) {
  if (flags.topology.empty()) throw UsageError("--topology is missing: a cluster, as in jobs/topologies/");
  const Simulator simulator(flags);
  if (const auto counts = simulator.too_many(); !counts.empty() && flags.scaling != Scaling::weak) {
    if (flags.scaling == Scaling::strong && counts.size() == flags.ranks.size())
      throw UsageError(fmt::format("--ranks: found {}, expected one up to the global batch of {}",
                                   fmt::join(counts, ", "), simulator.global_batch()));
    fmt::print(stderr, "convoy: strong scaling: left out {} ranks, more than the global batch of {}\n",
               fmt::join(counts, ", "), simulator.global_batch());
  }
  const std::vector<int> network = simulator.measured_ranks();
  if (!json)
    fmt::print(
        "{}, {} at {} pixels, {}, on {}: {} op times, network {}, batch norm of each rank's own batch\n",
        flags.model, name_of(simulator.precision()), simulator.size(), name_of(simulator.backend()),
        simulator.cluster().name(), simulator.measured() ? "measured" : "estimated",
        network.empty() ? "given" : fmt::format("measured at {} ranks", fmt::join(network, ", ")));
  for (const Scaling scaling : {Scaling::weak, Scaling::strong}) {
    if (flags.scaling != Scaling::both && flags.scaling != scaling) continue;
    const std::vector<Row> rows = simulator.rows(scaling);
    if (rows.empty()) continue;
    if (!json) print_table(rows, simulator);
    for (const Row& row : rows)
      if (json) print_json(row, simulator, flags);
  }
}

}  // namespace convoy::app
