// The flags with which benchmarks of a training step choose their network and its input.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "app/commands/validators.h"

namespace convoy::app {

// Adds --model, --batch, --size and --classes to a verb. The flags store their values in `options`,
// which must outlive the verb. `batch` is the help text of --batch.
template <class Options>
void add_model_flags(CLI::App& verb, Options& options, const char* batch) {
  const auto add = [&verb](const char* flag, auto& value, const char* what, const CLI::Validator& check) {
    return verb.add_option(flag, value, what)->check(check);
  };
  verb.option_defaults()->group("Model and data");
  add("--model", options.model, "network of the zoo, or FILE.onnx", not_empty())
      ->capture_default_str()
      ->required()
      ->type_name("NAME");
  add("--batch", options.batch, batch, whole_number(1, 1 << 20))->required()->type_name("B");
  add("--size", options.size, "pixels a side; 0: the file's, else 224", whole_number(0, 1 << 14))
      ->capture_default_str();
  add("--classes", options.classes, "0: the file's, else 1000 above 64 pixels and 10 below",
      whole_number(0, 1 << 24))
      ->capture_default_str();
}

}  // namespace convoy::app
