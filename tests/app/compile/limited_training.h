// A fixture that trains a network within memory limits, so that tests can compare the bits of the
// results.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "app/model/parameter.h"
#include "comm/single_rank.h"
#include "tests/app/execute/train_step.h"
#include "tests/app/execute/whole_session.h"

namespace convoy::app {

class LimitedTraining : public testing::Test {
 protected:
  explicit LimitedTraining(Network network) : network_(std::move(network)) {}

  // Trains three steps and evaluates once within `limit` bytes (0: no limit). Returns the losses,
  // and all tensors that outlive a step at the end. Sets bytes_ to the session's memory, and fit_
  // to how it was made to fit.
  auto run(std::int64_t limit) {
    options_.memory_limit = limit;
    Session session = whole_session(network_, options_, ranks_);
    bytes_ = session.memory().plan().total();
    fit_ = session.steps().fit;
    std::vector<float> images(static_cast<std::size_t>(network_.shape(0).elements()));
    initialize({"images", network_.shape(0), Initializer::normal(1)}, 17, images.data());
    StepInput& input = session.input();
    session.tensors().write(input.images(), images);
    for (std::size_t i = 0; i < input.labels().size(); ++i)
      input.labels()[i] = static_cast<std::int32_t>(i % 5);
    input.control().valid = input.control().global_valid = valid_;
    input.control().learning_rate = learning_rate_;
    std::vector<double> losses;
    for (int step = 0; step < 3; ++step) losses.push_back(test::train_step(session).loss());
    session.start(StepKind::evaluate);
    losses.push_back(session.finish_step().metrics[0].loss());
    std::vector<std::vector<float>> state;
    const ModelMemory& memory = session.memory();
    for (const auto* list :
         {&memory.parameters(), &memory.states(), &memory.optimizer_states(), &memory.averages()})
      for (const PersistentTensor& tensor : *list) state.push_back(session.tensors().read(tensor));
    return std::pair(losses, state);
  }

  comm::SingleRank ranks_;
  StepOptions options_;
  Network network_;
  std::int32_t valid_ = 4;  // number of samples that are not padding
  float learning_rate_ = 0.1f;
  std::int64_t bytes_ = 0;
  MemoryFit fit_;
};

}  // namespace convoy::app
