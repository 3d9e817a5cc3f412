// Checks that all ranks were given the same options and data. Ranks that differ would wait for each
// other in different collectives, sum tensors of different shapes or train towards different
// targets.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "app/model/network.h"
#include "app/training/dataset.h"
#include "app/training/train_options.h"
#include "comm/communicator.h"

namespace convoy::app {

// Pairs of the name that a message begins with ("--learning-rate") and the value as text.
using Facts = std::vector<std::pair<std::string, std::string>>;

// Returns the options that must be the same on every rank. Paths are left out, as a host may have
// its own copy of a file, whose content is compared; so are --threads and --memory-limit, which do
// not change results.
Facts facts_of(const TrainOptions& options);

// Describes this rank's data set, or with --feed scatter what rank 0 of `readers` has read.
// `readers` are the ranks that share a data set. Collective over `readers`.
Facts facts_of(const Dataset& dataset, const TrainOptions& options, const comm::Communicator& readers);

// Describes the network of a model file and its values; nothing for one of the zoo.
Facts facts_of(const Network& network);

// Both throw on every rank unless all ranks have the same facts. The lowest rank that differs from
// rank 0 gives the first fact that differs and both values; the others throw ExitStatus.
// Collective. require_same_flags throws UsageError, require_same_data std::runtime_error that names
// `file`.
void require_same_flags(const comm::Communicator& ranks, const Facts& facts);
// `file` is the name of the data on this rank.
void require_same_data(const comm::Communicator& ranks, const std::string& file, const Facts& facts);

}  // namespace convoy::app
