// Holds the transfers of tensors between the stages of a partitioned step (model_parallel/plan.h).
// A transfer is prepared once, when a program is built. In a step, one instruction begins it and a
// later one finishes it. Between instructions the caller calls progress(), which keeps the
// transfers moving.
#pragma once

#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "app/graph/step_graph.h"
#include "comm/collectives.h"

namespace convoy::app {

class Transfers {
 public:
  // `stages` are the ranks of one replica: rank i runs stage i. They must outlive the transfers.
  explicit Transfers(comm::Collectives& stages) : stages_(stages) {}
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  // Call this before a program is built. Forgets the transfers of the previous program, because
  // every program numbers its transfers from 0.
  void new_program() { of_program_.clear(); }
  // Prepares a transfer for the instruction that begins it. The instruction that finishes it gets
  // the same transfer from prepared().
  comm::PreparedOperation* prepare(const Transfer& end, void* data, const kernels::TensorDesc& desc,
                                   std::string_view label);
  comm::PreparedOperation* prepared(const Transfer& end) const { return of_program_.at(end.transfer); }

  void begin(comm::PreparedOperation* operation, comm::Stream stream) {
    operation->start(stream);
    in_flight_.push_back(operation);
  }
  void finish(comm::PreparedOperation* operation, comm::Stream stream) {
    operation->wait(stream);
    std::erase(in_flight_, operation);
  }
  // Connects both ends of every transfer of all programs, by running it once. Call it after the
  // programs of all stages have been built and before the first step, because connections cannot be
  // made while a GPU step is captured. Does nothing on hosts. Collective.
  void connect(kernels::Backend backend);
  // Lets the transfers in flight make progress.
  void progress() {
    std::erase_if(in_flight_, [](comm::PreparedOperation* operation) { return operation->progress(); });
  }

 private:
  comm::Collectives& stages_;
  std::vector<std::unique_ptr<comm::PreparedOperation>> operations_;
  std::map<int, comm::PreparedOperation*> of_program_;
  // The vector has room for all transfers, so that a step allocates nothing.
  std::vector<comm::PreparedOperation*> in_flight_;
};

}  // namespace convoy::app
