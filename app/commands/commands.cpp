#include "app/commands/commands.h"

#include <fmt/core.h>

namespace convoy::app {

int run_command(int argc, char** argv) {
  CLI::App app{"Convoy trains convolutional networks over many ranks.", "convoy"};
  app.require_subcommand(1);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const UsageError& error) {
    fmt::print(stderr, "convoy: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "convoy: {}\n", error.what());
    return 1;
  }
  return 0;
}

}  // namespace convoy::app
