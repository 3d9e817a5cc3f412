// Checks that all ranks were given the same options and data. Ranks with different options or data
// would wait for each other in different collectives, sum tensors of different shapes, or train
// towards different targets.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "app/model/network.h"
#include "app/training/dataset.h"
#include "app/training/train_options.h"
#include "comm/communicator.h"

namespace convoy::app {

// Pairs of a name, such as "--learning-rate", and the value on this rank as text. The error message
// about a difference gives the name and the values of both ranks.
using Facts = std::vector<std::pair<std::string, std::string>>;

// Returns the options that must be the same on every rank. Paths are left out, because a host may
// have its own copy of a file; the contents are compared instead. --threads and --memory-limit are
// left out, because they do not change results.
Facts facts_of(const TrainOptions& options);

// Describes the data set of this rank. With --feed scatter only rank 0 of `readers` reads images
// and labels, so all ranks get the digests of rank 0. Collective over `readers`.
Facts facts_of(const Dataset& dataset, const TrainOptions& options, const comm::Communicator& readers);

// Describes the structure and the values of a model file. Returns nothing for a built-in network.
Facts facts_of(const Network& network);

// Throws UsageError unless all ranks have the same facts. The message comes from the lowest rank
// that differs from rank 0; it names the first fact that differs and both values. All other ranks
// throw ExitStatus, so that only one message is printed. Collective.
void require_same_flags(const comm::Communicator& ranks, const Facts& facts);
// Does the same as require_same_flags() for facts about data, but throws std::runtime_error. The
// message names `file`, the path of the data on this rank.
void require_same_data(const comm::Communicator& ranks, const std::string& file, const Facts& facts);

}  // namespace convoy::app
