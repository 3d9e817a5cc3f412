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

// Pairs of a name, such as "--learning-rate", and the value on this rank as text. If ranks differ,
// the message names both.
using Facts = std::vector<std::pair<std::string, std::string>>;

// Returns the options that must be the same on every rank. It leaves out paths, because a host may
// have its own copy of a file; the contents are compared instead. It leaves out --threads and
// --memory-limit, because they do not change results.
Facts facts_of(const TrainOptions& options);

// Describes this rank's data set. With --feed scatter only rank 0 of `readers` reads images and
// labels, so their digests are those of rank 0. Collective over `readers`.
Facts facts_of(const Dataset& dataset, const TrainOptions& options, const comm::Communicator& readers);

// Describes the network and the values of a model file. Returns nothing for a network of the zoo.
Facts facts_of(const Network& network);

// Throws UsageError on every rank unless all ranks have the same facts. The lowest rank that
// differs from rank 0 names the first fact that differs and both values. The other ranks throw
// ExitStatus. Collective.
void require_same_flags(const comm::Communicator& ranks, const Facts& facts);
// Does the same for facts about data, but throws std::runtime_error. The message names `file`, the
// path of the data on this rank.
void require_same_data(const comm::Communicator& ranks, const std::string& file, const Facts& facts);

}  // namespace convoy::app
