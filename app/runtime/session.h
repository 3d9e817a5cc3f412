// One rank's run of one network: its memory, and the compiled programs for a training step and an evaluation step.
// Everything is decided by the constructor; a step then only runs its program.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/model/network.h"
#include "app/runtime/compiled_steps.h"
#include "app/runtime/model_memory.h"
#include "app/runtime/program.h"
#include "app/runtime/transfers.h"
#include "comm/buckets.h"
#include "comm/collectives.h"
#include "data/loader/batch.h"

namespace convoy::app {

struct SessionOptions {
  kernels::Backend backend = kernels::Backend::cpu;
  bool training = true;  // false: no gradients, no optimizer; evaluate_step only
  bool synchronised_batch_norm = true;
  float label_smoothing = 0;
  kernels::OptimizerProblem optimizer;  // its segments are filled in here
  double clip_gradient_norm = 0;        // largest Euclidean norm of all gradients together; 0: off
  std::int64_t memory_limit = 0;        // bytes of the arena; 0: none
  std::uint64_t seed = 1;
};

// A run's ranks are replica after replica, each of as many ranks as its step has parts.
struct RankGroups {
  comm::Collectives* world = nullptr;     // all of them
  comm::Collectives* replicas = nullptr;  // those with this rank's part: batches, gradients, statistics
  comm::Collectives* parts = nullptr;     // those of this rank's replica, by part; null without partition
};

GraphOptions graph_options(const SessionOptions& options, const RankGroups& groups);

// Sums over the samples of all ranks.
struct StepMetrics {
  double loss_sum = 0, top1 = 0, top5 = 0, samples = 0;
  double stop_requests = 0;  // ranks that want to stop
  StepMetrics& operator+=(const StepMetrics& other);
  double loss() const { return loss_sum / samples; }
};

class Session {
 public:
  // The network's input is this rank's batch. `ranks` must outlive the session.
  Session(const Network& network, const SessionOptions& options, comm::Collectives& ranks)
      : Session(network, options, RankGroups{&ranks, &ranks, nullptr}, nullptr) {}
  // The network's input is this replica's batch; the session runs this rank's part of the placed step. Null: all of it.
  Session(const Network& network, const SessionOptions& options, const RankGroups& groups,
          const StepPlacement* placement);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  kernels::StepControl& control() { return control_; }
  const ModelMemory& memory() const { return *memory_; }

  // Copies a batch to where the programs read it. Its capacity must be the network's.
  void load(const data::Batch& batch);

  // One step over the loaded batch. Every rank gets the same metrics. A train step updates the parameters.
  StepMetrics train_step(bool stop_requested = false) {
    memory_->metrics()[4] = stop_requested ? 1 : 0;
    return run(train_program_);
  }
  StepMetrics evaluate_step() { return run(evaluate_program_); }
  // Whether this part of the step reads the batch's images, and its labels.
  bool reads_images() const { return has(&StepGraph::images); }
  bool reads_labels() const { return has(&StepGraph::labels); }
  const RankGroups& groups() const { return groups_; }
  double exposed_comm_ms() const { return exposed_comm_ms_; }  // waited for other ranks in the last step

  // Row-major copies of a persistent tensor.
  std::vector<float> read(const PersistentTensor& tensor) const;
  void write(const PersistentTensor& tensor, const std::vector<float>& row_major);
  // Without synchronised batch norm every rank has running statistics of its own: replaces them by their mean.
  void average_states();

  const Program& train_program() const { return train_program_; }
  const Program& evaluate_program() const { return evaluate_program_; }

 private:
  void initialise(const StepGraph& graph);
  void make_buckets();
  Program bind(const PreparedGraph& prepared);
  void append_node(Program& program, const PreparedGraph& prepared, std::size_t node);
  void append_finished_buckets(Program& program, const PreparedGraph& prepared, std::size_t node);
  void append_transfer(Program& program, const PreparedGraph& prepared, const Node& node);
  void append_update(Program& program);
  void append_metrics(Program& program);
  void append_clipping(Program& program);
  void bind_kernel(Program& program, std::string layer, std::string kind, const kernels::Kernel& kernel,
                   std::vector<void*> inputs, std::vector<void*> outputs);
  void append_all_reduce(Program& program, comm::Collectives& ranks, const std::string& layer, double* data,
                         std::int64_t count);
  void append_communication(Program& program, std::string layer, std::string kind,
                            std::function<void()> action);
  StepMetrics run(const Program& program);
  bool has(TensorId StepGraph::*tensor) const {
    return evaluate_.graph.*tensor >= 0 || (train_ && train_->graph.*tensor >= 0);
  }

  const SessionOptions options_;
  const RankGroups groups_;
  comm::Collectives& ranks_;  // the replicas
  kernels::StepControl control_;
  std::optional<PreparedGraph> train_;
  PreparedGraph evaluate_;
  std::unique_ptr<ModelMemory> memory_;
  std::unique_ptr<comm::GradientBuckets> buckets_;
  std::vector<std::unique_ptr<comm::PreparedOperation>>
      all_reduces_;                       // of statistics, and at last of the metrics
  std::unique_ptr<Transfers> transfers_;  // null without partition
  std::vector<std::byte> update_workspace_;
  Program train_program_, evaluate_program_;
  double exposed_comm_ms_ = 0;
};

}  // namespace convoy::app
