#include "app/execute/run_on_all_ranks.h"

#include <array>

#include "app/errors.h"

namespace convoy::app {

void run_on_all_ranks(const comm::Communicator& ranks, const std::function<void()>& body,
                      std::string_view label) {
  std::exception_ptr failure;
  std::int32_t status = 0;
  try {
    body();
  } catch (const UsageError&) {
    failure = std::current_exception(), status = 2;
  } catch (const ExitStatus& exit) {
    failure = std::current_exception(), status = exit.status;
  } catch (const std::exception&) {
    failure = std::current_exception(), status = 1;
  }
  // Put the failing rank and its status into one number, the rank in the higher digits. So the
  // minimum over all ranks tells the lowest failing rank and its status.
  const std::int64_t mine =
      failure ? std::int64_t{ranks.rank()} * 1000 + status : std::int64_t{ranks.size()} * 1000;
  const std::int64_t first = ranks.all_reduce(mine, comm::ReduceOp::min, label);
  if (first >= std::int64_t{ranks.size()} * 1000) return;
  if (first / 1000 == ranks.rank()) std::rethrow_exception(failure);
  throw ExitStatus{static_cast<int>(first % 1000)};
}

}  // namespace convoy::app
