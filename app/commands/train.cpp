// `convoy train`: trains a network over the ranks that the launcher started.
#include <memory>

#include "app/commands/commands.h"
#include "app/commands/member_options.h"
#include "app/commands/train_flags.h"
#include "app/errors.h"
#include "app/execute/run_on_all_ranks.h"
#include "app/training/rank_setup.h"
#include "app/training/trainer.h"

namespace convoy::app {

void add_train_command(CLI::App& app) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* verb = app.add_subcommand("train", "Train a network over all ranks");
  add_train_flags(*verb, *options);
  verb->callback([options] {
    // Install the signal handlers first, so that a signal during the set-up does not kill the rank.
    const StopSignals signals;
    int status = 0;
    {
      comm::MpiEnvironment environment(timeout_of(*options), device_of(options->backend));
      std::vector<TrainOptions> members;
      if (!options->members.empty())
        run_on_all_ranks(environment.world(), [&] { members = member_options(options->members, *options); });
      status = Trainer(*options, {environment, signals}, std::move(members)).run();
    }
    if (status != 0) throw ExitStatus{status};
  });
}

}  // namespace convoy::app
