// Implements Collectives for a process that runs alone, without MPI. rank() is 0 and size() is 1.
// Every call that would exchange data throws std::logic_error.
#pragma once

#include <stdexcept>

#include "comm/collectives.h"

namespace convoy::comm {

class SingleRank final : public Collectives {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce(void*, std::int64_t, DType, ReduceOp, Stream, std::string_view) override { refuse(); }
  void broadcast(void*, std::int64_t, DType, int, Stream, std::string_view) override { refuse(); }
  std::unique_ptr<PreparedOperation> prepare_all_reduce(void*, std::int64_t, DType,
                                                        std::string_view) override {
    refuse();
  }
  std::unique_ptr<PreparedOperation> prepare_send(const void*, std::int64_t, DType, int,
                                                  std::string_view) override {
    refuse();
  }
  std::unique_ptr<PreparedOperation> prepare_receive(void*, std::int64_t, DType, int,
                                                     std::string_view) override {
    refuse();
  }

 private:
  [[noreturn]] static void refuse() { throw std::logic_error("a single rank has no collectives"); }
};

}  // namespace convoy::comm
