#include "app/training/rank_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/errors.h"
#include "app/execute/run_on_all_ranks.h"
#include "app/json_text.h"
#include "app/training/checkpoint/sha256.h"
#include "app/training/option_table.h"
#include "app/training/run_network.h"

namespace convoy::app {
namespace {

using nlohmann::json;

struct Difference {
  std::string name, here, at_root;
};

// Returns the first fact in which the lists differ. If one list is longer, a fact that is missing
// in the other counts as "nothing".
std::optional<Difference> first_difference(const Facts& here, const Facts& root) {
  for (std::size_t i = 0; i < std::max(here.size(), root.size()); ++i) {
    if (i < here.size() && i < root.size() && here[i] == root[i]) continue;
    if (i >= root.size()) return Difference{here[i].first, here[i].second, "nothing"};
    if (i >= here.size() || here[i].first != root[i].first)
      return Difference{root[i].first, "nothing", root[i].second};
    return Difference{here[i].first, here[i].second, root[i].second};
  }
  return std::nullopt;
}

// Fails on all ranks if the facts of any rank differ from those of rank 0. `fail` must throw an
// error that describes the difference.
template <typename Fail>
void require_same(const comm::Communicator& ranks, const Facts& facts, const Fail& fail) {
  if (ranks.size() == 1) return;
  const std::string mine = json_text(json(facts));
  const std::string root =
      ranks.broadcast(ranks.rank() == 0 ? mine : std::string(), 0, "flags and data of rank 0");
  run_on_all_ranks(ranks, [&] {
    if (mine == root) return;
    if (const auto difference = first_difference(json::parse(mine), json::parse(root))) fail(*difference);
  });
}

}  // namespace

Facts facts_of(const TrainOptions& options) {
  Facts facts;
  for_each_option([&](const OptionRow& row) {
    if (row.agreement == Agreement::rank) return;
    const json value = value_of(options, row);
    const bool file = row.agreement == Agreement::file;
    facts.emplace_back(fmt::format("--{}", row.flag), !file         ? json_text(value)
                                                      : value == "" ? "none"
                                                                    : "a file");
  });
  facts.emplace_back("--data", data_source(options.data) == DataSource::synthetic ? "synthetic" : "a file");
  return facts;
}

Facts facts_of(const Dataset& dataset, const TrainOptions& options, const comm::Communicator& readers) {
  // Synthetic data follow from the options, which are compared in any case.
  if (data_source(options.data) == DataSource::synthetic) return {};
  const auto of_reader = [&](std::string digest) {
    return options.feed == Feed::scatter ? readers.broadcast(std::move(digest), 0, "digest of the data")
                                         : digest;
  };
  const data::StoreInfo& info = dataset.info();
  Facts facts{{"shape of the images", info.shape.to_string()},
              {"training images", std::to_string(info.size[0])},
              {"test images", std::to_string(info.size[1])},
              {"classes", std::to_string(info.classes.size())},
              {"mean", fmt::format("{}", fmt::join(info.mean, ", "))},
              {"std", fmt::format("{}", fmt::join(info.std, ", "))}};
  for (std::size_t i = 0; i < info.classes.size(); ++i)
    facts.emplace_back(fmt::format("class {}", i), fmt::format("'{}'", info.classes[i]));
  for (const data::Split split : {data::Split::train, data::Split::test}) {
    const char* name = split == data::Split::train ? "training" : "test";
    facts.emplace_back(fmt::format("SHA-256 of the {} labels", name),
                       of_reader(dataset.labels_sha256(split)));
    facts.emplace_back(fmt::format("SHA-256 of a few {} images", name),
                       of_reader(dataset.images_sha256(split)));
  }
  return facts;
}

Facts facts_of(const Network& network) {
  if (network.file_structure().empty()) return {};
  Sha256 hash;
  for (const Layer& layer : network.layers())
    for (const auto* specs : {&layer.parameters, &layer.states})
      for (const ParameterSpec& spec : *specs)
        if (spec.values) hash.update(spec.values->data(), spec.values->size() * sizeof(float));
  return {{"SHA-256 of the network's structure", structure_sha256(network)},
          {"SHA-256 of the network's values", hash.hex_digest()}};
}

void require_same_flags(const comm::Communicator& ranks, const Facts& facts) {
  require_same(ranks, facts, [&](const Difference& d) {
    throw UsageError(fmt::format("{}: rank 0 has {}, rank {} has {}; expected the same on all ranks", d.name,
                                 d.at_root, ranks.rank(), d.here));
  });
}

void require_same_data(const comm::Communicator& ranks, const std::string& file, const Facts& facts) {
  require_same(ranks, facts, [&](const Difference& d) {
    throw std::runtime_error(
        fmt::format("{} of rank {} is not the data of rank 0: {}: rank 0 has {}, rank {} has {}", file,
                    ranks.rank(), d.name, d.at_root, ranks.rank(), d.here));
  });
}

}  // namespace convoy::app
