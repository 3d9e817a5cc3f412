// The transfers of a rank's programs: prepared when a program is bound, begun and finished by its instructions, and kept
// moving between them.
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
  // `parts` are the ranks of one replica, by part; outlives this object.
  explicit Transfers(comm::Collectives& parts) : stages_(parts) {}
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  // Numbers of transfers are those of one program: call it before each program is bound.
  void new_program() { of_program_.clear(); }
  // For the beginnings; the ends refer to them by the number.
  comm::PreparedOperation* prepare(const Transfer& end, void* data, const kernels::TensorDesc& desc,
                                   std::string_view label);
  comm::PreparedOperation* prepared(const Transfer& end) const { return of_program_.at(end.transfer); }

  void begin(comm::PreparedOperation* operation, comm::Stream stream) {
    operation->start(stream);
    under_way_.push_back(operation);
  }
  void finish(comm::PreparedOperation* operation, comm::Stream stream) {
    operation->wait(stream);
    std::erase(under_way_, operation);
  }
  // Every transfer of all programs once, on the null stream, which connects their ends. Collective.
  void run_all();
  // Lets what is under way move on.
  void progress() {
    std::erase_if(under_way_, [](comm::PreparedOperation* operation) { return operation->progress(); });
  }

 private:
  comm::Collectives& stages_;
  std::vector<std::unique_ptr<comm::PreparedOperation>> operations_;
  std::map<int, comm::PreparedOperation*> of_program_;
  std::vector<comm::PreparedOperation*> under_way_;  // room for all: a step allocates nothing
};

}  // namespace convoy::app
