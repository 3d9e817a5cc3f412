#include "app/commands/ending_signals.h"

#include <exception>

#include "comm/placement/launcher.h"
#include "comm/watchdog/terminate_signal.h"
#include "data/atomic_file.h"

namespace convoy::app {
namespace {

bool has_several_ranks() {
  try {
    const auto hint = comm::launcher_hint();
    return hint && hint->world_size > 1;
  } catch (const std::exception&) {
    return true;  // the command reports the launcher's variable
  }
}

}  // namespace

void handle_ending_signals() {
  data::end_cleanly_on_signals(!has_several_ranks());
  comm::TerminateSignal::set_default(data::end_cleanly);
}

}  // namespace convoy::app
