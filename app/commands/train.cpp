// `convoy train`: trains a network over the ranks that the launcher started.
#include <chrono>
#include <memory>

#include "app/commands/commands.h"
#include "app/commands/train_options.h"
#include "app/training/rank_setup.h"
#include "app/training/trainer.h"

namespace convoy::app {

void add_train_command(CLI::App& app) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* verb = app.add_subcommand("train", "Train a network over all ranks");
  add_train_options(*verb, *options);
  verb->callback([options] {
    comm::MpiEnvironment environment(
        std::chrono::milliseconds(static_cast<std::int64_t>(options->timeout * 1000)),
        device_of(options->backend));
    Trainer(*options, environment).run();
  });
}

}  // namespace convoy::app
