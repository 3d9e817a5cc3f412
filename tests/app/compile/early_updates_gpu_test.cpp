// Tests on a GPU that parameters which backward updates get the bits of an update at the end of the
// step, although the updates run at the same time as other operations.
#include <limits>

#include "kernels/device/device_memory.h"
#include "kernels/gemm/bench/measure.h"
#include "tests/app/compile/limited_training.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

class CudaEarlyUpdates : public LimitedTraining {
 protected:
  CudaEarlyUpdates() : LimitedTraining(every_op()) {}
  void SetUp() override {
    if (!kernels::gemm::device_present()) GTEST_SKIP() << "no GPU: early updates were not tested there";
    kernels::use_gpu(0);
  }
};

TEST_F(CudaEarlyUpdates, ChangeNoBit) {
  options_.backend = kernels::Backend::cuda;
  options_.synchronised_batch_norm = false;
  options_.optimizer.averages = true;
  options_.members[0].hyperparameters.average_decay = 0.9;
  options_.members[0].hyperparameters.weight_decay = 1e-3f;
  for (const Network& network : {every_op(), residual(), plain(4, 32)})
    for (const Precision precision : {Precision::tf32, Precision::bf16})
      for (const auto kind : {kernels::OptimizerKind::sgd, kernels::OptimizerKind::adamw})
        for (const int lanes : {1, 3, 8}) {
          network_ = network;
          options_.precision = precision;
          options_.optimizer.kind = kind;
          options_.lanes = lanes;
          options_.early_update_bytes = std::numeric_limits<std::int64_t>::max();
          const auto late = run(0);
          options_.early_update_bytes = 0;
          EXPECT_EQ(run(0), late) << network.name() << ", " << lanes << " lanes";
          options_.memory_limit = 0;
          const CompiledSteps compiled = compile_steps(network_, options_, {&ranks_, &ranks_, nullptr});
          const std::vector<double> node_ms = estimated_node_ms(*compiled.train, options_);
          const std::int64_t least = MemoryFitter(compiled, options_, {}, node_ms).least().bytes;
          EXPECT_EQ(run(least), late) << network.name() << " in the least memory, " << lanes << " lanes";
        }
}

}  // namespace
}  // namespace convoy::app
