// Runs a network with fixed weights over a data set. `evaluate` and `predict` both use this.
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
  // A checkpoint file, or the folder of a run; the folder's best checkpoint is then used. This
  // field is empty if run.model is FILE.onnx.
  std::string checkpoint;
  bool ema = false;  // evaluates the checkpoint's moving averages
  bool keep_probabilities = false;
  // Only these options are used: data, global batch, backend, precision, feed, threads and timeout.
  // If there is no checkpoint, size and test_resize are used, too. A checkpoint has its own.
  TrainOptions run;
  // Not null if other sessions of this process use the device, too. The evaluation then uses
  // run.threads threads, and the process has bound them to cores.
  DeviceGate* gate = nullptr;
};

class Evaluation {
 public:
  // Reads the checkpoint. Some options of its run replace those of `options.run`: the options that
  // decide what the network sees of an image. `flags` are further options that must be the same on
  // all ranks. This and all functions below are collective.
  Evaluation(EvaluationOptions options, const comm::MpiEnvironment& environment, const Facts& flags = {});

  // Opens the data with `open`. Call this function before prepare().
  Dataset& open(const std::function<OpenedData(const TrainOptions&)>& open = open_data);
  // Compiles the network for the data's classes and images, without gradients and optimizer.
  // Weights, mean and deviation come from the checkpoint. Without a checkpoint the weights come
  // from the model file, and mean and deviation from the data. Throws std::runtime_error if there
  // are no test images.
  void prepare();
  // Runs over the test images once. Returns the metrics, summed over all ranks. `skip` gets the
  // messages about images that cannot be read (LoaderOptions::skip).
  StepMetrics run(const Session::VisitBatch& visit = nullptr,
                  std::function<void(const std::string&)> skip = nullptr);

  const EvaluationOptions& options() const { return options_; }
  bool has_checkpoint() const { return !options_.checkpoint.empty(); }
  const CheckpointState& checkpoint() const { return state_; }
  const comm::Communicator& ranks() const { return ranks_; }
  // Returns the name of what is evaluated, for example "resnet18 after step 300" or "net.onnx".
  std::string describe() const;

 private:
  void load();
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
