// A network with fixed weights that runs over a data set: what `evaluate` and `predict` have in
// common.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/execute/session.h"
#include "app/training/checkpoint/checkpoint.h"
#include "app/training/dataset.h"
#include "app/training/rank_facts.h"
#include "app/training/train_options.h"
#include "comm/placement/environment.h"

namespace convoy::app {

struct EvaluationOptions {
  std::string checkpoint;  // a file, or the folder of a run for its best; empty: run.model is FILE.onnx
  bool ema = false;        // the checkpoint's moving average
  bool keep_probabilities = false;
  TrainOptions run;  // data, global batch, backend, precision, feed, threads and timeout; size and
                     // test_resize without a checkpoint
};

class Evaluation {
 public:
  // Reads the checkpoint. Its run's options that decide what the network sees of an image replace
  // those of `options.run`. `flags` are further options that must be the same on all ranks.
  // Collective, as everything below.
  Evaluation(EvaluationOptions options, const comm::MpiEnvironment& environment, const Facts& flags = {});

  // Opens the data. Throws std::runtime_error if there are no test images.
  Dataset& open(const std::function<OpenedData(const TrainOptions&)>& open = open_data);
  // Compiles the network for the data's classes and images, without gradients and optimizer. It has
  // the weights, mean and deviation of the checkpoint, or the file's weights and the data's mean
  // and deviation.
  void prepare();
  // Runs over the test images once. Returns the sums over all ranks. `skip` is LoaderOptions::skip.
  StepMetrics run(const Session::VisitBatch& visit = nullptr,
                  std::function<void(const std::string&)> skip = nullptr);

  const EvaluationOptions& options() const { return options_; }
  bool has_checkpoint() const { return !options_.checkpoint.empty(); }
  const CheckpointState& checkpoint() const { return state_; }
  const comm::Communicator& ranks() const { return ranks_; }
  // Returns "resnet18 after step 300" or "net.onnx".
  std::string describe() const;

 private:
  void load();
  void take_over();
  Network make_evaluated_network(std::int64_t capacity) const;

  EvaluationOptions options_;
  const comm::Communicator& ranks_;
  CheckpointState state_;
  int threads_ = 1;
  std::unique_ptr<comm::Collectives> collectives_;
  std::optional<Dataset> dataset_;
  StepOptions step_;
  std::optional<Session> session_;
};

}  // namespace convoy::app
