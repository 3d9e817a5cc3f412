// Makes the networks of a trainer, one for each group of members that share a compiled step (a
// shape), and spreads the members over the ranks.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "app/errors.h"
#include "app/execute/run_on_all_ranks.h"
#include "app/model/drop_path.h"
#include "app/model/flops.h"
#include "app/model/import/model_file.h"
#include "app/model/zoo/zoo.h"
#include "app/training/parameter_rates.h"
#include "app/training/rank_facts.h"
#include "app/training/run_network.h"
#include "app/training/trainer.h"
#include "data/loader/order.h"

namespace convoy::app {

Network Trainer::make_replica_network(const TrainOptions& options) const {
  const data::ImageShape image = dataset_->input_shape();
  Network network = make_network(
      options.model, {replica_capacity(), image.channels, image.height, image.width}, dataset_->classes());
  if (options.reinitialise) network.reinitialise();
  return network;
}

Network Trainer::trained(Network network, const TrainOptions& options) const {
  network = with_outputs(std::move(network), options.loss_weights.size());
  if (options.drop_path >= 0) network = with_drop_path(network, static_cast<float>(options.drop_path));
  if (options.parametrisation == Parametrisation::mup)
    parametrise_by_width(network, options.base_width, options.optimizer);
  return network;
}

// Sets which parameters are trained, how fast, and the initial values of --init.
// Returns how many parameters a --freeze names but a --rate trains.
int Trainer::prepare(Shape& shape) {
  const int overridden = set_rates(*shape.network, shape.options);
  for (const ParameterSpec& spec : shape.network->parameters())
    if (spec.frozen()) shape.frozen_parameters += spec.parameter_count();
  shape.initial_weights = set_values(*shape.network, shape.options);
  return overridden;
}

// Gives the network the values of --init. If there is none and the network has those of a model
// file, fits its last layer to the classes of the data.
FitRows Trainer::set_values(Network& network, const TrainOptions& options) const {
  const std::vector<std::string>& classes = dataset_->info().classes;
  if (!options.init.empty()) return set_initial_weights(network, options.init, classes);
  if (!is_model_file(options.model) || options.reinitialise) return {};
  return match_classes_of_model(network, options.model, classes);
}

// Ends the sessions in reverse order. The first session stores the images on the device, and the
// others may still read them.
void Trainer::end_shapes() {
  sessions_.reset();
  while (!shapes_.empty()) shapes_.pop_back();
}

// Makes the networks of all shapes (groups of members that share a compiled step) on every rank,
// because all ranks compare them. Then keeps only the shapes of which this rank trains members.
void Trainer::make_shapes() {
  const auto shapes = members_ ? members_->shapes() : std::vector<std::vector<int>>{{0}};
  if (shapes.size() > 1 && host_.gate != nullptr)
    throw UsageError(fmt::format(
        "--members: found members of {} shapes, expected one shape in a job of convoy share", shapes.size()));
  std::vector<std::pair<spdlog::level::level_enum, std::string>> notes;
  for (const std::vector<int>& members : shapes) {
    Shape& shape = shapes_.emplace_back();
    shape.members = members;
    shape.options = members_ ? members_->options(members[0]) : options_;
    Facts facts;
    run_on_all_ranks(world_, [&] {
      shape.network.emplace(make_replica_network(shape.options));
      shape.structure_sha256 = structure_sha256(*shape.network);
      facts = facts_of(*shape.network);
      for (const std::string& note : shape.network->notes())
        notes.emplace_back(spdlog::level::info, fmt::format("{}: {}", shape.network->name(), note));
      shape.network = trained(std::move(*shape.network), shape.options);
      if (const int overridden = prepare(shape); overridden > 0)
        notes.emplace_back(spdlog::level::warn,
                           fmt::format("--rate trains {} parameters that --freeze names, too", overridden));
    });
    require_same_data(world_, shape.options.model, facts);
    if (!shape.options.init.empty() || is_model_file(shape.options.model))
      require_same_data(world_, shape.options.init.empty() ? shape.options.model : shape.options.init,
                        {{"SHA-256 of the weights", initial_weights_sha256(*shape.network)}});
  }
  // All networks fit all flags now. A run that ends earlier prints its error alone.
  if (world_.rank() == 0)
    for (const auto& [level, note] : notes) spdlog::log(level, "{}", note);
  keep_own_members();
}

// Spreads the members over the ranks. If all members share a compiled step, each rank gets a
// consecutive range of them. Otherwise each rank gets about the same number of operations.
void Trainer::keep_own_members() {
  std::vector<double> work;
  for (const Shape& shape : shapes_)
    work.insert(work.end(), shape.members.size(), forward_flops(*shape.network));
  std::vector<int> rank_of = spread(work, world_.size());
  if (shapes_.size() == 1)
    for (int rank = 0; rank < world_.size(); ++rank) {
      const data::SampleRange range = data::range_of_rank(std::ssize(work), world_.size(), rank);
      std::fill_n(rank_of.begin() + range.first, range.count, rank);
    }
  std::size_t number = 0;
  own_.clear();
  for (Shape& shape : shapes_) {
    const double each = work[number];
    if (members_) std::erase_if(shape.members, [&](int) { return rank_of[number++] != world_.rank(); });
    shape.first = own_.size();
    shape.work = each * static_cast<double>(shape.members.size());
    own_.insert(own_.end(), shape.members.begin(), shape.members.end());
  }
  std::erase_if(shapes_, [](const Shape& shape) { return shape.members.empty(); });
}

std::int64_t Trainer::replica_capacity() const {
  return options_.images_of_replica(run_ranks_->replicas().size());
}

std::int64_t Trainer::arena_bytes() const {
  std::int64_t bytes = 0;
  for (const Shape& shape : shapes_) bytes += shape.session->memory().plan().total();
  return bytes;
}

// Sums the memory of all shapes for each purpose.
std::vector<MemoryUse> Trainer::memory_uses() const {
  std::vector<MemoryUse> all;
  for (const Shape& shape : shapes_)
    for (const MemoryUse& use : shape.session->memory().plan().uses()) {
      const auto same = std::ranges::find(all, use.purpose, &MemoryUse::purpose);
      if (same == all.end())
        all.push_back(use);
      else
        same->bytes += use.bytes;
    }
  return all;
}

}  // namespace convoy::app
