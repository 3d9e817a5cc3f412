// Runs a network with fixed weights over a data set, for `convoy evaluate` and `convoy predict`.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/execute/evaluate_batches.h"
#include "app/model/import/model_file.h"
#include "app/training/checkpoint/checkpoint.h"
#include "app/training/dataset.h"
#include "app/training/rank_facts.h"
#include "app/training/train_options.h"
#include "comm/placement/environment.h"

namespace convoy::app {

struct EvaluationOptions {
  // A checkpoint file, or the folder of a run. If it is a folder, its best checkpoint is used. The
  // field is empty if run.model is FILE.onnx, or a network whose weights are in run.init.
  std::string checkpoint;
  bool ema = false;  // evaluates the checkpoint's moving averages
  bool keep_probabilities = false;
  // Only these options are used: data, global batch, backend, precision, feed, threads and timeout.
  // Without a checkpoint, size and test_resize are used, too. With a checkpoint, the values of
  // these two are those of its run.
  TrainOptions run;
  // Orders the use of the device among several sessions of this process; null if there is only one
  // session. If a gate is given, the caller has already bound this process to cores, and the
  // evaluation uses run.threads threads.
  DeviceGate* gate = nullptr;
};

class Evaluation {
 public:
  // Reads the checkpoint. The options that decide how an image reaches the network, such as --size,
  // are taken from the checkpoint and replace those of `options.run`. `flags` are further options
  // that must be the same on all ranks. The constructor, open(), prepare() and run() are
  // collective.
  Evaluation(EvaluationOptions options, const comm::MpiEnvironment& environment, const Facts& flags = {});

  // Opens the data with `open`. Call this function before prepare().
  Dataset& open(const std::function<OpenedData(const TrainOptions&)>& open = open_data);
  // Compiles the network for the data's classes and images, without gradients and optimizer. With a
  // checkpoint, weights, mean and deviation are those of the checkpoint. Otherwise the weights are
  // those of the model file or of run.init; mean and deviation are those of the model file if it
  // has them, else those of the data. Throws std::runtime_error if there are no test images.
  void prepare();
  // Runs over the test images once. Returns the metrics, summed over all ranks. `skip` gets the
  // messages about images that cannot be read (LoaderOptions::skip).
  StepMetrics run(const VisitBatch& visit = nullptr, std::function<void(const std::string&)> skip = nullptr);

  const EvaluationOptions& options() const { return options_; }
  bool has_checkpoint() const { return !options_.checkpoint.empty(); }
  // Whether the checkpoint or the model file says how images were normalised.
  bool has_normalisation() const { return !state_.mean.empty(); }
  // Returns the checkpoint. Without a checkpoint, only those fields are set that are known from the
  // model file: its path, image shape and classes and, if the file has them, the names of the
  // classes and the normalisation.
  const CheckpointState& checkpoint() const { return state_; }
  // Returns the path of the checkpoint or model file.
  const std::string& source() const { return has_checkpoint() ? options_.checkpoint : options_.run.model; }
  const comm::Communicator& ranks() const { return ranks_; }
  // Returns the name of what is evaluated, for example "resnet18 after step 300" or "net.onnx".
  std::string describe() const;

 private:
  void load();
  void describe_file();
  Network make_evaluated_network(std::int64_t capacity) const;

  EvaluationOptions options_;
  const comm::Communicator& ranks_;
  CheckpointState state_;
  std::optional<ModelFile> file_;
  int threads_ = 1;
  std::unique_ptr<comm::Collectives> collectives_;
  std::optional<Dataset> dataset_;
  StepOptions step_;
  std::optional<Session> session_;
};

}  // namespace convoy::app
