// Trains over slices of the batch on several ranks. A gradient may be summed over the ranks only
// after the rank has added up the gradients of all slices.
#include <gtest/gtest.h>

#include "app/compile/fit_memory.h"
#include "comm/collectives.h"
#include "tests/app/execute/train_step.h"
#include "tests/app/execute/whole_session.h"
#include "tests/app/model/tiny_networks.h"
#include "tests/mpi/world.h"

namespace convoy::app {
namespace {

TEST(SlicedTraining, RanksChangeNoBitWithinTheLeastMemory) {
  const auto ranks = comm::make_mpi_collectives(test::world());
  const Network network = plain(8, 32);
  StepOptions options;
  options.pieces = {.least_bytes = 0};
  const auto train = [&](std::int64_t limit) {
    options.memory_limit = limit;
    Session session = whole_session(network, options, *ranks);
    EXPECT_EQ(session.steps().fit.slices > 1, limit > 0);
    std::vector<float> images(static_cast<std::size_t>(network.shape(0).elements()));
    initialize({"images", network.shape(0), Initializer::normal(1)},
               17 + static_cast<std::uint64_t>(ranks->rank()), images.data());
    StepInput& input = session.input();
    session.tensors().write(input.images(), images);
    for (std::size_t i = 0; i < input.labels().size(); ++i)
      input.labels()[i] = static_cast<std::int32_t>(i % 5);
    input.control().valid = 7;  // the batch is not full
    input.control().global_valid = 7 * ranks->size();
    input.control().learning_rate = 0.05f;
    std::vector<double> losses;
    for (int step = 0; step < 3; ++step) losses.push_back(test::train_step(session).loss());
    std::vector<std::vector<float>> parameters;
    for (const PersistentTensor& tensor : session.memory().parameters())
      parameters.push_back(session.tensors().read(tensor));
    return std::pair(losses, parameters);
  };
  const auto expected = train(0);
  options.memory_limit = 0;
  const CompiledSteps steps = compile_steps(network, options, {ranks.get(), ranks.get(), nullptr});
  const auto scratch = [&](std::size_t bytes) { return ranks->scratch_bytes(bytes); };
  const MemoryFitter fitter(steps, options, scratch, estimated_node_ms(*steps.train, options));
  EXPECT_EQ(train(fitter.least().bytes), expected);
}

}  // namespace
}  // namespace convoy::app
