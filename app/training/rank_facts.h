// What every rank must have been given alike: its flags, and what it reads. Ranks that differ would
// wait for each other in collectives of different counts, sum tensors of different shapes or train
// towards different targets.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "app/training/dataset.h"
#include "app/training/train_options.h"
#include "comm/communicator.h"

namespace convoy::app {

// Names what a message about it begins with ("--learning-rate"), and its value as text.
using Facts = std::vector<std::pair<std::string, std::string>>;

// The flags of `convoy train` that must be the same on every rank. Left out are paths (a host may
// have its own copy of a file, whose content is compared), and --threads and --memory-limit (hosts
// and devices differ, the results do not).
Facts facts_of(const TrainOptions& options);

// What this rank's data set holds; with --feed scatter what rank 0 of `readers`, those that share
// its data set, has read. Collective over `readers`.
Facts facts_of(const Dataset& dataset, const TrainOptions& options, const comm::Communicator& readers);

// Throws on every rank unless all have the same facts, on the lowest rank that differs from rank 0
// with a message that gives the first fact that differs and both values; elsewhere ExitStatus.
// Collective. A UsageError: for flags.
void require_same_flags(const comm::Communicator& ranks, const Facts& facts);
// A std::runtime_error that names `file`, this rank's.
void require_same_data(const comm::Communicator& ranks, const std::string& file, const Facts& facts);

}  // namespace convoy::app
