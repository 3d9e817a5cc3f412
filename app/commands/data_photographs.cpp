#include "app/commands/data_photographs.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "app/commands/validators.h"
#include "data/synthetic/photographs.h"

namespace convoy::app {

void add_data_photographs(CLI::App& data_command) {
  struct Flags {
    std::string out;
    data::PhotographFolder made;
  };
  auto flags = std::make_shared<Flags>();
  auto* command = data_command.add_subcommand(
      "photographs", "Draw a folder of JPEG files with the entropy of photographs: for measuring");
  const auto add = [command](const char* flag, auto& value, const char* what, const CLI::Validator& check) {
    return command->add_option(flag, value, what)->capture_default_str()->check(check);
  };
  command->add_option("OUT", flags->out, "the folder to make")->required();
  add("--width", flags->made.width, "of the images", whole_number(16, 8192));
  add("--height", flags->made.height, "of the images", whole_number(16, 8192));
  add("--quality", flags->made.quality, "of the JPEG files", whole_number(1, 100));
  add("--classes", flags->made.classes, "folders of each split", whole_number(1, 10'000));
  add("--train", flags->made.train, "training images", whole_number(1, 100'000'000));
  add("--test", flags->made.test, "test images", whole_number(1, 100'000'000));
  add("--seed", flags->made.seed, "of everything that is random", whole_number(0));
  add("--threads", flags->made.threads, "that draw; 0: one a processor", whole_number(0, 1024));
  command->callback([flags] {
    data::write_photographs(flags->made, flags->out);
    fmt::print("{}: {} training and {} test images of {}x{} in {} classes\n", flags->out, flags->made.train,
               flags->made.test, flags->made.width, flags->made.height, flags->made.classes);
  });
}

}  // namespace convoy::app
